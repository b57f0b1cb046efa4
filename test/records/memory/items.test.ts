import { episodicId, foldedFact, itemNumber, readEpisodicItem, readSemanticItem, semanticId } from '../../../src/records/memory/items.js';

const EPISODE = { id: 'ep_0001', ts: 1738100500.5, turn_ids: ['turn_0001', 'turn_0002'], summary: 's', tags: ['project'], salience: 0.7 };
const FACT = { id: 'sem_0001', ts: 1738100501, fact: 'f', tags: ['testing'], confidence: 0.8, salience: 0.9 };

test('ids count in four digits, and go on beyond them', () => {
  expect([episodicId(1), semanticId(42), semanticId(12345)]).toEqual(['ep_0001', 'sem_0042', 'sem_12345']);
  expect(['ep_0001', 'sem_12345', 'rt_001', 'sem_1', ''].map(itemNumber)).toEqual([1, 12345, 0, 0, 0]);
});

test('the seed’s own records are read; further fields are left out', () => {
  expect(readEpisodicItem({ ...EPISODE, v: 1, slots: [] })).toEqual(EPISODE);
  expect(readSemanticItem({ ...FACT, source: {} })).toEqual(FACT);
  expect(Object.keys(readEpisodicItem(EPISODE) ?? {})).toEqual(['id', 'ts', 'turn_ids', 'summary', 'tags', 'salience']);
  expect(Object.keys(readSemanticItem(FACT) ?? {})).toEqual(['id', 'ts', 'fact', 'tags', 'confidence', 'salience']);
});

test.each([
  ['nothing', undefined],
  ['a list', []],
  ['a fact for an episode', FACT],
  ['another id', { ...EPISODE, id: '../../etc/passwd' }],
  ['a salience over 1', { ...EPISODE, salience: 7 }],
  ['a salience that is no number', { ...EPISODE, salience: null }],
  ['tags that are no texts', { ...EPISODE, tags: [1] }],
  ['a missing field', { ...EPISODE, summary: undefined }],
  ['fields of a prototype', JSON.parse('{"__proto__": {"id": "ep_0001"}}')],
])('%s is no episode', (_, value) => {
  expect(readEpisodicItem(value)).toBeUndefined();
});

test('facts with the same words are the same', () => {
  expect(foldedFact('  Use \n vitest. ')).toBe(foldedFact('Use vitest.'));
  expect(foldedFact('use vitest.')).not.toBe(foldedFact('Use vitest.'));
});
