import { callTool, callTools, gate, text } from './reply.js';
import { startMessagesApi } from './messages-api.js';
import { closeAll, connect, failure, getTime, hello, post, rawEvents, sdk } from './client.js';

afterEach(closeAll);

describe('an answer', () => {
  test('of text arrives whole, whether it streams or not', async () => {
    const { api, client } = await connect({ script: [{ reply: text('Hello 👋 there.') }, { reply: text('Hello 👋 there.') }] });
    const whole = await client.messages.create(hello);
    const streamed = await client.messages.stream(hello).finalMessage();
    expect(whole.content).toEqual([{ type: 'text', text: 'Hello 👋 there.', citations: null }]);
    expect(streamed.content).toEqual([{ type: 'text', text: 'Hello 👋 there.' }]);
    expect([whole.stop_reason, streamed.stop_reason]).toEqual(['end_turn', 'end_turn']);
    api.assertDone();
  });

  test('streams as the event sequence of the real API', async () => {
    const { api } = await connect({
      script: [{ reply: { thinking: { text: 'Hm.', signature: 'sig' }, text: 'Well', toolCalls: [{ id: 'toolu_1', name: 'get_time' }] } }],
    });
    const events = await rawEvents(api.url);
    expect(events.map(({ event, data }) => (data.type === event ? event : `${event}≠${String(data.type)}`))).toEqual([
      'message_start',
      'content_block_start',
      'ping',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
    expect(events.flatMap(({ data }) => (data.delta ? [data.delta] : []))).toEqual([
      { type: 'thinking_delta', thinking: 'Hm.' },
      { type: 'signature_delta', signature: 'sig' },
      { type: 'text_delta', text: 'Well' },
      { type: 'input_json_delta', partial_json: '' },
      { stop_reason: 'tool_use', stop_sequence: null, stop_details: null },
    ]);
    expect(events[0]?.data.message).toMatchObject({ content: [], stop_reason: null, role: 'assistant', model: 'claude-test' });
  });

  test('of thinking keeps its signature', async () => {
    const reply = { thinking: { text: 'A long thought about it.', signature: 'EqQBCg' }, text: 'Yes.' };
    const { client } = await connect({ script: [{ reply }] });
    const { content } = await client.messages.stream(hello).finalMessage();
    expect(content[0]).toEqual({ type: 'thinking', thinking: 'A long thought about it.', signature: 'EqQBCg' });
  });

  test('may call several tools at once, each with its own id and input', async () => {
    const calls = callTools({ name: 'get_time', input: {} }, { name: 'get_time', input: { zone: 'Europe/Paris', list: [1, { a: 'b' }] } });
    const { client } = await connect({ script: [{ reply: calls }, { reply: calls }] });
    for (const message of [await client.messages.stream(hello).finalMessage(), await client.messages.create(hello)]) {
      expect(message.stop_reason).toBe('tool_use');
      expect(message.content.map((block) => block.type === 'tool_use' && block.input)).toEqual([
        {},
        { zone: 'Europe/Paris', list: [1, { a: 'b' }] },
      ]);
      const ids = message.content.map((block) => block.type === 'tool_use' && block.id);
      expect(new Set(ids).size).toBe(2);
      expect(ids[0]).toMatch(/^toolu_[a-zA-Z0-9]{24}$/);
    }
  });

  test('of several texts is several blocks', async () => {
    const { client } = await connect({ script: [{ reply: text('One.', 'Two.') }] });
    const { content } = await client.messages.stream(hello).finalMessage();
    expect(content.map((block) => block.type === 'text' && block.text)).toEqual(['One.', 'Two.']);
  });

  test('comes in as many pieces as asked, never with half an emoji', async () => {
    const { client } = await connect({
      script: [{ reply: { text: '👋👋👋👋👋👋', chunks: 4 } }, { reply: { text: 'abc', chunks: { size: 1, delayMs: 1 } } }],
    });
    const pieces = async (): Promise<string[]> => {
      const seen: string[] = [];
      await client.messages
        .stream(hello)
        .on('text', (piece) => seen.push(piece))
        .finalMessage();
      return seen;
    };
    expect(await pieces()).toEqual(['👋👋', '👋👋', '👋👋']);
    expect(await pieces()).toEqual(['a', 'b', 'c']);
  });

  test('reports the usage it is given, and else an estimate', async () => {
    const usage = { input_tokens: 7, output_tokens: 9, cache_read_input_tokens: 5, cache_creation_input_tokens: 3 };
    const { client } = await connect({ script: [{ reply: { text: 'a', usage } }, { reply: text('b') }] });
    expect((await client.messages.stream(hello).finalMessage()).usage).toMatchObject(usage);
    expect((await client.messages.create(hello)).usage.input_tokens).toBeGreaterThan(10);
  });

  test('stands still at a gate after its first piece, until the test opens it', async () => {
    const hold = gate();
    const { api, client } = await connect({ script: [{ reply: { text: 'first then the rest', chunks: { size: 5, delayMs: 0 }, hold } }] });
    const seen: string[] = [];
    const stream = client.messages.stream(hello).on('text', (piece) => seen.push(piece));
    const first = new Promise((resolve) => stream.once('text', resolve));
    await hold.reached;
    await first;
    expect([seen.join(''), api.hits[0]?.finished, api.hits[0]?.status]).toEqual(['first', false, 200]);
    hold.release();
    await stream.finalMessage();
    expect(seen.join('')).toBe('first then the rest');
  });

  test('can stand still after so many events', async () => {
    const hold = gate({ events: 1 });
    const { client } = await connect({ script: [{ reply: { text: 'x', holdAfter: hold } }] });
    const stream = client.messages.stream(hello);
    await hold.reached;
    expect(stream.receivedMessages).toEqual([]);
    hold.release();
    expect((await stream.finalMessage()).stop_reason).toBe('end_turn');
  });
});

describe('the script', () => {
  test('is played in order, with answers made from the request', async () => {
    const { api, client } = await connect();
    api.play({ expect: { messages: [{ content: 'hello' }] }, reply: callTool('get_time', {}, 'toolu_1') });
    api.play({
      expect: { messages: [{}, { role: 'assistant' }, { content: [{ tool_use_id: 'toolu_1', content: /noon/ }] }] },
      reply: (request) => text(`seen ${request.messages.length}`),
    });
    const first = await client.messages.create(hello);
    const second = await client.messages.create({
      ...hello,
      messages: [
        ...hello.messages,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'it is noon' }] },
      ],
    });
    expect(second.content).toMatchObject([{ text: 'seen 3' }]);
    expect(api.remaining()).toBe(0);
    api.assertDone();
  });

  test.each([
    ['a field', { expect: { messages: [{ content: 'bye' }] } }, 'body.messages.0.content: "hello", expected "bye"'],
    ['a word', { expect: () => 'too polite' }, 'too polite'],
    ['false', { expect: () => false }, 'the test said no'],
    [
      'an exception',
      {
        expect: () => {
          throw new Error('not equal');
        },
      },
      'not equal',
    ],
  ])('that expects something else fails loudly: %s', async (_, { expect: expectation }, words) => {
    const { api, client } = await connect({ script: [{ expect: expectation, reply: text('never') }] });
    const error = await failure(client.messages.create(hello));
    expect([error.status, error.type]).toEqual([400, 'invalid_request_error']);
    expect(api.problems).toEqual([`request 1: not what exchange 1 expects: ${words}`]);
    expect(api.remaining()).toBe(1);
    expect(() => api.assertDone()).toThrow(words);
  });

  test('that is at its end refuses more requests and remembers them', async () => {
    const { api, client } = await connect({ script: [{ reply: text('only this') }] });
    await client.messages.create(hello);
    const error = await failure(client.messages.stream(hello).finalMessage());
    expect([error.status, error.type]).toEqual([400, 'invalid_request_error']);
    expect(() => api.assertDone()).toThrow('request 2: beyond the script: all of its 1 exchanges are played');
  });

  test('that is not played to its end is a failure', async () => {
    const { api } = await connect({ script: [{ reply: text('a') }, { reply: text('b') }] });
    expect(() => api.assertDone()).toThrow('2 exchanges were never asked for');
  });

  test('hands over to `answer` at its end', async () => {
    const { api, client } = await connect({
      script: [{ reply: text('scripted') }],
      answer: (_, hit) => Promise.resolve(text(`hit ${hit}`)),
    });
    const texts: unknown[] = [];
    for (let index = 0; index < 3; index++) texts.push((await client.messages.create(hello)).content[0]);
    expect(texts).toMatchObject([{ text: 'scripted' }, { text: 'hit 2' }, { text: 'hit 3' }]);
    api.assertDone();
  });
});

describe('a hit', () => {
  test('shows what came and how it ended', async () => {
    const { api, client } = await connect({ script: [{ reply: text('a') }] });
    await client.messages.create(hello);
    const hit = await api.waitForHit(1);
    await hit.ended;
    expect(hit).toMatchObject({ n: 1, path: '/v1/messages', body: hello, status: 200, finished: true, aborted: false });
    expect(hit.headers.authorization).toBe('Bearer sk-test');
  });

  test('can be waited for', async () => {
    const { api, client } = await connect({ answer: () => text('a') });
    const second = api.waitForHit(2);
    await client.messages.create(hello);
    await client.messages.create({ ...hello, max_tokens: 2 });
    expect((await second).body?.max_tokens).toBe(2);
    await expect(api.waitForHit(3, 5)).rejects.toThrow('request 3 did not come in 5 ms, 2 did');
  });

  test('is aborted when the client leaves in the middle', async () => {
    const hold = gate();
    const { api, client } = await connect({ script: [{ reply: { text: 'a long answer', hold } }] });
    const stream = client.messages.stream(hello);
    const error = failure(stream.finalMessage());
    await hold.reached;
    stream.abort();
    const hit = await api.waitForHit(1);
    await hit.ended;
    expect([hit.aborted, hit.finished, (await error).constructor.name]).toEqual([true, true, 'APIUserAbortError']);
    api.assertDone();
  });
});

describe('at the door', () => {
  test.each([
    ['no key', { 'x-api-key': '' }, 401, 'authentication_error', 'x-api-key header is required'],
    ['a wrong key', { 'x-api-key': 'sk-wrong' }, 401, 'authentication_error', 'invalid x-api-key'],
    ['a wrong bearer token', { 'x-api-key': '', authorization: 'Bearer sk-wrong' }, 401, 'authentication_error', 'Invalid bearer token'],
    ['no version', { 'anthropic-version': undefined }, 400, 'invalid_request_error', 'anthropic-version: header is required'],
  ])('a request with %s is refused', async (_, headers, status, type, message) => {
    const { api } = await connect({ apiKey: 'sk-test' });
    const all = { 'content-type': 'application/json', 'x-api-key': 'sk-test', 'anthropic-version': '2023-06-01', ...headers };
    const sent = Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined));
    const response = await fetch(`${api.url}/v1/messages`, { method: 'POST', headers: sent, body: JSON.stringify(hello) });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ type: 'error', error: { type, message }, request_id: response.headers.get('request-id') });
    expect(api.problems).toHaveLength(1);
  });

  test('the key may come as a bearer token, which is how the SDK sends it', async () => {
    const { client } = await connect({ apiKey: 'sk-test', script: [{ reply: text('fine') }] });
    expect((await client.messages.create(hello)).content).toMatchObject([{ text: 'fine' }]);
  });

  test('a body over 32 MB is refused with 413 and not kept', async () => {
    const { api, client } = await connect();
    const error = await failure(client.messages.create({ ...hello, messages: [{ role: 'user', content: 'x'.repeat(33 * 1024 * 1024) }] }));
    expect([error.status, error.message]).toEqual([413, expect.stringContaining('Request exceeds the maximum size')]);
    expect(api.hits[0]).toMatchObject({ body: undefined, bytes: expect.any(Number) as number });
  });

  test('what is no JSON is refused', async () => {
    const { api } = await connect();
    const response = await post(api.url, '{"model":');
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('The request body is not valid JSON')]);
  });

  test('another path gives the 404 of the API', async () => {
    const { api, client } = await connect();
    const error = await failure(client.models.list());
    expect([error.status, error.type]).toEqual([404, 'not_found_error']);
    expect(api.problems).toEqual([]);
  });

  test('what the real API refuses is refused, noted, and uses up no exchange', async () => {
    const { api, client } = await connect({ script: [{ reply: text('fine') }] });
    const error = await failure(client.messages.create({ ...hello, messages: [{ role: 'user', content: '' }] }));
    expect(error.status).toBe(400);
    expect(api.problems).toEqual([
      'request 1 was refused: 400 messages.0: all messages must have non-empty content except for the optional final assistant message',
    ]);
    expect((await client.messages.create(hello)).content).toMatchObject([{ text: 'fine' }]);
  });

  test('half an emoji is refused as the real API does, in whichever field it hides', async () => {
    const { api, client } = await connect();
    const error = await failure(client.messages.create({ ...hello, messages: [{ role: 'user', content: 'cut \ud83d' }] }));
    expect([error.status, error.message]).toEqual([
      400,
      expect.stringMatching(/not valid JSON: no low surrogate in string: line 1 column \d+/),
    ]);
    expect(api.problems).toHaveLength(1);
  });

  test('a server that is not strict takes anything', async () => {
    const { client } = await connect({ strict: false, answer: () => text('fine') });
    const message = await client.messages.create({ ...hello, messages: [{ role: 'assistant', content: '' }] });
    expect(message.content).toMatchObject([{ text: 'fine' }]);
  });

  test('tokens are counted without using up the script', async () => {
    const { api, client } = await connect({ script: [{ reply: text('a') }] });
    const { input_tokens } = await client.messages.countTokens({ model: 'claude-test', messages: hello.messages, tools: [getTime] });
    expect(input_tokens).toBeGreaterThan(10);
    expect([api.remaining(), api.problems]).toEqual([1, []]);
  });
});

test('closing cuts the answers that stand at a gate and gives up who waits for a hit', async () => {
  const api = await startMessagesApi({ script: [{ reply: { text: 'a long answer', hold: gate() } }] });
  const answer = failure(sdk(api.url).messages.stream(hello).finalMessage());
  await api.waitForHit(1);
  const waiting = failure(api.waitForHit(2));
  await api.close();
  expect((await waiting).message).toBe('the server closed before request 2 came');
  expect(await answer).toBeInstanceOf(Error);
});

test('the port can be chosen', async () => {
  const { api } = await connect();
  await api.close();
  const again = await startMessagesApi({ port: api.port });
  expect(again.url).toBe(api.url);
  await again.close();
});
