/** A file is sent to one gateway, and named to another in each protocol by its unmodified client: the model sees it. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { HttpAgent } from '@ag-ui/client';
import Anthropic from '@anthropic-ai/sdk';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js' with { 'resolution-mode': 'import' };
import { DefaultChatTransport } from 'ai';
import OpenAI from 'openai';
import { clientOf } from '../a2a/a2a-client.js';
import { begunSince, listedIds } from '../../support/listed-ids.js';
import { picture, startTwoGateways, TOKEN, type TwoGateways } from './two-gateways.js';

let count = 0;

describe.each(['file', 'redis'] as const)('over the %s store', (kind) => {
  let two: TwoGateways;
  let url: string;

  beforeAll(async () => {
    two = await startTwoGateways(kind);
    url = two.other.url;
  });
  afterAll(() => two.close());

  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  const post = (path: string, body: unknown, method = 'POST'): Promise<Response> =>
    fetch(`${url}${path}`, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  const unknown = `att_${'0'.repeat(32)}`;

  /** Names what was sent, and then what never was: that is refused in words, and no conversation begins for it. */
  async function isShown(name: (ref: string) => Promise<unknown>, refused: RegExp = /there is no attachment \\?"att_0000/): Promise<void> {
    const file = picture((count += 1), 100_000);
    const { ref } = await two.kept(file);
    const from = two.world.api.hits.length;
    expect(JSON.stringify(await name(ref)) ?? '').not.toContain('no attachment');
    expect(two.shown(file, from)).toBe(1);
    expect(two.world.api.problems).toEqual([]);
    const before = await listedIds(two.client);
    const why = await name(unknown).then(
      (answer) => JSON.stringify(answer),
      (error: Error) => error.message,
    );
    expect(why).toMatch(refused);
    expect(await begunSince(two.client, before)).toEqual([]);
  }

  test('native: as it was answered, by its reference alone, and with a start', async () => {
    const send = (images: (ref: string) => unknown) => async (ref: string) => {
      const body = { text: 'what is this?', images: [images(ref)], start: {} };
      return (await post(`/v1/conversations/native-${randomUUID()}/messages`, body)).json();
    };
    await isShown(send((ref) => ({ ref })));
    await isShown(send((ref) => ({ ref, mediaType: 'image/gif' })));
    await isShown(send((ref) => ({ ref, mediaType: 'image/png', bytes: 3, sha256: 'x', expiresAt: 'x', used: false })));
  });

  test('Chat Completions: an image_url, and a file', async () => {
    const client = new OpenAI({ apiKey: TOKEN, baseURL: `${url}/v1`, maxRetries: 0 });
    const ask = (part: (ref: string) => OpenAI.ChatCompletionContentPart) => (ref: string) =>
      client.chat.completions.create({
        model: 'default',
        messages: [{ role: 'user', content: [{ type: 'text', text: `here is ${randomUUID()}` }, part(ref)] }],
      });
    await isShown(ask((ref) => ({ type: 'image_url', image_url: { url: ref } })));
    await isShown(ask((ref) => ({ type: 'image_url', image_url: { url: `${url}/v1/attachments/${ref}/content` } })));
    await isShown(ask((ref) => ({ type: 'file', file: { file_id: ref } })));
    await expect(ask(() => ({ type: 'file', file: { file_id: 'file-abc' } }))('')).rejects.toThrow(
      /messages.0.content.1.file.file_id must be a reference/,
    );
  });

  test('Responses: an input_image and an input_file', async () => {
    const client = new OpenAI({ apiKey: TOKEN, baseURL: `${url}/v1`, maxRetries: 0 });
    const ask = (part: (ref: string) => OpenAI.Responses.ResponseInputContent) => (ref: string) =>
      client.responses.create({
        model: 'default',
        input: [{ role: 'user', content: [{ type: 'input_text', text: `here is ${randomUUID()}` }, part(ref)] }],
      });
    await isShown(ask((file_id) => ({ type: 'input_image', file_id, detail: 'auto' })));
    await isShown(ask((file_id) => ({ type: 'input_file', file_id })));
  });

  test('Messages: a source of the type file', async () => {
    const client = new Anthropic({ apiKey: TOKEN, baseURL: url, maxRetries: 0 });
    await isShown((file_id) =>
      client.beta.messages.create({
        model: 'default',
        max_tokens: 100,
        betas: ['files-api-2025-04-14'],
        messages: [
          {
            role: 'user',
            content: [
              { type: 'image', source: { type: 'file', file_id } },
              { type: 'text', text: `here is ${randomUUID()}` },
            ],
          },
        ],
      }),
    );
  });

  test('AI SDK: a file part', async () => {
    const transport = new DefaultChatTransport({ api: `${url}/api/chat`, headers: { authorization: `Bearer ${TOKEN}` } });
    await isShown(async (ref) => {
      const stream = await transport.sendMessages({
        chatId: `chat-${randomUUID()}`,
        messages: [
          {
            id: 'm1',
            role: 'user',
            parts: [
              { type: 'text', text: 'look' },
              { type: 'file', mediaType: 'image/png', url: `/v1/attachments/${ref}/content` },
            ],
          },
        ],
        trigger: 'submit-message',
        messageId: undefined,
        abortSignal: undefined,
      });
      const chunks: unknown[] = [];
      for await (const chunk of stream as unknown as AsyncIterable<unknown>) chunks.push(chunk);
      return chunks;
    });
  });

  test('AG-UI: an image by its address', async () => {
    jest.spyOn(console, 'error').mockImplementation();
    await isShown(async (ref) => {
      const agent = new HttpAgent({ url: `${url}/agui`, threadId: `run-${randomUUID()}`, headers: { authorization: `Bearer ${TOKEN}` } });
      agent.addMessage({
        id: 'm1',
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'image', source: { type: 'url', value: ref } },
        ],
      });
      await agent.runAgent();
    });
    jest.restoreAllMocks();
  });

  test('A2A: a file by its uri', async () => {
    const client = await clientOf(url);
    await isShown(async (ref) => {
      const part = { metadata: undefined, filename: '', mediaType: '' };
      const message = {
        messageId: randomUUID(),
        contextId: '',
        taskId: '',
        role: 1,
        parts: [
          { ...part, content: { $case: 'text' as const, value: 'look' } },
          { ...part, content: { $case: 'url' as const, value: ref } },
        ],
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
      };
      return client.sendMessage({ tenant: '', message, configuration: undefined, metadata: undefined });
    });
  });

  test('MCP: attachments of send_message and start_conversation', async () => {
    const [{ Client }, { StreamableHTTPClientTransport }] = await Promise.all([
      import('@modelcontextprotocol/sdk/client/index.js'),
      import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
    ]);
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }) as Transport);
    const id = two.world.id();
    await two.client.start(id);
    await isShown((ref) => client.callTool({ name: 'send_message', arguments: { conversation: id, text: 'look', attachments: [ref] } }));
    await isShown((ref) => client.callTool({ name: 'start_conversation', arguments: { message: 'look', attachments: [ref] } }));
    await client.close();
  });

  test('the same bytes are one reference and lie in one place: with the upload, then with the conversation', async () => {
    const file = picture((count += 1), 50_000);
    const [first, second] = [await two.kept(file), await two.kept(file)];
    expect([second.ref, second.used]).toEqual([first.ref, false]);
    const id = two.world.id();
    expect((await post(`/v1/conversations/${id}/messages`, { text: 'look', images: [first], start: {} })).status).toBe(200);
    const base64 = file.toString('base64');
    expect((await two.bytes()).split(base64)).toHaveLength(2);
    expect(await two.kept(file)).toMatchObject({ ref: first.ref, used: true });
    expect((await two.bytes()).split(base64)).toHaveLength(2);
    expect(await two.bytes()).not.toContain(file.subarray(-40_000).toString('latin1'));
    // Another conversation has its own, as of all that is said in it.
    const again = two.world.id();
    expect((await post(`/v1/conversations/${again}/messages`, { text: 'look', images: [first], start: {} })).status).toBe(200);
    expect((await two.bytes()).split(base64)).toHaveLength(3);
  });

  test('many conversations name one upload at once, and each has it', async () => {
    const file = picture((count += 1), 20_000);
    const { ref } = await two.kept(file);
    const from = two.world.api.hits.length;
    const sent = Array.from({ length: 6 }, () =>
      post(`/v1/conversations/${two.world.id()}/messages`, { text: 'look', images: [{ ref }], start: {} }),
    );
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    expect(two.shown(file, from)).toBe(6);
  });

  test('the same message once more is one message, and a fork has the picture', async () => {
    const file = picture((count += 1));
    const { ref } = await two.kept(file);
    const id = two.world.id();
    const message = { id: 'm1', text: 'look', images: [{ ref }], start: {} };
    const from = two.world.api.hits.length;
    const answers = [await post(`/v1/conversations/${id}/messages`, message), await post(`/v1/conversations/${id}/messages`, message)];
    expect(await Promise.all(answers.map((answer) => answer.json()))).toMatchObject([{ turnId: 'turn_0001' }, { turnId: 'turn_0001' }]);
    expect(two.shown(file, from)).toBe(1);
    const { id: fork } = (await (await post(`/v1/conversations/${id}/fork`, { at: 'turn_0001' })).json()) as { id: string };
    await two.client.send(fork, 'and here?');
    expect(two.shown(file, from)).toBe(2);
  });

  test('deleted with the last conversation that has it, and with no other: the reference is then as one that never was', async () => {
    const file = picture((count += 1), 50_000);
    const { ref } = await two.kept(file);
    const [first, second] = [two.world.id(), two.world.id()];
    for (const id of [first, second]) await post(`/v1/conversations/${id}/messages`, { text: 'look', images: [{ ref }], start: {} });
    const remove = async (id: string): Promise<void> => {
      await two.client.closeConversation(id, { memory: false });
      await two.client.outcome(id);
      expect((await post(`/v1/conversations/${id}`, undefined, 'DELETE')).status).toBe(200);
    };
    const look = (path = ''): Promise<Response> => fetch(`${url}/v1/attachments/${ref}${path}`, { headers });
    await remove(second);
    expect((await look()).status).toBe(200);
    expect(Buffer.from(await (await look('/content')).arrayBuffer()).equals(file)).toBe(true);
    await remove(first);
    const never = await fetch(`${url}/v1/attachments/${unknown}`, { headers });
    const gone = await look();
    expect([gone.status, (await gone.text()).replaceAll(ref, unknown)]).toEqual([404, await never.text()]);
    expect((await look('/content')).status).toBe(404);
    expect(await two.bytes()).not.toContain(file.toString('base64'));
    // It can be sent again.
    expect(await two.kept(file)).toMatchObject({ ref, used: false });
    expect((await look()).status).toBe(200);
  });

  test('one that nobody has used expires; one that a conversation has does not', async () => {
    const [unused, used] = [picture((count += 1), 5_000), picture((count += 1), 5_000)];
    async function* once(file: Buffer): AsyncGenerator<Uint8Array> {
      yield file;
    }
    // Long enough for a busy machine to use it in time.
    const keepMs = 30_000;
    const refs = [await two.client.upload(once(unused), { keepMs }), await two.client.upload(once(used), { keepMs })].map(({ ref }) => ref);
    const id = two.world.id();
    await post(`/v1/conversations/${id}/messages`, { text: 'look', images: [{ ref: refs[1] }], start: {} });
    await sleep(keepMs + 100);
    const seen = await Promise.all(refs.map(async (ref) => (await fetch(`${url}/v1/attachments/${ref}`, { headers })).status));
    expect(seen).toEqual([404, 200]);
    await two.client.sweepUploads();
    await two.client.sweepUploads();
    const bytes = await two.bytes();
    expect([bytes.includes(unused.toString('latin1')), bytes.includes(refs[0] ?? '')]).toEqual([false, false]);
    const from = two.world.api.hits.length;
    await two.client.send(id, 'and now?');
    expect(two.shown(used, from)).toBe(1);
  });

  test('its content is a picture and nothing else to a browser', async () => {
    const file = picture((count += 1));
    const { ref } = await two.kept(file);
    const answer = await fetch(`${url}/v1/attachments/${ref}/content`, { headers });
    expect(Buffer.from(await answer.arrayBuffer()).equals(file)).toBe(true);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'image/png',
      'content-length': String(file.byteLength),
      'content-disposition': `attachment; filename="${ref}.png"`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
    });
    for (const path of [ref, `${ref}/content`]) expect((await fetch(`${url}/v1/attachments/${path}`)).status).toBe(401);
    for (const path of ['att_x', '..%2f..%2fstore-id', 'x'.repeat(99), unknown])
      expect((await fetch(`${url}/v1/attachments/${path}`, { headers })).status).toBe(404);
  });
});
