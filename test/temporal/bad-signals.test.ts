/** A signal cannot be refused: whatever comes in one, the conversation says what it was and goes on. */
import { outside, type Outside, type Payload } from '../support/outside.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
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

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const encoded = (encoding: string, data: string): Payload => ({ metadata: { encoding: bytes(encoding) }, data: bytes(data) });
const json = (text: string): Payload => encoded('json/plain', text);
const nested = (levels: number): Payload => json(`{"text":"hi","images":${'['.repeat(levels)}${']'.repeat(levels)}}`);

interface Rejected {
  readonly count: number;
  readonly last: readonly { readonly name: string; readonly reason: string }[];
}
const rejectedOf = async (id: string): Promise<Rejected> =>
  ((await program.query(id, 'status')) as { rejectedInputs: Rejected }).rejectedInputs;

async function expectRejected(id: string, signal: () => Promise<void>, reason: string): Promise<void> {
  const before = await rejectedOf(id);
  await signal();
  const after = await waitFor(
    () => rejectedOf(id),
    ({ count }) => count > before.count,
  );
  expect(after.last.at(-1)).toMatchObject({ name: 'message', reason: expect.stringContaining(reason) });
}

async function expectAlive(id: string): Promise<void> {
  expect(await program.update(id, 'send', say(id, 'still there?'))).toMatchObject({ stopReason: 'end' });
  expect(await workflowTaskFailures(world, id)).toEqual([]);
}

const UNDECODABLE: readonly [what: string, payloads: readonly Payload[] | undefined, reason: string][] = [
  ['an unknown encoding', [encoded('binary/encrypted', 'abc')], 'could not be decoded: binary/encrypted'],
  ['broken JSON', [json('{"text": "half')], 'could not be decoded: json/plain'],
  ['JSON with no bytes', [json('')], 'could not be decoded: json/plain'],
  ['no metadata', [{ data: bytes('"hi"') }], 'could not be decoded: no encoding'],
  ['metadata without an encoding', [{ metadata: { other: bytes('x') }, data: bytes('"hi"') }], 'could not be decoded: no encoding'],
  ['an empty payload', [{}], 'could not be decoded: no encoding'],
  ['a protobuf without its type', [encoded('json/protobuf', '{}')], 'could not be decoded: json/protobuf'],
  ['several payloads, none of them readable', [encoded('a', ''), encoded('b', '')], 'could not be decoded: a'],
  ['raw bytes', [encoded('binary/plain', 'hi')], 'message'],
  ['a null', [encoded('binary/null', '')], 'must be an object, not undefined'],
  ['an empty list of payloads', [], 'not undefined'],
  ['no payloads at all', undefined, 'not undefined'],
];

test('what cannot be decoded is rejected by name, and the conversation answers', async () => {
  const id = world.id();
  await program.start(id);
  for (const [, payloads, reason] of UNDECODABLE) {
    await expectRejected(id, () => program.signalRaw(id, 'message', payloads), reason);
  }
  await program.signalRaw(id, 'close-not', [encoded('binary/encrypted', 'abc')]);
  await program.signalRaw(id, 'new', [encoded('binary/encrypted', 'abc')]);
  const { last } = await waitFor(
    () => rejectedOf(id),
    ({ count }) => count === UNDECODABLE.length + 2,
  );
  expect(last.at(-1)).toMatchObject({ name: 'new', reason: expect.stringContaining('could not be decoded: binary/encrypted') });
  await expectAlive(id);
});

test('the first of several payloads is the message, the others are passed over', async () => {
  const id = world.id();
  await program.start(id);
  await program.signalRaw(id, 'message', [json(JSON.stringify(say(id, 'first'))), encoded('binary/encrypted', 'second')]);
  await stage.waitForRequest(id, 1);
  await expectAlive(id);
  expect((await rejectedOf(id)).count).toBe(0);
});

const WRONG: readonly [payload: unknown, reason: string][] = [
  [42, 'must be an object, not 42'],
  [null, 'not null'],
  [['hi'], 'not a list of 1'],
  [true, 'not true'],
  [{}, 'message.text must be a text, not undefined'],
  [{ text: 5 }, 'message.text must be a text, not 5'],
  ['', 'message.text is empty'],
  [' \n\t ', 'message.text is empty'],
  [{ text: '' }, 'message.text is empty'],
  [{ text: 'hi', wait: true }, 'message.wait is not a field'],
  [{ text: 'hi', id: 7 }, 'id must be a text of 1 to 128'],
  [{ text: 'hi', id: '' }, 'id must be a text of 1 to 128'],
  [{ text: 'hi', id: 'x'.repeat(129) }, 'id must be a text of 1 to 128'],
  [{ text: 'hi', id: 'half \ud800' }, 'id must be a text of 1 to 128'],
  [{ text: 'hi', delivery: 'teleport' }, 'message.delivery must be one of'],
  [{ text: 'hi', images: 'cat.png' }, 'message.images must be a list'],
  [{ text: 'hi', images: [{ mediaType: 'text/html', url: 'https://example.com' }] }, 'message.images[0].mediaType'],
];

test('a name that Temporal reserves is rejected, of signals and of updates, by a conversation and by a memory', async () => {
  const id = world.id();
  await program.start(id);
  const memory = `memory:${id}`;
  await world.temporal.workflow.start('memory', { workflowId: memory, taskQueue: world.taskQueue, args: [{ scope: id }] });
  for (const name of ['__temporal_x', '__temporal_workflow_stream_publish', '__stack_trace', '__enhanced_stack_trace']) {
    await program.signal(id, name, 1);
    await program.signal(memory, name, 1);
    await expect(program.update(id, name, 1)).rejects.toThrow();
  }
  const { last } = await waitFor(
    () => rejectedOf(id),
    ({ count }) => count === 4,
  );
  expect(last[0]).toMatchObject({ name: 'reserved __temporal_x', reason: 'no signal of that name' });
  expect(await program.query(memory, 'status')).toMatchObject({ queued: [] });
  await expectAlive(id);
  expect(await workflowTaskFailures(world, memory)).toEqual([]);
});

test('what has the wrong shape is rejected with the field and what was expected', async () => {
  const id = world.id();
  await program.start(id);
  for (const [payload, reason] of WRONG) await expectRejected(id, () => program.signal(id, 'message', payload), reason);
  const { count, last } = await rejectedOf(id);
  expect([count, last.length]).toEqual([WRONG.length, 5]);
  await expectAlive(id);
});

test('what is nested deeper than 64 levels is rejected, also where JSON itself would give up', async () => {
  const id = world.id();
  await program.start(id);
  await expectRejected(id, () => program.signalRaw(id, 'message', [nested(60)]), 'message.images[0].mediaType must be one of');
  for (const levels of [65, 5_000, 100_000]) {
    await expectRejected(id, () => program.signalRaw(id, 'message', [nested(levels)]), 'message is nested deeper than 64 levels');
  }
  await expectAlive(id);
});

test('two megabytes of something that is no message do not hold the conversation up', async () => {
  const id = world.id();
  await program.start(id);
  const most = 1_900_000;
  await expectRejected(id, () => program.signalRaw(id, 'message', [encoded('binary/plain', 'x'.repeat(most))]), 'message');
  await expectRejected(
    id,
    () => program.signalRaw(id, 'message', [json(`{"text":[${'0,'.repeat(most / 2)}0]}`)]),
    'more than 50000 values',
  );
  await expectRejected(id, () => program.signalRaw(id, 'message', [json(`{"text":"hi","${'k'.repeat(most)}":1}`)]), 'is not a field');
  await expectAlive(id);
});

test('half of a character becomes a whole one', async () => {
  const id = world.id();
  await program.start(id);
  await program.signal(id, 'message', say(id, 'broken \ud83d heart \udc94'));
  const request = await stage.waitForRequest(id, 1);
  expect(JSON.stringify(request.messages)).toContain('broken \ufffd heart \ufffd');
  await expectAlive(id);
  expect((await world.client.history(id))[0]?.message).toMatchObject({ text: say(id, 'broken \ufffd heart \ufffd') });
});

test('a signal of more than a megabyte is accepted, and is whole in the prompt; history has it as it came and on its way to the store, and never again', async () => {
  const id = world.id();
  await program.start(id);
  const long = say(id, `${'ä'.repeat(800_000)} end`);
  await program.signal(id, 'message', { id: 'long', text: long });
  const request = await stage.waitForRequest(id, 1);
  expect(JSON.stringify(request.messages).includes(long)).toBe(true);
  await expectAlive(id);
  const { raw } = await world.temporal.workflow.getHandle(id).describe();
  expect(Number(raw.workflowExecutionInfo?.historySizeBytes)).toBeLessThan(2 * 1_700_000);
  const [first] = await world.client.history(id);
  expect((first?.message as { text?: string }).text === long).toBe(true);
});
