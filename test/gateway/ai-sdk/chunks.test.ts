/** Frames of a turn, whole: what the encoder makes of live events, without a worker. */
import { createChunks, type Chunk } from '../../../src/gateway/ai-sdk/chunks.js';
import { snapshot } from '../../../src/gateway/core/turn-stream.js';
import type { TurnEvent } from '../../../src/records/feed-event.js';
import { createWaitingCalls } from '../../../src/gateway/core/interactive-turn.js';
import { asked, changesOf, ended, finished, started, streamed, turn, usage } from '../../support/turn-events.js';

async function frames(...events: TurnEvent[]): Promise<string[]> {
  const chunks = createChunks({ turn, messageId: turn });
  return [...chunks.start(), ...(await changesOf(events)).flatMap((event) => chunks.take(event))].map(brief);
}

/** `type id words`, enough to see all that differs. */
function brief(chunk: Chunk): string {
  const { type, ...rest } = chunk;
  return Object.keys(rest).length === 0 ? type : `${type} ${JSON.stringify(rest)}`;
}

const END = [
  'finish-step',
  `data-usage ${JSON.stringify({ data: usage })}`,
  `finish ${JSON.stringify({ finishReason: 'stop', messageMetadata: { turn, stopReason: 'end', usage } })}`,
];
const START = `start ${JSON.stringify({ messageId: turn, messageMetadata: { turn } })}`;

test('thinking, then an answer that grows', async () => {
  const events = [streamed('thinking', 'm1', 'a', 'Hm.'), streamed('text', 'm1', 'a', 'One '), streamed('text', 'm1', 'a', 'two.')];
  expect(await frames(...events, finished('One two.'))).toEqual([
    START,
    'start-step',
    'reasoning-start {"id":"p1"}',
    'reasoning-delta {"id":"p1","delta":"Hm."}',
    'reasoning-end {"id":"p1"}',
    'text-start {"id":"p2"}',
    'text-delta {"id":"p2","delta":"One "}',
    'text-delta {"id":"p2","delta":"two."}',
    'text-end {"id":"p2"}',
    ...END,
  ]);
});

test('a failed attempt ends void, and the next one is a text of its own', async () => {
  expect(await frames(streamed('text', 'm1', 'a', 'Half'), streamed('text', 'm1', 'b', 'Whole.'), finished('Whole.'))).toEqual([
    START,
    'start-step',
    'text-start {"id":"p1"}',
    'text-delta {"id":"p1","delta":"Half"}',
    'text-end {"id":"p1","providerMetadata":{"perdura":{"void":true}}}',
    'text-start {"id":"p2"}',
    'text-delta {"id":"p2","delta":"Whole."}',
    'text-end {"id":"p2"}',
    ...END,
  ]);
});

test('after a gap the answer comes whole', async () => {
  expect(
    await frames(
      streamed('text', 'm1', 'a', 'One '),
      { kind: 'resync' },
      streamed('text', 'm1', 'a', 'three.'),
      finished('One two three.'),
    ),
  ).toEqual([
    START,
    'start-step',
    'text-start {"id":"p1"}',
    'text-delta {"id":"p1","delta":"One "}',
    'text-end {"id":"p1","providerMetadata":{"perdura":{"void":true}}}',
    'text-start {"id":"p2"}',
    'text-delta {"id":"p2","delta":"One two three."}',
    'text-end {"id":"p2"}',
    ...END,
  ]);
});

test('a tool of which the feed has only the end is called before it ends', async () => {
  expect(await frames({ kind: 'resync' }, ended('turn_0001/c1', 'error', 'broken'), finished('Done.'))).toEqual([
    START,
    'start-step',
    'tool-input-available {"toolCallId":"turn_0001/c1","toolName":"pay","input":{},"providerExecuted":true}',
    'tool-output-error {"toolCallId":"turn_0001/c1","errorText":"broken","providerExecuted":true}',
    'text-start {"id":"p1"}',
    'text-delta {"id":"p1","delta":"Done."}',
    'text-end {"id":"p1"}',
    ...END,
  ]);
});

test('an approval is asked for, given, and the call runs; one that is refused is denied', async () => {
  const decided = (callId: string, decision: string): TurnEvent => ({ kind: 'decided', turn, callId, name: 'pay', decision });
  const [one, two] = ['turn_0001/c1', 'turn_0001/c2'];
  const events = [asked(one, 'approval'), asked(two, 'approval'), decided(one, 'approve'), decided(two, 'deny')];
  expect((await frames(...events, started(one), ended(two, 'rejected', 'no'), ended(one, 'ok', 'paid'))).slice(2)).toEqual([
    `tool-input-available {"toolCallId":"${one}","toolName":"pay","input":{},"providerExecuted":true}`,
    `tool-approval-request {"approvalId":"${one}","toolCallId":"${one}"}`,
    `tool-input-available {"toolCallId":"${two}","toolName":"pay","input":{},"providerExecuted":true}`,
    `tool-approval-request {"approvalId":"${two}","toolCallId":"${two}"}`,
    `tool-output-denied {"toolCallId":"${two}"}`,
    `tool-output-available {"toolCallId":"${one}","output":"paid","providerExecuted":true}`,
  ]);
});

test('a stream waits for a person only while nothing else runs, and not for what the page has just answered', async () => {
  const waiting = createWaitingCalls([{ callId: 'turn_0001/c1', isApproval: true }]);
  const seen: string[][] = [];
  for (const event of await changesOf([
    asked('turn_0001/c1', 'approval'),
    started('turn_0001/c3'),
    asked('turn_0001/c2', 'question'),
    ended('turn_0001/c3', 'ok', 'x'),
  ])) {
    waiting.take(event);
    seen.push(waiting.all().map(({ callId }) => callId));
  }
  expect(seen.at(-1)).toEqual(['turn_0001/c2']);
  expect(seen.slice(0, -1).flat()).toEqual([]);
});

test('a stream that ends while a person is waited for says so', async () => {
  const chunks = createChunks({ turn, messageId: turn });
  for (const event of await changesOf([started('turn_0001/c3')])) chunks.take(event);
  const asks = (await changesOf([asked('turn_0001/c4', 'approval')])).flatMap((event) => (event.kind === 'asked' ? [event] : []));
  expect(chunks.pause(asks).map(brief)).toEqual([
    'finish-step',
    `finish ${JSON.stringify({ finishReason: 'tool-calls', messageMetadata: { turn, waitingFor: 'person' } })}`,
  ]);
});

test('a failure is the last chunk, after the end that has its type; a stop is an abort', async () => {
  const error = { type: 'auth', message: 'no key' };
  expect((await frames(finished('', { stopReason: 'failed', error }))).slice(-2)).toEqual([
    `finish ${JSON.stringify({ finishReason: 'error', messageMetadata: { turn, stopReason: 'failed', usage, error } })}`,
    'error {"errorText":"no key"}',
  ]);
  expect((await frames(finished('', { stopReason: 'interrupted' }))).map((one) => one.split(' ')[0])).toEqual([
    'start',
    'data-usage',
    'abort',
    'finish',
  ]);
});

test('who comes later has nothing of a failed attempt, and each text in one piece', async () => {
  const events = [
    streamed('text', 'm1', 'a', 'Half'),
    streamed('text', 'm1', 'b', 'Who'),
    streamed('text', 'm1', 'b', 'le.'),
    finished('Whole.'),
  ];
  const kinds = snapshot(await changesOf(events)).map(({ kind }) => kind);
  expect(kinds).toEqual(['call', 'begin', 'grow', 'end', 'settle', 'finished']);
});
