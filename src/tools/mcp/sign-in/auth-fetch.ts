/**
 * How the addresses are reached that a server's metadata names: a hostile server could name any. They are on the public internet, or where
 * the server itself is (its origin; this machine, where it runs on this machine), or where PERDURA_FETCH_ALLOW allows it.
 */
import { isIP } from 'node:net';
import { fetch as fetchByUndici } from 'undici';
import {
  agentFor,
  checkedUrl,
  FetchRefused,
  hostAndPort,
  refusalIn,
  systemLookup,
  type FetchGuard,
} from '../../builtin/web/guarded-fetch.js';
import { timeoutSignal } from '../../../platform/promises.js';

/** As the library asks. */
export type AuthFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 64 * 1024;

export function authFetchFor(
  { url }: { readonly url: string },
  {
    fetchAllow = [],
    lookup = systemLookup,
  }: { readonly fetchAllow?: readonly string[] | undefined; readonly lookup?: FetchGuard['lookup'] },
): AuthFetch {
  return createAuthFetch(new URL(url), { allow: fetchAllow, lookup });
}

/** No redirect is followed: the library follows those that stay at their origin. */
function createAuthFetch(server: URL, { allow, lookup }: FetchGuard): AuthFetch {
  return async (given, init = {}) => {
    const url = checkedUrl(String(given));
    const isNear = url.origin === server.origin || (isLoopback(server) && isLoopback(url));
    const agent = agentFor(url, { lookup, allow: isNear ? [...allow, hostAndPort(url)] : allow });
    try {
      const { method = 'GET', body } = init;
      const headers = Object.fromEntries(new Headers(init.headers));
      const signal = AbortSignal.any([timeoutSignal(TIMEOUT_MS), ...(init.signal ? [init.signal] : [])]);
      const response = await fetchByUndici(url, {
        ...{ dispatcher: agent, redirect: 'manual', method, headers, signal },
        ...(body !== undefined && body !== null && { body: body instanceof URLSearchParams ? body.toString() : (body as string) }),
      });
      const { status } = response;
      const text = await readBounded(url, response.body as AsyncIterable<Uint8Array> | null);
      const answered = new Response([204, 205, 304].includes(status) ? null : text, { status, headers: [...response.headers] });
      return answered;
    } catch (error) {
      throw refusalIn(error) ?? error;
    } finally {
      await agent.destroy();
    }
  };
}

async function readBounded(url: URL, body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.length;
    if (bytes > MAX_BYTES) throw new FetchRefused(`${url.origin} answered with more than ${MAX_BYTES} bytes, which are not read`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function isLoopback({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[(.+)\]$/, '$1');
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
