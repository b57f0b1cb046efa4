/** Compactors of one's own, good and bad; none of them fails a turn. */
import {
  checkCompactor,
  compactWith,
  createCompactorRegistry,
  type CompactionWork,
  type Compactor,
  type CompactorInput,
} from '../../src/memory/compaction/compactor.js';
import type { Entry } from '../../src/records/message.js';

const entry = (slot: number, turn: string, text: string): Entry => ({
  v: 1,
  slot,
  session: 1,
  turn,
  seq: 1,
  ts: 1,
  message: { role: 'user', text },
});
const entries = [entry(1, 'turn_0001', 'Where is the harbour?'), entry(2, 'turn_0002', 'And the ledger?')];
const BY_DEFAULT = JSON.stringify({ episodic: { summary: 'by default', tags: [], salience: 0.5 }, semantic: [] });

const prompts: string[] = [];
const work: CompactionWork = {
  entries,
  goal: 'find the harbour',
  openTasks: ['ask the master'],
  progress: 'They had breakfast.',
  knownFacts: [{ id: 'sem_0004', fact: 'It rains.' }],
  signal: undefined,
  ask: () => Promise.resolve('a free answer'),
  askForSummary: (_system, text) => {
    prompts.push(text);
    return Promise.resolve(BY_DEFAULT);
  },
};
const own = (compact: Compactor['compact']): Compactor => ({ name: 'Own', compact });

test('the default is told goal, open tasks and progress', async () => {
  expect(await compactWith(undefined, work)).toMatchObject({ compactor: 'WorkingFlowCompactor', method: 'model' });
  for (const told of ['find the harbour', 'ask the master', 'They had breakfast.', 'It rains.']) expect(prompts.at(-1)).toContain(told);
});

test('one’s own is given turns, goal, open tasks, progress and a model, and its answer counts', async () => {
  let given: CompactorInput | undefined;
  const made = await compactWith(
    own(async (input) => {
      given = input;
      return {
        summary: `own: ${await input.ask('s', 't')}`,
        facts: ['a fact', { fact: 'another', confidence: 1, replaces: [' It\nrains. ', 'It snows.'] }],
        tags: ['x'],
        salience: 1,
      };
    }),
    work,
  );
  expect(made).toMatchObject({
    compactor: 'Own',
    method: 'compactor',
    episodic: { summary: 'own: a free answer', tags: ['x'], salience: 1 },
    semantic: [
      { fact: 'a fact', confidence: 0.8 },
      { fact: 'another', confidence: 1, supersedes: ['sem_0004'] },
    ],
  });
  expect(made).not.toHaveProperty('failure');
  expect(given).toMatchObject({
    goal: 'find the harbour',
    openTasks: ['ask the master'],
    progress: 'They had breakfast.',
    knownFacts: ['It rains.'],
  });
  expect(given?.turns.map(({ turnId, text }) => [turnId, text])).toEqual([
    ['turn_0001', 'Turn 1:\n  User: Where is the harbour?'],
    ['turn_0002', 'Turn 2:\n  User: And the ledger?'],
  ]);
});

const nonsense =
  (answer: unknown): Compactor['compact'] =>
  () =>
    Promise.resolve(answer as never);

test.each<[string, Compactor['compact'], RegExp]>([
  ['throws', () => Promise.reject(new Error('no ledger')), /compactor Own: it failed: no ledger/],
  [
    'throws before it begins',
    () => {
      throw new Error('at once');
    },
    /compactor Own: it failed: at once/,
  ],
  ['hangs', () => new Promise(() => undefined), /compactor Own: it did not answer within 30 ms/],
  ['answers nothing', nonsense(undefined), /its answer cannot be used/],
  ['answers a summary that is none', nonsense({ summary: 7 }), /its answer cannot be used: summary/],
  ['answers blanks', nonsense({ summary: '   ' }), /it says nothing/],
  ['spoils its input', (input) => ((input.entries as Entry[]).splice(0), Promise.resolve({ summary: '' })), /its answer cannot be used/],
])('one that %s costs nothing: the default does it, and it is said', async (_what, compact, failure) => {
  const made = await compactWith(own(compact), { ...work, patienceMs: 30 });
  expect(made).toMatchObject({ compactor: 'WorkingFlowCompactor', method: 'model', episodic: { summary: 'by default' } });
  expect(made.failure).toMatch(failure);
  expect(prompts.at(-1)).toContain('And the ledger?');
});

test('one that answers too much is cut to the bounds', async () => {
  const facts = Array.from({ length: 21 }, (_, n) => ({ fact: `fact ${n}`, tags: ['x'.repeat(50)], salience: n === 3 ? 0 : 2 }));
  const made = await compactWith(own(nonsense({ summary: 'x'.repeat(7_000), facts })), work);
  expect(made).toMatchObject({ compactor: 'Own', method: 'compactor', episodic: { summary: 'x'.repeat(6_000) } });
  expect(made.semantic.map(({ fact }) => fact)).toEqual(facts.flatMap(({ fact }) => (fact === 'fact 3' ? [] : [fact])));
  expect(made.semantic[0]).toMatchObject({ tags: ['x'.repeat(40)], salience: 1 });
});

test('being stopped goes through', async () => {
  const stop = new AbortController();
  const made = compactWith(
    own(() => new Promise(() => undefined)),
    { ...work, signal: stop.signal },
  );
  stop.abort(new Error('stopped'));
  await expect(made).rejects.toThrow('stopped');
});

test('a name that nobody has is refused with those that there are', () => {
  const registry = createCompactorRegistry([own(() => Promise.resolve({ summary: 'x' }))]);
  expect(() => checkCompactor(registry, undefined)).not.toThrow();
  expect(() => checkCompactor(registry, 'WorkingFlowCompactor')).not.toThrow();
  expect(() => checkCompactor(registry, 'Owm')).toThrow(
    'context.compactor: no compactor is named "Owm"; there are: WorkingFlowCompactor, Own',
  );
});
