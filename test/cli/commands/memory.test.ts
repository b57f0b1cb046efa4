import { type StyledLine, textOfDrawn } from '../../../src/cli/terminal/terminal-text.js';
import { renderEpisodes, renderFacts, formatTurns } from '../../../src/cli/views/memory.js';
import type { EpisodeRecord, FactRecord } from '../../../src/stores/store.js';
import { measure } from './measure.js';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const LOOK = { timeFormat: 'relative', now: NOW, measure } as const;

const EPISODES: EpisodeRecord[] = [
  {
    id: 'ep_0002',
    ts: NOW / 1000 - 180,
    turn_ids: ['turn_0005', 'turn_0006', 'turn_0008'],
    summary: 'They spoke of the harbour.\nThe password of the day is plum.\u001b[2J',
    tags: ['harbour', '港'],
    salience: 0.7,
    session: 1,
    epoch: 3,
    slots: [[9, 14]],
  },
];
const FACTS: FactRecord[] = [
  {
    id: 'sem_0001',
    ts: NOW / 1000 - 7200,
    fact: 'The person prefers short answers.',
    tags: ['preference'],
    confidence: 0.9,
    salience: 0.8,
    batch: 'b',
    source: { conversation: 'conv_8', turn_ids: ['turn_0001', 'turn_0002'] },
  },
  { id: 'sem_0002', ts: NOW / 1000, fact: 'Tea, not coffee.', tags: [], confidence: 1, salience: 0.5, batch: null, source: null },
];

function drawn(lines: readonly StyledLine[]): string {
  return lines.map((line) => `|${textOfDrawn(line)}|`).join('\n');
}

test('a summary stands below its turns, a fact below where it was learnt', () => {
  expect(drawn([...renderEpisodes(EPISODES, { ...LOOK, width: 80 }), ...renderFacts(FACTS, 'default', { ...LOOK, width: 80 })]))
    .toMatchInlineSnapshot(`
   "|episodic  1 summaries of older turns|
   |  ep_0002 · turn_0005–turn_0006, turn_0008 · session 1 · 3 min ago · salience|
   |  0.7 · #harbour #港|
   |    They spoke of the harbour. The password of the day is plum.␛[2J|
   |semantic  2 facts of scope default|
   |  sem_0001 · 2 h ago · salience 0.8 · confidence 0.9 · #preference · learnt in|
   |  conv_8, turn_0001–turn_0002|
   |    The person prefers short answers.|
   |  sem_0002 · just now · salience 0.5 · confidence 1 · written by hand|
   |    Tea, not coffee.|"
  `);
});

test('what counts no longer says so, and what stands in its place', () => {
  const old: FactRecord[] = [
    { ...FACTS[1]!, replaced: { by: 'sem_0009', ts: NOW / 1000 - 120 } },
    { ...FACTS[0]!, replaced: { by: null, ts: NOW / 1000 } },
  ];
  const text = drawn([...renderEpisodes([{ ...EPISODES[0]!, supersedes: ['ep_0001'] }], LOOK), ...renderFacts(old, 'default', LOOK)]);
  expect(text).toContain('ep_0002 · turn_0005–turn_0006, turn_0008 · session 1 · in the place of ep_0001 · 3 min ago');
  expect(text).toContain('sem_0002 · replaced by sem_0009 since 2 min ago · just now');
  expect(text).toContain('sem_0001 · no longer true since just now · 2 h ago');
});

test('at no width between 20 and 120 does a line of it pass the edge, save headings', () => {
  for (let width = 20; width <= 120; width++) {
    const lines = [...renderEpisodes(EPISODES, { ...LOOK, width }), ...renderFacts(FACTS, 'default', { ...LOOK, width })];
    const widest = Math.max(
      ...lines
        .map(textOfDrawn)
        .filter((text) => text.startsWith(' '))
        .map(measure),
    );
    expect([width, widest <= width]).toEqual([width, true]);
  }
});

test.each([
  [['turn_0001', 'turn_0002', 'turn_0003', 'turn_0007'], 'turn_0001–turn_0003, turn_0007'],
  [['a', 'b'], 'a, b'],
  [[], 'no turns'],
])('%j reads %s', (turns, text) => {
  expect(formatTurns(turns)).toBe(text);
});
