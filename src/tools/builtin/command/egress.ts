/**
 * The one way out of a sandbox: a proxy of the worker, which leads to the hosts that the agent names and to no other. A socket of the file
 * system is its door, since a sandbox has no network.
 *
 * @rule command/named-hosts-only: A command reaches the hosts that its agent's file names, on their ports, and none that is not on the public
 *   internet unless a setting allows it. (test: test/tools/builtin/egress.test.ts)
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request as askServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, isIP, type LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { errorMessage } from '../../../platform/errors.js';
import { checkedLookup, hostAndPort, isPublicAddress, systemLookup, type FetchGuard } from '../web/guarded-fetch.js';

export interface EgressRules extends Partial<Pick<FetchGuard, 'allow' | 'lookup'>> {
  /** `host`, `*.host`, with `:port` for another than 80 and 443. */
  readonly hosts: readonly string[];
}

export interface Egress {
  /** Holds nothing but the socket. */
  readonly folder: string;
  readonly socket: string;
  readonly close: () => Promise<void>;
}

const IDLE_MS = 120_000;
const MAX_AT_ONCE = 64;
/** Between two connections, not between the ends: a proxy passes them not on. */
const OF_THE_HOP = /^(connection|keep-alive|te|trailer|transfer-encoding|upgrade|proxy-.*)$/i;

export async function openEgress(rules: EgressRules): Promise<Egress> {
  const folder = await mkdtemp(join(tmpdir(), 'perdura-egress-'));
  const socket = join(folder, 'proxy.sock');
  const open = new Set<Duplex>();
  const keep = (stream: Duplex): void => {
    open.add(stream);
    stream.on('error', () => stream.destroy());
    stream.once('close', () => open.delete(stream));
  };
  const server = createServer((request, response) => pass(request, response, rules));
  server.maxConnections = MAX_AT_ONCE;
  server.on('connection', keep);
  server.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
    const to = target(`https://${request.url ?? ''}`, rules);
    if (typeof to === 'string') return void client.end(`HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\n\r\n${to}\n`);
    const there = connect({ host: bare(to.url), port: Number(to.url.port || 443), lookup: to.lookup });
    keep(there);
    there.setTimeout(IDLE_MS, () => there.destroy());
    there.once('error', (error) => client.end(`HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/plain\r\n\r\n${errorMessage(error)}\n`));
    there.once('connect', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      there.write(head);
      client.pipe(there).pipe(client);
    });
    client.once('close', () => there.destroy());
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(socket, resolve));
  return {
    folder,
    socket,
    async close() {
      server.close();
      for (const stream of open) stream.destroy();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function pass(request: IncomingMessage, response: ServerResponse, rules: EgressRules): void {
  const to = target(request.url ?? '', rules);
  if (typeof to === 'string' || to.url.protocol !== 'http:') {
    response.writeHead(403, { 'content-type': 'text/plain' }).end(`${typeof to === 'string' ? to : 'https goes by CONNECT'}\n`);
    return;
  }
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !OF_THE_HOP.test(name)));
  const { url, lookup } = to;
  const outgoing = askServer(url, { method: request.method ?? 'GET', headers, lookup, agent: false, timeout: IDLE_MS }, (answer) => {
    const kept = Object.entries(answer.headers).filter(([name]) => !OF_THE_HOP.test(name));
    response.writeHead(answer.statusCode ?? 502, Object.fromEntries(kept));
    answer.pipe(response);
  });
  outgoing.once('timeout', () => outgoing.destroy());
  outgoing.once('error', (error) => {
    if (!response.headersSent) response.writeHead(502, { 'content-type': 'text/plain' });
    response.end(`${errorMessage(error)}\n`);
  });
  response.once('close', () => outgoing.destroy());
  request.pipe(outgoing);
}

interface Target {
  readonly url: URL;
  readonly lookup: LookupFunction;
}

/** Or why it is not reached, in words for who runs the command. */
function target(text: string, { hosts, allow = [], lookup = systemLookup }: EgressRules): Target | string {
  if (!URL.canParse(text)) return `${JSON.stringify(text.slice(0, 200))} is no address`;
  const url = new URL(text);
  const place = hostAndPort(url);
  if (!hosts.some((host) => fits(host, url))) {
    return `${place} is not reached: the agent's commandHosts (agent.json) do not name it. Named: ${hosts.join(', ').slice(0, 500)}.`;
  }
  const isAllowed = allow.includes(place);
  if (!isAllowed && isIP(bare(url)) !== 0 && !isPublicAddress(bare(url))) return `${place} is not on the public internet`;
  return { url, lookup: checkedLookup(url, lookup, isAllowed) };
}

function fits(named: string, url: URL): boolean {
  const [host = '', port] = named.toLowerCase().split(':');
  const wanted = url.hostname.toLowerCase().replace(/\.$/, '');
  const isHost = host.startsWith('*.') ? wanted.endsWith(host.slice(1)) && wanted.length > host.length - 1 : wanted === host;
  const wantedPort = url.port || (url.protocol === 'https:' ? '443' : '80');
  return isHost && (port === undefined ? ['80', '443'].includes(wantedPort) : wantedPort === port);
}

/** Of an address of IPv6 without its brackets. */
function bare({ hostname }: URL): string {
  return hostname.replace(/^\[(.+)\]$/, '$1');
}
