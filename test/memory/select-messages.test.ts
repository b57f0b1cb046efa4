import fc from 'fast-check';
import { isFromPerson, type ConversationMessage } from '../../src/records/message.js';
import { MessageTooLarge, selectMessages } from '../../src/memory/select-messages.js';
import { estimateMessageTokens } from '../../src/memory/tokens.js';
import { answer, calls, result, user } from './builders.js';

const one = () => 1;

test('what fits is selected whole, and nothing is reported', () => {
  const messages = [user('a'), answer('b'), user('c')];
  expect(selectMessages(messages, 3, one)).toEqual({ selected: messages, overflow: null });
  expect(selectMessages([], 0, one)).toEqual({ selected: [], overflow: null });
});

test('of more than fits the newest stays, from a user message on, and what was left out is counted', () => {
  const messages = [user('a'), answer('b'), user('c'), answer('d'), user('e')];
  expect(selectMessages(messages, 4, one)).toEqual({
    selected: messages.slice(2),
    overflow: { droppedCount: 2, estimatedDroppedTokens: 2 },
  });
});

test('an orphan at the beginning is left out even where it would fit', () => {
  const messages = [result('c0'), answer('b'), user('c')];
  expect(selectMessages(messages, 100, one)).toEqual({
    selected: [messages[2]],
    overflow: { droppedCount: 2, estimatedDroppedTokens: 2 },
  });
});

test('a late result comes with its call or not at all', () => {
  const late = [user('a'), calls(['c1']), user('b'), result('c1'), answer('c'), user('d')];
  expect(selectMessages(late, 6, one).selected).toEqual(late);
  expect(selectMessages(late, 5, one).selected).toEqual([late[2], late[4], late[5]]);
});

test('a result without its call is left out wherever it stands', () => {
  const messages = [user('a'), result('c1'), calls(['c1']), result('c1')];
  expect(selectMessages(messages, 100, one)).toEqual({
    selected: [messages[0], messages[2], messages[3]],
    overflow: { droppedCount: 1, estimatedDroppedTokens: 1 },
  });
});

test('an id that a provider repeats belongs to the call before it', () => {
  const messages = [user('a'), calls(['c1']), result('c1'), user('b'), calls(['c1']), result('c1')];
  expect(selectMessages(messages, 3, one).selected).toEqual(messages.slice(3));
});

test('of one turn that is too long, its user message stays and its oldest rounds go', () => {
  const messages = [
    user('go'),
    calls(['c1'], ['c2']),
    result('c1'),
    result('c2'),
    calls(['c3']),
    result('c3'),
    calls(['c4']),
    result('c4'),
  ];
  expect(selectMessages(messages, 5, one).selected).toEqual([messages[0], ...messages.slice(4)]);
  expect(selectMessages(messages, 4, one).selected).toEqual([messages[0], ...messages.slice(6)]);
});

test('what Perdura or an application says after the question is not taken for it', () => {
  const question = user('what is due?');
  const messages = [user('a'), answer('b'), question, { ...user('[The context fills.]'), from: 'notice' as const }];
  expect(selectMessages(messages, 2, one).selected).toEqual(messages.slice(2));
  expect(selectMessages(messages, 1, one).selected).toEqual([question]);
  expect(() => selectMessages([user('a'), user('x'.repeat(4000)), messages[3]!], 500, estimateMessageTokens)).toThrow(MessageTooLarge);
});

test('a last message that does not fit is an error with sizes and what to do', () => {
  const messages = [user('a'), user('x'.repeat(4000))];
  expect(() => selectMessages(messages, 999, estimateMessageTokens)).toThrow(
    expect.objectContaining({ name: 'MessageTooLarge', neededTokens: 1000, budgetTokens: 999 }),
  );
  expect(() => selectMessages(messages, 999, estimateMessageTokens)).toThrow(
    /takes about 1000 tokens and 999 are left for messages; shorten it/,
  );
  expect(() => selectMessages([user('a'), calls(['c1']), result('c1')], 2, one)).toThrow(
    expect.objectContaining({ neededTokens: 3, budgetTokens: 2 }),
  );
});

test('without a user message there is nothing that could be sent', () => {
  expect(selectMessages([answer('a'), result('c')], 100, one)).toEqual({
    selected: [],
    overflow: { droppedCount: 2, estimatedDroppedTokens: 2 },
  });
});

describe('of any messages', () => {
  /** Mostly sound conversations, with late, missing and doubled results among them. */
  const message: fc.Arbitrary<ConversationMessage> = fc.oneof(
    fc.string({ maxLength: 80 }).map(user),
    fc.tuple(fc.string({ maxLength: 80 }), fc.constantFrom('notice', 'app')).map(([text, from]) => ({ ...user(text), from })),
    fc.string({ maxLength: 80 }).map(answer),
    fc
      .uniqueArray(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 3 })
      .map((ids) => calls(...ids.map((id) => [`c${id}`] as const))),
    fc.tuple(fc.integer({ min: 1, max: 6 }), fc.string({ maxLength: 80 })).map(([id, text]) => result(`c${id}`, text)),
  );
  const sample = fc.record({ messages: fc.array(message, { maxLength: 40 }), budget: fc.integer({ min: 0, max: 400 }) });
  const total = (messages: readonly ConversationMessage[]) => messages.reduce((sum, each) => sum + estimateMessageTokens(each), 0);

  /** For each result, by place, the place of its call: the nearest before it. */
  const pairsOf = (messages: readonly ConversationMessage[]) =>
    messages.flatMap((each, at) => {
      if (each.role !== 'tool') return [];
      const caller = messages.findLastIndex(
        (other, place) =>
          place < at &&
          other.role === 'assistant' &&
          other.blocks.some((block) => block.kind === 'tool-call' && block.callId === each.callId),
      );
      return caller === -1 ? [] : [[messages[caller], each] as const];
    });

  test('what is selected fits, begins with a user, keeps the order and the newest, parts no call from its result, and adds up', () => {
    fc.assert(
      fc.property(sample, ({ messages, budget }) => {
        let selection;
        try {
          selection = selectMessages(messages, budget, estimateMessageTokens);
        } catch (error) {
          expect(error).toBeInstanceOf(MessageTooLarge);
          expect((error as MessageTooLarge).neededTokens).toBeGreaterThan(budget);
          return;
        }
        const { selected, overflow } = selection;
        const kept = new Set(selected);
        expect(total(selected)).toBeLessThanOrEqual(budget);
        expect(selected).toEqual(messages.filter((each) => kept.has(each)));
        if (messages.some(({ role }) => role === 'user')) {
          expect(selected[0]?.role).toBe('user');
          const asked = messages.findLastIndex(isFromPerson);
          const question = asked === -1 ? messages.findLastIndex(({ role }) => role === 'user') : asked;
          expect(kept.has(messages[question] as ConversationMessage)).toBe(true);
          const answered = messages.findLastIndex(({ role }) => role === 'assistant');
          if (answered > question) expect(kept.has(messages[answered] as ConversationMessage)).toBe(true);
        }
        const pairs = pairsOf(messages);
        for (const [call, answered] of pairs) expect(call !== undefined && kept.has(call)).toBe(kept.has(answered));
        const answers = new Set(pairs.map(([, answered]) => answered));
        for (const each of selected) if (each.role === 'tool') expect(answers).toContain(each);
        expect(overflow).toEqual(
          kept.size === messages.length
            ? null
            : { droppedCount: messages.length - kept.size, estimatedDroppedTokens: total(messages) - total(selected) },
        );
      }),
      { numRuns: 1_000 },
    );
  });

  test('more room never selects less', () => {
    fc.assert(
      fc.property(sample, fc.integer({ min: 0, max: 100 }), ({ messages, budget }, more) => {
        const lengthWith = (room: number) => {
          try {
            return selectMessages(messages, room, estimateMessageTokens).selected.length;
          } catch {
            return -1;
          }
        };
        expect(lengthWith(budget + more)).toBeGreaterThanOrEqual(lengthWith(budget));
      }),
    );
  });
});

test('the tokens of a message are counted a few times, however many there are', () => {
  const messages = Array.from({ length: 10_000 }, (_, i) => (i % 2 === 0 ? user(`q${i}`) : answer(`a${i}`)));
  let counts = 0;
  const counting: typeof estimateMessageTokens = (message) => {
    counts += 1;
    return estimateMessageTokens(message);
  };
  expect(selectMessages(messages, 100, counting).selected.length).toBeLessThan(110);
  expect(counts).toBeLessThan(5 * messages.length);
});
