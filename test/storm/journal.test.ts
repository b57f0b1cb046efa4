/** What a storm's journal makes of what was said and heard: a good log holds, and what a broken product would leave in it does not. */
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import { createJournal, type Journal } from './journal.js';

const USAGE = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: null };
const result = (turnId: string, text: string, stopReason: TurnResult['stopReason'] = 'end'): TurnResult => ({
  ...{ turnId, text, stopReason, usage: USAGE, toolCalls: 0 },
});

/** A journal whose clock goes on by one with each look. */
function ticking(): Journal {
  let at = 0;
  return createJournal(() => (at += 1));
}

const taken = (): Promise<string> => Promise.resolve('taken');
const cut = (): Promise<never> => Promise.reject(new Error('UNAVAILABLE'));

test('messages that are sent, seen in their order and answered, hold; so does one whose sender heard nothing', async () => {
  const journal = ticking();
  await journal.accept('c', 'c-m1', 'queue', taken);
  await expect(journal.accept('c', 'c-m2', 'queue', cut)).rejects.toThrow('UNAVAILABLE');
  journal.sighted(['c-m1']);
  journal.sighted(['c-m1', 'c-m2']);
  journal.answered('c', 'c-m1', 1, result('turn_0001', 'For [[c-m1]]: done.'));
  await expect(journal.accept('c', 'c-m3', 'queue', cut)).rejects.toThrow('UNAVAILABLE');
  journal.rested('c', journal.now());
  expect(journal.check('c')).toEqual([]);
  expect(journal.counts).toMatchObject({ accepted: 1, answered: 1, checked: 1 });
});

test('a message that ended before the model saw it was taken all the same, when its answer says so', async () => {
  const journal = ticking();
  const calledAt = journal.now();
  await journal.accept('c', 'c-m1', 'queue', taken);
  journal.answered('c', 'c-m1', calledAt, result('turn_0001', '', 'interrupted'));
  journal.rested('c', journal.now());
  expect(journal.check('c')).toEqual([]);
});

test('a message that was interrupted before the model saw it is shown to it later, when a rewind leads back there', async () => {
  const journal = ticking();
  await journal.accept('c', 'c-m1', 'queue', taken);
  journal.answered('c', 'c-m1', 1, result('turn_0001', '', 'interrupted'));
  await journal.accept('c', 'c-m2', 'queue', taken);
  journal.sighted(['c-m2']);
  journal.answered('c', 'c-m2', 1, result('turn_0002', 'For [[c-m2]]: done.'));
  await journal.accept('c', 'c-m3', 'queue', taken);
  journal.sighted(['c-m1', 'c-m3']);
  journal.answered('c', 'c-m3', 1, result('turn_0003', 'For [[c-m1]] [[c-m3]]: done.'));
  journal.rested('c', journal.now());
  expect(journal.check('c')).toEqual([]);
});

test('what a fork is shown of its origin is not said in the fork', async () => {
  const journal = ticking();
  await journal.accept('c-f1', 'c-f1-m1', 'queue', taken);
  journal.sighted(['c-m1', 'c-m2', 'c-f1-m1']);
  expect([journal.seen('c'), journal.seen('c-f1')]).toEqual([[], ['c-f1-m1']]);
});

test.each<readonly [string, (journal: Journal) => void]>([
  ['the model never sees it', (journal) => journal.rested('c', journal.now())],
  [
    'the model sees the later one first',
    (journal) => {
      journal.sighted(['c-m2']);
      journal.sighted(['c-m2', 'c-m1']);
    },
  ],
  [
    'it has the answer to another',
    (journal) => {
      journal.sighted(['c-m1']);
      journal.answered('c', 'c-m1', 1, result('turn_0001', 'For [[c-m2]]: done.'));
    },
  ],
  [
    'it has another answer when it is said again',
    (journal) => {
      journal.sighted(['c-m1']);
      journal.answered('c', 'c-m1', 1, result('turn_0001', 'For [[c-m1]]: done.'));
      journal.answered('c', 'c-m1', 1, result('turn_0007', 'For [[c-m1]]: done.'));
    },
  ],
])('refused, of two messages that were taken: %s', async (_, happen) => {
  const journal = ticking();
  await journal.accept('c', 'c-m1', 'queue', taken);
  await journal.accept('c', 'c-m2', 'queue', taken);
  happen(journal);
  expect(journal.check('c')).toEqual([expect.stringMatching(/^c: its queue has no possible order/)]);
});
