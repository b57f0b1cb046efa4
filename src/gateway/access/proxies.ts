/**
 * Where a request comes from, and by which name it reaches the gateway. `X-Forwarded-*` counts where a trusted proxy has sent it; any other
 * sender could have made it up. In a chain the last address that no trusted proxy has is the client's: the client itself may have written
 * those before it.
 */
import ipaddr from 'ipaddr.js';
import { isIP } from 'node:net';

export interface Seen {
  /** Address of the client; undefined where the server does not provide it. */
  readonly address?: string;
  /** The host name in its request. */
  readonly host?: string;
  /** Whether it came by https. */
  readonly isSecure: boolean;
}

interface Arriving {
  /** Address of the socket's other end. */
  readonly peer?: string;
  readonly url: string;
  readonly header: (name: string) => string | undefined;
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type AddressRange = readonly [Address, number];

const MAX_HOPS = 32;

/** `10.0.0.0/8`, or one address. Throws in words. */
export function parseProxy(text: string): AddressRange {
  try {
    // The check of Node: the library also takes `10.0.0` and `0x7f.1`.
    if (isIP(text.replace(/\/\d+$/, '')) === 0) throw new Error('no address');
    if (text.includes('/')) return ipaddr.parseCIDR(text);
    const one = ipaddr.process(text);
    return [one, one.kind() === 'ipv4' ? 32 : 128];
  } catch {
    throw new Error(`${JSON.stringify(text)} is no range of addresses: write such as 10.0.0.0/8, fd00::/8 or 127.0.0.1`);
  }
}

export function createProxies(trusted: readonly string[]): (arriving: Arriving) => Seen {
  const ranges = trusted.map(parseProxy);
  const isTrusted = (address: string | undefined): boolean => {
    const parsed = parse(address);
    return parsed !== undefined && ranges.some(([range, bits]) => range.kind() === parsed.kind() && matches(parsed, range, bits));
  };
  return ({ peer, url, header }) => {
    const direct = { ...(peer !== undefined && { address: peer }), host: header('host'), isSecure: url.startsWith('https:') };
    if (!isTrusted(peer)) return direct;
    const protocol = takeLast(header('x-forwarded-proto'));
    return {
      address: findClient(header('x-forwarded-for'), isTrusted) ?? peer,
      host: takeLast(header('x-forwarded-host')) ?? direct.host,
      isSecure: protocol === undefined ? direct.isSecure : protocol.toLowerCase() === 'https',
    };
  };
}

/** The key by which limits count: a client with one IPv6 address has 2^64 of them. */
export function toNetwork(address: string | undefined): string {
  const parsed = parse(address);
  if (parsed === undefined) return 'unknown';
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

function findClient(forwarded: string | undefined, isTrusted: (address: string) => boolean): string | undefined {
  const hops = (forwarded ?? '').split(',').slice(-MAX_HOPS).map(withoutPort).reverse();
  let client: string | undefined;
  for (const hop of hops) {
    if (parse(hop) === undefined) break;
    client = hop;
    if (!isTrusted(hop)) break;
  }
  return client;
}

/** Some proxies add it: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  const text = hop.trim();
  return /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
}

/** The nearest proxy appends its value, so the last one counts. */
function takeLast(value: string | undefined): string | undefined {
  return value?.split(',').at(-1)?.trim() || undefined;
}

/** An IPv4 address that is written as IPv6 is the one that it means. */
function parse(address: string | undefined): Address | undefined {
  return address !== undefined && isIP(address) !== 0 ? ipaddr.process(address) : undefined;
}

function matches(address: Address, range: Address, bits: number): boolean {
  return (address as ipaddr.IPv4).match(range as ipaddr.IPv4, bits);
}

/**
 * Names by which the gateway may be reached. A page of another site may make its name lead to this machine (DNS rebinding): it sends that
 * name, and is refused. A page at another address sends its origin, and is refused unless the origin is allowed.
 */
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

interface Hosts {
  isAllowedHost(host: string | undefined): boolean;
  /** Absent: not a browser, or the same site. */
  isAllowedOrigin(origin: string | undefined, host: string | undefined): boolean;
}

/** `names`: beside loopback, `name` or `name:port`; `origins`: such as `https://app.example`. */
export function createHosts({ names, origins }: { readonly names: readonly string[]; readonly origins: readonly string[] }): Hosts {
  const known = new Set([...LOOPBACK, ...names].map((name) => name.toLowerCase()));
  const allowed = new Set(origins.map((origin) => origin.toLowerCase()));
  return {
    isAllowedHost(host) {
      if (host === undefined) return false;
      const given = host.toLowerCase();
      return known.has(given) || known.has(given.replace(/:\d{1,5}$/, ''));
    },
    isAllowedOrigin(origin, host) {
      if (origin === undefined) return true;
      const given = origin.toLowerCase();
      if (allowed.has(given)) return true;
      return host !== undefined && (given === `http://${host.toLowerCase()}` || given === `https://${host.toLowerCase()}`);
    },
  };
}
