/** Messages, by the unmodified `@anthropic-ai/sdk` over a socket, with a real worker behind it. */
import Anthropic from '@anthropic-ai/sdk';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../src/gateway/index.js';
import { latestResults, saidIn } from '../support/echo-model.js';
import { listedIds } from '../support/listed-ids.js';
import { text } from '../support/provider-apis/reply.js';
import { startWorld, type World } from '../support/world.js';

const TOKEN = 'a-token-that-only-tests-have';
let world: World;
let gateway: ServedGateway;
let client: Anthropic;
/** How often an answer that begins with `cut` is cut off, and what it says after that. */
let cuts = 0;
let wordsAfter = '';

const echo = (said: string): string => `You said: ${said}, and that is all.`;

beforeAll(async () => {
  world = await startWorld({
    answer: (request) => {
      const said = saidIn(request).at(-1) ?? '';
      if (said.startsWith('look') && latestResults(request).length === 0) {
        return { text: 'Let me look.', toolCalls: [{ name: 'get_time', input: {} }] };
      }
      if (!said.startsWith('cut')) return text(echo(said));
      return cuts-- > 0 ? { ...text(echo(said)), fault: { kind: 'reset', at: 5 } } : text(`${wordsAfter}${echo(said)}`);
    },
  });
  gateway = await serveGateway({
    client: world.client,
    authenticate: oneToken(TOKEN),
    agents: () => Promise.resolve(['default']),
    port: 0,
  });
  client = new Anthropic({ apiKey: TOKEN, baseURL: gateway.url });
});
afterAll(async () => {
  await gateway.close();
  await world.close();
});

const base = { model: 'default', max_tokens: 1_000 };
const user = (content: string): Anthropic.MessageParam => ({ role: 'user', content });
const streamed = (messages: Anthropic.MessageParam[], more: Partial<Anthropic.MessageCreateParams> = {}): Promise<Anthropic.Message> =>
  client.messages.stream({ ...base, ...more, messages, stream: true }).finalMessage();
const textOf = ({ content }: Anthropic.Message): string => content.map((block) => (block.type === 'text' ? block.text : '')).join('');
const conversations = async (): Promise<number> => (await listedIds(world.client)).length;

test('a turn has the same text streamed and not, also with words before its tools', async () => {
  const whole = await client.messages.create({ ...base, messages: [user('look at one')] });
  expect(whole).toMatchObject({ type: 'message', role: 'assistant', stop_reason: 'end_turn', model: 'default' });
  expect(textOf(whole)).toBe(`Let me look.\n\n${echo('look at one')}`);
  const stream = client.messages.stream({ ...base, messages: [user('look at two')] });
  let deltas = '';
  stream.on('text', (delta) => (deltas += delta));
  const final = await stream.finalMessage();
  expect(textOf(final)).toBe(`Let me look.\n\n${echo('look at two')}`);
  expect(deltas).toBe(textOf(final));
  expect(final.usage.output_tokens).toBeGreaterThan(0);
});

test('a request with the whole history goes on with its conversation', async () => {
  const before = await conversations();
  const system = 'Be brief.';
  const one = await streamed([user('one')], { system });
  const history = [user('one'), { role: 'assistant' as const, content: one.content }];
  const two = await streamed([...history, user('two')], { system });
  expect(textOf(two)).toBe(echo('two'));
  expect(await conversations()).toBe(before + 1);
  // Other instructions are another conversation.
  await streamed([...history, user('three')], { system: 'Be long.' });
  expect(await conversations()).toBe(before + 2);
});

test('the same Idempotency-Key is one turn', async () => {
  const headers = { 'idempotency-key': 'a-1' };
  const ask = (): Promise<Anthropic.Message> => client.messages.create({ ...base, messages: [user('only once')] }, { headers });
  const [one, two] = await Promise.all([ask(), ask()]);
  expect(two.id).toBe(one.id);
});

test('an attempt that was cut off and said the same again is one text', async () => {
  [cuts, wordsAfter] = [1, ''];
  expect(textOf(await streamed([user('cut me')]))).toBe(echo('cut me'));
});

test('where another attempt uses other words the stream ends with an error, and the same key answers with the right text', async () => {
  [cuts, wordsAfter] = [1, 'Now then. '];
  const headers = { 'idempotency-key': 'a-2' };
  const params = { ...base, messages: [user('cut me off')] };
  await expect(client.messages.stream(params, { headers }).finalMessage()).rejects.toThrow(/began its answer anew/);
  expect(textOf(await client.messages.create(params, { headers }))).toBe(`Now then. ${echo('cut me off')}`);
});

test('tokens are estimated', async () => {
  const { input_tokens: tokens } = await client.messages.countTokens({ model: 'default', messages: [user('x'.repeat(400))] });
  expect(tokens).toBe(100);
});

test('models are agents', async () => {
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['default']);
});

test.each([
  [
    'a wrong token',
    401,
    'authentication_error',
    (): Promise<unknown> => new Anthropic({ apiKey: 'wrong', baseURL: gateway.url }).messages.create({ ...base, messages: [user('x')] }),
  ],
  [
    'a model that there is not',
    404,
    'not_found_error',
    () => client.messages.create({ ...base, model: 'claude-9', messages: [user('x')] }),
  ],
  [
    'tools of Anthropic’s own',
    400,
    'invalid_request_error',
    () => client.messages.create({ ...base, messages: [user('x')], tools: [{ type: 'bash_20250124', name: 'bash' }] }),
  ],
  [
    'an answer last',
    400,
    'invalid_request_error',
    () => client.messages.create({ ...base, messages: [user('x'), { role: 'assistant', content: 'y' }] }),
  ],
  ['a message without text', 400, 'invalid_request_error', () => client.messages.create({ ...base, messages: [user('')] })],
])('%s is refused in the shape of the protocol', async (_what, status, type, ask) => {
  await expect(ask()).rejects.toMatchObject({ status, error: { type: 'error', error: { type } } });
});
