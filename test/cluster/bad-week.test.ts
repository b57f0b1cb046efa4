/** What compares a bad week finds each thing that could have gone wrong. */
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import type { ConversationMessage, Entry } from '../../src/records/message.js';
import { answerTo } from '../support/echo-model.js';
import type { LedgerLine } from '../support/scene.js';
import { compare } from './bad-week/compare.js';
import type { Person } from './bad-week/people.js';

const ID = 'ada';
const text = 'm1: pay m1';

function entry(slot: number, seq: number, message: ConversationMessage, more: Partial<Entry> = {}): Entry {
  return { v: 1, slot, session: 1, turn: 'turn_0001', seq, ts: 1738100000.5, message, ...more };
}

const spoken = (of: string): ConversationMessage => ({
  ...{ role: 'assistant', model: 'scripted/one', stop: 'end' },
  blocks: [{ kind: 'text', text: of }],
});
const HISTORY = [
  entry(1, 1, { role: 'user', text }, { messageId: 'm1' }),
  entry(2, 2, {
    ...{ role: 'assistant', model: 'scripted/one', stop: 'tool-calls' },
    blocks: [{ kind: 'tool-call', callId: 'c1', name: 'pay', input: { item: 'm1' } }],
  }),
  entry(3, 3, { role: 'tool', callId: 'c1', name: 'pay', outcome: 'ok', text: 'done: m1' }),
  entry(4, 4, spoken(answerTo(text))),
] as const;
const line = (what: LedgerLine['what']): LedgerLine => ({ what, name: 'pay', item: 'm1', callId: 'c1', pid: 1 });
const LEDGER = [line('start'), line('end')];
const result = { text: answerTo(text), stopReason: 'end' } as TurnResult;
const PERSON: Person = { id: ID, kind: 'talks', told: [{ messageId: 'm1', text, result, expectedText: answerTo(text), begin: 0, end: 1 }] };

async function wrongRows(history: readonly Entry[], ledger: readonly LedgerLine[] = LEDGER, person = PERSON): Promise<string[]> {
  const rows = await compare({ history: () => Promise.resolve([...history]) }, [person], ledger);
  return rows.flatMap(({ what, wrong }) => (wrong.length > 0 ? [what.replace(/[ :].*/, '')] : []));
}

const [first, called, paid, answered] = HISTORY;
const replaced = (before: Entry, after: Entry): Entry[] => HISTORY.map((one) => (one === before ? after : one));
const toldOther = { ...PERSON, told: PERSON.told.map((one) => ({ ...one, result: { ...result, text: 'Hm.' } })) };

test.each([
  ['nothing', HISTORY, LEDGER, PERSON, []],
  ['a lost message', [], LEDGER, PERSON, ['messages', 'answers']],
  ['a doubled one', [...HISTORY, { ...first, slot: 5 }], LEDGER, PERSON, ['messages', 'answers']],
  ['other words', replaced(first, { ...first, message: { role: 'user', text: 'm1: pay m2' } }), LEDGER, PERSON, ['messages']],
  ['one of no one', [...HISTORY, { ...first, slot: 5, messageId: 'm2' }], LEDGER, PERSON, ['messages', 'answers']],
  ['another answer in the store', replaced(answered, { ...answered, message: spoken('Hm.') }), LEDGER, PERSON, ['answers']],
  ['another answer for its person', HISTORY, LEDGER, toldOther, ['answers']],
  ['a call without its result', [first, called, { ...answered, slot: 3, seq: 3 }], LEDGER, PERSON, ['answers']],
  ['a payment that was told and not made', HISTORY, [], PERSON, ['tool']],
  ['a payment that was made twice', HISTORY, [...LEDGER, ...LEDGER], PERSON, ['payments']],
  [
    'one made of which the model read that it never ran',
    replaced(paid, { ...paid, message: { ...paid.message, outcome: 'cancelled' } as ConversationMessage }),
    LEDGER,
    PERSON,
    ['tool'],
  ],
] as const)('%s is found', async (_what, history, ledger, person, rows) => {
  expect(await wrongRows(history as readonly Entry[], ledger, person)).toEqual(rows);
});
