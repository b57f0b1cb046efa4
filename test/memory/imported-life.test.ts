import { toImported, type Imported } from '../../src/memory/imported-life.js';
import type { PastLife } from '../../src/memory/past-life.js';
import type { AssistantBlock } from '../../src/records/message.js';
import { normalize } from '../../src/models/normalize.js';
import { answerEntry, episode, userEntry } from '../stores/builders.js';
import { ends } from '../support/ends.js';

const PLAIN: PastLife = { entries: [], archived: [], episodes: [], skipped: 0 };

function lifeOf(imported: Imported): PastLife {
  if (imported.kind === 'refused') throw new Error(imported.reason);
  return imported.life;
}

test('turns that run into each other are numbered in the order in which they began, so that the next number is free', () => {
  const [a, b] = ['turn_0005', 'turn_0002'];
  const entries = [
    { ...userEntry(1), turn: a },
    { ...answerEntry(2), turn: a },
    { ...userEntry(3), turn: b },
    { ...answerEntry(4), turn: b },
  ];
  const life = lifeOf(toImported({ ...PLAIN, entries, episodes: [episode(1, { turn_ids: [b], slots: [[3, 4]] })] }));
  expect(life.entries.map(({ turn }) => turn)).toEqual(['turn_0001', 'turn_0001', 'turn_0002', 'turn_0002']);
  expect(life.episodes[0]?.turn_ids).toEqual(['turn_0002']);
});

test('turns that are in order keep their numbers, gaps too', () => {
  const entries = [
    { ...userEntry(1), turn: 'turn_0002' },
    { ...userEntry(3), turn: 'turn_0007' },
  ];
  expect(toImported({ ...PLAIN, entries })).toEqual({ kind: 'life', life: { ...PLAIN, entries }, problems: [] });
});

test('thinking and what only its maker can read stay in the record and go to no model', () => {
  const blocks: AssistantBlock[] = [
    { kind: 'thinking', text: 'hm', signature: 'forged', provider: 'anthropic' },
    { kind: 'opaque', provider: 'anthropic', value: { type: 'redacted_thinking', data: 'x' } },
    { kind: 'text', text: 'Yes.' },
  ];
  const said = { role: 'assistant', blocks, model: 'anthropic/one', stop: 'end' } as const;
  const { entries } = lifeOf(toImported({ ...PLAIN, entries: [userEntry(1), { ...answerEntry(1), slot: 2, message: said }] }));
  const again = lifeOf(toImported({ ...PLAIN, entries }));
  expect(again.entries).toEqual(entries);
  const [, answer] = entries.map(({ message }) => message);
  expect(answer).toMatchObject({
    blocks: [{ text: 'hm', provider: 'imported/anthropic' }, { provider: 'imported/anthropic' }, { kind: 'text' }],
  });
  const sent = normalize(
    entries.map(({ message }) => message),
    { provider: 'anthropic' },
  );
  expect(JSON.stringify(sent)).not.toMatch(/hm|redacted|forged/);
});

test('a summary without slots stands for the archived entries of its turns; one that stands for nothing is named', () => {
  const entries = [userEntry(1), userEntry(2)];
  const episodes = [
    episode(3, { slots: [[7, 9]] }),
    episode(2, { slots: [], turn_ids: [entries[1]?.turn ?? ''] }),
    episode(1, { slots: [], turn_ids: [entries[0]?.turn ?? ''] }),
  ];
  expect(toImported({ ...PLAIN, entries, archived: [[1, 1]], episodes })).toMatchObject({
    life: { episodes: [{ id: 'ep_0001', slots: [[1, 1]] }] },
    problems: [expect.stringContaining('ep_0003'), expect.stringContaining('ep_0002')],
  });
});

test('a summary whose number leaves no room for others is left out', () => {
  const told = toImported({ ...PLAIN, entries: [userEntry(1)], episodes: [episode(1, { id: `ep_${'9'.repeat(30)}`, slots: [[1, 1]] })] });
  expect(told).toMatchObject({ life: { episodes: [] }, problems: [expect.stringContaining('ep_9')] });
});

test('slots with gaps without number are refused', () => {
  const entries = Array.from({ length: 10_001 }, (_, n) => ({ ...userEntry(1), slot: 2 * n + 1 }));
  expect(toImported({ ...PLAIN, entries })).toMatchObject({ kind: 'refused' });
});

test('many summaries of many turns are read by their number, and slots full of gaps are refused', () => {
  const entries = Array.from({ length: 30_000 }, (_, at) => ({ ...userEntry(at + 1), turn: `turn_${String(at + 1).padStart(5, '0')}` }));
  const episodes = Array.from({ length: 3_000 }, (_, at) => episode(at + 1, { slots: [], turn_ids: [entries[at]?.turn ?? ''] }));
  const life = ends(() => lifeOf(toImported({ ...PLAIN, entries, archived: [[1, 30_000]], episodes })));
  expect(life.episodes[2_999]).toMatchObject({ slots: [[3_000, 3_000]] });
  const gaps = Array.from({ length: 100_000 }, (_, at) => ({ ...userEntry(1), slot: 2 * at + 1 }));
  expect(ends(() => toImported({ ...PLAIN, entries: gaps }))).toMatchObject({ kind: 'refused' });
});
