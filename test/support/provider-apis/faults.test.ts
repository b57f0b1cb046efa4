import type Anthropic from '@anthropic-ai/sdk';
import { connect as dial } from 'node:net';
import {
  badGateway,
  contextWindowExceeded,
  drip,
  emptyAnswer,
  errorEvent,
  fault,
  fin,
  halfClose,
  htmlInsteadOfSse,
  httpError,
  malformedJson,
  overloaded,
  pauseTurn,
  promptTooLong,
  rateLimited,
  refusal,
  reset,
  silence,
  truncatedTool,
  unknownEvent,
  unknownStop,
} from './faults.js';
import { callTool, text, type Cut, type Reply } from './reply.js';
import { closeAll, connect, failure, hello, post, rawEvents, sdk } from './client.js';

afterEach(closeAll);

const words = text('Some words that take a few pieces to say.');

/** The reply to a streaming request, as `for await` sees it: the events' types, and how it ended. */
async function watch(reply: Reply): Promise<{ types: string[]; ended: 'normally' | (Error & { type?: string; status?: number }) }> {
  const { client } = await connect({ script: [{ reply }] });
  const types: string[] = [];
  try {
    for await (const event of await client.messages.create({ ...hello, stream: true })) types.push(event.type);
    return { types, ended: 'normally' };
  } catch (error) {
    return { types, ended: error as Error };
  }
}

/** The same as `finalMessage` sees it. */
async function finalMessage(reply: Reply): Promise<Anthropic.Message> {
  const { client } = await connect({ script: [{ reply }] });
  return client.messages.stream(hello).finalMessage();
}

describe('an HTTP error', () => {
  test.each([
    [400, 'invalid_request_error'],
    [401, 'authentication_error'],
    [402, 'billing_error'],
    [403, 'permission_error'],
    [404, 'not_found_error'],
    [413, 'request_too_large'],
    [429, 'rate_limit_error'],
    [500, 'api_error'],
    [504, 'timeout_error'],
    [529, 'overloaded_error'],
  ])('%i comes as %s, streaming or not', async (status, type) => {
    const { api, client } = await connect({ script: [{ reply: httpError(status) }, { reply: httpError(status) }] });
    for (const error of [await failure(client.messages.create(hello)), await failure(client.messages.stream(hello).finalMessage())]) {
      expect([error.status, error.type]).toEqual([status, type]);
    }
    expect(api.hits.map((hit) => hit.status)).toEqual([status, status]);
    api.assertDone();
  });

  test('502 comes as a web page, without a type', async () => {
    const { client } = await connect({ script: [{ reply: badGateway() }] });
    const error = await failure(client.messages.create(hello));
    expect([error.status, error.type, error.message]).toEqual([502, null, expect.stringContaining('502 Bad Gateway')]);
  });

  test('says what it is told to say', async () => {
    const { client } = await connect({ script: [{ reply: promptTooLong(201, 200) }] });
    expect((await failure(client.messages.create(hello))).message).toContain('prompt is too long: 201 tokens > 200 maximum');
  });

  test.each([
    ['seconds', { retryAfter: 2 }, { 'retry-after': '2' }],
    ['an hour', { retryAfter: 3600 }, { 'retry-after': '3600' }],
    ['a date', { retryAfter: new Date(0) }, { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }],
    ['-1', { retryAfter: -1 }, { 'retry-after': '-1' }],
    ['a word', { retryAfter: 'soon' }, { 'retry-after': 'soon' }],
    ['milliseconds', { retryAfterMs: 1500 }, { 'retry-after-ms': '1500' }],
    ['nothing', {}, {}],
    ['no', { shouldRetry: false }, { 'x-should-retry': 'false' }],
    ['yes', { shouldRetry: true }, { 'x-should-retry': 'true' }],
  ])('429 says when to come back: %s', async (_, retry, headers) => {
    const { client } = await connect({ script: [{ reply: rateLimited(retry) }] });
    const error = await failure(client.messages.create(hello));
    const names = ['retry-after', 'retry-after-ms', 'x-should-retry'];
    expect(Object.fromEntries(names.flatMap((name) => (error.headers?.has(name) ? [[name, error.headers.get(name)]] : [])))).toEqual(
      headers,
    );
  });

  test('hides its attempts when the SDK retries: three hits for one call (P9)', async () => {
    const { api } = await connect({ script: Array.from({ length: 3 }, () => ({ reply: overloaded({ retryAfterMs: 1 }) })) });
    const client = sdk(api.url).withOptions({ maxRetries: 2 });
    expect((await failure(client.messages.create(hello))).status).toBe(529);
    expect(api.hits.map((hit) => hit.headers['idempotency-key'])).toEqual([undefined, undefined, undefined]);
    api.assertDone();
  });
});

describe('an error event in the stream', () => {
  test.each(['overloaded_error', 'api_error'] as const)('has a type but no status (P8): %s', async (type) => {
    const { types, ended } = await watch(errorEvent(5, type, words));
    expect(types).toEqual(['message_start', 'content_block_start', 'content_block_delta', 'content_block_delta']);
    expect(ended).toMatchObject({ type, status: undefined });
  });

  test('is an HTTP error where nothing streams', async () => {
    const { client } = await connect({ script: [{ reply: errorEvent(3) }] });
    expect((await failure(client.messages.create(hello))).status).toBe(529);
  });
});

describe('a half-closed stream', () => {
  const cuts: readonly Cut[] = [1, 'before-block-stop', 'before-message-delta', 'before-message-stop'];

  test.each(cuts)('looks like success to `for await` and is an error to `finalMessage` (P5): %s', async (cut) => {
    const { types, ended } = await watch(halfClose(cut, words));
    expect(ended).toBe('normally');
    expect(types).not.toContain('message_stop');
    const last = {
      'before-block-stop': 'content_block_delta',
      'before-message-delta': 'content_block_stop',
      'before-message-stop': 'message_delta',
    };
    expect(types.at(-1)).toBe(typeof cut === 'number' ? 'message_start' : last[cut as keyof typeof last]);
    expect(await failure(finalMessage(halfClose(cut, words)))).toBeInstanceOf(Error);
  });

  test('may end in the middle of an event', async () => {
    const { types } = await watch(halfClose('in-event', words));
    expect(types).toEqual(['message_start', 'content_block_start']);
  });
});

describe('a broken connection', () => {
  test.each([
    ['FIN', fin(4, words)],
    ['RST', reset(4, words)],
    ['FIN in an event', fin('in-event', words)],
    ['RST in an event', reset('in-event', words)],
  ])('is an error after the events that came: %s', async (_, reply) => {
    const { types, ended } = await watch(reply);
    expect(types.slice(0, 2)).toEqual(['message_start', 'content_block_start']);
    expect(types).not.toContain('content_block_stop');
    // Not an APIConnectionError: the SDK passes on what `fetch` throws in the middle of a body.
    expect(ended).toMatchObject({ name: 'TypeError', message: 'terminated' });
  });

  test.each([
    ['FIN', fin('before-headers')],
    ['RST', reset('before-headers')],
  ])('may come before any header: %s', async (_, reply) => {
    const { api, client } = await connect({ script: [{ reply }] });
    const error = await failure(client.messages.create({ ...hello, stream: true }));
    expect([error.constructor.name, api.hits[0]?.status]).toEqual(['APIConnectionError', undefined]);
  });

  test('in the middle of a whole message is an error too', async () => {
    const { client } = await connect({ script: [{ reply: reset(1, words) }, { reply: fin(1, words) }] });
    expect((await failure(client.messages.create(hello))).message).toBe('terminated');
    expect((await failure(client.messages.create(hello))).message).toBe('terminated');
  });

  test('is not taken for a client that left', async () => {
    const { api, client } = await connect({ script: [{ reply: reset(4, words) }] });
    await failure(client.messages.stream(hello).finalMessage());
    await api.hits[0]?.ended;
    expect(api.hits[0]).toMatchObject({ aborted: false, finished: true });
  });
});

describe('a silent server', () => {
  const noWord = Symbol('no word');
  const within = <Value>(ms: number, promise: Promise<Value>): Promise<Value | typeof noWord> =>
    Promise.race([promise, new Promise<typeof noWord>((resolve) => setTimeout(() => resolve(noWord), ms))]);

  test('says one event and then nothing, and the timeout of the SDK does not end it (P4)', async () => {
    const { api, client } = await connect({ script: Array.from({ length: 3 }, () => ({ reply: silence(1, words) })) });
    // On a busy machine the headers may come after that time, and then it does end it: the next one is longer.
    for (const timeout of [2_000, 10_000, 60_000]) {
      const stream = client.messages.stream(hello, { timeout });
      const error = failure(stream.finalMessage());
      const started = new Promise((resolve) => stream.once('streamEvent', resolve));
      if ((await Promise.race([started, error])) instanceof Error) continue;
      expect(await within(timeout + 100, error)).toBe(noWord);
      stream.abort();
      await error;
      await api.hits.at(-1)?.ended;
      expect(api.hits.at(-1)?.aborted).toBe(true);
      return;
    }
    throw new Error('the headers came after a minute');
  });

  test('before its headers runs into the timeout of the SDK', async () => {
    const { client } = await connect({ script: [{ reply: silence('before-headers') }] });
    const error = await failure(client.messages.create({ ...hello, stream: true }, { timeout: 50 }));
    expect(error.constructor.name).toBe('APIConnectionTimeoutError');
  });

  test('that sends pings for ever keeps the stream open without an event for the SDK', async () => {
    const { api } = await connect({ script: [{ reply: drip('ping', 2, 1) }] });
    const response = await post(api.url, { ...hello, stream: true });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let seen = '';
    while (seen.split('event: ping\n').length < 5) seen += (await reader?.read())?.value ?? '';
    await reader?.cancel();
    await api.hits[0]?.ended;
    expect(seen).toMatch(/^event: message_start/);
  });

  test('that sends single bytes for ever ends no event', async () => {
    const { api } = await connect({ script: [{ reply: drip('byte', 1, 0) }] });
    const response = await post(api.url, { ...hello, stream: true });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let seen = '';
    while (seen.length < 30) seen += (await reader?.read())?.value ?? '';
    await reader?.cancel();
    await api.hits[0]?.ended;
    expect(seen).toMatch(/^event: ping\ndata: {12,}$/);
  });
});

describe('a garbled stream', () => {
  test('with malformed JSON in an event throws', async () => {
    const { types, ended } = await watch(malformedJson(3, words));
    expect([types.length, ended]).toEqual([2, expect.any(SyntaxError)]);
  });

  test('with an event of an unknown type is harmless', async () => {
    const { content } = await finalMessage(unknownEvent(3, words));
    expect(content).toMatchObject([{ text: words.text?.[0] }]);
    expect((await watch(unknownEvent(3, words))).types).toContain('content_block_sparkle');
  });

  test('that is a web page with status 200 has no events for `for await` and is an error to `finalMessage`', async () => {
    expect(await watch(htmlInsteadOfSse())).toEqual({ types: [], ended: 'normally' });
    expect(await failure(finalMessage(htmlInsteadOfSse()))).toBeInstanceOf(Error);
  });
});

describe('an answer that is not the usual one', () => {
  test('was cut in a tool input, which the SDK completes as if nothing had happened (P6)', async () => {
    const message = await finalMessage(truncatedTool('write_file', '{"path":"a.txt","content":"line 1'));
    expect(message.stop_reason).toBe('max_tokens');
    expect(message.content).toMatchObject([{ type: 'tool_use', name: 'write_file', input: { path: 'a.txt' } }]);
  });

  test.each([
    ['pause_turn', pauseTurn('Searching.'), [{ text: 'Searching.' }]],
    ['end_turn', emptyAnswer(), []],
    ['gone_fishing', unknownStop('gone_fishing', 'Bye.'), [{ text: 'Bye.' }]],
    ['model_context_window_exceeded', contextWindowExceeded('And th'), [{ text: 'And th' }]],
    ['max_tokens', { ...text('And th'), stopReason: 'max_tokens' }, [{ text: 'And th' }]],
    ['stop_sequence', { ...text('And'), stopReason: 'stop_sequence' }, [{ text: 'And' }]],
    ['refusal', refusal('Not this.'), []],
  ])('stops for %s', async (stop, reply, content) => {
    const { client } = await connect({ script: [{ reply }, { reply }] });
    for (const message of [await client.messages.stream(hello).finalMessage(), await client.messages.create(hello)]) {
      expect(message.stop_reason).toBe(stop);
      expect(message.content).toMatchObject(content);
      expect(message.content).toHaveLength(content.length);
    }
  });

  test('of a refusal shows why', async () => {
    const { stop_details: details } = await finalMessage(refusal('Not this.'));
    expect(details).toEqual({ type: 'refusal', category: null, explanation: 'Not this.' });
  });

  test('without content has no block events', async () => {
    const { api } = await connect({ script: [{ reply: emptyAnswer() }] });
    expect((await rawEvents(api.url)).map(({ event }) => event)).toEqual(['message_start', 'ping', 'message_delta', 'message_stop']);
  });
});

test('a fault past the end strikes before the last event', async () => {
  const { types, ended } = await watch(fault({ kind: 'error-event', at: 999 }, callTool('get_time')));
  expect([types.at(-1), ended]).toEqual(['message_delta', expect.objectContaining({ type: 'overloaded_error' })]);
});

test('after `close` the port refuses connections', async () => {
  const { api } = await connect();
  await api.close();
  const refused = new Promise((resolve) =>
    dial(api.port, '127.0.0.1').once('error', (error: NodeJS.ErrnoException) => resolve(error.code)),
  );
  expect(await refused).toBe('ECONNREFUSED');
});
