/** Refusals that do not pass, and answers that are not what one would wish: one hit, a result in words, and the next message works. */
import {
  contextWindowExceeded,
  emptyAnswer,
  httpError,
  pauseTurn,
  promptTooLong,
  refusal,
  truncatedTool,
  unknownStop,
} from '../support/provider-apis/faults.js';
import { callTool, text, type Reply } from '../support/provider-apis/reply.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, files: { 'a.txt': 'content' } });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

async function said(...replies: readonly Reply[]): Promise<{ id: string; result: Awaited<ReturnType<World['client']['send']>> }> {
  const id = world.id();
  stage.play(id, ...replies);
  await world.client.start(id);
  return { id, result: await world.client.send(id, say(id, 'hi')) };
}

async function expectUsable(id: string): Promise<void> {
  stage.play(id, text('Still here.'));
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ turnId: 'turn_0002', text: 'Still here.', stopReason: 'end' });
  expect(await workflowTaskFailures(world, id)).toEqual([]);
}

const FINAL: readonly [what: string, reply: Reply, type: string, words: RegExp][] = [
  ['401', httpError(401), 'auth', /ANTHROPIC_API_KEY/],
  ['402', httpError(402), 'billing', /billing/i],
  ['403', httpError(403), 'forbidden', /permission/i],
  ['404', httpError(404), 'not-found', /PERDURA_MODEL/],
  ['413', httpError(413), 'too-large', /smaller/],
  ['400', httpError(400, { message: 'tools.0: bad' }), 'invalid-request', /tools\.0: bad/],
  ['a prompt that is too long', promptTooLong(), 'context-full', /\/new/],
];

test.each(FINAL)('%s fails the turn after one hit and says what to do', async (_what, reply, type, words) => {
  const { id, result } = await said(reply);
  expect(result).toMatchObject({ turnId: 'turn_0001', text: '', stopReason: 'failed', error: { type } });
  expect(result.error?.message).toMatch(words);
  expect(result.error?.message).not.toContain('test-key');
  expect(stage.requests(id)).toHaveLength(1);
  await expectUsable(id);
});

test('a tool call that was cut off by max_tokens does not run, and the person is told', async () => {
  const { id, result } = await said(truncatedTool('read_file', '{"path":"a.txt"'));
  expect(result).toMatchObject({ stopReason: 'end', toolCalls: 0, text: '', error: { type: 'max-tokens' } });
  expect(result.error?.message).toContain('maxTokens');
  expect(stage.requests(id)).toHaveLength(1);
  await expectUsable(id);
  expect(JSON.stringify(stage.requests(id)[1]?.messages)).not.toContain('tool_use');
});

test('what was said before max_tokens is kept', async () => {
  const { id, result } = await said({ text: 'Once upon a', stopReason: 'max_tokens' });
  expect(result).toMatchObject({ text: 'Once upon a', stopReason: 'end', error: { type: 'max-tokens' } });
  await expectUsable(id);
  expect(JSON.stringify(stage.requests(id)[1]?.messages)).toContain('Once upon a');
});

test('a pause is no end: the model is asked to go on in the same turn', async () => {
  const { id, result } = await said(pauseTurn('Let me think.'), callTool('read_file', { path: 'a.txt' }), text('Done.'));
  expect(result).toMatchObject({ turnId: 'turn_0001', text: 'Done.', stopReason: 'end', toolCalls: 1 });
  expect(stage.requests(id)).toHaveLength(3);
  await expectUsable(id);
});

test('a refusal is reported as one, with the reason where there is one', async () => {
  const { id, result } = await said(refusal('I will not.'));
  expect(result).toMatchObject({ text: 'I will not.', stopReason: 'refused', error: { type: 'refusal' } });
  await expectUsable(id);
  const { id: other, result: silent } = await said(refusal(null));
  expect(silent).toMatchObject({ text: '', stopReason: 'refused' });
  await expectUsable(other);
});

test('an empty answer ends the turn, and leaves no empty message behind', async () => {
  const { id, result } = await said(emptyAnswer());
  expect(result).toMatchObject({ text: '', stopReason: 'end', toolCalls: 0 });
  expect(await world.client.history(id)).toHaveLength(1);
  await expectUsable(id);
});

test('an answer of blanks does not spoil the next prompt', async () => {
  const { id, result } = await said(text(' \n '));
  expect(result).toMatchObject({ stopReason: 'end' });
  await expectUsable(id);
});

test('an answer with a stop reason that nobody knows counts, and says that something may be missing', async () => {
  const { id, result } = await said(unknownStop('gone_fishing', 'Back soon.'));
  expect(result).toMatchObject({ text: expect.stringMatching(/^Back soon\.\n\n\[.*"gone_fishing"/), stopReason: 'end' });
  expect(stage.requests(id)).toHaveLength(1);
  await expectUsable(id);
});

test('a context that is full fails the turn, keeps what was said, and a reset helps', async () => {
  const { id, result } = await said(contextWindowExceeded('So far'));
  expect(result).toMatchObject({ text: 'So far', stopReason: 'failed', error: { type: 'context-full' } });
  expect(await world.client.reset(id)).toMatchObject({ session: 2 });
  await expectUsable(id);
  expect(stage.requests(id)[1]?.messages).toHaveLength(1);
});

test('a signed thought goes back as it came', async () => {
  const thinking = { text: 'They greet me.', signature: 'c2lnbmVk' };
  const { id } = await said({ thinking, toolCalls: [{ name: 'read_file', input: { path: 'a.txt' } }] }, text('Hello.'));
  await expectUsable(id);
  expect(stage.requests(id)[1]?.messages[1]).toMatchObject({
    content: [{ type: 'thinking', thinking: thinking.text, signature: thinking.signature }, { type: 'tool_use' }],
  });
});
