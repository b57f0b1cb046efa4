/**
 * Stepping and budgets where lives meet: trees of sub-agents that are said to, stepped, forked, resumed, rewound and handed over in any
 * order, with the real state and the real `nextStep` of each conversation. `PERDURA_LONG=1` tries many more, from a new seed.
 *
 * Beside them a model of a few numbers: what each life was allowed at most and has paid, and which trees may do nothing by themselves.
 */
import fc from 'fast-check';
import type { ConversationState } from '../../../src/conversation/state.js';
import { said } from '../drive.js';
import { begin, CALL_TOKENS, createTree, deliver, end, lifeOf, rest, ROOT, tell, type Tree } from './tree.js';

const LONG = process.env['PERDURA_LONG'] === '1';
const ROOTS = [ROOT, 'second', 'third'] as const;
const PLENTY = 1_000_000;

type What =
  'say' | 'step' | 'into' | 'over' | 'auto' | 'stepping' | 'budget' | 'rewind' | 'fork' | 'close' | 'resume' | 'due' | 'interrupt';
type Choice =
  { readonly kind: What; readonly root: number; readonly n: number } | { readonly kind: 'deliver' | 'end' | 'rest'; readonly n: number };

const on = (weight: number, ...kinds: readonly What[]) => ({
  weight,
  arbitrary: fc.record({ kind: fc.constantFrom(...kinds), root: fc.nat(2), n: fc.nat(30) }),
});
const choice: fc.Arbitrary<Choice> = fc.oneof(
  on(10, 'say'),
  on(10, 'step', 'into', 'over'),
  on(6, 'auto', 'stepping', 'budget'),
  on(10, 'rewind', 'fork', 'close', 'resume', 'due', 'interrupt'),
  { weight: 20, arbitrary: fc.record({ kind: fc.constantFrom('deliver' as const, 'end' as const), n: fc.nat(20) }) },
  { weight: 16, arbitrary: fc.record({ kind: fc.constant('rest' as const), n: fc.nat() }) },
);

interface World {
  readonly tree: Tree;
  /** By life: the most that it was ever allowed. */
  readonly allowed: Map<string, number>;
  /** How each conversation was when it ended. */
  readonly ended: Map<string, ConversationState>;
  asked: number;
}

function createWorld(limit: number): World {
  const tree = createTree();
  const world: World = { tree, allowed: new Map(), ended: new Map(), asked: 0 };
  raise(world, ROOT, limit);
  return world;
}

function raise({ tree, allowed }: World, id: string, maxTokens: number): void {
  tell(tree, id, { kind: 'budget-raised', budget: { maxTokens }, at: ++tree.at });
  const life = lifeOf(tree, id);
  allowed.set(life, Math.max(allowed.get(life) ?? 0, maxTokens));
}

/** What it may use is what was left of the other's: all that it and its tree may pay. */
function started(world: World, id: string, kind: 'fork' | 'resume', from: ConversationState): void {
  begin(world.tree, id, kind, from);
  const { inputTokens, outputTokens } = from.usage;
  const limit = from.budget?.maxTokens ?? Infinity;
  world.allowed.set(lifeOf(world.tree, id), Math.max(0, limit - inputTokens - outputTokens));
  tell(world.tree, id, said(`m${++world.asked}`, { at: ++world.tree.at }));
}

const isRoot = (id: string): boolean => !id.includes(':');
const worksOf = ({ works }: Tree, root: string): number => works.filter((work) => work.split(/[: ]/)[0] === root).length;

function choose(world: World, one: Choice): void {
  const { tree } = world;
  if (!('root' in one)) return (one.kind === 'deliver' ? deliver : one.kind === 'end' ? end : rest)(tree, one.n);
  const wanted = ROOTS[one.root] ?? ROOT;
  if (one.kind === 'resume') {
    const from = world.ended.get(wanted);
    return from && !tree.conversations.has(wanted) ? started(world, wanted, 'resume', from) : undefined;
  }
  const id = tree.conversations.has(wanted) ? wanted : [...tree.conversations.keys()].find(isRoot);
  const state = id === undefined ? undefined : tree.conversations.get(id);
  if (id === undefined || !state) return;
  const at = ++tree.at;
  switch (one.kind) {
    case 'say':
      return tell(tree, id, said(`m${++world.asked}`, { at }));
    case 'step':
    case 'into':
    case 'over':
      return tell(tree, id, { kind: 'step-requested', id: `s${++world.asked}`, ...(one.kind !== 'step' && { scope: one.kind }), at });
    case 'auto':
    case 'stepping':
      return tell(tree, id, { kind: 'mode-set', mode: one.kind, at });
    case 'budget':
      return raise(world, id, one.n * CALL_TOKENS);
    case 'rewind':
      return tell(tree, id, { kind: 'rewind-requested', requestId: `w${++world.asked}`, to: 'turn_0001', at });
    case 'fork': {
      const free = ROOTS.find((root) => !tree.conversations.has(root) && !world.ended.has(root));
      return free === undefined ? undefined : started(world, free, 'fork', state);
    }
    case 'close':
      return tell(tree, id, { kind: 'close-requested', memory: false, at });
    case 'due':
      return tell(tree, id, { kind: 'hand-over-due', reason: 'test', at });
    case 'interrupt':
      return tell(tree, id, { kind: 'interrupt-requested', reason: null, at });
  }
}

/** A tree passes its limit by no more than the call that was in flight. */
function checkBudgets({ tree, allowed }: World): void {
  for (const [life, paid] of tree.paid) {
    const limit = allowed.get(life) ?? Infinity;
    if (paid > limit + CALL_TOKENS - 1) tree.problems.push(`${life} has paid ${paid} of ${limit}`);
  }
}

function noteEnded({ tree, ended }: World, before: ReadonlyMap<string, ConversationState>): void {
  for (const [id, state] of before) if (isRoot(id) && !tree.conversations.has(id)) ended.set(id, state);
}

/** With nothing under way: what a life knows of its cost is what was paid, whatever was cut, stopped or handed over; and none is in a step. */
function checkAtRest({ tree }: World): void {
  for (const [id, { usage, control, lineage }] of tree.conversations) {
    if (!isRoot(id) || lineage?.isOpen === false) continue;
    if (control?.lock && control.mode === 'stepping') tree.problems.push(`${id}: ${control.lock.id} is never done: ${control.lock.words}`);
    const hasSubAgents = [...tree.conversations.keys()].some((other) => other.startsWith(`${id}:`));
    const [known, paid] = [usage.inputTokens + usage.outputTokens, tree.paid.get(lifeOf(tree, id)) ?? 0];
    if (known > paid || (!hasSubAgents && known !== paid)) tree.problems.push(`${id} knows of ${known} tokens, and has paid ${paid}`);
  }
}

/** Each step is at most one thing in one of the tree, and nothing begins without one. */
function checkHolds({ tree }: World, seed: number): void {
  const roots = [...tree.conversations.keys()].filter(isRoot);
  for (const id of roots) tell(tree, id, { kind: 'mode-set', mode: 'stepping', at: ++tree.at });
  rest(tree, seed);
  for (const id of roots) {
    const held = tree.works.length;
    tell(tree, id, { kind: 'time-passed', at: ++tree.at });
    rest(tree, seed);
    if (tree.works.length > held) tree.problems.push(`${id} goes on by itself: ${tree.works.slice(held).join()}`);
    tell(tree, id, { kind: 'step-requested', id: `held-${tree.at}`, at: ++tree.at });
    rest(tree, seed);
    const own = worksOf(tree, id);
    if (tree.works.length > held + 1) tree.problems.push(`one step of ${id} did ${tree.works.slice(held).join()} (${own} in all)`);
  }
}

test(
  'in any order of steps, budgets, forks, resumes, rewinds and hand-overs no tree runs free, none passes its budget, and all comes to an end',
  () => {
    fc.assert(
      fc.property(fc.array(choice, { maxLength: 80 }), fc.integer({ min: 1, max: 40 }), fc.nat(), (choices, limit, seed) => {
        const world = createWorld(limit);
        const { tree } = world;
        tell(tree, ROOT, said('hello', { at: ++tree.at }));
        for (const one of choices) {
          const before = new Map(tree.conversations);
          choose(world, one);
          noteEnded(world, before);
          checkBudgets(world);
          if (one.kind === 'rest') checkAtRest(world);
        }
        rest(tree, seed);
        checkAtRest(world);
        checkHolds(world, seed);
        checkBudgets(world);
        const roots = [...tree.conversations.keys()].filter(isRoot);
        for (const id of roots) raise(world, id, PLENTY);
        for (const id of roots) tell(tree, id, { kind: 'mode-set', mode: 'auto', at: ++tree.at });
        rest(tree, seed);
        for (const [id, { turn, queue }] of tree.conversations) {
          if (!isRoot(id)) tree.problems.push(`${id} is left behind`);
          if (turn || queue.length > 0) tree.problems.push(`${id} never ends its turn`);
        }
        checkAtRest(world);
        expect(tree.problems).toEqual([]);
      }),
      { numRuns: LONG ? 5_000 : 200 },
    );
  },
  30 * 60_000,
);
