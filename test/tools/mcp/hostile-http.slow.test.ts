/** What a server over HTTP sends that takes long to parse or never ends, as one answer and as a stream of events. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { MAX_DEPTH } from '../../../src/tools/mcp/stdio-transport.js';
import { aBench, aTool, run, said, type Bench } from '../../support/mcp.js';

interface Rpc {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly arguments?: { readonly a?: string } };
}

const MIB = 1024 * 1024;
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
const result = (id: number | undefined, text: string, extra = 'null'): string =>
  `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"${text}"}],"_meta":{"x":${extra}}}}`;

/** Each writes the answer of one call. */
const ANSWERS: Readonly<Record<string, (response: ServerResponse, id: number | undefined) => void>> = {
  'fine, whole': (response, id) => whole(response, result(id, 'fine', nested(MAX_DEPTH - 10))),
  'fine, as events': (response, id) => events(response, [': a comment', `data: ${result(id, 'fine', nested(MAX_DEPTH - 10))}`]),
  'deep, whole': (response, id) => whole(response, result(id, 'deep', nested(100_000))),
  'deep, as an event': (response, id) => events(response, [`data: ${result(id, 'deep', nested(100_000))}`]),
  'deep behind what is closed in a comment': (response, id) =>
    events(response, [`: ${']'.repeat(1_000)}`, `data: ${result(id, 'deep', nested(MAX_DEPTH + 500))}`]),
  'deep behind a quote in a comment': (response, id) => events(response, [': "', `data: ${result(id, 'deep', nested(MAX_DEPTH + 500))}`]),
  'crumbs, whole': (response, id) => whole(response, result(id, 'wide', `[${'1,'.repeat(300_000)}1]`)),
  'crumbs, as an event': (response, id) => events(response, [`data: ${result(id, 'wide', `[${'1,'.repeat(300_000)}1]`)}`]),
  'long, whole': (response, id) => whole(response, result(id, 'x'.repeat(17 * MIB))),
  'long, as an event': (response, id) => events(response, [`data: ${result(id, 'x'.repeat(17 * MIB))}`]),
  'events without end': (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const some = 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n'.repeat(200);
    const more = (): void => {
      while (!response.destroyed && response.write(some));
    };
    response.on('drain', more);
    more();
  },
};

function whole(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(body);
}

function events(response: ServerResponse, lines: readonly string[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`${lines.join('\n')}\n\n`);
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'POST') return void response.writeHead(405).end();
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString()) as Rpc;
  const reply = (value: object): void => whole(response, JSON.stringify({ jsonrpc: '2.0', id, result: value }));
  if (id === undefined) return void response.writeHead(202).end();
  if (method === 'initialize') {
    return reply({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'evil', version: '1' } });
  }
  if (method === 'tools/list') return reply({ tools: [aTool('say')] });
  const how = params?.arguments?.a ?? '';
  (ANSWERS[how] ?? ANSWERS['fine, whole'])?.(response, id);
}

let server: Server;
let bench: Bench;

beforeAll(async () => {
  server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
beforeEach(() => (bench = aBench()));
afterEach(() => bench.close());
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const REFUSED = 'it sent a message of more than 250000 values, or more than 128 deep';

test.each([
  ['fine, whole', undefined],
  ['fine, as events', undefined],
  ['deep, whole', REFUSED],
  ['deep, as an event', REFUSED],
  ['deep behind what is closed in a comment', REFUSED],
  ['deep behind a quote in a comment', REFUSED],
  ['crumbs, whole', REFUSED],
  ['crumbs, as an event', REFUSED],
  ['long, whole', "the server's answer has more than 16777216 bytes"],
  ['long, as an event', 'an event of the server has more than 16777216 bytes'],
  ['events without end', 'the server sends events without end'],
])('%s', async (how, refusal) => {
  const [tool] = await bench.tools({ evil: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` } });
  const outcome = await run(tool!, { a: how });
  if (refusal === undefined) expect(said(outcome)).toBe('fine');
  else {
    expect(outcome.ok).toBe(false);
    expect(said(outcome) + bench.lines.join()).toContain(refusal);
  }
  expect(said(await run(tool!, { a: 'fine, as events' }))).toBe('fine');
});
