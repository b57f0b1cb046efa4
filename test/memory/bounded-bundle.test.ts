import { boundedBundle } from '../../src/memory/compaction/snapshot.js';
import { retrieve } from '../../src/memory/facts.js';
import { estimateStringTokens } from '../../src/memory/tokens.js';
import { episodicId } from '../../src/records/memory/items.js';
import { turnId } from '../../src/records/identity.js';

/** Each says what the database is by then, in 400 characters. */
const episodes = [1, 2, 3, 4, 5, 6].map((n) => ({
  ...{ id: episodicId(n), ts: n, turn_ids: [turnId(n)], tags: [], salience: 0.5 },
  summary: `The database is Number-${n}. ${'x'.repeat(380)}`,
}));
const facts = [1, 2, 3, 4].map((n) => ({ ...{ id: `sem_000${n}`, ts: n, tags: [], confidence: 1, salience: 1 }, fact: `Fact ${n}.` }));

test('the smaller the room, the fewer of the oldest summaries, and what is left of a thing is never how it was before', () => {
  const bundle = { ...retrieve(episodes, facts), goal: 'Move it.', openTasks: ['test'], canRead: true };
  const shownAt = [Infinity, 1_800, 1_500, 1_000, 600, 400, 200].map((line) => {
    const text = boundedBundle(bundle, line, estimateStringTokens);
    if (line >= 400) expect(estimateStringTokens(text)).toBeLessThanOrEqual(line / 3);
    expect(text).toContain('[TASK]\nGoal: Move it.\nOpen tasks:\n- test');
    return [...text.matchAll(/Number-(\d)/g)].map(([, n]) => Number(n)).sort();
  });
  for (const shown of shownAt) expect(shown).toEqual([1, 2, 3, 4, 5, 6].slice(-shown.length));
  expect(shownAt.map(({ length }) => length)).toEqual([6, 3, 3, 2, 1, 1, 1]);
  // What has no text any more can be read all the same.
  expect(boundedBundle(bundle, 1_000, estimateStringTokens)).toContain(
    '[MEMORY:EPISODIC]\nBefore these: turns 1–4, 1970-01-01, in 4 summaries (ep_0001 to ep_0004).\n1) The database is Number-5.',
  );
});
