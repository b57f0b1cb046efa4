/** AG-UI events of a turn, whole: what the encoder makes of live events, without a worker; the client's verifier looks at each. */
import { HttpAgent, type BaseEvent } from '@ag-ui/client';
import { createFrames, type Frame, type FramesOptions } from '../../../src/gateway/ag-ui/frames.js';
import type { ClientMessage } from '../../../src/gateway/ag-ui/request.js';
import type { TurnEvent } from '../../../src/records/feed-event.js';
import { createWaitingCalls } from '../../../src/gateway/core/interactive-turn.js';
import { asked, changesOf, ended, finished, started, streamed, turn } from '../../support/turn-events.js';

const HELLO: ClientMessage = { id: 'm1', role: 'user', content: 'hello' };
const run: FramesOptions = { threadId: 't', runId: 'r', conversation: 't', turn, messages: [HELLO], state: {}, continues: false };

/** The client takes them as they are: its verifier rejects the run otherwise, and what its schemas do not know it warns of. */
async function verified(frames: readonly Frame[]): Promise<string[]> {
  const warned = jest.spyOn(console, 'warn').mockImplementation();
  const body = frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('');
  const headers = { 'content-type': 'text/event-stream' };
  const agent = new HttpAgent({ url: 'http://localhost', fetch: () => Promise.resolve(new Response(body, { headers })) });
  const taken: BaseEvent[] = [];
  await agent.runAgent({ runId: 'r' }, { onEvent: ({ event }) => void taken.push(structuredClone(event)) });
  expect(taken).toEqual(frames);
  expect(warned.mock.calls).toEqual([]);
  warned.mockRestore();
  return frames.map(({ type, ...rest }) => `${type} ${JSON.stringify(rest)}`);
}

async function frames(options: Partial<FramesOptions>, ...events: TurnEvent[]): Promise<string[]> {
  const encoder = createFrames({ ...run, ...options });
  const waiting = createWaitingCalls();
  const made = [...encoder.start()];
  for (const event of await changesOf(events)) {
    waiting.take(event);
    made.push(...encoder.take(event));
  }
  return verified(waiting.all().length > 0 ? [...made, ...encoder.pause(waiting.all())] : made);
}

const state = (value: object): string =>
  `STATE_DELTA ${JSON.stringify({ delta: [{ op: 'add', path: '/perdura', value: { conversation: 't', turn, ...value } }] })}`;
const START = ['RUN_STARTED {"threadId":"t","runId":"r","protocolVersion":"1.0"}', state({ phase: 'running' })];
const counted = { usage: [{ inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 0 }] };
const finish = (stopReason = 'end', outcome = 'success'): string[] => [
  state({ phase: 'ended', stopReason, costUsd: null }),
  `RUN_FINISHED ${JSON.stringify({ threadId: 't', runId: 'r', result: { turn, stopReason }, outcome: { type: outcome }, ...counted })}`,
];
const text = (part: string, ...pieces: string[]): string[] => [
  `TEXT_MESSAGE_START {"messageId":"${turn}/${part}","role":"assistant"}`,
  ...pieces.map((delta) => `TEXT_MESSAGE_CONTENT ${JSON.stringify({ messageId: `${turn}/${part}`, delta })}`),
];
const endOf = (part: string): string => `TEXT_MESSAGE_END {"messageId":"${turn}/${part}"}`;
const voided = (part: string): string => `TEXT_MESSAGE_END {"messageId":"${turn}/${part}","metadata":{"perdura":{"void":true}}}`;
const snapshot = (...messages: object[]): string => `MESSAGES_SNAPSHOT ${JSON.stringify({ messages })}`;

test('thinking, then an answer that grows', async () => {
  const events = [streamed('thinking', 'm1', 'a', 'Hm.'), streamed('text', 'm1', 'a', 'One '), streamed('text', 'm1', 'a', 'two.')];
  const own = { messageId: `${turn}/p1` };
  expect(await frames({}, ...events, finished('One two.'))).toEqual([
    ...START,
    `REASONING_START ${JSON.stringify(own)}`,
    `REASONING_MESSAGE_START ${JSON.stringify({ ...own, role: 'reasoning' })}`,
    `REASONING_MESSAGE_CONTENT ${JSON.stringify({ ...own, delta: 'Hm.' })}`,
    `REASONING_MESSAGE_END ${JSON.stringify(own)}`,
    `REASONING_END ${JSON.stringify(own)}`,
    ...text('p2', 'One ', 'two.'),
    endOf('p2'),
    ...finish(),
  ]);
});

test('a failed attempt ends void, and a snapshot takes it away', async () => {
  expect(await frames({}, streamed('text', 'm1', 'a', 'Half'), streamed('text', 'm1', 'b', 'Whole.'), finished('Whole.'))).toEqual([
    ...START,
    ...text('p1', 'Half'),
    voided('p1'),
    snapshot(HELLO),
    ...text('p2', 'Whole.'),
    endOf('p2'),
    ...finish(),
  ]);
});

test('what a snapshot keeps: the calls, results and thinking of the turn before', async () => {
  const callId = `${turn}/c1`;
  const all = await frames(
    {},
    streamed('thinking', 'm1', 'a', 'Hm.'),
    streamed('text', 'm1', 'a', 'I pay.'),
    started(callId),
    ended(callId, 'ok', 'paid'),
    streamed('text', 'm2', 'a', 'Half'),
    streamed('text', 'm2', 'b', 'Whole.'),
    finished('Whole.'),
  );
  const call = { id: callId, type: 'function', function: { name: 'pay', arguments: '{"to":"Ada"}' } };
  expect(all.filter((one) => one.startsWith('MESSAGES'))).toEqual([
    snapshot(
      HELLO,
      { id: `${turn}/p1`, role: 'reasoning', content: 'Hm.' },
      { id: `${turn}/p2`, role: 'assistant', content: 'I pay.', toolCalls: [call] },
      { id: `${callId}/result`, toolCallId: callId, role: 'tool', content: 'paid' },
    ),
  ]);
});

test('tools: called with what they were asked, each result once, and what failed is marked', async () => {
  const [one, two] = [`${turn}/c1`, `${turn}/c2`];
  const call = (id: string): string[] => [
    `TOOL_CALL_START ${JSON.stringify({ toolCallId: id, toolCallName: 'pay', parentMessageId: `${turn}/of-c1` })}`,
    `TOOL_CALL_ARGS ${JSON.stringify({ toolCallId: id, delta: '{"to":"Ada"}' })}`,
    `TOOL_CALL_END ${JSON.stringify({ toolCallId: id })}`,
  ];
  const result = (id: string, content: string, more = {}): string =>
    `TOOL_CALL_RESULT ${JSON.stringify({ messageId: `${id}/result`, toolCallId: id, role: 'tool', content, ...more })}`;
  expect(await frames({}, started(one), started(two), ended(one, 'ok', 'paid'), ended(two, 'error', 'broken'), finished('Done.'))).toEqual([
    ...START,
    ...call(one),
    ...call(two),
    result(one, 'paid'),
    result(two, 'broken', { metadata: { perdura: { outcome: 'error' } } }),
    ...text('p1', 'Done.'),
    endOf('p1'),
    ...finish(),
  ]);
});

test('a run that waits ends with an interrupt for each call that is open', async () => {
  const all = await frames({}, asked(`${turn}/c1`, 'approval'), asked(`${turn}/c2`, 'question'));
  expect(all.at(-2)).toBe(state({ phase: 'waiting' }));
  const { outcome } = JSON.parse(all.at(-1)?.replace('RUN_FINISHED ', '') ?? '') as { outcome: object };
  expect(outcome).toMatchObject({
    type: 'interrupt',
    interrupts: [
      { id: `${turn}/c1`, reason: 'tool_call', toolCallId: `${turn}/c1`, responseSchema: { required: ['approved'] } },
      { id: `${turn}/c2`, reason: 'input_required', responseSchema: { required: ['answer'] }, expiresAt: '1970-01-01T00:00:00.001Z' },
    ],
  });
});

test('a client that has a part of the turn loses it before the turn begins again', async () => {
  const messages = [
    HELLO,
    { id: `${turn}/p1`, role: 'reasoning', content: 'Hm' },
    { id: `${turn}/p2`, role: 'assistant', content: 'One ' },
  ];
  const [started_, first] = await frames(
    { messages },
    streamed('thinking', 'm1', 'a', 'Hm.'),
    streamed('text', 'm1', 'a', 'One two.'),
    finished('One two.'),
  );
  expect([started_, first]).toEqual([START[0], snapshot(HELLO, { id: `${turn}/p1`, role: 'reasoning', content: '' })]);
  expect(await frames({ messages, continues: true }, finished('')).then((all) => all[1])).toBe(START[1]);
});

test('a failure is RUN_ERROR with what it cost, a stop is cancelled, a limit is a success that says why it ended', async () => {
  const error = { type: 'auth', message: 'no key' };
  expect((await frames({}, finished('', { stopReason: 'failed', error }))).at(-1)).toBe(
    `RUN_ERROR ${JSON.stringify({ message: 'no key', code: 'auth', ...counted })}`,
  );
  const stopped = [streamed('text', 'm1', 'a', 'One '), finished('One', { stopReason: 'interrupted' })];
  expect((await frames({}, ...stopped)).slice(-3)).toEqual([endOf('p1'), ...finish('interrupted', 'cancelled')]);
  expect((await frames({}, finished('', { stopReason: 'refused' }))).slice(-2)).toEqual(finish('refused'));
});

test('what the application has as its state is left alone: a field of an object, alone where there is none, not at all in a list', async () => {
  const of = async (given: unknown): Promise<string[]> =>
    (await frames({ state: given }, finished(''))).filter((one) => one.startsWith('STATE')).map((one) => one.split(' ')[0] ?? '');
  expect(await of({ mine: 1 })).toEqual(['STATE_DELTA', 'STATE_DELTA']);
  expect(await of(undefined)).toEqual(['STATE_SNAPSHOT', 'STATE_SNAPSHOT']);
  expect(await of([1])).toEqual([]);
});

test('what a turn waits for is an event of its own', async () => {
  const all = await frames(
    {},
    { kind: 'waiting', turn, for: 'the model', until: 5 },
    { kind: 'paused', turn, why: 'before-tools' },
    finished(''),
  );
  expect(all.slice(2, 4)).toEqual([
    'CUSTOM {"name":"perdura.waiting","value":{"for":"the model","until":5}}',
    'CUSTOM {"name":"perdura.paused","value":{"why":"before-tools"}}',
  ]);
});
