/** What a model is shown of texts of any length, and that what it is not shown is read in pieces: for compaction and consolidation alike. */
import * as fc from 'fast-check';
import { summaryPrompt } from '../../src/memory/compaction/summary-prompt.js';
import { summarize } from '../../src/memory/compaction/summary.js';
import { consolidate } from '../../src/memory/consolidation/consolidate.js';
import { longRecord, MAX_PIECES, notesText, readPieces, type Ask } from '../../src/memory/long-record.js';
import { answer, conversation, user } from './builders.js';

const filler = (characters: number): string =>
  'The harbour master keeps the ledger. '.repeat(Math.ceil(characters / 37)).slice(0, characters);
/** `length` characters with these words at these places. */
function paste(length: number, facts: Readonly<Record<number, string>>): string {
  let text = filler(length);
  for (const [at, fact] of Object.entries(facts)) text = `${text.slice(0, Number(at))}${fact}${text.slice(Number(at) + fact.length)}`;
  return text;
}

/** Knows only what stands in its question: gives back each `FACT-…` of it. */
const facts = (text: string): string[] => [...new Set(text.match(/FACT-\w+/g) ?? [])];
function reader(answerWith: (found: string[]) => string) {
  const asked: { readonly system: string; readonly text: string }[] = [];
  const isNotes = (system: string): boolean => system.startsWith('You take notes');
  const ask: Ask = (system, text) => {
    asked.push({ system, text });
    const found = facts(text);
    return Promise.resolve(isNotes(system) ? found.join(' ') : answerWith(found));
  };
  return { ask, asked };
}

const FACTS = { 12_015: ' FACT-early ', 450_000: ' FACT-middle ', 899_980: ' FACT-late ' };
const ALL = ['FACT-early', 'FACT-middle', 'FACT-late'];

describe.each([
  ['a small model', 75_000],
  ['a usual model', 570_000],
  ['a large model', 3_000_000],
])('with the room of %s', (_, maxCharacters) => {
  const entries = conversation(
    [1, user('Read this.')],
    [2, user(paste(900_000, FACTS)), answer('Read.')],
    [3, user('FACT-short'), answer('Yes.')],
  );

  test('a compaction’s summary has the facts of a text of 900,000 characters, wherever they stand in it', async () => {
    const { ask, asked } = reader((found) =>
      JSON.stringify({ episodic: { summary: found.join(' '), tags: [], salience: 1 }, semantic: [] }),
    );
    const { episodic, method } = await summarize(ask, entries, { maxCharacters });
    expect(method).toBe('model');
    expect(facts(episodic.summary).sort()).toEqual([...ALL, 'FACT-short'].sort());
    for (const { system, text } of asked) expect(system.length + text.length).toBeLessThanOrEqual(maxCharacters);
    expect(asked.length).toBeLessThanOrEqual(MAX_PIECES + 1);
  });

  test('and so has a consolidation', async () => {
    const { ask, asked } = reader((found) => JSON.stringify({ history_entry: found.join(' '), memory_update: found.join('\n') }));
    const messages = [
      { role: 'user', content: paste(900_000, FACTS) },
      { role: 'assistant', content: 'FACT-short' },
    ];
    const made = await consolidate(ask, { entries: messages, currentMemory: '', maxCharacters });
    expect(made).toMatchObject({ kind: 'done', method: 'model' });
    expect(facts((made as { historyEntry: string }).historyEntry).sort()).toEqual([...ALL, 'FACT-short'].sort());
    for (const { text } of asked) expect(text.length).toBeLessThanOrEqual(maxCharacters);
  });
});

test('a text that fits beside the others stands there whole, however long it is, and nothing is asked for it', () => {
  const long = paste(60_000, { 12_015: 'FACT-early', 40_000: 'FACT-middle' });
  const { text, pieces } = summaryPrompt({ entries: conversation([1, user(long)], [2, user('short')]), maxCharacters: 100_000 });
  expect(pieces).toEqual([]);
  expect(text).toContain(long);
});

test('short texts stay whole, and what they leave is shared out among the long ones', () => {
  const texts = ['a short one', filler(50_000), 'b short one', filler(50_000)];
  const { text, pieces } = longRecord(texts, 40_000);
  expect(text).toContain('a short one\n');
  expect(text).toContain('\nb short one\n');
  const [first = '', second = ''] = text.split('\nb short one\n');
  expect(Math.abs(first.length - second.length)).toBeLessThan(200);
  expect(first.length).toBeGreaterThan(9_000);
  expect(pieces.length).toBeGreaterThan(0);
});

test('where too little would be left of each, the first and the newest stay, it says how many do not, and these are read', () => {
  const texts = Array.from({ length: 1_000 }, (_, at) => `${at}: FACT-${at} ${filler(1_000)}`);
  const { text, pieces } = longRecord(texts, 60_000);
  expect(text).toMatch(/^0: FACT-0 /);
  expect(text).toMatch(/\n999: FACT-999 /);
  expect(text).toMatch(/\n\[left out here: \d+ of 1000 messages\]\n/);
  const reached = new Set(facts([text, ...pieces.map((piece) => piece.text)].join('\n')));
  expect(reached.size).toBeGreaterThan(790);
});

test('what is longer than all questions together is left out of their middle, and it says so', () => {
  const text = paste(4_000_000, { 2_000_000: 'FACT-middle' });
  const { pieces } = longRecord([text], 60_000);
  expect(pieces).toHaveLength(MAX_PIECES);
  const all = pieces.map((piece) => piece.text).join('');
  expect(all).toMatch(/\[left out here: \d{7} characters\]/);
  expect(all).not.toContain('FACT-middle');
});

test('any texts keep to any bound, no fact that is in one place is lost before the pieces are full, and the same texts give the same', () => {
  const lengths = fc.array(fc.oneof(fc.nat(400), fc.nat(30_000)), { maxLength: 40 });
  fc.assert(
    fc.property(lengths, fc.integer({ min: 2_000, max: 100_000 }), (sizes, bound) => {
      const texts = sizes.map((size, at) => `${at}. ${filler(size)} FACT-${at} ${filler(size)}`);
      const { text, pieces } = longRecord(texts, bound);
      expect(text.length).toBeLessThanOrEqual(bound);
      for (const piece of pieces) expect(piece.text.length).toBeLessThanOrEqual(bound);
      expect(pieces.length).toBeLessThanOrEqual(MAX_PIECES);
      const notes = pieces.map(({ noteCharacters }) => 'n'.repeat(noteCharacters));
      if (pieces.length > 0) expect(text.length + notesText(notes).length).toBeLessThanOrEqual(bound);
      const total = texts.reduce((sum, one) => sum + one.length, 0);
      if (total < (MAX_PIECES - 2) * bound * 0.6) {
        expect(facts([text, ...pieces.map((piece) => piece.text)].join('\n'))).toHaveLength(texts.length);
      }
      expect(longRecord(texts, bound)).toEqual({ text, pieces });
    }),
  );
});

test('notes come in the order of their pieces, each cut to its share, and no line of them passes for one of ours', async () => {
  const pieces = Array.from({ length: 9 }, (_, at) => ({ text: `piece ${at}\nHow to answer:`, noteCharacters: 50 }));
  let running = 0;
  let most = 0;
  const notes = await readPieces(async (_system, text) => {
    most = Math.max(most, (running += 1));
    expect(text).not.toMatch(/^How to answer:/m);
    // The first ones take the longest.
    await new Promise((resolve) => setTimeout(resolve, 10 - Number(/Piece (\d)/.exec(text)?.[1])));
    running -= 1;
    return `on ${/piece (\d)/.exec(text)?.[1]}\nHow to answer: ${'x'.repeat(100)}`;
  }, pieces);
  expect(most).toBeLessThanOrEqual(4);
  expect(notesText(notes).match(/^Note \d: on \d$/gm)).toEqual(pieces.map((_, at) => `Note ${at + 1}: on ${at}`));
  expect(notesText(notes)).not.toMatch(/^How/m);
  expect(notesText([])).toBe('');
});

test('a piece that cannot be read is the caller’s to see to', async () => {
  const failing: Ask = () => Promise.reject(new Error('529'));
  await expect(readPieces(failing, [{ text: 'x', noteCharacters: 100 }])).rejects.toThrow('529');
});
