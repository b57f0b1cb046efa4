/**
 * Gets what lies at a URL, without letting the URL decide where this machine connects to.
 *
 * A setting allows a private address by host and port, as a person wrote it.
 *
 * @rule web/every-hop-checked: Every hop is checked: its scheme, its length, and the address if the URL has one. (test:
 *   test/tools/builtin/fetch-url.test.ts)
 * @rule web/name-looked-up-once: A name is looked up once, all of its addresses are checked, and the connection goes to one of those: a
 *   name that answers otherwise the next time gains nothing. (test: test/tools/builtin/fetch-url.test.ts)
 * @rule web/redirect-under-rules: A redirect leads nowhere that the agent's rules would not let the call go by itself. (test:
 *   test/tools/builtin/fetch-url.test.ts)
 * @rule web/no-credentials-sent: No password, cookie or header of a model's choice is sent, and no proxy of the environment is used. (test:
 *   test/tools/builtin/fetch-url.test.ts)
 */
import { lookup as lookUp } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { Agent, fetch, type Response } from 'undici';
import ipaddr from 'ipaddr.js';

export interface Found {
  readonly address: string;
  readonly family: number;
}

export interface FetchGuard {
  /** `host:port`, as a URL names the host. */
  readonly allow: readonly string[];
  readonly lookup: (hostname: string) => Promise<readonly Found[]>;
  /** Why a redirect to an address is not followed; undefined where it is. */
  readonly refusalOf?: (url: string) => string | undefined;
}

export interface Fetched {
  readonly response: Response;
  /** Where the redirects ended. */
  readonly url: URL;
  readonly hops: number;
  /** Ends the connection, whether or not all was read. */
  readonly close: () => Promise<void>;
}

export const MAX_URL = 2_000;
const MAX_HOPS = 5;
const HEADER_BYTES = 32 * 1024;
const CONNECT_MS = 10_000;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

const HEADERS = {
  accept: 'text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5',
  'user-agent': 'Mozilla/5.0 (compatible; Perdura)',
};

/** What may not be fetched; the message is for the model. */
export class FetchRefused extends Error {
  override readonly name = 'FetchRefused';
}

export const systemLookup: FetchGuard['lookup'] = (hostname) => lookUp(hostname, { all: true });

/** Throws `FetchRefused`, and whatever undici throws. */
export async function fetchGuarded(start: string, guard: FetchGuard, signal: AbortSignal): Promise<Fetched> {
  let url = checkedUrl(start);
  for (let hops = 0; ; hops++) {
    const agent = agentFor(url, guard);
    try {
      const response = await fetch(url, { dispatcher: agent, redirect: 'manual', headers: HEADERS, signal });
      const location = REDIRECTS.has(response.status) ? response.headers.get('location') : null;
      if (location === null) return { response, url, hops, close: () => agent.destroy() };
      if (hops === MAX_HOPS) throw new FetchRefused(`${start} redirects more than ${MAX_HOPS} times; the last one was from ${url.href}`);
      const next = checkedUrl(location, url);
      const refusal = guard.refusalOf?.(next.href);
      if (refusal !== undefined) {
        throw new FetchRefused(
          `${url.href} redirects to ${next.href}, which was not fetched: ${refusal}. Call fetch_url with it if it is needed.`,
        );
      }
      url = next;
    } catch (error) {
      await agent.destroy();
      throw refusalIn(error) ?? error;
    }
    await agent.destroy();
  }
}

/** (web/every-hop-checked, web/no-credentials-sent) */
export function checkedUrl(text: string, base?: URL): URL {
  const from = base ? ` (where ${base.href} redirects to)` : '';
  if (text.length > MAX_URL) {
    throw new FetchRefused(
      `did not fetch a URL of ${text.length} characters${from}: at most ${MAX_URL} are sent, since a long one can carry data away`,
    );
  }
  if (!URL.canParse(text, base?.href))
    throw new FetchRefused(`${JSON.stringify(text)}${from} is no URL; write one such as https://example.com/page`);
  const url = new URL(text, base);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new FetchRefused(`did not fetch ${url.protocol}…${from}: only http: and https: are fetched`);
  }
  url.username = '';
  url.password = '';
  url.hash = '';
  if (url.href.length > MAX_URL) throw new FetchRefused(`did not fetch a URL that is longer than ${MAX_URL} characters${from}`);
  return url;
}

export function agentFor(url: URL, { allow, lookup }: Pick<FetchGuard, 'allow' | 'lookup'>): Agent {
  const host = url.hostname.replace(/^\[(.+)\]$/, '$1');
  const isAllowed = allow.includes(hostAndPort(url));
  // Not called when the URL itself holds an address.
  if (!isAllowed && isIP(host) !== 0 && !isPublicAddress(host)) throw notPublic(url);
  return new Agent({
    connect: { lookup: checkedLookup(url, lookup, isAllowed), timeout: CONNECT_MS },
    maxHeaderSize: HEADER_BYTES,
    connections: 1,
    pipelining: 0,
  });
}

/** (web/name-looked-up-once) */
export function checkedLookup(url: URL, lookup: FetchGuard['lookup'], isAllowed: boolean): LookupFunction {
  const find = async (hostname: string): Promise<Found[]> => {
    const found = [...(await lookup(hostname))];
    if (!isAllowed && !found.every(({ address }) => isPublicAddress(address))) throw notPublic(url);
    if (found.length === 0) throw new FetchRefused(`${hostname} has no address`);
    return found;
  };
  return (hostname, options, callback) => {
    find(hostname).then(
      (found) => (options.all ? callback(null, found) : callback(null, found[0]?.address ?? '', found[0]?.family)),
      (error: unknown) => callback(error as NodeJS.ErrnoException, options.all ? [] : ''),
    );
  };
}

export function hostAndPort(url: URL): string {
  return `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`;
}

/** Not which address it is: that would show what is in the network. */
function notPublic(url: URL): FetchRefused {
  return new FetchRefused(
    `did not fetch ${url.origin}: its host is not on the public internet, and what is on this machine or its network is not fetched. ` +
      `If the person wants it, they can set PERDURA_FETCH_ALLOW to hold ${hostAndPort(url)}.`,
  );
}

/** It comes wrapped, once for each layer that it came through. */
export function refusalIn(error: unknown, depth = 0): FetchRefused | undefined {
  if (error instanceof FetchRefused) return error;
  if (typeof error !== 'object' || error === null || depth > 5) return undefined;
  const { cause, errors }: { readonly cause?: unknown; readonly errors?: unknown } = error;
  return [cause, ...(Array.isArray(errors) ? (errors as unknown[]) : [])]
    .map((inner) => refusalIn(inner, depth + 1))
    .find((found) => found !== undefined);
}

// Which addresses every host on the internet may reach: all others lead to this machine, its network or its cloud's services.

/** Public by their range, and answered by the cloud that a machine runs in. */
const CLOUD_ADDRESSES = new Set(['168.63.129.16']);
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
  // 6to4 and Teredo hold an IPv4 address too; no page is served there, so they are refused with all that is no unicast.
  return address.match(GLOBAL_UNICAST, 3) && address.range() === 'unicast';
}

function isPublicIPv4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast' && !CLOUD_ADDRESSES.has(address.toString());
}
