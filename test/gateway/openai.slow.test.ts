/** Chat Completions and Responses, by the unmodified `openai` client over a socket, with a real worker behind it. */
import OpenAI from 'openai';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../src/gateway/index.js';
import { latestResults, saidIn } from '../support/echo-model.js';
import { listedIds } from '../support/listed-ids.js';
import { gate, text, type Gate, type Reply } from '../support/provider-apis/reply.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { until } from '../support/scene.js';
import { startWorld, type World } from '../support/world.js';

const TOKEN = 'a-token-that-only-tests-have';
let world: World;
let gateway: ServedGateway;
let client: OpenAI;
let held: Gate | undefined;
let cut: number | undefined;

/** `look: X` calls a tool first, and says so; `hold: X` stops after the first words until the test lets it go. */
function answer(request: ApiRequest): Reply {
  const said = saidIn(request).at(-1) ?? '';
  if (said.startsWith('look') && latestResults(request).length === 0) {
    return { text: 'Let me look.', toolCalls: [{ name: 'get_time', input: {} }] };
  }
  if (said.startsWith('hold') && held) return { ...text(`You said: ${said}, and I thought for long.`), hold: held };
  if (said.startsWith('cut') && cut !== undefined && cut-- > 0) {
    return { ...text(`You said: ${said}, and that is all.`), fault: { kind: 'reset', at: 5 } };
  }
  return text(`You said: ${said}, and that is all.`);
}

beforeAll(async () => {
  world = await startWorld({ answer, files: { 'a.txt': 'a' } });
  gateway = await serveGateway({
    client: world.client,
    authenticate: oneToken(TOKEN),
    agents: () => Promise.resolve(['default']),
    port: 0,
  });
  client = new OpenAI({ apiKey: TOKEN, baseURL: `${gateway.url}/v1` });
});
afterAll(async () => {
  await gateway.close();
  await world.close();
});

const model = 'default';
const echo = (said: string): string => `You said: ${said}, and that is all.`;

async function streamedText(messages: OpenAI.ChatCompletionMessageParam[]): Promise<string> {
  const final = await client.chat.completions.stream({ model, messages }).finalChatCompletion();
  return final.choices[0]?.message.content ?? '';
}

/** What the model was last shown as said by the person. */
const lastShown = (): string[] => {
  const body = world.api.hits.at(-1)?.body;
  return body === undefined ? [] : saidIn(body);
};
const conversations = async (): Promise<number> => (await listedIds(world.client)).length;

describe('chat completions', () => {
  test('an agent is a model', async () => {
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['default']);
    expect((await client.models.retrieve('default')).object).toBe('model');
  });

  test('a turn has the same text streamed and not, also with words before its tools', async () => {
    const messages = (said: string): OpenAI.ChatCompletionMessageParam[] => [{ role: 'user', content: said }];
    const whole = await client.chat.completions.create({ model, messages: messages('look at one') });
    expect(whole.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { role: 'assistant', content: `Let me look.\n\n${echo('look at one')}` },
    });
    expect(whole.usage?.total_tokens).toBeGreaterThan(0);
    expect(await streamedText(messages('look at two'))).toBe(`Let me look.\n\n${echo('look at two')}`);
  });

  test('usage comes as a last chunk where it is asked for', async () => {
    const stream = await client.chat.completions.create({
      model,
      messages: [{ role: 'user', content: 'usage' }],
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: expect.any(Number) as number } });
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop');
  });

  test('a request with the whole history goes on with its conversation, and one with another history begins its own', async () => {
    const first: OpenAI.ChatCompletionMessageParam[] = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'one' },
    ];
    const before = await conversations();
    const one = await streamedText(first);
    const second: OpenAI.ChatCompletionMessageParam[] = [
      ...first,
      { role: 'assistant', content: one },
      { role: 'user', content: 'look, two' },
    ];
    const two = await streamedText(second);
    expect(two).toBe(`Let me look.\n\n${echo('look, two')}`);
    const third: OpenAI.ChatCompletionMessageParam[] = [...second, { role: 'assistant', content: two }, { role: 'user', content: 'three' }];
    expect(await streamedText(third)).toBe(echo('three'));
    expect(await conversations()).toBe(before + 1);
    // The answer is not the one that was given: another conversation, which begins with what the client says was said.
    await streamedText([...second.slice(0, -2), { role: 'assistant', content: 'something else' }, { role: 'user', content: 'four' }]);
    expect(await conversations()).toBe(before + 2);
    expect(lastShown().at(-1)).toMatch(/Be brief\.[^]*Supplied by the client[^]*"something else"[^]*\nfour$/);
  });

  test('a conversation that began with what the client supplied is found again', async () => {
    const supplied: OpenAI.ChatCompletionMessageParam[] = [
      { role: 'user', content: 'said elsewhere' },
      { role: 'assistant', content: 'answered elsewhere' },
      { role: 'user', content: 'go on' },
    ];
    const before = await conversations();
    const one = await streamedText(supplied);
    await streamedText([...supplied, { role: 'assistant', content: one }, { role: 'user', content: 'and on' }]);
    expect(await conversations()).toBe(before + 1);
    expect(lastShown()).toHaveLength(2);
  });

  test('of two requests that go on from the same turn, one has the conversation and the other one of its own', async () => {
    const first: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'a crossroads' }];
    const before = await conversations();
    const answered: OpenAI.ChatCompletionMessageParam = { role: 'assistant', content: await streamedText(first) };
    const ways = ['left', 'right'].map((content) => streamedText([...first, answered, { role: 'user', content }]));
    const [left, right] = await Promise.all(ways);
    expect(left).toContain('left, and that is all.');
    expect(right).toContain('right, and that is all.');
    expect(await conversations()).toBe(before + 2);
  });

  test('another user value is another conversation', async () => {
    const ask = (user: string, messages: OpenAI.ChatCompletionMessageParam[]): Promise<OpenAI.ChatCompletion> =>
      client.chat.completions.create({ model, user, messages });
    const one = await ask('ann', [{ role: 'user', content: 'shared words' }]);
    const history: OpenAI.ChatCompletionMessageParam[] = [
      { role: 'user', content: 'shared words' },
      { role: 'assistant', content: one.choices[0]?.message.content ?? '' },
      { role: 'user', content: 'and more' },
    ];
    const before = await conversations();
    await ask('bob', history);
    expect(await conversations()).toBe(before + 1);
    await ask('ann', history);
    expect(await conversations()).toBe(before + 1);
  });

  test('the header names the conversation', async () => {
    const id = world.id();
    const headers = { 'x-perdura-conversation': id };
    await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'hello' }] }, { headers });
    await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'again' }] }, { headers });
    expect((await world.client.status(id)).turns).toBe(2);
  });

  test('the same Idempotency-Key is one turn', async () => {
    const ask = (): Promise<OpenAI.ChatCompletion> =>
      client.chat.completions.create(
        { model, messages: [{ role: 'user', content: 'only once, please' }] },
        { headers: { 'idempotency-key': 'k-1' } },
      );
    const [one, two] = await Promise.all([ask(), ask()]);
    const three = await ask();
    expect([one.id, two.id, three.id]).toEqual([one.id, one.id, one.id]);
    expect(world.api.hits.filter(({ body }) => JSON.stringify(body).includes('only once, please'))).toHaveLength(1);
  });

  test('an attempt that was cut off and said the same again is one text', async () => {
    cut = 1;
    expect(await streamedText([{ role: 'user', content: 'cut me' }])).toBe(echo('cut me'));
  });
});

describe('responses', () => {
  test('streamed and not, and retrieved later, it is the same response', async () => {
    const whole = await client.responses.create({ model, input: 'look at three' });
    expect(whole).toMatchObject({ status: 'completed', output: [{ type: 'message' }, { type: 'message' }] });
    expect(whole.output_text).toBe(`Let me look.${echo('look at three')}`);
    const stream = client.responses.stream({ model, input: 'look at four' });
    const numbers: number[] = [];
    let deltas = '';
    for await (const event of stream) {
      numbers.push(event.sequence_number);
      if (event.type === 'response.output_text.delta') deltas += event.delta;
    }
    const final = await stream.finalResponse();
    expect(numbers).toEqual(numbers.map((_, at) => at));
    expect(final.output_text).toBe(`Let me look.${echo('look at four')}`);
    expect(deltas).toBe(final.output_text);
    const later = await client.responses.retrieve(final.id);
    expect(final.output).toMatchObject(later.output);
    expect(later.usage).toEqual(final.usage);
  });

  test('the newest response is gone on from in place, an earlier one in a fork', async () => {
    const one = await client.responses.create({ model, input: 'first of all' });
    const two = await client.responses.create({ model, input: 'second', previous_response_id: one.id });
    expect(two.conversation?.id).toBe(one.conversation?.id);
    const other = await client.responses.create({ model, input: 'other second', previous_response_id: one.id });
    expect(other.conversation?.id).not.toBe(one.conversation?.id);
    expect(lastShown()).toEqual(['first of all', 'other second']);
    expect((await client.responses.retrieve(two.id)).output_text).toBe(echo('second'));
  });

  test('a conversation may be named by any string', async () => {
    const conversation = `a trip to Øslo ${world.id()}`;
    const one = await client.responses.create({ model, input: 'hello', conversation });
    const two = await client.responses.create({ model, input: 'again', conversation: { id: conversation } });
    expect(two.conversation?.id).toBe(one.conversation?.id);
  });

  test('in the background it is looked at, come back to after any number, and ends with the same bytes', async () => {
    held = gate({ chars: 12 });
    const begun = await client.responses.create({ model, input: 'hold on', background: true });
    expect(begun.status).toBe('in_progress');
    await held.reached;
    expect((await client.responses.retrieve(begun.id)).status).toBe('in_progress');
    const early = await client.responses.retrieve(begun.id, { stream: true });
    const seen: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of early) {
      seen.push(event);
      if (event.type === 'response.output_text.delta') break;
    }
    held.release();
    const last = seen.at(-1)?.sequence_number ?? 0;
    for await (const event of await client.responses.retrieve(begun.id, { stream: true, starting_after: last })) seen.push(event);
    expect(seen.map(({ sequence_number: n }) => n)).toEqual(seen.map((_, at) => at));
    const text = seen.flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : [])).join('');
    expect(text).toBe('You said: hold on, and I thought for long.');
    const end = seen.at(-1);
    expect(end).toMatchObject({ type: 'response.completed', response: { output: [{ content: [{ text }] }] } });
    expect((await client.responses.retrieve(begun.id)).output_text).toBe(text);
    const beyond = [];
    for await (const event of await client.responses.retrieve(begun.id, { stream: true, starting_after: 9_000 })) beyond.push(event);
    expect(beyond).toMatchObject([{ type: 'response.completed', sequence_number: 9_001 }]);
  });

  test('cancel stops what runs, and leaves what has ended', async () => {
    held = gate({ chars: 12 });
    const begun = await client.responses.create({ model, input: 'hold this', background: true });
    await held.reached;
    expect((await client.responses.cancel(begun.id)).status).toBe('cancelled');
    held.release();
    expect((await client.responses.retrieve(begun.id)).status).toBe('cancelled');
    const done = await client.responses.create({ model, input: 'done' });
    expect((await client.responses.cancel(done.id)).status).toBe('completed');
  });

  test('a connection that is closed stops nothing', async () => {
    held = gate({ chars: 12 });
    const leaving = new AbortController();
    const stream = await client.responses.create({ model, input: 'hold me', stream: true }, { signal: leaving.signal });
    let id = '';
    for await (const event of stream) {
      if (event.type === 'response.created') id = event.response.id;
      if (event.type === 'response.output_text.delta') break;
    }
    leaving.abort();
    held.release();
    const ended = await until('the turn has ended', async () => {
      const response = await client.responses.retrieve(id);
      return response.status === 'completed' ? response : undefined;
    });
    expect(ended.output_text).toBe('You said: hold me, and I thought for long.');
  });

  test('the same Idempotency-Key is one turn, also where the conversation has gone on', async () => {
    const one = await client.responses.create({ model, input: 'begin here' });
    const ask = (): Promise<OpenAI.Responses.Response> =>
      client.responses.create({ model, input: 'twice', previous_response_id: one.id }, { headers: { 'idempotency-key': 'k-2' } });
    const two = await ask();
    expect((await ask()).id).toBe(two.id);
  });

  test('an answer can be asked for as JSON', async () => {
    const schema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'], additionalProperties: false };
    await client.responses
      .create({ model, input: 'as data', text: { format: { type: 'json_schema', name: 'x', schema } } })
      .catch(() => undefined);
    expect(JSON.stringify(world.api.hits.at(-1)?.body)).toContain('additionalProperties');
  });
});

describe('what cannot be done', () => {
  const refusal = async (asked: Promise<unknown>): Promise<object> => {
    const error: unknown = await asked.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof OpenAI.APIError)) throw new Error(`no refusal: ${String(error)}`);
    const { status, type, param, code } = error;
    return { status, type, param, code };
  };

  test.each([
    [
      'a wrong token',
      { status: 401, type: 'invalid_request_error', param: null, code: 'invalid_api_key' },
      (): Promise<unknown> => new OpenAI({ apiKey: 'wrong', baseURL: `${gateway.url}/v1` }).responses.create({ model, input: 'x' }),
    ],
    [
      'tools of OpenAI’s own',
      { status: 400, type: 'invalid_request_error', param: 'tools.0.type', code: 'unsupported_parameter' },
      () =>
        client.chat.completions.create({
          model,
          messages: [{ role: 'user', content: 'x' }],
          tools: [{ type: 'custom', custom: { name: 'f' } }],
        }),
    ],
    [
      'a model that there is not',
      { status: 404, type: 'invalid_request_error', param: 'model', code: 'model_not_found' },
      () => client.responses.create({ model: 'gpt-9', input: 'x' }),
    ],
    [
      'a response that there is not',
      { status: 404, type: 'invalid_request_error', param: 'response_id', code: 'response_not_found' },
      () => client.responses.retrieve('resp_x'),
    ],
    [
      'a response of a conversation that there is not',
      { status: 404, type: 'invalid_request_error', param: 'response_id', code: 'response_not_found' },
      () => client.responses.retrieve(`resp_${Buffer.from('nothing:turn_0001').toString('base64url')}`),
    ],
    [
      'an earlier response that there is not',
      { status: 404, type: 'invalid_request_error', param: 'previous_response_id', code: 'response_not_found' },
      () => client.responses.create({ model, input: 'x', previous_response_id: 'resp_x' }),
    ],
    [
      'no messages',
      { status: 400, type: 'invalid_request_error', param: 'messages', code: 'invalid' },
      () => client.chat.completions.create({ model, messages: [] }),
    ],
    [
      'an answer last',
      { status: 400, type: 'invalid_request_error', param: 'messages', code: 'invalid' },
      () => client.chat.completions.create({ model, messages: [{ role: 'assistant', content: 'x' }] }),
    ],
    [
      'a body that is too large',
      { status: 413, type: 'invalid_request_error', param: null, code: 'too_large' },
      () => client.responses.create({ model, input: 'x'.repeat(9 * 1024 * 1024) }),
    ],
  ])('%s is refused in the shape of the protocol', async (_what, expected, ask) => {
    expect(await refusal(ask())).toEqual(expected);
  });
});
