/** How deep a compaction goes: the turns of the tail, and the oldest tool rounds of the running turn. */
import fc from 'fast-check';
import { compactionWindow, planCompaction } from '../../src/memory/compaction/window.js';
import { chosenTruncation, withWholeCalls } from '../../src/memory/compaction/truncation.js';
import { CITED_FROM, citedMessageTokens } from '../../src/conversation/context/citing.js';
import { listSlots } from '../../src/records/slots.js';
import { turnId } from '../../src/records/identity.js';
import { isFromPerson, type ConversationMessage, type Entry } from '../../src/records/message.js';
import { answer, calls, chat, conversation, result, user, type Told } from './builders.js';

const TEN = (): number => 10;

/** A running turn of so many rounds, each of an answer with a call and its result. */
function rounds(turn: number, count: number): Told {
  return [
    turn,
    user('the question'),
    ...Array.from({ length: count }, (_, i) => [calls([`c${turn}-${i}`]), result(`c${turn}-${i}`)]).flat(),
  ];
}

const turnsIn = (entries: readonly Entry[]) => [...new Set(entries.map(({ turn }) => Number(turn.slice(5))))];

test('where the older turns free enough, the tail stays', () => {
  const window = compactionWindow(chat(10), { currentTurn: turnId(10), enough: 100, countEntry: TEN });
  expect(turnsIn(window.entries)).toEqual([1, 2, 3, 4, 5]);
  expect(window).toMatchObject({ freed: 100, inPart: [] });
});

test('where they do not, as many turns of the tail go as are needed, oldest first', () => {
  const window = compactionWindow(chat(10), { currentTurn: turnId(10), enough: 101, free: 121, countEntry: TEN });
  expect(turnsIn(window.entries)).toEqual([1, 2, 3, 4, 5, 6, 7]);
});

test('what was chosen is taken however new it is, with the results of its calls, but nothing that the running turn needs', () => {
  const entries = conversation([1, user('a'), answer('a')], [2, user('b'), calls(['c']), result('c'), answer('b')], rounds(3, 2));
  const chosen = withWholeCalls(entries, new Set([2, 5, 7, 10]));
  expect([...chosen]).toEqual([2, 4, 5, 7, 10, 11]);
  const window = compactionWindow(entries, { currentTurn: turnId(3), chosen, countEntry: TEN });
  expect(listSlots(window.slots)).toEqual([2, 4, 5]);
  expect(window).toMatchObject({ freed: 30, inPart: ['turn_0001', 'turn_0002'] });
  expect(chosenTruncation(entries, new Set([5, 7, 10]), turnId(3), TEN).dropped.map(({ slot }) => slot)).toEqual([4, 5]);
});

test('after the tail the oldest rounds of the running turn go, its question and its last round stay', () => {
  const entries = [...conversation([1, user('a'), answer('a')], rounds(2, 4))];
  const window = compactionWindow(entries, { currentTurn: turnId(2), enough: 50, countEntry: TEN });
  expect(window.slots).toEqual([
    [1, 2],
    [4, 7],
  ]);
  expect(window).toMatchObject({ turnIds: ['turn_0001', 'turn_0002'], inPart: ['turn_0002'], freed: 60 });
  const all = compactionWindow(entries, { currentTurn: turnId(2), enough: 1_000, countEntry: TEN });
  expect(listSlots(all.slots)).toEqual([1, 2, 4, 5, 6, 7, 8, 9]);
  expect(all.kept.map(({ message }) => message.role)).toEqual(['user', 'assistant', 'tool']);
});

test('a notice alone is nothing to summarize, and goes with a round', () => {
  const notice = { ...user('the context fills'), from: 'notice' } as const;
  const one = conversation([1, user('q'), notice, calls(['a']), result('a')]);
  expect(compactionWindow(one, { currentTurn: turnId(1), enough: 1_000, countEntry: TEN }).turnIds).toEqual([]);
  const two = conversation([1, user('q'), notice, calls(['a']), result('a'), calls(['b']), result('b')]);
  expect(compactionWindow(two, { currentTurn: turnId(1), enough: 1_000, countEntry: TEN }).slots).toEqual([[2, 4]]);
});

test('what was left out of the prompt is taken, from whichever turn, and frees nothing', () => {
  const entries = conversation([1, user('a'), answer('a')], rounds(2, 3));
  const window = compactionWindow(entries, { currentTurn: turnId(2), leftOut: new Set([1, 4, 5]), countEntry: TEN });
  expect(listSlots(window.slots)).toEqual([1, 4, 5]);
  expect(window).toMatchObject({ freed: 0, inPart: ['turn_0001', 'turn_0002'] });
});

describe('a long message', () => {
  const countEntry = ({ message }: Entry): number => (message.role === 'user' && message.text.toString().startsWith('paste') ? 5_000 : 10);
  const options = { currentTurn: turnId(3), countEntry, cited: new Set<number>() };
  const entries = conversation([1, user('paste'), answer('a')], [2, user('b'), answer('b')], [3, user('paste and ask')]);

  test('of an earlier turn is cited before the turns of the tail are taken', () => {
    const plan = planCompaction(entries, { ...options, enough: 4_000, free: 4_000 });
    expect(plan).toMatchObject({ turnIds: [], cites: [entries[0]], kept: entries, freed: 5_000 - citedMessageTokens() });
  });

  test('is cited once, and not at all where the model could not read it again', () => {
    expect(planCompaction(entries, { ...options, cited: new Set([1]), enough: 10, free: 10 }).cites).toEqual([]);
    expect(planCompaction(entries, { ...options, cited: null, enough: 4_000, free: 4_000 })).toMatchObject({
      cites: [],
      turnIds: ['turn_0001'],
    });
  });

  test('is summarized with its turn where citing it is not enough', () => {
    const plan = planCompaction(entries, { ...options, enough: 5_020, free: 5_030 });
    expect(plan).toMatchObject({ turnIds: ['turn_0001', 'turn_0002'], cites: [], freed: 5_030 });
  });
});

/** A conversation with sizes: each message says how many tokens it has. */
const someMessages = fc.array(
  fc.tuple(
    fc.integer({ min: 1, max: 9 }),
    fc.oneof(
      fc.constant('user' as const),
      fc.constant('answer' as const),
      fc.constant('notice' as const),
      fc.integer({ min: 1, max: 3 }).map((results) => results as 1 | 2 | 3),
    ),
    fc.integer({ min: 1, max: 3_000 }),
  ),
  { maxLength: 60 },
);

test('of any conversation: the newest question and all of its turn’s stay, no pair is parted, and it frees what is wanted or takes all that it may', () => {
  fc.assert(
    fc.property(
      someMessages,
      fc.nat(60_000),
      fc.nat(20_000),
      fc.boolean(),
      fc.array(fc.nat(59), { maxLength: 10 }),
      fc.boolean(),
      (parts, enough, more, isRunning, outAt, isReadable) => {
        let id = 0;
        const sizes: number[] = [];
        const told = [...parts]
          .sort(([a], [b]) => a - b)
          .map(([turn, what, size]): Told => {
            const messages: ConversationMessage[] =
              what === 'user'
                ? [user('u')]
                : what === 'answer'
                  ? [answer('a')]
                  : what === 'notice'
                    ? [{ ...user('n'), from: 'notice' }]
                    : (() => {
                        const ids = Array.from({ length: what }, () => `c${(id += 1)}`);
                        return [calls(...ids.map((one) => [one] as const)), ...ids.map((one) => result(one))];
                      })();
            sizes.push(...messages.map(() => size));
            return [turn, ...messages];
          });
        const entries = conversation(...told);
        const countEntry = ({ slot }: Entry): number => sizes[slot - 1] ?? 0;
        const last = Math.max(0, ...turnsIn(entries));
        const currentTurn = isRunning && last > 0 ? turnId(last) : undefined;
        // As truncation does it: whole rounds, and no question of the running turn, nor its last answer.
        const lastAnswer = entries.findLast(({ turn, message }) => turn === currentTurn && message.role === 'assistant');
        const callIdsOf = ({ message }: Entry): string[] =>
          message.role === 'assistant' ? message.blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.callId] : [])) : [];
        const groupOf = (entry: Entry): Entry[] => {
          const caller =
            entry.message.role === 'tool'
              ? entries.find((one) => callIdsOf(one).includes((entry.message as { callId: string }).callId))
              : entry;
          const ids = caller ? callIdsOf(caller) : [];
          return entries.filter((one) => one === caller || (one.message.role === 'tool' && ids.includes(one.message.callId)));
        };
        const out = outAt
          .flatMap((at) => (entries[at] ? groupOf(entries[at]) : []))
          .filter(
            (entry) => !(entry.turn === currentTurn && (isFromPerson(entry.message) || groupOf(entry).includes(lastAnswer as Entry))),
          );
        const leftOut = new Set(out.map(({ slot }) => slot));

        const plan = planCompaction(entries, {
          currentTurn,
          enough,
          free: enough + more,
          countEntry,
          leftOut,
          cited: isReadable ? new Set() : null,
        });
        const inside = new Set(plan.entries);
        expect(plan.kept).toEqual(entries.filter((entry) => !inside.has(entry)));
        expect(listSlots(plan.slots)).toEqual(plan.entries.map(({ slot }) => slot));

        // What stays in any case.
        for (const entry of entries) {
          if (entry.turn !== currentTurn) continue;
          if (isFromPerson(entry.message) || (lastAnswer && groupOf(lastAnswer).includes(entry))) expect(inside.has(entry)).toBe(false);
        }
        const question = entries.findLast(({ message }) => isFromPerson(message));
        expect(plan.cites).not.toContain(question);
        // No pair is parted.
        for (const entry of entries) for (const one of groupOf(entry)) expect(inside.has(one)).toBe(inside.has(entry));
        // What was left out is taken.
        for (const entry of out) expect(inside.has(entry)).toBe(true);

        const before = entries.reduce((sum, entry) => (leftOut.has(entry.slot) ? sum : sum + countEntry(entry)), 0);
        const after = plan.kept.reduce((sum, entry) => sum + (plan.cites.includes(entry) ? citedMessageTokens() : countEntry(entry)), 0);
        expect(plan.freed).toBe(before - after);
        if (plan.freed >= enough) return;
        // All that it may: no turn is left but the running one, and of that no round but the last.
        for (const entry of plan.kept) {
          expect(entry.turn).toBe(currentTurn);
          if (entry.message.role === 'assistant') expect(entry).toBe(lastAnswer);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

test('no message is cited that would not get shorter', () => {
  expect(CITED_FROM).toBeGreaterThan(2 * citedMessageTokens());
});
