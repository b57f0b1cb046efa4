/** mode, step, break, queue, debug and context --why, as a person runs them: a process each, a real Temporal, a worker, a file store. */
import { callTool, text } from '../../support/provider-apis/reply.js';
import { runPerdura, startPerdura, type Ran } from '../../support/run-perdura.js';
import { createStage, say } from '../../support/stage.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

const SUMMARY = JSON.stringify({
  episodic: { summary: 'They spoke of the harbour.', tags: ['harbour'], salience: 0.7 },
  semantic: [],
});
/** About 400 tokens. */
const LONG = 'The harbour master keeps the ledger. '.repeat(43);

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({
    files: { 'a.txt': 'content' },
    agent: {
      tools: ['read_file', 'get_time'],
      context: { advanced: { softThreshold: 5_000, hardThreshold: 6_000, truncationThreshold: 7_000 }, autoCompactEnabled: false },
    },
    answer: (request) =>
      JSON.stringify(request.system ?? '').includes('You condense a part of a conversation') ? text(SUMMARY) : stage.answer(request),
  });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

/** What is replayed is replayed by the code of the build, as the worker runs it: in a process of its own. */
const perdura = (args: readonly string[], input = ''): Promise<Ran> =>
  (args[0] === 'debug' && !['mode', 'step', 'break', 'queue', 'context', 'inspect'].includes(args[1] ?? '')) || args.includes('--why')
    ? startPerdura(world, args).ended
    : runPerdura(world, args, { input });

async function json<T = Record<string, unknown>>(...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await perdura([...args, '-o', 'json']);
  // On a slow machine it says what it does meanwhile.
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('cannot') });
  return JSON.parse(stdout) as T;
}

async function stepped(): Promise<string> {
  const id = world.id();
  expect((await perdura(['new', '--id', id, '--mode', 'stepping', '-q'])).stdout).toBe(`${id}\n`);
  return id;
}

test('a conversation is stepped through from the command line, and says each time what it did', async () => {
  const id = await stepped();
  stage.play(id, callTool('read_file', { path: 'a.txt' }), text('It says: content.'));
  await world.client.message(id, { id: 'm1', text: say(id, 'read it') });
  // A signal is answered before the conversation has seen it.
  await waitFor(
    () => perdura(['show', id]),
    ({ stdout }) => /^waits  turn_0001 message of \d+ B  /.test(stdout),
  );
  const first = await perdura(['debug', 'step', id, '--explain']);
  expect(first.stdout).toContain('event       take message m1');
  // Which model it is, the first step of a turn reads.
  expect(first.stdout).toContain('next        call the model (turn_0001/m1)');
  expect(first.stderr).toContain('temporal workflow update execute --name step');
  const inspected = await perdura(['debug', 'inspect', id]);
  expect(inspected.stdout).toMatch(/mode +stepping/);
  expect(inspected.stdout).toMatch(/next +call the model/);
  const { steps } = await json<{ steps: { did: string }[] }>('debug', 'step', id, '--count', '10');
  expect(steps.map(({ did }) => did)).toEqual(['model-call', 'tool-run', 'model-call', 'nothing']);
  expect(await json('debug', 'mode', id)).toMatchObject({ id, mode: 'stepping', stepLock: null, next: null, thresholds: { hard: 6_000 } });
  expect(await json('debug', 'mode', id, 'auto')).toMatchObject({ mode: 'auto' });
  const refused = await perdura(['debug', 'step', id]);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('set its mode to stepping first') });
});

test('breakpoints are added by name and taken away, and a slip is reported', async () => {
  const id = world.id();
  await world.client.start(id);
  expect(await json('debug', 'break', id, '--tool', 'read_file', '--tool', 'pay', '--cost', '0.5')).toMatchObject({
    breakpoints: { tools: ['read_file', 'pay'], costUsd: 0.5 },
  });
  expect(await json('debug', 'break', id, '--on-error', '--event', 'reset')).toMatchObject({
    breakpoints: { tools: ['read_file', 'pay'], events: ['reset'], onError: true, costUsd: 0.5 },
  });
  expect((await perdura(['debug', 'break', id])).stdout).toContain(
    'before tool read_file, before tool pay, before event reset, on an error',
  );
  expect(await json('debug', 'break', id, '--none')).toMatchObject({ breakpoints: {} });
  expect(await perdura(['debug', 'break', id, '--cost', 'much'])).toMatchObject({ code: 2, stderr: expect.stringContaining('US dollars') });
  expect(await perdura(['debug', 'mode', id, 'sideways'])).toMatchObject({ code: 2, stderr: expect.stringContaining('auto, stepping') });
});

test('the queue is shown, moved, dropped and cleared; what takes something away asks first', async () => {
  const id = await stepped();
  for (const name of ['one', 'two', 'three']) await world.client.message(id, { id: name, text: say(id, name) });
  const shown = await perdura(['debug', 'queue', id]);
  expect(shown.stdout.split('\n').slice(0, 3)).toEqual(
    [1, 2, 3].map((n) => expect.stringMatching(`^qevt_00000${n} +turn_000${n} message`)),
  );
  const names = ({ queue }: { queue: { event: { messageId: string } }[] }): string[] => queue.map(({ event }) => event.messageId);
  type Queue = { queue: { event: { messageId: string } }[] };
  expect(names(await json<Queue>('debug', 'queue', id, '--move', 'qevt_000003', '--before', 'qevt_000001'))).toEqual([
    'three',
    'one',
    'two',
  ]);
  expect(await perdura(['debug', 'queue', id, '--drop', 'qevt_000001'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--yes'),
  });
  expect(names(await json<Queue>('debug', 'queue', id, '--drop', 'qevt_000001', '--yes'))).toEqual(['three', 'two']);
  expect(await perdura(['debug', 'queue', id, '--drop', 'qevt_000001', '--yes'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('qevt_000001'),
  });
  expect(await perdura(['debug', 'queue', id, '--before', 'qevt_000001'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--move'),
  });
  expect(await perdura(['debug', 'queue', id, '--clear'])).toMatchObject({ code: 2 });
  expect(names(await json<Queue>('debug', 'queue', id, '--clear', '-y'))).toEqual([]);
});

test('a chat in lines is stepped through, and the answer comes with the step that ends the turn', async () => {
  const id = await stepped();
  stage.play(id, text('Hello.'));
  const { stdout, stderr, code } = await perdura(['chat', '-r', id], `${say(id, 'hi')}\n/mode\n/step\n/step\n/mode auto\n`);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stderr).toContain('it is taken by /step');
  expect(stdout).toMatch(/event +take message[^]*model-call +call the model[^]*Hello\.[^]*mode +auto/);
});

test('the events of a conversation and the states after them are printed, from a turn on where one is named', async () => {
  const id = world.id();
  await world.client.start(id);
  stage.play(id, callTool('read_file', { path: 'a.txt' }), text('It says: content.'), text('Again.'));
  await world.client.send(id, say(id, 'read'));
  await world.client.send(id, say(id, 'again'));
  await world.client.terminate(id, 'a test');
  type Told = {
    complete: boolean;
    last: number;
    turns: unknown[];
    events: { position: number; kind: string; effect?: string; words: string; state: { turn: number; phase: string } }[];
  };
  const told = await json<Told>('debug', id);
  expect(told).toMatchObject({ complete: true, problems: [], turns: [{ turn: 1 }, { turn: 2 }] });
  expect(told.events).toHaveLength(told.last + 1);
  expect(told.events[0]).toMatchObject({ kind: 'run-opened', state: { phase: 'idle', turn: 0 } });
  expect(told.events.find(({ kind, effect }) => kind === 'effect-completed' && effect === 'run-tool')).toMatchObject({
    words: expect.stringMatching(/^run tool completed: read_file \(turn_0001\/c1\) ok in \d+ ms/),
  });
  expect(told.events.at(-1)).toMatchObject({ state: { turn: 2, turns: 2 } });
  const second = await json<Told>('debug', id, '--at', 'turn_0002');
  expect(second.events[0]).toMatchObject({ position: second.events[0]?.position, state: { turn: 2, phase: 'thinking' } });
  expect(second.events.length).toBeLessThan(told.events.length);
  expect(await perdura(['debug', id, '--at', '9', '-o', 'json'])).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('its last is turn_0002'),
  });
  expect(await perdura(['debug', id])).toMatchObject({ code: 2, stderr: expect.stringContaining('needs a terminal') });
  expect(await perdura(['debug', 'nobody-has-this', '-o', 'json'])).toMatchObject({ code: 4 });
});

test('a quick tool is named where it rides, and with its outcome and its time where the step ends', async () => {
  const id = world.id();
  await world.client.start(id);
  stage.play(id, callTool('get_time', {}), text('It is late.'));
  await world.client.send(id, say(id, 'what time is it?'));
  const { events } = await json<{ events: { kind: string; effect?: string; words: string }[] }>('debug', id);
  const steps = events.filter(({ effect }) => effect === 'model-step').map(({ words }) => words);
  expect(steps).toEqual([
    expect.stringMatching(/^model step started: turn_0001\/m1 · writes /),
    expect.stringMatching(/^model step completed: turn_0001\/m1 tool-calls asks for get_time$/),
    'model step started: turn_0001/m2 · rides: get_time (turn_0001/c1)',
    expect.stringMatching(/^model step completed: get_time \(turn_0001\/c1\) ok in \d+ ms · turn_0001\/m2 end “It is late\.”$/),
  ]);
  expect(events.filter(({ effect }) => effect === 'run-tool')).toEqual([]);
});

test('why it forgot a turn: the compaction, its summary, the turns that went with it, who made it of what', async () => {
  const id = world.id();
  await world.client.start(id);
  for (let n = 1; n <= 8; n++) {
    stage.play(id, text(`${n}: ${LONG}`));
    await world.client.send(id, { id: `m${n}`, text: say(id, `turn ${n}`) });
  }
  const truncated = await perdura(['debug', 'context', id, '--truncate']);
  expect(truncated).toMatchObject({ code: 0, stderr: expect.stringContaining('nothing to leave out') });
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted' });
  type Answer = { inPrompt: number; entries: number; complete: boolean; causes: Record<string, unknown>[] };
  const why = await json<Answer>('debug', 'context', id, '--why', '1');
  expect(why).toMatchObject({ turn: 'turn_0001', inPrompt: 0, entries: 2, complete: true });
  expect(why.causes).toMatchObject([
    {
      kind: 'compacted',
      epoch: 2,
      episode: 'ep_0001',
      summary: 'They spoke of the harbour.',
      turns: expect.arrayContaining(['turn_0001', 'turn_0002']),
      model: 'anthropic/claude-test',
      method: 'model',
      inputsHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      from: 'history',
    },
  ]);
  const told = await perdura(['debug', 'context', id, '--why', 'turn_0001']);
  expect(told.stdout).toContain('turn_0001 is no longer in the prompt');
  expect(told.stdout).toContain(`what the model has instead: the summary ep_0001 below`);
  expect((await perdura(['debug', 'context', id])).stdout).toMatch(/word for word +5–8\s*\nas a summary +1–4 +ep_0001/);
  expect(told.stdout).toMatch(/compacted +2 +1–4 +\S+ → \S+ +ep_0001 +anthropic\/claude-test\n +ep_0001: They spoke of the harbour\./);
  expect(await json<Answer>('debug', 'context', id, '--why', '8')).toMatchObject({ inPrompt: 2, causes: [] });
  // Taken back, it is there again, and both stand in the answer.
  await world.client.undoCompaction(id);
  expect((await json<Answer>('debug', 'context', id, '--why', '1')).causes.map(({ kind }) => kind)).toEqual(['compacted', 'returned']);
  await world.client.reset(id);
  await waitFor(
    () => world.client.status(id),
    ({ session }) => session === 2,
  );
  const after = await json<Answer>('debug', 'context', id, '--why', '1');
  expect(after.inPrompt).toBe(0);
  expect(after.causes.at(-1)).toMatchObject({ kind: 'session-ended' });
  expect((await perdura(['debug', 'context', id])).stdout).toMatch(/no longer +1–8 +of a session that \/new ended/);
  await world.client.send(id, say(id, 'turn 9'));
  await world.client.send(id, say(id, 'turn 10'));
  await world.client.rewind(id, 'turn_0009');
  const cut = await perdura(['debug', 'context', id, '--why', '10']);
  expect(cut.stdout).toMatch(/turn_0010 is no longer in the prompt[^]*perdura show .* --branch 1 --turn 10\n[^]*rewound/);
  expect(await perdura(['debug', 'context', id, '--why', '77'])).toMatchObject({ code: 4, stderr: expect.stringContaining('turn_0077') });
  expect(await perdura(['debug', 'context', id, '--why', 'x'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('is not a turn'),
  });
  expect(await perdura(['debug', 'context', id, '--why', '1', '--undo'])).toMatchObject({ code: 2 });
});
