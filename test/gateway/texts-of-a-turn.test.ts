/** A turn's pieces as one text that only grows, and as the events of a response. */
import { createTextDeltas, type AnswerSnapshot, type FinalAnswer } from '../../src/gateway/core/answer.js';
import { completion, createResponseEvents } from '../../src/gateway/openai/frames.js';
import { readSettings } from '../../src/gateway/openai/settings.js';
import { readResponseId, responseId } from '../../src/gateway/openai/responses.js';
import type { StopReason } from '../../src/conversation/protocol/contract.js';
import { NO_USAGE } from '../../src/records/message.js';

const live = (...texts: readonly string[]): AnswerSnapshot => ({ kind: 'partial', texts, isOpen: true });
const whole = (texts: readonly string[], stopReason: StopReason = 'end'): FinalAnswer => ({
  kind: 'final',
  texts,
  calls: [],
  result: { turnId: 'turn_0001', text: texts.at(-1) ?? '', stopReason, usage: NO_USAGE, toolCalls: 0 },
});

function sent(pieces: readonly AnswerSnapshot[], end: FinalAnswer): string {
  return [...pieces, end].map(createTextDeltas()).join('');
}

describe('one text', () => {
  test.each<[string, AnswerSnapshot[], FinalAnswer, string]>([
    ['of one call', [live('He'), live('Hello')], whole(['Hello']), 'Hello'],
    ['of several calls', [live('One'), live('One', 'Two')], whole(['One', 'Two']), 'One\n\nTwo'],
    ['whose attempt failed and said the same again', [live('Hell'), live(), live('He'), live('Hello')], whole(['Hello']), 'Hello'],
    ['whose second call failed', [live('A'), live('A', 'B'), live('A'), live('A', 'B'), live('A', 'BC')], whole(['A', 'BC']), 'A\n\nBC'],
    ['of which live events were lost', [live('On'), live()], whole(['One', 'Two']), 'One\n\nTwo'],
    ['without any live event', [], whole(['One', 'Two']), 'One\n\nTwo'],
    ['that was stopped', [live('Hello the')], whole([], 'interrupted'), 'Hello the'],
  ])('%s', (_what, pieces, end, expected) => {
    expect(sent(pieces, end)).toBe(expected);
  });

  test.each<[string, AnswerSnapshot[], FinalAnswer]>([
    ['an attempt with other words', [live('Hello'), live(), live('Hi')], whole(['Hi'])],
    ['a recorded answer that is shorter', [live('Hello')], whole(['Hell'])],
    ['a recorded answer with other words', [live('Hello')], whole(['Hi'])],
  ])('%s ends with an error', (_what, pieces, end) => {
    expect(() => sent(pieces, end)).toThrow(/began its answer anew/);
  });
});

test('what was thought is counted, in both of OpenAI’s protocols', () => {
  const ended = whole(['x']);
  const usage = { ...NO_USAGE, outputTokens: 9, reasoningTokens: 4 };
  const answer: FinalAnswer = { ...ended, result: { ...ended.result, usage } };
  const of = { id: 'chatcmpl-c', created: 1, model: 'm', conversation: 'c' };
  expect(completion(of, answer)).toMatchObject({ usage: { completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 4 } } });
  expect(
    createResponseEvents({ ...of, created_at: 1, settings: readSettings({}) })
      .take(answer)
      .at(-1),
  ).toMatchObject({
    response: { usage: { output_tokens: 9, output_tokens_details: { reasoning_tokens: 4 } } },
  });
});

describe('a response', () => {
  const head = { id: responseId('c', 'turn_0001'), created_at: 1, model: 'm', conversation: 'c', settings: readSettings({}) };
  const events = (...pieces: AnswerSnapshot[]) => {
    const made = createResponseEvents(head);
    return [...made.begin(), ...pieces.flatMap((piece) => made.take(piece))];
  };
  const short = (all: ReturnType<typeof events>): string[] => all.map(({ type }) => type.replace('response.', ''));
  const item = ['output_item.added', 'content_part.added'];
  const done = ['output_text.done', 'content_part.done', 'output_item.done'];

  test('has an item for each text, numbers without a gap, and the whole at its end', () => {
    const all = events(live('One'), live('One', 'Tw'), live('One', 'Two'), whole(['One', 'Two']));
    expect(short(all)).toEqual([
      ...['created', 'in_progress', ...item, 'output_text.delta', ...done],
      ...[...item, 'output_text.delta', 'output_text.delta', ...done, 'completed'],
    ]);
    expect(all.map(({ sequence_number: n }) => n)).toEqual(all.map((_, at) => at));
    const outputs = all.flatMap((event) => ('output_index' in event ? [event.output_index] : []));
    expect(new Set(outputs)).toEqual(new Set([0, 1]));
  });

  test('takes back what a failed attempt said', () => {
    const all = events(live('Hel'), live(), live('Hi'), whole(['Hi']));
    expect(short(all).slice(2)).toEqual([
      ...item,
      'output_text.delta',
      'output_item.done',
      ...item,
      'output_text.delta',
      ...done,
      'completed',
    ]);
    expect(all[5]).toMatchObject({ output_index: 0, item: { status: 'incomplete', content: [] } });
    const ids = all.flatMap((event) => ('item' in event ? [(event.item as { id: string }).id] : []));
    expect(ids[1]).toBe(ids[0]);
    expect(ids[2]).not.toBe(ids[0]);
    expect(all.at(-1)).toMatchObject({ response: { output: [{ id: ids[2], content: [{ text: 'Hi' }] }] } });
  });

  test('takes back what is open where live events were lost, and ends with the whole', () => {
    const all = events(live('On'), live(), whole(['One', 'Two']));
    expect(short(all).slice(2, 6)).toEqual([...item, 'output_text.delta', 'output_item.done']);
    expect(short(all).filter((type) => type === 'output_text.delta')).toHaveLength(3);
    expect(all.at(-1)).toMatchObject({ type: 'response.completed', response: { output: [{}, {}] } });
  });

  test.each<[StopReason, string, string]>([
    ['end', 'response.completed', 'completed'],
    ['failed', 'response.failed', 'failed'],
    ['budget', 'response.incomplete', 'incomplete'],
    ['interrupted', 'response.incomplete', 'cancelled'],
  ])('that ended with %s has the event %s', (stopReason, type, status) => {
    expect(events(whole(['x'], stopReason)).at(-1)).toMatchObject({ type, response: { status } });
  });

  test('has an id from which any gateway reads the conversation and the turn', () => {
    expect(readResponseId(responseId('trip_to-oslo', 'turn_0012'), 'x')).toEqual({ conversation: 'trip_to-oslo', turn: 'turn_0012' });
    for (const id of ['', 'resp_', 'resp_x', `resp_${'A'.repeat(5_000)}`, `resp_${Buffer.from('../x:turn_0001').toString('base64url')}`]) {
      expect(() => readResponseId(id, 'x')).toThrow('there is no response of that id');
    }
  });
});
