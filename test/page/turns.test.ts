/** How the page makes turns of what is recorded and of live events (turns.ts). */
import type { TurnEvent } from '../../src/records/feed-event.js';
import { emptyTurn, toTurns, withEvent, type Entry, type Turn } from '../../web/src/conversation/turns.js';

const turn = 'turn_0001';
const call = 'turn_0001/m1';
const callId = 'turn_0001/c1';
const name = 'run_command';
const usage = { inputTokens: 3, cachedTokens: 0, outputTokens: 5, costUsd: null };

type Live = TurnEvent extends infer E ? (E extends TurnEvent ? Omit<E, 'turn'> : never) : never;

function live(...events: readonly Live[]): Turn {
  return events.reduce<Turn>((so, event) => withEvent(so, { ...event, turn } as TurnEvent), emptyTurn(turn, 1_000));
}

const said = (text: string, attempt = '1', of = call): Live => ({ kind: 'text', call: of, attempt, text });
const texts = ({ parts }: Turn): string[] => parts.flatMap((part) => (part.kind === 'call' ? [] : [`${part.kind}: ${part.text}`]));
const calls = ({ parts }: Turn) => parts.filter((part) => part.kind === 'call');

describe('live events', () => {
  test('a message stands there once, however often its event comes', () => {
    const message = { kind: 'message', messageId: 'm1', preview: 'hello', ts: 1 } as const;
    expect(live(message, message).messages.map(({ id, text }) => [id, text])).toEqual([['m1', 'hello']]);
  });

  test('words are put together by call; another call, and thinking, are parts of their own', () => {
    const thought = { kind: 'thinking', call, attempt: '1', text: 'Hm.' } as const;
    const turn = live(thought, said('One '), said('two.'), said('Three.', '1', 'turn_0001/m2'));
    expect(texts(turn)).toEqual(['thinking: Hm.', 'text: One two.', 'text: Three.']);
  });

  test('what an attempt said that failed is taken back, and the next attempt stands in its place', () => {
    const half = [{ kind: 'thinking', call, attempt: '1', text: 'Hm.' } as const, said('One t')];
    const reset = { kind: 'reset', call, attempt: '1' } as const;
    expect(texts(live(...half, reset))).toEqual([]);
    expect(texts(live(...half, reset, said('One ', '2'), said('two.', '2')))).toEqual(['text: One two.']);
    expect(texts(live(...half, said('One ', '2'), said('two.', '2')))).toEqual(['text: One two.']);
  });

  test('a reset takes back the words of its own call alone, and no tool call', () => {
    const started = { kind: 'tool-started', callId, name, input: '{}' } as const;
    const second = 'turn_0001/m2';
    const turn = live(said('First.'), started, said('Sec', '1', second), { kind: 'reset', call: second, attempt: '1' });
    expect(texts(turn)).toEqual(['text: First.']);
    expect(calls(turn)).toHaveLength(1);
  });

  test('where another model takes over, the words of the first are gone and it says so', () => {
    const turn = live(
      said('One t'),
      { kind: 'fallback', call, for: 'overloaded', model: 'b', insteadOf: 'a', reason: 'overloaded' },
      said('Two.', '2'),
    );
    expect(texts(turn)).toEqual(['notice: a could not answer (overloaded); b answers instead.', 'text: Two.']);
  });

  test('a call waits for a person, is decided, runs and ends, and is one part all the time', () => {
    const events: readonly Live[] = [
      { kind: 'asked', callId, name, what: 'approval', target: 'echo', until: 9 },
      { kind: 'decided', callId, name, decision: 'approve' },
      { kind: 'tool-started', callId, name, input: '{"command":"echo"}' },
      { kind: 'tool-started', callId, name, input: '{"command":"echo"}' },
      { kind: 'tool-finished', callId, name, outcome: 'ok', ms: 12, preview: 'done' },
    ];
    const states = events.map((_, at) => calls(live(...events.slice(0, at + 1))).map(({ state }) => state));
    expect(states).toEqual([['waiting'], ['running'], ['running'], ['running'], ['ok']]);
    expect(calls(live(...events))).toMatchObject([
      { attempts: 2, decision: 'approve', input: '{"command":"echo"}', output: 'done', ms: 12 },
    ]);
  });

  test('an end whose beginning was lost is shown; a decision about what nobody knows is not', () => {
    const ended = live({ kind: 'tool-finished', callId, name, outcome: 'error', preview: 'no' });
    expect(calls(ended)).toMatchObject([{ state: 'error', attempts: 1, output: 'no' }]);
    expect(calls(live({ kind: 'decided', callId, name, decision: 'deny' }))).toEqual([]);
  });

  test('what it waits for is said until it goes on, and its end is kept', () => {
    const waits = live({ kind: 'waiting', for: 'the provider', until: 99 });
    expect(waits).toMatchObject({ isRunning: true, waits: { for: 'the provider', until: 99 } });
    expect(withEvent(waits, { ...said('on'), turn } as TurnEvent).waits).toBeUndefined();
    expect(live({ kind: 'paused', why: 'budget' }).waits).toEqual({ for: 'budget', until: 0 });
    const result = { turnId: turn, text: 'on', stopReason: 'end', usage, toolCalls: 0 } as const;
    expect(withEvent(waits, { kind: 'turn-finished', turn, result })).toMatchObject({ isRunning: false, waits: undefined, result });
  });

  test('a compaction is a notice', () => {
    const turn = live({ kind: 'compacted', epoch: 2, tokensBefore: 900, tokensAfter: 90 });
    expect(texts(turn)).toEqual(['notice: Older turns became memory: 900 tokens are now 90.']);
  });
});

test('recorded entries become turns: what was said, calls with their results, notices, and no live state', () => {
  const base = { v: 1 as const, session: 1, seq: 1, ts: 7 };
  const entries: Entry[] = [
    { ...base, slot: 1, turn, messageId: 'm1', message: { role: 'user', text: 'hello', images: [{ mediaType: 'image/png', ref: 'b:1' }] } },
    {
      ...{ ...base, slot: 2, turn },
      message: {
        ...{ role: 'assistant', model: 'a/b', stop: 'tool-calls' },
        blocks: [
          { kind: 'thinking', text: 'Hm.', provider: 'a' },
          { kind: 'text', text: { ref: 'b:2', sha256: '2', preview: 'A long', bytes: 9_000 } },
          { kind: 'tool-call', callId, name, input: { command: 'echo' } },
          { kind: 'tool-call', callId: 'turn_0001/c2', name, input: {} },
        ],
      },
    },
    { ...base, slot: 3, turn, message: { role: 'tool', callId, name, outcome: 'rejected', text: 'not that one' } },
    { ...base, slot: 4, turn: 'turn_0002', message: { role: 'user', text: 'An app says so.', from: 'app' } },
  ];
  const [first, second] = toTurns(entries);
  expect(first).toMatchObject({ id: turn, at: 7_000, isRunning: false, model: 'a/b', messages: [{ id: 'm1', text: 'hello', others: 0 }] });
  expect(texts(first!)).toEqual(['thinking: Hm.', 'text: A long…']);
  expect(calls(first!).map(({ state, output }) => [state, output])).toEqual([
    ['rejected', 'not that one'],
    ['running', undefined],
  ]);
  expect(second).toMatchObject({ id: 'turn_0002', messages: [], parts: [{ kind: 'notice', text: 'An app says so.' }] });
});
