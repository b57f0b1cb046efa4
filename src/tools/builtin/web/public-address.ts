/** Which addresses everybody on the internet may reach: all others lead to this machine, its network or its cloud's own services. */
import ipaddr from 'ipaddr.js';

/** Public by their range, and answered by the cloud that a machine runs in. */
const CLOUDS_OWN = new Set(['168.63.129.16']);
const GLOBAL_UNICAST = ipaddr.IPv6.parse('2000::');
/** Prefixes under which an IPv4 address is reached by way of IPv6, and how many 16-bit parts stand before it. */
const COMPATIBLE = ipaddr.IPv6.parse('::');
const MAPPED = ipaddr.IPv6.parse('::ffff:0:0');
const TRANSLATED = ipaddr.IPv6.parse('64:ff9b::');

/** False for what is no address. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address instanceof ipaddr.IPv4) return isPublicIPv4(address);
  if (!(address instanceof ipaddr.IPv6)) return false;
  if ([COMPATIBLE, MAPPED, TRANSLATED].some((prefix) => address.match(prefix, 96))) {
    return isPublicIPv4(new ipaddr.IPv4(address.toByteArray().slice(12)));
  }
  // 6to4 and Teredo hold an IPv4 address too; nobody serves pages there, so they are refused with all that is no unicast.
  return address.match(GLOBAL_UNICAST, 3) && address.range() === 'unicast';
}

function isPublicIPv4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast' && !CLOUDS_OWN.has(address.toString());
}
