/** A conversation that is stepped through (seed 004): one thing at a time, over worker deaths and hand-overs, and what comes of it is what auto gives. */
import { z } from 'zod';
import type { StepResult } from '../../src/conversation/protocol/stepping.js';
import { textOf } from '../support/provider-apis/api-request.js';
import { callTool, callTools, gate, text } from '../support/provider-apis/reply.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runsOf, workflowTaskFailures } from '../support/run-chain.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { testReplays } from '../support/replays.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const look = defineTool({
  name: 'look',
  description: 'Looks at a thing.',
  input: z.object({ at: z.string() }),
  policy: { repeatable: true },
  run: ({ at }) => `I saw ${at}.`,
});

const stage = createStage();
let world: World;
let stopWorker: () => Promise<void>;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools: [...builtinTools, look], worker: false });
  await world.writeAgent('brief', { limits: { handOver: { events: 20 } } });
  await world.writeAgent('careful', { defaultExecutionMode: 'stepping' });
  await world.writeAgent('disorderly', {
    context: { advanced: { softThreshold: 50_000, hardThreshold: 40_000, truncationThreshold: 100_000 } },
  });
  stopWorker = await world.startWorker();
});
afterAll(async () => {
  await stopWorker();
  await world.close();
});
afterEach(() => expect(world.api.problems).toEqual([]));

async function restartWorker(): Promise<void> {
  await stopWorker();
  stopWorker = await world.startWorker();
}

async function started(options: Parameters<World['client']['start']>[1] = { mode: 'stepping' }): Promise<string> {
  const id = world.id();
  await world.client.start(id, options);
  return id;
}

/** Until there is nothing to do. */
async function stepOn(id: string, between: () => Promise<void> = () => Promise.resolve()): Promise<StepResult[]> {
  const results: StepResult[] = [];
  for (;;) {
    const result = await world.client.step(id);
    if (result.did === 'nothing') return results;
    results.push(result);
    await between();
  }
}

const script = [
  callTools({ name: 'look', input: { at: 'the sea' }, id: 'toolu_a' }, { name: 'look', input: { at: 'the sky' }, id: 'toolu_b' }),
  text('Blue, both.'),
  callTool('look', { at: 'the moon' }, 'toolu_c'),
  text('Round.'),
];

/** What the model was asked, and what is recorded, without what differs between any two conversations. */
async function told(id: string): Promise<unknown> {
  const entries = (await world.client.history(id)).map(({ ts: _, messageId: _m, ...entry }) => entry);
  const { ...index } = await world.client.context(id);
  const asked = stage.requests(id).map(({ messages, system }) => ({ messages, system }));
  return JSON.parse(JSON.stringify({ asked, entries, index }).replaceAll(id, 'ID')) as unknown;
}

test('stepped with another worker for every step, it asks the model, records and has in context what auto does', async () => {
  const [stepped, auto] = [await started(), await started({})];
  const results: StepResult[] = [];
  for (const id of [stepped, auto]) {
    stage.play(id, ...script);
    for (const [n, words] of ['look around', 'and up'].entries()) {
      await world.client.message(id, { id: `m${n}`, text: say(id, words) });
      if (id === stepped) results.push(...(await stepOn(id, restartWorker)));
      else await world.client.turn(id, `turn_000${n + 1}`);
    }
  }
  expect(results.map(({ did }) => did)).toEqual([
    ...['event', 'model-call', 'tool-run', 'tool-run', 'model-call'],
    ...['event', 'model-call', 'tool-run', 'model-call'],
  ]);
  expect(results[1]?.words).toContain('it asks for look, look');
  expect(results.at(-1)?.words).toContain('turn_0002 ended: end');
  expect(await told(stepped)).toEqual(await told(auto));
  expect(await workflowTaskFailures(world, stepped)).toEqual([]);
});

test('a second step is refused with the id of the one that runs, by which the first is answered again', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, { ...text('Slowly.'), hold });
  await world.client.message(id, say(id, 'hi'));
  expect(await world.client.step(id)).toMatchObject({ did: 'event', eventProcessed: true, queuedEventCount: 0 });
  const first = world.client.step(id, { id: 'the-first' });
  await hold.reached;
  expect(await world.client.status(id)).toMatchObject({ mode: 'stepping', stepLock: 'the-first', phase: 'thinking' });
  await expect(world.client.step(id)).rejects.toMatchObject({ kind: 'cannot-step', message: expect.stringContaining('the-first') });
  hold.release();
  const result = await first;
  expect(result).toMatchObject({ stepId: 'the-first', did: 'model-call', compactionPerformed: false, truncationPerformed: false });
  expect(await world.client.step(id, { id: 'the-first' })).toEqual(result);
  expect(stage.requests(id)).toHaveLength(1);
});

test('a dozen programs that wait for their answers leave room for the step that gives them', async () => {
  const id = await started();
  const answers = Array.from({ length: 12 }, (_, n) => world.client.send(id, say(id, `message ${n}`)));
  await waitFor(
    () => world.client.status(id),
    ({ queued }) => queued === 12,
  );
  await stepOn(id);
  expect(await Promise.all(answers)).toHaveLength(12);
});

test('in auto mode, and in a conversation that is closed, a step is refused with the reason', async () => {
  const id = await started({});
  await expect(world.client.step(id)).rejects.toMatchObject({ kind: 'cannot-step', message: expect.stringContaining('mode auto') });
  await world.client.closeConversation(id);
  await world.client.outcome(id);
  await expect(world.client.step(id)).rejects.toMatchObject({ kind: 'not-found' });
  await expect(world.client.setMode(id, 'stepping')).rejects.toMatchObject({ kind: 'not-found' });
});

test('a breakpoint that nobody knows is refused by the client and by the workflow, with the field', async () => {
  const id = await started({});
  const wrong = { tool: ['look'] } as object;
  await expect(world.client.setBreakpoints(id, wrong)).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining('setBreakpoints.tool'),
  });
  const direct = world.temporal.workflow.getHandle(id).executeUpdate('setBreakpoints', { args: [wrong] });
  await expect(direct).rejects.toMatchObject({
    cause: { type: 'InvalidMessage', message: expect.stringContaining('known are tools, events') },
  });
});

test('a breakpoint stops before its tool, says so, and is passed by the next step or by going on', async () => {
  const id = await started({});
  stage.play(id, ...script);
  expect(await world.client.setBreakpoints(id, { tools: ['look'] })).toMatchObject({ breakpoints: { tools: ['look'] } });
  const answer = world.client.send(id, say(id, 'look around'));
  const paused = await waitFor(
    () => world.client.status(id),
    ({ pausedBy }) => pausedBy !== null,
  );
  expect(paused).toMatchObject({ mode: 'stepping', phase: 'stepping', pausedBy: expect.stringContaining('tool: look') });
  expect(await world.client.control(id)).toMatchObject({
    next: expect.stringContaining('run look'),
    turn: {
      id: 'turn_0001',
      modelCall: null,
      calls: [
        { name: 'look', status: 'waiting' },
        { name: 'look', status: 'waiting' },
      ],
    },
  });
  expect(await world.client.step(id)).toMatchObject({ did: 'tool-run', next: expect.stringContaining('c2') });
  await world.client.setBreakpoints(id, {});
  expect(await world.client.setMode(id, 'auto')).toMatchObject({ mode: 'auto' });
  expect(await answer).toMatchObject({ text: 'Blue, both.', stopReason: 'end' });
});

test('set to auto in the middle of a step, the step hears of it and its work is not lost', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, { ...text('Whole.'), hold });
  await world.client.message(id, say(id, 'hi'));
  await world.client.step(id);
  const step = world.client.step(id, { id: 'cut-off' }).catch((error: unknown) => error);
  await hold.reached;
  await world.client.setMode(id, 'auto');
  expect(await step).toMatchObject({ kind: 'cannot-step', message: expect.stringContaining('auto') });
  hold.release();
  expect(await world.client.turn(id, 'turn_0001')).toMatchObject({ text: 'Whole.', stopReason: 'end' });
  expect(stage.requests(id)).toHaveLength(1);
});

test('set to stepping in the middle of a model call, the call ends and the tools that it asks for wait', async () => {
  const id = await started({});
  const hold = gate({ events: 1 });
  stage.play(id, { ...callTool('look', { at: 'it' }), holdAfter: hold }, text('Seen.'));
  const answer = world.client.send(id, say(id, 'look'));
  await hold.reached;
  await world.client.setMode(id, 'stepping');
  hold.release();
  await waitFor(
    () => world.client.control(id),
    ({ turn }) => turn?.calls[0]?.status === 'waiting',
  );
  expect(stage.requests(id)).toHaveLength(1);
  await stepOn(id);
  expect(await answer).toMatchObject({ text: 'Seen.' });
});

test('runs hand over between steps and in the middle of a turn, and whoever steps cannot tell', async () => {
  const id = await started({ mode: 'stepping', agent: 'brief' });
  const rounds = Array.from({ length: 6 }, (_, n) =>
    callTools({ name: 'look', input: { at: `a${n}` } }, { name: 'look', input: { at: `b${n}` } }),
  );
  stage.play(id, ...rounds, text('Seen.'));
  await world.client.message(id, say(id, 'look around'));
  const results = await stepOn(id);
  expect(results.filter(({ did }) => did === 'tool-run')).toHaveLength(12);
  expect(new Set(results.map(({ stepId }) => stepId)).size).toBe(results.length);
  for (const [n] of rounds.entries()) expect(resultTexts(stage.requests(id)[n + 1])).toEqual([`I saw a${n}.`, `I saw b${n}.`]);
  expect((await runsOf(world, id)).length).toBeGreaterThan(2);
  expect(await world.client.status(id)).toMatchObject({ mode: 'stepping', turns: 1 });
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('the queue is moved, dropped and cleared by hand, each in history, and who waits for a dropped message is told', async () => {
  const id = await started();
  const sent = ['a', 'b', 'c', 'd'].map((name) => world.client.send(id, { id: name, text: say(id, name) }));
  await waitFor(
    () => world.client.queue(id),
    (queue) => queue.length === 4,
  );
  // Sends may come in any order.
  const names = (queue: Awaited<ReturnType<World['client']['queue']>>): string[] =>
    queue.map(({ event }) => (event.kind === 'message' ? event.messageId : event.kind));
  const queue = await world.client.queue(id);
  const [first, second, third, fourth] = names(queue);
  const idOf = (at: number): string => queue[at]?.id ?? '';
  expect(names(await world.client.editQueue(id, { op: 'move', id: idOf(3), before: idOf(0) }))).toEqual([fourth, first, second, third]);
  expect(names(await world.client.editQueue(id, { op: 'drop', id: idOf(1) }))).toEqual([fourth, first, third]);
  expect(await sent[['a', 'b', 'c', 'd'].indexOf(second ?? '')]).toMatchObject({ stopReason: 'withdrawn' });
  await expect(world.client.editQueue(id, { op: 'drop', id: idOf(1) })).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining(idOf(1)),
  });
  stage.play(id, text('First.'));
  expect((await world.client.step(id)).words).toContain(`take message ${fourth}`);
  await world.client.step(id);
  expect(textOf(stage.requests(id)[0]?.messages.at(-1)?.content ?? '')).toContain(`${id} ${fourth}`);
  expect(await world.client.editQueue(id, { op: 'clear' })).toEqual([]);
  const reasons = (await Promise.all(sent)).map(({ stopReason }) => stopReason).sort();
  expect(reasons).toEqual(['end', 'withdrawn', 'withdrawn', 'withdrawn']);
});

test('an event of the application’s own that nobody reduces is kept, counted and named; beyond 500 the next is refused', async () => {
  const id = await started({});
  expect(await world.client.dispatch(id, { type: 'deployed', payload: { version: 7 }, id: 'e1' })).toEqual({ id: 'e1', position: 0 });
  await waitFor(
    () => world.client.status(id),
    ({ appEvents }) => appEvents?.unreduced.count === 1,
  );
  expect((await world.client.status(id)).appEvents).toMatchObject({ unreduced: { types: ['deployed'] }, parkedCount: 0 });
  await world.client.dispatch(id, { type: 'deployed', id: 'e1' });
  expect((await world.client.status(id)).appEvents?.unreduced.count).toBe(1);
  expect(await world.client.dispatch(id, { type: 'deployed', id: 'e2' }, { wait: true })).toEqual({
    ...{ id: 'e2', position: 0 },
    result: { kind: 'unreduced' },
  });

  await world.client.setMode(id, 'stepping');
  const handle = world.temporal.workflow.getHandle(id);
  for (let i = 0; i < 10; i++)
    await Promise.all(Array.from({ length: 51 }, (_, n) => handle.signal('event', { type: 'tick', id: `${i}-${n}` })));
  const status = await waitFor(
    () => world.client.status(id),
    ({ queued, rejectedInputs }) => queued + rejectedInputs.count === 510,
  );
  expect(status).toMatchObject({ queued: 500, rejectedInputs: { count: 10 } });
  await expect(world.client.dispatch(id, { type: 'tick' })).rejects.toMatchObject({
    kind: 'queue-full',
    message: expect.stringContaining('500'),
  });
});

test('an agent’s default mode holds its conversations before the first model call, where their start names none', async () => {
  const [own, auto] = [await started({ agent: 'careful' }), await started({ agent: 'careful', mode: 'auto' })];
  stage.play(own, text('First.'), text('Second.'));
  stage.play(auto, text('At once.'));
  expect(await world.client.send(auto, { id: 'm1', text: say(auto, 'hi') })).toMatchObject({ text: 'At once.' });
  await world.client.message(own, { id: 'm1', text: say(own, 'hi') });
  const held = await waitFor(
    () => world.client.status(own),
    ({ phase }) => phase === 'stepping',
  );
  expect(held).toMatchObject({ mode: 'stepping', turn: 1, turns: 0 });
  expect(stage.requests(own)).toHaveLength(0);
  expect((await stepOn(own)).map(({ did }) => did)).toEqual(['model-call']);
  expect(await world.client.turn(own, 'turn_0001')).toMatchObject({ text: 'First.' });
  // A person who has set it has the last word.
  await world.client.setMode(own, 'auto');
  expect(await world.client.send(own, { id: 'm2', text: say(own, 'on') })).toMatchObject({ text: 'Second.' });
});

test('thresholds that are out of order fail the turn with the rule', async () => {
  const id = await started({ mode: 'stepping', agent: 'disorderly' });
  await world.client.message(id, { id: 'm1', text: say(id, 'hi') });
  await stepOn(id);
  const { stopReason, error } = await world.client.turn(id, 'turn_0001');
  expect([stopReason, error?.type]).toEqual(['failed', 'bad-config']);
  expect(error?.message).toContain('softThreshold < hardThreshold < truncationThreshold');
});

test('a sub-agent and one of its own are stepped through their parent, over other workers and hand-overs, and over lets them go on', async () => {
  const id = await started();
  const [helper, deep] = [world.id(), world.id()];
  const child = `${id}:turn_0001:1`;
  const grandchild = `${child}:turn_0001:1`;
  stage.play(id, callTool('delegate', { task: say(helper, 'have it looked at') }), text('All is well.'));
  stage.play(helper, callTool('delegate', { task: say(deep, 'look') }), text('It is blue.'));
  stage.play(deep, callTool('look', { at: 'the sea' }), text('Blue.'));
  const sent = world.client.send(id, say(id, 'ask somebody'));
  await waitFor(
    () => world.client.status(id),
    ({ queued }) => queued === 1,
  );
  const calls = (): number => [id, helper, deep].reduce((sum, key) => sum + stage.requests(key).length, 0);
  const done: string[] = [];
  for (let i = 0; i < 8; i++) {
    const before = calls();
    const result = await world.client.step(id);
    done.push(result.child ? `${result.child.conversation === child ? 'child' : 'grandchild'} ${result.child.did}` : result.did);
    expect(calls() - before).toBeLessThanOrEqual(1);
    if (i === 4) await restartWorker();
  }
  expect(done).toEqual([
    ...['event', 'model-call', 'tool-run', 'child event', 'child model-call', 'child tool-run'],
    ...['grandchild event', 'grandchild model-call'],
  ]);
  const status = await world.client.status(id);
  expect(status).toMatchObject({ phase: 'stepping', mode: 'stepping' });
  expect(status.subAgents?.map(({ conversation, next }) => [conversation, next])).toEqual([
    [child, `in ${grandchild}: run look: the sea (turn_0001/c1)`],
    [grandchild, 'run look: the sea (turn_0001/c1)'],
  ]);
  const over = await world.client.step(id, { scope: 'over' });
  expect(over).toMatchObject({ did: 'sub-agent', next: expect.stringContaining('turn_0001/m2') });
  expect(resultTexts(stage.requests(deep).at(-1))).toEqual(['I saw the sea.']);
  expect(stage.requests(id)).toHaveLength(1);
  await world.client.step(id);
  expect(await sent).toMatchObject({ text: 'All is well.', stopReason: 'end' });
  for (const one of [id, child, grandchild]) expect(await workflowTaskFailures(world, one)).toEqual([]);
});

test('a breakpoint stops the sub-agent that reaches it, and auto of its parent lets it go on', async () => {
  const [id, helper] = [await started({}), world.id()];
  const child = `${id}:turn_0001:1`;
  stage.play(id, callTool('delegate', { task: say(helper, 'look') }), text('All is well.'));
  stage.play(helper, callTool('look', { at: 'the sea' }), text('Blue.'));
  await world.client.setBreakpoints(id, { tools: ['look'] });
  const sent = world.client.send(id, say(id, 'ask somebody'));
  const paused = await waitFor(
    () => world.client.status(id),
    ({ pausedBy }) => pausedBy !== null,
  );
  expect(paused).toMatchObject({ mode: 'stepping', pausedBy: `tool: look (turn_0001/c1) in ${child}` });
  expect(paused.subAgents).toEqual([
    { conversation: child, mode: 'stepping', next: 'run look: the sea (turn_0001/c1)', pausedBy: 'tool: look (turn_0001/c1)' },
  ]);
  await world.temporal.workflow.getHandle(child).signal('parent', { number: 99, changes: 99, mode: 'auto', breakpoints: {}, spentUsd: 0 });
  const { rejectedInputs } = await waitFor(
    () => world.client.status(child),
    (status) => status.rejectedInputs.count === 1,
  );
  expect(rejectedInputs.last).toMatchObject([{ name: 'parent', reason: 'parent.capability is not the one of its start' }]);
  await world.client.setMode(id, 'auto');
  expect(await sent).toMatchObject({ text: 'All is well.', stopReason: 'end' });
});

testReplays(() => world);
