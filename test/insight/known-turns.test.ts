/** Of which turns the model sees what: by hand, and of random prompts that nothing is lost between the lists. */
import fc from 'fast-check';
import { MESSAGE_END_CHARACTERS } from '../../src/conversation/context/citing.js';
import { knownTurns, shortenedIn, type KnownTurns } from '../../src/insight/why.js';
import { turnId } from '../../src/records/identity.js';
import type { ConversationMessage, Entry } from '../../src/records/message.js';
import { toRanges } from '../../src/records/slots.js';
import type { EpisodeRecord } from '../../src/stores/store.js';
import { answer, calls, result, user } from '../memory/builders.js';
import { episode } from '../stores/builders.js';

const LONG = 2 * MESSAGE_END_CHARACTERS;
const NOTICE: ConversationMessage = { role: 'user', from: 'notice', text: 'The context fills.' };

function entry(slot: number, turn: number, session: number, message: ConversationMessage = user(`in ${slot}`)): Entry {
  return { v: 1, slot, session, turn: turnId(turn), seq: 1, ts: slot, message };
}

function summaryOf(id: string, turns: readonly number[], more: Partial<EpisodeRecord> = {}): EpisodeRecord {
  return episode(1, { id, turn_ids: turns.map(turnId), session: 1, ...more });
}

const listsOf = ({ whole, inPart, leftOut, earlierSessions, summarized }: KnownTurns): string[] => [
  ...[whole, inPart, leftOut, earlierSessions].flat(),
  ...summarized.flatMap(({ turns }) => turns),
];

test('of random prompts: a turn that is in the prompt is whole or in part, each once, and no turn is in a list without a reason', () => {
  const life = fc.record({
    turns: fc.array(fc.record({ entries: fc.integer({ min: 1, max: 4 }), isOld: fc.boolean() }), { minLength: 1, maxLength: 8 }),
    inPrompt: fc.array(fc.nat(32)),
    leftOut: fc.array(fc.nat(32)),
    summarized: fc.array(fc.nat(9)),
  });
  fc.assert(
    fc.property(life, ({ turns, inPrompt, leftOut, summarized }) => {
      let slot = 0;
      const firstNew = turns.findIndex(({ isOld }) => !isOld);
      const entries = turns.flatMap(({ entries: count }, at) =>
        Array.from({ length: count }, () => entry((slot += 1), at + 1, firstNew === -1 || at < firstNew ? 1 : 2)),
      );
      const slots = [...new Set(inPrompt)].filter((one) => one >= 1 && one <= slot).sort((a, b) => a - b);
      const out = [...new Set(leftOut)].filter((one) => one >= 1 && one <= slot && !slots.includes(one)).sort((a, b) => a - b);
      const index = { session: 2, chunks: [{ kind: 'WORKING_FLOW', tokens: 1, slots: toRanges(slots) }], leftOut: toRanges(out) } as const;
      const found = knownTurns(index, entries, [summaryOf('ep_0001', summarized, { session: 2 })]);
      for (const turn of new Set(entries.map((one) => one.turn))) {
        const own = entries.filter((one) => one.turn === turn).map((one) => one.slot);
        const here = own.filter((one) => slots.includes(one)).length;
        expect([turn, found.whole.includes(turn)]).toEqual([turn, here === own.length]);
        expect([turn, found.inPart.includes(turn)]).toEqual([turn, here > 0 && here < own.length]);
        expect([turn, found.leftOut.includes(turn)]).toEqual([turn, own.some((one) => out.includes(one))]);
      }
      for (const turn of found.earlierSessions) {
        expect([...found.whole, ...found.inPart, ...found.summarized.flatMap((one) => one.turns)]).not.toContain(turn);
        expect(entries.filter((one) => one.turn === turn).every(({ session }) => session === 1)).toBe(true);
      }
      expect(listsOf(found).filter((turn) => !entries.some((one) => one.turn === turn))).toEqual([]);
    }),
  );
});

test.each<[what: string, episodes: EpisodeRecord[], summarized: object[], earlier: string[]]>([
  ['no summary', [], [], ['turn_0001']],
  ['one of this session', [summaryOf('ep_0001', [1, 9], { session: 2 })], [{ episode: 'ep_0001', turns: ['turn_0001'] }], []],
  ['one of another session, which no prompt shows', [summaryOf('ep_0001', [1])], [], ['turn_0001']],
  [
    'one that another stands for',
    [summaryOf('ep_0002', [1], { session: 2, supersedes: ['ep_0001'] }), summaryOf('ep_0001', [1], { session: 2 })],
    [{ episode: 'ep_0002', turns: ['turn_0001'] }],
    [],
  ],
])('with %s', (_what, episodes, summarized, earlier) => {
  const index = { session: 2, chunks: [{ kind: 'WORKING_FLOW', tokens: 1, slots: [[2, 2]] }] } as const;
  const found = knownTurns(index, [entry(1, 1, 1), entry(2, 2, 2)], episodes);
  expect(found).toMatchObject({ whole: ['turn_0002'], summarized, earlierSessions: earlier });
});

test('a notice of Perdura’s own is no part of what was said', () => {
  const index = { session: 1, chunks: [{ kind: 'WORKING_FLOW', tokens: 1, slots: [[1, 1]] }] } as const;
  expect(knownTurns(index, [entry(1, 1, 1), entry(2, 1, 1, NOTICE), entry(3, 2, 1, NOTICE)], [])).toMatchObject({
    whole: ['turn_0001'],
    inPart: [],
  });
});

const cited = new Set([1]);
const item = { id: 'mem_a', citation: 'long' };
const kept = { ref: 'r', sha256: 's', preview: 'p' };

test.each<[what: string, entries: Entry[], shortened: object[]]>([
  [
    'a long message that is cited',
    [entry(1, 1, 1, user('x'.repeat(LONG + 1)))],
    [{ turn: 'turn_0001', kind: 'message', item: 'mem_msg_1' }],
  ],
  ['one that both of its ends cover', [entry(1, 1, 1, user('x'.repeat(LONG)))], []],
  ['a long message that is not cited', [entry(2, 1, 1, user('x'.repeat(LONG + 1)))], []],
  ['one whose text lies in the store', [entry(1, 1, 1, { role: 'user', text: { ...kept, bytes: LONG + 1 } })], [{ kind: 'message' }]],
  [
    'a result that the model has seen',
    [entry(2, 1, 1, calls(['c1'])), entry(3, 1, 1, { ...result('c1'), item }), entry(4, 1, 1, answer('so'))],
    [{ kind: 'result', item: 'mem_a' }],
  ],
  ['a result that it has yet to see', [entry(2, 1, 1, calls(['c1'])), entry(3, 1, 1, { ...result('c1'), item })], []],
  ['a short result', [entry(2, 1, 1, calls(['c1'])), entry(3, 1, 1, result('c1')), entry(4, 1, 1, answer('so'))], []],
])('shown by its ends or by a line: %s', (_what, entries, shortened) => {
  expect(shortenedIn(entries, cited)).toMatchObject(shortened);
  expect(shortenedIn(entries, cited)).toHaveLength(shortened.length);
});
