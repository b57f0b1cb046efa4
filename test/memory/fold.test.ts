/** Older summaries as one text that grows slowly, whatever the number of compactions. */
import * as fc from 'fast-check';
import {
  foldEarlier,
  folded,
  toFolding,
  describeEpisodes,
  refolded,
  type FoldedEpisode,
  memoryBundle,
} from '../../src/memory/compaction/snapshot.js';
import { SUMMARY_LIMITS } from '../../src/memory/compaction/summary-answer.js';
import { summaryPrompt } from '../../src/memory/compaction/summary-prompt.js';
import { retrieve } from '../../src/memory/facts.js';
import { episodicId } from '../../src/records/memory/items.js';
import { turnId } from '../../src/records/identity.js';

const DAY = 24 * 60 * 60;
/** Of the turns 2n−1 and 2n, made on the n-th of January 2026. */
const episode = (n: number, over: Partial<FoldedEpisode> = {}): FoldedEpisode => ({
  id: episodicId(n),
  ts: Date.parse('2026-01-01T12:00Z') / 1000 + (n - 1) * DAY,
  turn_ids: [turnId(2 * n - 1), turnId(2 * n)],
  summary: `They did thing ${n}.`,
  tags: [],
  salience: 0.5,
  ...over,
});

/** As a conversation goes on: each compaction folds what leaves the three, by what `tell` makes of it. */
function grown(count: number, tell?: (text: string, leaving: readonly string[]) => string | undefined): FoldedEpisode[] {
  let episodes: FoldedEpisode[] = [];
  for (let n = 1; n <= count; n++) {
    const folding = toFolding(episodes, 2);
    const ids = folding.leaving.map(({ id }) => id);
    const fold = folded(folding, ids.length === 0 ? undefined : tell?.(folding.text, ids));
    episodes = [episode(n, { summary: `They did thing ${n}. ${'x'.repeat(500)}`, ...(fold && { fold }) }), ...episodes];
  }
  return episodes;
}

test('three are shown; what leaves them is folded in once, oldest first, and the newest carries the fold', () => {
  const told: string[] = [];
  const episodes = grown(6, (text, leaving) => {
    told.push(`${text || 'nothing'} + ${leaving.join(', ')}`);
    return `fold ${told.length}`;
  });
  expect(told).toEqual(['nothing + ep_0001', 'fold 1 + ep_0002', 'fold 2 + ep_0003']);
  expect(episodes.map(({ fold }) => fold)).toEqual([
    { text: 'fold 3', through: 'ep_0003' },
    { text: 'fold 2', through: 'ep_0002' },
    { text: 'fold 1', through: 'ep_0001' },
    undefined,
    undefined,
    undefined,
  ]);
  expect(foldEarlier(episodes, 3)).toEqual({ text: 'fold 3', episodes: episodes.slice(3) });
  expect(foldEarlier(episodes.slice(3), 3)).toBeUndefined();
});

test('one compaction undone, the fold is that of the one before, and nothing is lost', () => {
  const episodes = grown(6, (text, leaving) => `${text} ${leaving.join()}`);
  expect(foldEarlier(episodes.slice(1), 3)?.text.trim()).toBe('ep_0001 ep_0002');
  // Where the newest does not know of one that is not shown any more, its beginning stands there.
  const { fold: _, ...bare } = episodes[0]!;
  expect(foldEarlier([bare, ...episodes.slice(1)], 3)?.text).toMatch(
    /ep_0001 ep_0002\nep_0003 \(turns 5–6, 2026-01-03\): They did thing 3\./,
  );
});

test('without a model the newest of the summaries stand there whole, bounded, of a thousand too', () => {
  const few = foldEarlier(grown(5), 3);
  expect(few?.text).toMatch(/^ep_0001 \(turns 1–2, 2026-01-01\): They did thing 1\. x{500}\nep_0002 \(/);
  const many = grown(1_000)[0]!.fold!;
  expect(many.through).toBe('ep_0997');
  expect(many.text.length).toBeLessThanOrEqual(SUMMARY_LIMITS.fold);
  const lines = many.text.split('\n');
  expect(lines.map((line) => line.slice(0, 7))).toEqual(Array.from({ length: lines.length }, (_, i) => episodicId(998 - lines.length + i)));
  for (const line of lines) expect(line).toMatch(/ x{500}$/);
  // One that is longer than all of the room is its beginning.
  const alone = foldEarlier([episode(2), episode(1, { summary: 'y'.repeat(9_000) })], 1);
  expect(alone?.text).toMatch(/y… \[\d+ characters in all\]$/);
  expect(alone?.text.length).toBeLessThanOrEqual(SUMMARY_LIMITS.fold);
});

test('in a fork or a new session what was folded is the newest of those that came along', () => {
  const newIds = new Map([episode(4), episode(5), episode(6)].map(({ id }, i) => [id, episodicId(11 + i)]));
  expect(refolded({ text: 'f', through: 'ep_0005' }, newIds)).toEqual({ text: 'f', through: 'ep_0012' });
  expect(refolded({ text: 'f', through: 'ep_0002' }, newIds)).toEqual({ text: 'f', through: 'ep_0000' });
});

test('the prompt says of each its turns and its day, what lies before them, and how to read it', () => {
  const episodes = grown(7, () => 'They began.\n[TASK]\n# Rules').map((one) => ({ ...one, summary: `summary ${one.id}` }));
  expect(memoryBundle({ ...retrieve(episodes, []), canRead: true })).toBe(
    [
      '[MEMORY:EPISODIC]',
      'Before these: turns 1–8, 2026-01-01–2026-01-04, in 4 summaries (ep_0001 to ep_0004); in short:',
      '   They began.',
      '   \\[TASK]',
      '   \\# Rules',
      '1) summary ep_0007',
      '   (ep_0007: turns 13–14, 2026-01-07)',
      '2) summary ep_0006',
      '   (ep_0006: turns 11–12, 2026-01-06)',
      '3) summary ep_0005',
      '   (ep_0005: turns 9–10, 2026-01-05)',
      'read_episode shows what a summary stands for, by its id.',
    ].join('\n'),
  );
  expect(memoryBundle(retrieve(episodes.slice(4), []))).not.toMatch(/Before|read_episode/);
  expect(describeEpisodes([episode(1, { turn_ids: ['turn_0007'] })])).toBe('turn 7, 2026-01-01');
  expect(describeEpisodes([episode(1, { turn_ids: [] })])).toBe('2026-01-01');
});

test('the summarizer is shown what it is to fold, bounded', () => {
  const folding = { text: 'They began.', leaving: [episode(3), episode(4, { summary: 's'.repeat(6_000) })] };
  const { text } = summaryPrompt({ entries: [], folding, maxCharacters: 100_000 });
  expect(text).toContain(
    'to be folded into one text ("fold"):\n- So far: They began.\n- turns 5–6, 2026-01-03: They did thing 3.\n- turns 7–8',
  );
  expect(summaryPrompt({ entries: [], folding, maxCharacters: 8_000 }).text.length).toBeLessThan(5_000);
  expect(summaryPrompt({ entries: [] }).text).not.toContain('fold');
});

test('whatever was compacted and undone, every episode is shown or folded', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 40 }), fc.boolean(), (steps, byModel) => {
      let episodes: FoldedEpisode[] = [];
      let number = 0;
      for (const undo of steps) {
        if (undo) {
          episodes = episodes.slice(1);
          continue;
        }
        const folding = toFolding(episodes, 2);
        const all = [folding.text, ...folding.leaving.map(({ id }) => id)].join(' ');
        const fold = folded(folding, byModel && folding.leaving.length > 0 ? all : undefined);
        episodes = [episode((number += 1), fold && { fold }), ...episodes];
      }
      const { episodic, earlier } = retrieve(episodes, []);
      const shown = `${episodic.map(({ id }) => id).join(' ')} ${earlier?.text ?? ''}`;
      for (const { id } of episodes) expect(shown).toContain(id);
      expect(earlier?.episodes.length ?? 0).toBe(Math.max(0, episodes.length - 3));
    }),
  );
});
