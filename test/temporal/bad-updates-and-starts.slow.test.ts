/** An update is refused before it enters the history; a start that cannot be read fails at once, and says why. */
import { emptyQueue } from '../../src/conversation/memory-workflow/memory-queue.js';
import { failureOf, outside, type Outside } from '../support/outside.js';
import { runsOf, workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;
let program: Outside;

beforeAll(async () => {
  // Room for texts that are longer than a usual model takes.
  world = await startWorld({ engine: 'temporal', answer: stage.answer, agent: { context: { maxTokens: 4_000_000 } } });
  program = outside(world);
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

const MIB = 1024 * 1024;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

const REFUSED: readonly [name: string, argument: unknown, words: string][] = [
  ['send', 42, 'message must be an object, not 42'],
  ['send', '', 'message.text is empty'],
  ['send', '   ', 'message.text is empty'],
  ['send', { text: 'hi', colour: 'red' }, 'message.colour is not a field; known are id, text, images, audio, video, documents, delivery'],
  ['send', { text: 'hi', id: 'x'.repeat(129) }, 'id must be a text of 1 to 128 characters'],
  ['send', 'x'.repeat(MIB + 1), `message is ${MIB + 1} bytes, the limit is ${MIB}`],
  ['send', 'ä'.repeat(MIB / 2 + 1), `message is ${MIB + 2} bytes, the limit is ${MIB}`],
  ['send', { text: 'hi', images: Array(21).fill({}) }, 'message.images must be a list of at most 20'],
  ['send', undefined, 'message must be an object, not undefined'],
  ['turn', { turnId: 7 }, 'turn.turnId must look like "turn_0007"'],
  ['turn', 'turn_0001', 'turn must be an object, not a text'],
  ['reset', { id: 5 }, 'reset.id must be a text of 1 to 128 characters, not 5'],
  ['reset', { id: 'r1', hard: true }, 'reset.hard is not a field'],
];

test('an update that is not as it should be is refused with the field and the limit, and is in no history', async () => {
  const id = world.id();
  await program.start(id);
  await program.query(id, 'status');
  const before = await runsOf(world, id);
  for (const [name, argument, words] of REFUSED) {
    const failure = await failureOf(program.update(id, name, argument));
    expect(failure).toEqual({ type: 'InvalidMessage', message: expect.stringContaining(words) });
  }
  expect(await runsOf(world, id)).toEqual(before);
  expect(await program.update(id, 'send', say(id, 'still there?'))).toMatchObject({ turnId: 'turn_0001', stopReason: 'end' });
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('an update that cannot be decoded is refused, too', async () => {
  const id = world.id();
  await program.start(id);
  const { outcome } = await world.temporal.workflowService.updateWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: id },
    request: {
      meta: { updateId: 'u1', identity: 'somebody' },
      input: { name: 'send', args: { payloads: [{ metadata: { encoding: bytes('binary/encrypted') }, data: bytes('x') }] } },
    },
    waitPolicy: { lifecycleStage: 3 },
  });
  expect(outcome?.failure).toMatchObject({
    message: expect.stringContaining('message could not be decoded: binary/encrypted'),
    applicationFailureInfo: { type: 'InvalidMessage' },
  });
  expect(await program.update(id, 'send', say(id, 'still there?'))).toMatchObject({ stopReason: 'end' });
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('a message of exactly one megabyte is taken', async () => {
  const id = world.id();
  await program.start(id);
  const most = say(id, '').padEnd(MIB, 'x');
  // In history twice, as the update and as what its parts are stored by, it is more than one run of a conversation is to have.
  const sent = (await program.update(id, 'send', most)) as { readonly turnId: string; readonly stopReason: string };
  expect(['end', 'continues']).toContain(sent.stopReason);
  expect(await program.update(id, 'turn', { turnId: sent.turnId })).toMatchObject({ stopReason: 'end' });
  expect(JSON.stringify(stage.requests(id)[0]?.messages).includes(most)).toBe(true);
});

const BAD_STARTS: readonly [argument: unknown, words: string][] = [
  ['default', 'start must be an object, not a text'],
  [[{}], 'start must be an object, not a list of 1'],
  [{ agent: '../../etc' }, 'start.agent must match'],
  [{ agent: 7 }, 'start.agent must match'],
  [{ scope: 'a:b' }, 'start.scope must match'],
  [{ agent: 'x'.repeat(65) }, 'start.agent must match'],
  [{ title: 7 }, 'start.title must be a text, not 7'],
  [{ model: 'gpt' }, 'start.model must look like "provider/model"'],
];

test('a start with a bad argument fails as InvalidStart, in words, without one failed task', async () => {
  for (const [argument, words] of BAD_STARTS) {
    const id = world.id();
    await program.start(id, argument);
    expect(await failureOf(program.outcome(id))).toEqual({ type: 'InvalidStart', message: expect.stringContaining(words) });
    expect(await workflowTaskFailures(world, id)).toEqual([]);
  }
});

test('a start whose argument cannot be decoded, or is far too deep, fails as InvalidStart', async () => {
  const deep = `{"agent":${'['.repeat(5_000)}${']'.repeat(5_000)}}`;
  for (const [encoding, data, words] of [
    ['binary/encrypted', 'abc', 'start could not be decoded: binary/encrypted'],
    ['json/plain', '{"agent":', 'start could not be decoded: json/plain'],
    ['json/plain', deep, 'start is nested deeper than 64 levels'],
  ] as const) {
    const id = world.id();
    await program.startRaw(id, [{ metadata: { encoding: bytes(encoding) }, data: bytes(data) }]);
    expect(await failureOf(program.outcome(id))).toEqual({ type: 'InvalidStart', message: expect.stringContaining(words) });
    expect(await workflowTaskFailures(world, id)).toEqual([]);
  }
});

test('a state that somebody else brings along is not taken for ours', async () => {
  const id = world.id();
  await program.start(id, { carried: { v: 1, identity: { scope: 'of-somebody-else' } } });
  expect(await program.query(id, 'status')).toMatchObject({ scope: 'default', turns: 0 });
  expect(await program.update(id, 'send', say(id, 'hi'))).toMatchObject({ stopReason: 'end' });
});

test('what continues as a conversation or a memory with a state that is none ends with words, and not with tasks that fail', async () => {
  const planted: readonly [type: string, carried: unknown, words: string][] = [
    ['conversation', 5, 'carried must be an object, not 5'],
    ['conversation', { v: 1 }, 'carried.identity must be an object, not undefined'],
    ['conversation', { v: 2 }, 'carried.v must be 1'],
    ['memory', 'mine', 'carried must be an object, not a text'],
    ['memory', { v: 1, scope: 'mine' }, 'carried.requests must be a list'],
    ['memory', emptyQueue('of-somebody-else'), 'carried.scope must be'],
  ];
  for (const [type, carried, words] of planted) {
    const scope = world.id();
    const id = type === 'memory' ? `memory:${scope}` : scope;
    await program.continueAs(id, type, { scope, carried });
    expect(await failureOf(program.outcome(id))).toEqual({ type: 'InvalidStart', message: expect.stringContaining(words) });
    expect(await workflowTaskFailures(world, id)).toEqual([]);
  }
});

test('a workflow id that cannot be the id of a conversation fails as InvalidStart', async () => {
  for (const bad of ['has space', 'a:b', '-dash', 'x'.repeat(65), 'ünï']) {
    const id = bad.length > 60 ? bad : `${bad}-${world.id().slice(2, 10)}`;
    await program.start(id);
    expect(await failureOf(program.outcome(id))).toEqual({
      type: 'InvalidStart',
      message: expect.stringContaining('the workflow id must match'),
    });
  }
});

test('a send that starts a conversation with a bad argument fails readably', async () => {
  const id = world.id();
  const failure = await failureOf(program.updateWithStart(id, 'send', say(id, 'hi'), { agent: '../x' }));
  expect(failure).toEqual({ type: 'InvalidStart', message: expect.stringContaining('start.agent must match') });
  await expect(world.client.send(world.id(), 'hi', { start: { agent: '../x' } })).rejects.toThrow('start.agent must match');
});
