/** Stepping through a tree of sub-agents (sub-agents.ts): nothing in it runs free, whatever arrives when. */
import fc from 'fast-check';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import { statusOf } from '../../../src/conversation/views/view.js';
import { approvalsOf } from '../../../src/conversation/turn/approvals.js';
import type { Breakpoints, StepResult, StepScope } from '../../../src/conversation/protocol/stepping.js';
import { said } from '../drive.js';
import { CALL_TOKENS, createTree, deliver, end, lifeOf, ROOT, rest, rootOf, tell, type Tree } from './tree.js';

const CHILD = 'chat:turn_0001:1';
const SECOND = 'chat:turn_0001:2';
const GRANDCHILD = 'chat:turn_0001:1:turn_0001:2';

let steps = 0;

function setMode(tree: Tree, mode: 'auto' | 'stepping', of = ROOT): void {
  tell(tree, of, { kind: 'mode-set', mode, at: tree.at });
}

function setBreakpoints(tree: Tree, breakpoints: Breakpoints): void {
  tell(tree, ROOT, { kind: 'breakpoints-set', breakpoints, at: tree.at });
}

/** Answers of the root's steps, or of this one. */
function stepResults(tree: Tree, id?: string): StepResult[] {
  return rootOf(tree).requests.answered.flatMap((one) => (one.kind === 'step' && (id === undefined || one.id === id) ? [one.outcome] : []));
}

/** One step of the whole tree, until all is at rest. */
function step(tree: Tree, scope?: StepScope, seed = 1): StepResult {
  const id = `step-${++steps}`;
  tell(tree, ROOT, { kind: 'step-requested', id, ...(scope && { scope }), at: tree.at });
  rest(tree, seed);
  const results = stepResults(tree, id);
  if (results.length !== 1 || !results[0]) throw new Error(`${id} has ${results.length} results`);
  return results[0];
}

function stepped(message: Parameters<typeof createTree>[0] = {}): Tree {
  const tree = createTree(message);
  setMode(tree, 'stepping');
  tell(tree, ROOT, said('hello', { at: tree.at }));
  rest(tree);
  return tree;
}

const inWords = ({ did, child }: StepResult): string => (child ? `${child.conversation} ${child.did}` : did);

function holding(tree: Tree): string[] {
  return (statusOf(rootOf(tree), 0).subAgents ?? []).flatMap(({ conversation, next }) => (next === null ? [] : [conversation]));
}

test('one step on a delegation starts the sub-agent and no more; each further step is one thing in one of the tree', () => {
  const tree = stepped();
  const done: string[] = [];
  for (let i = 0; i < 60; i++) {
    const before = tree.works.length;
    const result = step(tree, undefined, i);
    if (result.did === 'nothing') break;
    done.push(inWords(result));
    expect(tree.works.length - before).toBeLessThanOrEqual(1);
  }
  expect(done.slice(0, 8)).toEqual([
    ...['event', 'model-call', 'tool-run', 'tool-run'],
    ...[`${CHILD} event`, `${CHILD} model-call`, `${CHILD} tool-run`, `${CHILD} tool-run`],
  ]);
  expect(done.slice(8, 13)).toEqual([
    ...[`${GRANDCHILD} event`, `${GRANDCHILD} model-call`, `${GRANDCHILD} tool-run`, `${GRANDCHILD} model-call`],
    `${CHILD} model-call`,
  ]);
  // The second sub-agent takes as many, and then the first conversation answers.
  expect(done).toHaveLength(4 + 9 + 9 + 1);
  expect(rootOf(tree).ended).toMatchObject([{ stopReason: 'end' }]);
  expect(tree.problems).toEqual([]);
});

test('what holds is shown, each sub-agent with those below it', () => {
  const tree = stepped();
  for (let i = 0; i < 8; i++) step(tree);
  const { subAgents, nextStep, waitingFor, phase } = statusOf(rootOf(tree), 0);
  expect(subAgents).toEqual([
    { conversation: CHILD, mode: 'stepping', next: `in ${GRANDCHILD}: take message task (12 bytes) as turn_0001`, pausedBy: null },
    { conversation: GRANDCHILD, mode: 'stepping', next: 'take message task (12 bytes) as turn_0001', pausedBy: null },
    { conversation: SECOND, mode: 'stepping', next: 'take message task (12 bytes) as turn_0001', pausedBy: null },
  ]);
  expect(nextStep).toBe(`in ${CHILD}: in ${GRANDCHILD}: take message task (12 bytes) as turn_0001`);
  expect(waitingFor).toBe(`a step: ${nextStep}`);
  expect(phase).toBe('stepping');
});

test('over: a delegation goes on until it has reported, and then its parent holds again', () => {
  const tree = stepped();
  step(tree);
  step(tree);
  const over = step(tree, 'over');
  expect(over).toMatchObject({ did: 'tool-run', next: 'run delegate (turn_0001/c2)' });
  expect(over.words).toBe('run delegate (turn_0001/c1), and on until it has reported; it has reported');
  expect(tree.works.filter((work) => work.startsWith(CHILD))).toHaveLength(6);
  expect(tree.works.filter((work) => work.startsWith(SECOND))).toEqual([]);
  step(tree);
  expect(step(tree, 'over')).toMatchObject({ did: 'sub-agent', next: 'call anthropic/claude-test (turn_0001/m2)' });
  expect(rootOf(tree).control).toMatchObject({ mode: 'stepping', lock: null });
});

test('into goes to a sub-agent that holds, before the conversation starts another', () => {
  const tree = stepped();
  for (let i = 0; i < 3; i++) step(tree);
  expect(holding(tree)).toEqual([CHILD]);
  expect(inWords(step(tree, 'into'))).toBe(`${CHILD} event`);
  expect(inWords(step(tree))).toBe('tool-run');
  expect(holding(tree)).toEqual([CHILD, SECOND]);
});

test('a breakpoint of the first conversation stops a grandchild, and with it the whole tree; auto lets all go on', () => {
  const tree = createTree();
  setBreakpoints(tree, { tools: ['work'] });
  tell(tree, ROOT, said('hello', { at: tree.at }));
  rest(tree);
  const paused = rootOf(tree);
  expect(statusOf(paused, 0)).toMatchObject({
    mode: 'stepping',
    pausedBy: expect.stringMatching(/^tool: work \(turn_0001\/c1\) in chat:turn_0001:[12]:turn_0001:2$/),
  });
  expect(tree.works.filter((work) => / turn_0001\/c1$/.test(work) && work.split(':').length === 5)).toEqual([]);
  for (const [id, { control }] of tree.conversations) expect([id, control?.mode]).toEqual([id, 'stepping']);
  setMode(tree, 'auto');
  rest(tree);
  // The other of the two stops at its own.
  if (rootOf(tree).control?.mode === 'stepping') setMode(tree, 'auto');
  rest(tree);
  expect(rootOf(tree).ended).toMatchObject([{ stopReason: 'end' }]);
  expect([...tree.conversations.keys()]).toEqual([ROOT]);
});

test('a breakpoint that comes later reaches those that work already', () => {
  const tree = createTree();
  tell(tree, ROOT, said('hello', { at: tree.at }));
  for (let i = 0; !tree.conversations.has(GRANDCHILD) && i < 200; i++) tree.flying.length > 0 ? end(tree, 0) : deliver(tree, 0);
  setBreakpoints(tree, { tools: ['work'] });
  // The order comes before the grandchild's model has answered.
  for (let i = 0; tree.signals.length > 0 && i < 50; i++) deliver(tree, 0);
  rest(tree);
  expect(statusOf(rootOf(tree), 0).pausedBy).toMatch(/^tool: work/);
});

test('a breakpoint at a cost counts once for the whole tree', () => {
  const tree = createTree();
  setBreakpoints(tree, { costUsd: 0.02 });
  tell(tree, ROOT, said('hello', { at: tree.at }));
  rest(tree);
  expect(statusOf(rootOf(tree), 0)).toMatchObject({ mode: 'stepping', pausedBy: expect.stringMatching(/^cost: /) });
  setMode(tree, 'auto');
  rest(tree);
  expect(rootOf(tree).ended).toMatchObject([{ stopReason: 'end' }]);
});

test('a breakpoint at a cost counts what sub-agents have spent while they work', () => {
  const tree = createTree();
  setBreakpoints(tree, { costUsd: 0.05 });
  tell(tree, ROOT, said('hello', { at: tree.at }));
  const calls = (): number => (tree.paid.get(lifeOf(tree, ROOT)) ?? 0) / CALL_TOKENS;
  while (rootOf(tree).control?.mode !== 'stepping' && (tree.flying.length > 0 || tree.signals.length > 0))
    tree.signals.length > 0 ? deliver(tree, 0) : end(tree, 0);
  rest(tree);
  // What was in flight ends; a cent a call.
  expect(calls()).toBeGreaterThanOrEqual(5);
  expect(calls()).toBeLessThanOrEqual(7);
  expect(statusOf(rootOf(tree), 0).pausedBy).toMatch(/^cost: \$0\.0[567] of \$0\.05$/);
});

test('over ends when a sub-agent waits for a person; decided, it holds at its next thing', () => {
  const tree = stepped({ asks: true });
  step(tree);
  step(tree);
  const over = step(tree, 'over');
  expect(over.words).toContain('waits for a person');
  expect(rootOf(tree).control).toMatchObject({ mode: 'stepping', lock: null });
  const [asked] = approvalsOf(rootOf(tree));
  const { conversation, callId } = asked!;
  const before = tree.works.length;
  tell(tree, ROOT, { kind: 'decided', decision: { conversation, callId, decision: 'approve' }, at: tree.at });
  rest(tree);
  expect(tree.works).toHaveLength(before);
  expect(holding(tree)).toContain(conversation);
});

test('a sub-agent that was set by hand follows its parent again at the next word', () => {
  const tree = stepped();
  for (let i = 0; i < 4; i++) step(tree);
  setMode(tree, 'auto', CHILD);
  rest(tree);
  // It has gone on, with its own, and reported.
  expect(tree.conversations.has(CHILD)).toBe(false);
  setMode(tree, 'auto');
  setMode(tree, 'stepping', SECOND);
  rest(tree);
  setMode(tree, 'auto');
  rest(tree);
  expect(rootOf(tree).ended).toMatchObject([{ stopReason: 'end' }]);
});

test('orders that overtake each other leave a sub-agent as the last one said', () => {
  const tree = stepped();
  for (let i = 0; i < 4; i++) step(tree);
  setMode(tree, 'auto');
  setMode(tree, 'stepping');
  setMode(tree, 'auto');
  setBreakpoints(tree, { tools: ['work', 'look'] });
  setBreakpoints(tree, {});
  expect(tree.signals.filter(({ to }) => to === CHILD)).toHaveLength(5);
  // The last two arrive the other way round.
  for (const which of [0, 0, 0, 1, 0]) deliver(tree, tree.signals.flatMap(({ to }, i) => (to === CHILD ? [i] : []))[which] ?? 0);
  while (tree.signals.length > 0) deliver(tree, 0);
  rest(tree);
  expect(rootOf(tree).ended).toMatchObject([{ stopReason: 'end' }]);
});

test('an order to a sub-agent that is just being started waits until it is there', () => {
  const tree = stepped();
  step(tree);
  step(tree);
  tell(tree, ROOT, { kind: 'step-requested', id: 'starts', at: tree.at });
  expect(tree.flying.map(({ effect }) => effect.effect)).toEqual(['start-child']);
  setMode(tree, 'auto');
  rest(tree);
  expect(rootOf(tree).ended).toMatchObject([{ stopReason: 'end' }]);
});

test('a step that is asked for again while it runs is one step, over a hand-over of either side', () => {
  const tree = stepped();
  for (let i = 0; i < 4; i++) step(tree);
  step(tree);
  const ask = (): void => tell(tree, ROOT, { kind: 'step-requested', id: 'twice', at: ++tree.at });
  ask();
  while (tree.signals.length > 0) deliver(tree, 0);
  expect(tree.flying.map(({ of, effect }) => `${of} ${effect.effect}`)).toEqual([`${CHILD} model-step`]);
  for (const id of [ROOT, CHILD]) tell(tree, id, { kind: 'hand-over-due', reason: 'test', at: ++tree.at });
  ask();
  rest(tree);
  ask();
  rest(tree);
  expect(stepResults(tree, 'twice')).toMatchObject([{ did: 'sub-agent', child: { conversation: CHILD, did: 'model-call' } }]);
});

test('a call of the model that is asked for again while it runs is one step', () => {
  const tree = stepped();
  step(tree);
  for (let i = 0; i < 2; i++) tell(tree, ROOT, { kind: 'step-requested', id: 'call', at: ++tree.at });
  rest(tree);
  expect(stepResults(tree, 'call')).toMatchObject([{ did: 'model-call' }]);
});

test('a step into a sub-agent that a person lets go meanwhile is answered all the same', () => {
  const tree = stepped();
  for (let i = 0; i < 4; i++) step(tree);
  tell(tree, ROOT, { kind: 'step-requested', id: 'late', at: tree.at });
  setMode(tree, 'auto', CHILD);
  while (tree.signals.length > 0) deliver(tree, 0);
  expect(stepResults(tree, 'late')[0]).toMatchObject({
    child: { conversation: CHILD, did: 'nothing', words: 'nothing: it was set to go on by itself' },
  });
});

test('a stop while a sub-agent holds ends the turn and the step into it', () => {
  const tree = stepped();
  for (let i = 0; i < 5; i++) step(tree);
  tell(tree, ROOT, { kind: 'step-requested', id: 'stopped', at: tree.at });
  tell(tree, ROOT, { kind: 'interrupt-requested', reason: null, at: tree.at });
  rest(tree);
  expect(rootOf(tree).ended).toMatchObject([{ stopReason: 'interrupted' }]);
  expect(rootOf(tree).control).toMatchObject({ mode: 'stepping', lock: null });
  expect([...tree.conversations.keys()]).toEqual([ROOT]);
});

test('a sub-agent that is still being started when its turn is stopped is stopped once it is there, also after the turn has ended', () => {
  for (const passes of [false, true]) {
    const tree = createTree();
    tell(tree, ROOT, said('hello', { at: tree.at }));
    end(tree, 0);
    tell(tree, ROOT, { kind: 'interrupt-requested', reason: null, at: ++tree.at });
    // They meet no workflow yet.
    while (tree.signals.length > 0) deliver(tree, 0);
    if (passes) tell(tree, ROOT, { kind: 'time-passed', at: (tree.at += 10_000) });
    rest(tree);
    expect(rootOf(tree).turn).toBeNull();
    expect([...tree.conversations.keys()]).toEqual([ROOT]);
  }
});

test('a conversation that nobody steps says nothing of stepping to anybody', () => {
  const tree = createTree();
  tell(tree, ROOT, said('hello', { at: tree.at }));
  const kinds = new Set<ConversationEvent['kind']>();
  for (let i = 0; i < 1000 && tree.flying.length + tree.signals.length > 0; i++) {
    for (const { event } of tree.signals) kinds.add(event.kind);
    tree.flying.length > 0 ? end(tree, i) : deliver(tree, i);
  }
  expect([...kinds]).toEqual(['child-ended']);
});

type Choice =
  | { readonly kind: 'deliver' | 'end'; readonly which: number }
  | { readonly kind: 'step'; readonly scope: StepScope | undefined }
  | { readonly kind: 'mode'; readonly mode: 'auto' | 'stepping' }
  | { readonly kind: 'break'; readonly which: number }
  | { readonly kind: 'due' | 'hand'; readonly which: number }
  | { readonly kind: 'interrupt' | 'decide' | 'rest' };

const choice = fc.oneof(
  { weight: 20, arbitrary: fc.record({ kind: fc.constantFrom('deliver' as const, 'end' as const), which: fc.nat(20) }) },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('step' as const), scope: fc.constantFrom(undefined, 'into' as const, 'over' as const) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('mode' as const), mode: fc.constantFrom('auto' as const, 'stepping' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('break' as const), which: fc.nat(4) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('due' as const, 'hand' as const), which: fc.nat(8) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('interrupt' as const, 'decide' as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('rest' as const) }) },
);

const BREAKPOINTS: readonly Breakpoints[] = [{}, { tools: ['work'] }, { tools: ['delegate'] }, { costUsd: 0.03 }, { events: ['message'] }];

function choose(tree: Tree, asked: Set<string>, choice: Choice, seed: number): void {
  const at = ++tree.at;
  switch (choice.kind) {
    case 'deliver':
      return deliver(tree, choice.which);
    case 'end':
      return end(tree, choice.which);
    case 'step': {
      const id = `step-${++steps}`;
      const { control } = rootOf(tree);
      if (control?.mode === 'stepping' && control.lock === null) asked.add(id);
      return tell(tree, ROOT, { kind: 'step-requested', id, ...(choice.scope && { scope: choice.scope }), at });
    }
    case 'mode':
      // A step that runs then has no answer.
      if (choice.mode === 'auto') asked.clear();
      return tell(tree, ROOT, { kind: 'mode-set', mode: choice.mode, at });
    case 'break':
      return setBreakpoints(tree, BREAKPOINTS[choice.which] ?? {});
    case 'due': {
      const ids = [...tree.conversations.keys()];
      return tell(tree, ids[choice.which % ids.length] ?? ROOT, { kind: 'hand-over-due', reason: 'test', at });
    }
    case 'hand': {
      const ids = [...tree.conversations.keys()].filter((id) => id !== ROOT);
      const id = ids[choice.which % Math.max(1, ids.length)];
      const mode = choice.which % 2 === 0 ? 'auto' : 'stepping';
      return id === undefined ? undefined : tell(tree, id, { kind: 'mode-set', mode, at });
    }
    case 'interrupt':
      return tell(tree, ROOT, { kind: 'interrupt-requested', reason: null, at });
    case 'decide': {
      const [first] = approvalsOf(rootOf(tree));
      const { conversation, callId } = first ?? {};
      if (conversation === undefined || callId === undefined) return;
      return tell(tree, ROOT, { kind: 'decided', decision: { conversation, callId, decision: 'approve' }, at });
    }
    case 'rest':
      rest(tree, seed);
      return check(tree, asked);
  }
}

/** With nothing under way: a tree that is stepped holds, and each step has its one answer. */
function check(tree: Tree, asked: ReadonlySet<string>): void {
  const { control } = rootOf(tree);
  if (control?.lock) tree.problems.push(`${control.lock.id} is never done: ${control.lock.words}`);
  for (const id of asked) {
    const count = stepResults(tree, id).length;
    if (count > 1 || (count === 0 && stepResults(tree).length < 16)) tree.problems.push(`${id} has ${count} results`);
  }
}

test('whatever is asked and in whatever order signals arrive, a tree that is stepped holds, each step is answered once, and auto ends it', () => {
  fc.assert(
    fc.property(fc.array(choice, { maxLength: 120 }), fc.boolean(), fc.nat(), (choices, asks, seed) => {
      const tree = createTree({ asks });
      const asked = new Set<string>();
      setMode(tree, 'stepping');
      tell(tree, ROOT, said('hello', { at: tree.at }));
      for (const [i, one] of choices.entries()) choose(tree, asked, one, seed + i);
      rest(tree, seed);
      check(tree, asked);
      // Nothing of a tree that is told to step begins by itself.
      setMode(tree, 'stepping');
      rest(tree, seed);
      const held = tree.works.length;
      for (const [id, { control }] of tree.conversations) if (control?.mode !== 'stepping') tree.problems.push(`${id} runs free`);
      tell(tree, ROOT, { kind: 'time-passed', at: ++tree.at });
      rest(tree, seed);
      if (tree.works.length > held) tree.problems.push('something went on by itself');
      // And each step is at most one thing.
      for (let i = 0; i < 3; i++) {
        const before = tree.works.length;
        step(tree, i % 2 === 0 ? 'into' : undefined, seed);
        if (tree.works.length > before + 1) tree.problems.push(`one step did ${tree.works.slice(before).join()}`);
      }
      setBreakpoints(tree, {});
      for (let i = 0; i < 30 && rootOf(tree).turn; i++) {
        setMode(tree, 'auto');
        rest(tree, seed);
        choose(tree, asked, { kind: 'decide' }, 0);
        rest(tree, seed);
      }
      if (rootOf(tree).turn) tree.problems.push('the turn never ends');
      for (const id of tree.conversations.keys()) if (id !== ROOT) tree.problems.push(`${id} is left behind`);
      expect(tree.problems).toEqual([]);
    }),
    { numRuns: 300 },
  );
});
