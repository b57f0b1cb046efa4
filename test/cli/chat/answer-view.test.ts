import { createAnswerView, type AnswerView } from '../../../src/cli/chat/answer-view.js';
import type { FeedEvent, TurnResult } from '../../../src/conversation/protocol/contract.js';

/** A view and the screen it draws on: notes in parentheses, on lines of their own. */
function screen(from?: string): { view: AnswerView; shown: () => string } {
  let shown = '';
  const line = (text: string): void => {
    if (shown !== '' && !shown.endsWith('\n')) shown += '\n';
    shown += `${text}\n`;
  };
  const view = createAnswerView(
    {
      text: (text) => void (shown += text),
      endText: () => void (shown += shown === '' || shown.endsWith('\n') ? '' : '\n'),
      note: (text) => line(`[${text.trim()}]`),
      problem: (text) => line(`!${text}`),
    },
    { width: 80, from, isOurs: (id) => id === 'ours' },
  );
  return { view, shown: () => shown };
}

const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 1, costUsd: null };

function result(text: string, more: Partial<TurnResult> = {}): TurnResult {
  return { turnId: 'turn_0001', text, stopReason: 'end', usage, toolCalls: 0, ...more };
}

function text(piece: string, more: Partial<Extract<FeedEvent, { kind: 'text' }>> = {}): FeedEvent {
  return { kind: 'text', turn: 'turn_0001', call: 'c1', attempt: 'a1', text: piece, ...more };
}

test('a streamed answer is not printed a second time', () => {
  const { view, shown } = screen();
  for (const piece of ['Hel', 'lo.']) view.event(text(piece));
  view.finish(result('Hello.'));
  expect(shown()).toBe('Hello.\n');
});

test('an answer that was not streamed is printed whole', () => {
  const { view, shown } = screen();
  view.finish(result('Hello.'));
  expect(shown()).toBe('Hello.\n');
});

test('what the stream missed at its end is added', () => {
  const { view, shown } = screen();
  view.event(text('Hel'));
  view.finish(result('Hello.'));
  expect(shown()).toBe('Hello.\n');
});

test('a new attempt starts afresh and says so', () => {
  const { view, shown } = screen();
  view.event(text('Hello wor'));
  view.event({ kind: 'reset', turn: 'turn_0001', call: 'c1', attempt: 'a2' });
  view.event(text('Hi.', { attempt: 'a2' }));
  view.finish(result('Hi.'));
  expect(shown()).toBe('Hello wor\n[(starting again)]\nHi.\n');
});

test('a new attempt is seen also when its reset was lost', () => {
  const { view, shown } = screen();
  view.event(text('Hello wor'));
  view.event(text('Hi.', { attempt: 'a2' }));
  view.finish(result('Hi.'));
  expect(shown()).toBe('Hello wor\n[(starting again)]\nHi.\n');
});

test('an answer with thinking between its texts is printed once', () => {
  const { view, shown } = screen();
  view.event(text('One. '));
  view.event({ kind: 'thinking', turn: 'turn_0001', call: 'c1', attempt: 'a1', text: 'Hm.' });
  view.event(text('Two.'));
  view.finish(result('One. \n\nTwo.'));
  expect(shown()).toBe('One. Two.\n');
});

test('tools stand between the texts of two calls, each on its line', () => {
  const { view, shown } = screen();
  view.event(text('Let me see.'));
  view.event({ kind: 'tool-started', turn: 'turn_0001', callId: 'x', name: 'get_time', input: '{}' });
  view.event({ kind: 'tool-finished', turn: 'turn_0001', callId: 'x', name: 'get_time', outcome: 'ok', preview: '12:00\nsharp' });
  view.event(text('Noon.', { call: 'c2' }));
  view.finish(result('Noon.'));
  expect(shown()).toBe('Let me see.\n[→ get_time {}]\n[← get_time 12:00 sharp]\nNoon.\n');
});

test('after a hole in the feed the whole answer is printed once', () => {
  const { view, shown } = screen();
  view.event(text('Hel'));
  view.event({ kind: 'resync' });
  view.event(text(' the end.'));
  view.finish(result('Hello, this is the end.'));
  expect(shown()).toBe('Hel\n[(a part was missed; the whole answer follows)]\nHello, this is the end.\n');
});

test('a long answer of which the result holds only the beginning is not repeated when it was streamed', () => {
  const { view, shown } = screen();
  view.event(text('Hello, this is long.'));
  view.finish(result('Hello', { textRef: { ref: 'r', sha256: 's', bytes: 20, preview: 'Hello' } }));
  expect(shown()).toBe('Hello, this is long.\n');
});

test('after Ctrl+C no more is drawn, and the end is said', () => {
  const { view, shown } = screen();
  view.event(text('Chapter 1.'));
  view.hold();
  view.event(text(' Chapter 2.'));
  view.finish(result('', { stopReason: 'interrupted' }));
  expect(shown()).toBe('Chapter 1.\n[(stopped)]\n');
});

test('what comes too late for Ctrl+C is drawn whole after all', () => {
  const { view, shown } = screen();
  view.event(text('Chapter 1.'));
  view.hold();
  view.event(text(' Chapter 2.'));
  view.finish(result('Chapter 1. Chapter 2.'));
  expect(shown()).toBe('Chapter 1. Chapter 2.\n');
});

test('events of the next turn wait until this one has ended', () => {
  const { view, shown } = screen();
  view.event(text('One.'));
  view.event(text('Two.', { turn: 'turn_0002', call: 'c2' }));
  view.finish(result('One.'));
  view.finish(result('Two.', { turnId: 'turn_0002' }));
  expect(shown()).toBe('One.\nTwo.\n');
});

test('a turn ends once, whether the feed or its sender reports it first', () => {
  const { view, shown } = screen();
  view.event(text('One.'));
  view.event({ kind: 'turn-finished', turn: 'turn_0001', result: result('One.') });
  view.finish(result('One.'));
  view.event(text('late'));
  expect(shown()).toBe('One.\n');
});

test('a message of another client is shown where its turn begins; ours stands there already', () => {
  const { view, shown } = screen();
  view.event({ kind: 'message', turn: 'turn_0001', messageId: 'ours', preview: 'mine', ts: 0 });
  view.event(text('One.'));
  view.event({ kind: 'message', turn: 'turn_0002', messageId: 'other', preview: 'theirs', ts: 0 });
  view.finish(result('One.'));
  view.event(text('Two.', { turn: 'turn_0002', call: 'c2' }));
  expect(shown()).toBe('One.\n[› theirs]\nTwo.');
});

test('a withdrawn turn does not hold up the one after it', () => {
  const { view, shown } = screen();
  view.event({ kind: 'message', turn: 'turn_0001', messageId: 'other', preview: 'withdrawn later', ts: 0 });
  view.event(text('Two.', { turn: 'turn_0002' }));
  expect(shown()).toBe('[› withdrawn later]\nTwo.');
});

test('events of turns before we came are not drawn', () => {
  const { view, shown } = screen('turn_10000');
  view.event(text('old', { turn: 'turn_9999' }));
  view.event(text('new', { turn: 'turn_10000' }));
  expect(shown()).toBe('new');
});

test('a failed turn says why', () => {
  const { view, shown } = screen();
  view.finish(result('', { stopReason: 'failed', error: { type: 'auth', message: 'the key was refused' } }));
  expect(shown()).toBe('!the key was refused\n');
});
