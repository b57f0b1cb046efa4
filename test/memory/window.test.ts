import fc from 'fast-check';
import { listSlots } from '../../src/records/slots.js';
import { turnId } from '../../src/records/identity.js';
import { compactionWindow } from '../../src/memory/compaction/window.js';
import { RAW_TAIL_TURNS } from '../../src/records/memory/items.js';
import { answer, calls, chat, conversation, result, user } from './builders.js';

const numbersOf = (entries: readonly { readonly turn: string }[]) => [...new Set(entries.map(({ turn }) => Number(turn.slice(5))))];

test('the oldest turns are the window; the newest four that have ended stay, and the current one beside them', () => {
  const window = compactionWindow(chat(10), { currentTurn: turnId(10) });
  expect(RAW_TAIL_TURNS).toBe(4);
  expect(window.turnIds).toEqual([1, 2, 3, 4, 5].map(turnId));
  expect(window.slots).toEqual([[1, 10]]);
  expect(numbersOf(window.entries)).toEqual([1, 2, 3, 4, 5]);
  expect(numbersOf(window.kept)).toEqual([6, 7, 8, 9, 10]);
});

test('when no turn runs, the last one counts as ended', () => {
  expect(compactionWindow(chat(10)).turnIds).toEqual([1, 2, 3, 4, 5, 6].map(turnId));
  expect(compactionWindow(chat(10), { tailTurns: 0 }).kept).toEqual([]);
});

test.each([0, 1, 4, 5])('of %d turns, the last of which runs, nothing is compacted', (count) => {
  const entries = chat(count);
  expect(compactionWindow(entries, { currentTurn: turnId(count) })).toEqual({
    ...{ turnIds: [], inPart: [], slots: [], entries: [], freed: 0 },
    kept: entries,
  });
});

test('messages that wait behind the current turn stay', () => {
  const window = compactionWindow(chat(12), { currentTurn: turnId(8) });
  expect(window.turnIds).toEqual([1, 2, 3].map(turnId));
  expect(numbersOf(window.kept)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12]);
});

test('a turn is taken whole, also what of it came late', () => {
  const entries = conversation(
    [1, user('a'), calls(['c1'])],
    [2, user('b'), answer('b')],
    [1, result('c1'), answer('a')],
    [3, user('c'), answer('c')],
  );
  const window = compactionWindow(entries, { tailTurns: 2 });
  expect(window.turnIds).toEqual([turnId(1)]);
  expect(window.slots).toEqual([
    [1, 2],
    [5, 6],
  ]);
});

test('a call stays where its result stays', () => {
  const entries = conversation(
    [1, user('a'), answer('a')],
    [2, user('b'), calls(['c1'])],
    [3, user('c'), result('c1'), calls(['c2'])],
    [4, user('d'), result('c2'), answer('d')],
  );
  // c2 ties turn 3 to the tail, and c1 turn 2 to turn 3.
  expect(compactionWindow(entries, { tailTurns: 1 }).turnIds).toEqual([turnId(1)]);
});

test('of any conversation: each entry is in the window or kept, whole turns, and no pair is parted', () => {
  const message = fc.oneof(
    fc.constant(user('u')),
    fc.constant(answer('a')),
    fc.integer({ min: 1, max: 9 }).map((id) => calls([`c${id}`])),
    fc.integer({ min: 1, max: 9 }).map((id) => result(`c${id}`)),
  );
  const turns = fc.array(fc.tuple(fc.integer({ min: 1, max: 12 }), message), { maxLength: 60 });
  fc.assert(
    fc.property(
      turns,
      fc.option(fc.integer({ min: 1, max: 13 }), { nil: undefined }),
      fc.integer({ min: 0, max: 5 }),
      (parts, current, tailTurns) => {
        const entries = conversation(...parts);
        const window = compactionWindow(entries, { currentTurn: current === undefined ? undefined : turnId(current), tailTurns });
        const inside = new Set(window.entries);
        expect(window.kept).toEqual(entries.filter((entry) => !inside.has(entry)));
        expect(listSlots(window.slots)).toEqual(window.entries.map(({ slot }) => slot));
        expect(numbersOf(window.entries).filter((turn) => numbersOf(window.kept).includes(turn))).toEqual([]);
        for (const turn of numbersOf(window.entries)) expect(turn).toBeLessThan(current ?? Infinity);
        const ended = numbersOf(entries).filter((turn) => turn < (current ?? Infinity));
        for (const turn of ended.slice(ended.length - Math.min(tailTurns, ended.length)))
          expect(window.turnIds).not.toContain(turnId(turn));
        const callers = new Map<string, boolean>();
        for (const entry of entries) {
          if (entry.message.role !== 'assistant') continue;
          for (const block of entry.message.blocks) if (block.kind === 'tool-call') callers.set(block.callId, inside.has(entry));
        }
        for (const entry of entries) {
          if (entry.message.role === 'tool' && callers.has(entry.message.callId))
            expect(inside.has(entry)).toBe(callers.get(entry.message.callId));
        }
      },
    ),
    { numRuns: 1000 },
  );
});
