/** PDF and texts beside a message, in every protocol: what reaches the model, and what is refused in each protocol's own shape. */
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAcpAgent } from '../../src/gateway/acp/agent.js';
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { createConversations } from '../../src/gateway/core/conversations.js';
import { echo } from '../support/echo-model.js';
import { blocksOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { TOKEN } from '../support/event-reader.js';
import { startWorld, type World } from '../support/world.js';

const PDF = Buffer.concat([Buffer.from('%PDF-1.7 a paper'), Buffer.alloc(60_000, 1)]);
const CSV = Buffer.from('city,country\nOslo,Norway\n');
const SOUND = Buffer.from('ID3\x03\x00 a sound');
const data = (type: string, bytes: Buffer): string => `data:${type};base64,${bytes.toString('base64')}`;

let world: World;
let app: GatewayApp;
let seen: ApiRequest[] = [];
/** A model that nobody knows, and what it was asked. */
let other: Server;
const asked: string[] = [];

beforeAll(async () => {
  other = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (piece: string) => (body += piece));
    request.on('end', () => {
      asked.push(body);
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"not today"}}');
    });
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  world = await startWorld({
    openai: `http://127.0.0.1:${(other.address() as AddressInfo).port}`,
    answer: (request) => {
      seen.push(request);
      return echo(request);
    },
  });
  await world.writeAgent('other', { model: 'openai/of-somebody' });
  app = createGateway({ client: world.client, authenticate: oneToken(TOKEN), agents: () => Promise.resolve(['default', 'other']) });
});
afterAll(async () => {
  await world.close();
  other.closeAllConnections();
  other.close();
});
beforeEach(() => (seen = []));

async function post(
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; text: string }> {
  const answer = await app.request(`http://localhost${path}`, {
    method: 'POST',
    headers: { host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers },
    body: Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text() };
}

async function kept(bytes: Buffer): Promise<string> {
  return (JSON.parse((await post('/v1/attachments', bytes)).text) as { ref: string }).ref;
}

interface Sent {
  readonly bytes: Buffer;
  readonly type: string;
  readonly name: string;
}
type Send = (file: Sent | { readonly ref: string }) => Promise<{ status: number; text: string }>;

const chatFile = (file: Parameters<Send>[0]) =>
  'ref' in file ? { file_id: file.ref } : { file_data: data(file.type, file.bytes), filename: file.name };
const aguiSource = (file: Parameters<Send>[0]) =>
  'ref' in file ? { type: 'url', value: file.ref } : { type: 'data', value: file.bytes.toString('base64'), mimeType: file.type };

const PROTOCOLS: Readonly<Record<string, Send>> = {
  native: (file) => {
    const one = 'ref' in file ? file : { base64: file.bytes.toString('base64'), mediaType: file.type, name: file.name };
    return post(`/v1/conversations/${world.id()}/messages?wait=60`, { text: 'read', start: {}, documents: [one] });
  },
  'chat completions': (file) =>
    post('/v1/chat/completions', {
      model: 'default',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'read' },
            { type: 'file', file: chatFile(file) },
          ],
        },
      ],
    }),
  responses: (file) =>
    post('/v1/responses', {
      model: 'default',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'read' },
            { type: 'input_file', ...chatFile(file) },
          ],
        },
      ],
    }),
  messages: (file) => {
    const source =
      'ref' in file
        ? { type: 'file', file_id: file.ref }
        : file.type === 'text/csv'
          ? { type: 'text', media_type: 'text/plain', data: file.bytes.toString() }
          : { type: 'base64', media_type: file.type, data: file.bytes.toString('base64') };
    const document = { type: 'document', source, ...('name' in file && { title: file.name }) };
    const messages = [{ role: 'user', content: [document, { type: 'text', text: 'read' }] }];
    return post('/v1/messages', { model: 'default', max_tokens: 100, messages });
  },
  'ai sdk': (file) => {
    const url = 'ref' in file ? file.ref : data(file.type, file.bytes);
    const part = {
      type: 'file',
      mediaType: 'ref' in file ? 'application/octet-stream' : file.type,
      url,
      ...('name' in file && { filename: file.name }),
    };
    return post('/api/chat', {
      id: randomUUID(),
      trigger: 'submit-message',
      messages: [{ id: randomUUID(), role: 'user', parts: [part, { type: 'text', text: 'read' }] }],
    });
  },
  'ag-ui': (file) =>
    post('/agui', {
      threadId: randomUUID(),
      runId: randomUUID(),
      messages: [
        {
          id: randomUUID(),
          role: 'user',
          content: [
            { type: 'text', text: 'read' },
            { type: 'document', source: aguiSource(file) },
          ],
        },
      ],
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
    }),
  a2a: (file) => {
    const part = 'ref' in file ? { url: file.ref } : { raw: file.bytes.toString('base64'), mediaType: file.type, filename: file.name };
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'read' }, part] };
    return post('/a2a', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }, { 'a2a-version': '1.0' });
  },
};

/** What the model has read of the newest message. */
function newest(): readonly unknown[] {
  return blocksOf(seen.at(-1)?.messages.at(-1)?.content ?? []).map((one) => {
    const { cache_control: _, ...block } = one as unknown as Record<string, unknown>;
    return block;
  });
}
const DOCUMENT = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PDF.toString('base64') } };

describe.each(Object.entries(PROTOCOLS))('%s', (protocol, send) => {
  test('a PDF is a document, sent with the message or named', async () => {
    for (const file of [{ bytes: PDF, type: 'application/pdf', name: 'paper.pdf' }, { ref: await kept(PDF) }]) {
      const answer = await send(file);
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('You said: read')]);
      expect(newest()).toEqual([DOCUMENT, { type: 'text', text: 'read' }]);
    }
  });

  test('a text is text, sent with the message or named', async () => {
    const text = (name: string): string => `read\n\n[Attached file${name}]\n${CSV.toString()}`;
    expect((await send({ bytes: CSV, type: 'text/csv', name: 'a.csv' })).status).toBe(200);
    // Its parts have no names.
    expect(newest()).toEqual([{ type: 'text', text: text(protocol === 'ag-ui' ? '' : ' "a.csv"') }]);
    expect((await send({ ref: await kept(CSV) })).status).toBe(200);
    expect(newest()).toEqual([{ type: 'text', text: text('') }]);
  });

  test('what is neither by its content is refused, whatever it says that it is', async () => {
    const answer = await send({ bytes: SOUND, type: 'application/pdf', name: 'paper.pdf' });
    expect(answer.text).toMatch(/by its content the file .* is no PNG, JPEG, GIF or WebP picture, PDF, or text in UTF-8/);
    // A stream that has begun by then, since the machine is busy, says it as its event.
    const isStreamed = answer.text.startsWith('data: ');
    expect([answer.status, answer.text]).toEqual(
      protocol === 'a2a' ? [200, expect.stringContaining('-32005')] : [isStreamed ? 200 : 415, expect.any(String)],
    );
    expect(seen).toEqual([]);
  });
});

test('stateless requests go on with the conversation that has the file', async () => {
  const file = { type: 'file', file: { filename: 'a.csv', file_data: data('text/csv', CSV) } };
  const first = { role: 'user', content: [{ type: 'text', text: `read ${randomUUID()}` }, file] };
  const ask = async (messages: readonly unknown[]) =>
    JSON.parse((await post('/v1/chat/completions', { model: 'default', messages })).text) as {
      choices: { message: { content: string } }[];
    };
  const answer = await ask([first]);
  await ask([first, { role: 'assistant', content: answer.choices[0]?.message.content }, { role: 'user', content: 'and?' }]);
  expect(seen.at(-1)?.messages).toHaveLength(3);
  expect(JSON.stringify(seen.at(-1)?.messages[0])).toContain('Oslo,Norway');
});

test('sound is words for a model that takes none, and what a protocol cannot carry is refused in its shape', async () => {
  const content = [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }];
  const chat = await post('/v1/chat/completions', { model: 'default', messages: [{ role: 'user', content }] });
  expect(chat.status).toBe(200);
  expect(JSON.stringify(newest())).toContain('this model does not take audio');
  const responses = await post('/v1/responses', { model: 'default', input: [{ role: 'user', content }] });
  expect(responses.status).toBe(200);
  seen.length = 0;
  const messages = await post('/v1/messages', {
    model: 'default',
    max_tokens: 10,
    messages: [{ role: 'user', content: [{ type: 'video', source: { type: 'base64', media_type: 'video/mp4', data: 'AAAA' } }] }],
  });
  expect([messages.status, JSON.parse(messages.text)]).toMatchObject([
    400,
    { type: 'error', error: { message: expect.stringContaining('video') } },
  ]);
  const uploaded = await post('/v1/attachments', SOUND);
  expect([uploaded.status, JSON.parse(uploaded.text)]).toMatchObject([415, { type: 'urn:perdura:media-type' }]);
  expect(seen).toEqual([]);
});

test('ACP: a resource of the editor is text or a document, and sound is refused', async () => {
  const { client, ndJsonStream, PROTOCOL_VERSION } = await import('@agentclientprotocol/sdk');
  const [up, down] = [new TransformStream<Uint8Array, Uint8Array>(), new TransformStream<Uint8Array, Uint8Array>()];
  const agent = await createAcpAgent({ conversations: createConversations(world.client), version: '1' });
  const served = agent.connect(ndJsonStream(down.writable, up.readable));
  const editor = client({ name: 'test' }).connect(ndJsonStream(up.writable, down.readable));
  try {
    await editor.agent.request('initialize', { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
    const { sessionId } = await editor.agent.request('session/new', { cwd: '/', mcpServers: [] });
    const prompt = [
      { type: 'text' as const, text: 'read' },
      { type: 'resource' as const, resource: { uri: 'file:///a.csv', text: CSV.toString() } },
      { type: 'resource' as const, resource: { uri: 'file:///paper.pdf', blob: PDF.toString('base64') } },
    ];
    await editor.agent.request('session/prompt', { sessionId, prompt });
    expect(newest()).toEqual([DOCUMENT, { type: 'text', text: `read\n\n[Attached file "file:///a.csv"]\n${CSV.toString()}` }]);
    const sound = [{ type: 'audio' as const, data: 'AAAA', mimeType: 'audio/wav' }];
    await expect(editor.agent.request('session/prompt', { sessionId, prompt: sound })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('sound is not taken here'),
    });
  } finally {
    editor.close();
    served.close();
  }
});

test('a model that is not known to read PDF refuses that turn, naming itself and the setting, and the conversation goes on', async () => {
  const id = world.id();
  const documents = [{ base64: PDF.toString('base64') }];
  const answer = await post(`/v1/conversations/${id}/messages?wait=60`, { text: 'read', start: { agent: 'other' }, documents });
  expect(JSON.parse(answer.text)).toMatchObject({
    stopReason: 'failed',
    error: { message: expect.stringMatching(/to openai\/of-somebody: it is not known to read one.*documents: true.*perdura\.config/) },
  });
  expect(asked).toEqual([]);
  const next = await post(`/v1/conversations/${id}/messages?wait=60`, { text: 'and without?' });
  expect(JSON.parse(next.text)).toMatchObject({ error: { message: expect.stringContaining('not today') } });
  expect(asked.join()).toContain('[document: application/pdf, 60016 bytes; this model is not known to read it]');
});
