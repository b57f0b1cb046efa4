/** Recorded conversations are played again: with nothing changed, nothing differs. */
import { Readable } from 'node:stream';
import type { Reducers } from '../../src/conversation/context/reducers.js';
import { offlineConsolidation } from '../../src/models/offline.js';
import { withStream, type ModelRequest } from '../../src/models/model.js';
import { NO_USAGE } from '../../src/records/message.js';
import { callTool, createScriptedModel } from '../../src/testing/index.js';
import { waitFor } from '../support/wait-for.js';
import { answerWith, createModel, createTools, type Counts } from './scripted.js';
import { expectSame, startRecorder, type Recorder } from './recorder.js';

const counts: Counts = { ran: 0, held: 0 };
const tools = createTools(counts);
const model = createModel(counts);
const answerAsRecorded = answerWith(counts);
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const reducers: Reducers = {
  'ticket.opened': ({ payload }) => [{ kind: 'ADD', chunk: { type: 'TICKET', text: `Ticket ${(payload as { id: number }).id} is open` } }],
};
let recorder: Recorder;
beforeAll(async () => {
  recorder = await startRecorder(model, { tools, reducers });
});
afterAll(() => recorder.close());

async function talk(...messages: readonly string[]): Promise<string> {
  const { world } = recorder;
  const id = world.id();
  await world.client.start(id, {});
  for (const message of messages) await world.client.send(id, message);
  return id;
}

test('plain turns and tools: every request is the same, and no tool runs', async () => {
  const id = await talk('hello', '#book tea', '#both', 'and now?');
  const before = counts.ran;
  const { lane, requests, gaps } = await recorder.play(id);
  expect(lane.divergence).toBeNull();
  expect(lane.stopped).toBeUndefined();
  expect(requests).toEqual({ equal: 6, compared: 6 });
  expect(counts.ran).toBe(before);
  expect(gaps).toEqual([]);
  expect(lane.turns.map(({ recorded, played }) => [recorded?.text, played?.text])).toEqual(
    lane.turns.map(({ recorded }) => [recorded?.text, recorded?.text]),
  );
  expect(lane.turns).toHaveLength(4);
  expect(lane.sum.modelCalls).toBe(6);
});

/** Waits until so many calls wait for a person. */
async function waiting(id: string, count = 1): Promise<readonly { readonly callId: string; readonly conversation: string }[]> {
  return waitFor(
    () => recorder.world.client.approvals(id),
    (list) => list.length === count,
  );
}

async function idle(id: string): Promise<void> {
  await waitFor(
    () => recorder.world.client.status(id),
    ({ phase, queued }) => phase === 'idle' && queued === 0,
  );
}

test('approvals, refusals, notes and changed arguments come again', async () => {
  const { client } = recorder.world;
  const id = recorder.world.id();
  await client.start(id, {});
  for (const [cents, decide] of [
    [1, (callId: string) => client.decide(id, { callId, decision: 'approve' })],
    [2, (callId: string) => client.decide(id, { callId, decision: 'deny', note: 'too much' })],
    [3, (callId: string) => client.decide(id, { callId, decision: 'approve', note: 'only this once' })],
    [4, (callId: string) => client.decide(id, { callId, decision: 'approve', input: { cents: 40 } })],
  ] as const) {
    await client.message(id, `#pay ${cents}`);
    const [one] = await waiting(id);
    await decide(one?.callId ?? '');
    await idle(id);
  }
  await expectSame(recorder, id, counts);
});

test('what comes while a turn goes on, and what stops it, comes at its place', async () => {
  const { client } = recorder.world;
  const id = recorder.world.id();
  await client.start(id, {});
  await client.message(id, '#pay 7');
  const [one] = await waiting(id);
  await client.message(id, 'for later');
  await client.message(id, { text: 'by the way', delivery: 'steer' });
  await client.decide(id, { callId: one?.callId ?? '', decision: 'approve' });
  await idle(id);
  const before = counts.held;
  await client.message(id, '#hold');
  await waitFor(
    () => counts.held,
    (count) => count > before,
  );
  await client.interrupt(id, 'enough');
  await idle(id);
  await client.message(id, '#hold');
  await waitFor(
    () => counts.held,
    (count) => count > before + 1,
  );
  await client.message(id, { text: 'now this', delivery: 'interrupt' });
  await idle(id);
  await client.send(id, 'done?');
  await expectSame(recorder, id, counts);
});

test('resets, compactions, rewinds, forks and other models', async () => {
  const { client } = recorder.world;
  const id = await talk('one', '#book two', 'three', 'four', 'five');
  await client.compact(id);
  await client.send(id, 'six');
  await client.undoCompaction(id);
  await client.send(id, 'seven');
  await client.setModel(id, 'anthropic/claude-other');
  await client.send(id, 'eight');
  await client.rewind(id, 'turn_0006');
  await client.send(id, 'eight again');
  await client.reset(id);
  await client.send(id, 'nine');
  await expectSame(recorder, id, counts);
  const fork = recorder.world.id();
  await client.fork(id, { at: 'turn_0003', id: fork });
  await client.send(fork, '#book ten');
  await expectSame(recorder, fork, counts);
});

test('sub-agents are played with their conversation', async () => {
  const { client } = recorder.world;
  const id = await talk('#delegate book tea', 'thanks');
  await client.message(id, '#delegate pay 5');
  const [one] = await waiting(id);
  await client.decide(id, { callId: one?.callId ?? '', conversation: one?.conversation, decision: 'approve' });
  await idle(id);
  await expectSame(recorder, id, counts);
});

test('events of the application are reduced by the reducers of the candidate', async () => {
  const { client } = recorder.world;
  const id = await talk('hello');
  await client.dispatch(id, { type: 'ticket.opened', payload: { id: 7 } }, { wait: true });
  await client.send(id, 'what is open?');
  await expectSame(recorder, id, counts);
  expect(JSON.stringify(model.requests.at(-1))).toContain('Ticket 7 is open');
  const { lane } = await recorder.play(id, { candidate: { ...recorder.project, reducers: {} } });
  expect(lane.divergence).toMatchObject({ turn: 'turn_0002', what: 'messages' });
});

test('a changed prompt: the first call that differs is named, and its parts stand beside each other', async () => {
  const id = await talk('hello', 'again');
  const { lane } = await recorder.play(id, { candidate: recorder.projectWith(model, { prompt: 'You are short.' }) });
  expect(lane.divergence).toMatchObject({ turn: 'turn_0001', call: 1, what: 'system' });
  expect(lane.divergence?.played).toContain('You are short.');
  expect(lane.answerDivergence).toBeUndefined();
  expect(lane.turns.map(({ played }) => played?.text)).toEqual(lane.turns.map(({ recorded }) => recorded?.text));
});

describe('a call that was not made then', () => {
  const other = createScriptedModel((request) =>
    request.messages.at(-1)?.role === 'tool' ? `It says: ${JSON.stringify(request.messages.at(-1))}` : callTool('book', { what: 'coffee' }),
  );

  test('ends the play where no policy is given', async () => {
    const id = await talk('#book tea', 'more');
    const before = counts.ran;
    const { lane } = await recorder.play(id, { candidate: recorder.projectWith(other) });
    expect(lane.divergence).toMatchObject({ turn: 'turn_0001', call: 1, what: 'tool-calls' });
    expect(lane.stopped).toMatchObject({ turn: 'turn_0001', why: expect.stringContaining('coffee') });
    expect(counts.ran).toBe(before);
  });

  test('is answered by a stub', async () => {
    const id = await talk('#book tea', 'more');
    const { lane } = await recorder.play(id, {
      candidate: recorder.projectWith(other),
      policy: 'stub',
      stub: ({ name }) => `a stub of ${name}`,
    });
    expect(lane.stopped).toBeUndefined();
    expect(lane.turns[0]?.played?.calls).toMatchObject([{ name: 'book', source: 'stub', result: 'a stub of book' }]);
  });

  test('is played to its end where it is the last of the conversation', async () => {
    const id = await talk('hello');
    const { lane } = await recorder.play(id, { candidate: recorder.projectWith(other), policy: 'stub', stub: () => 'a stub' });
    expect(lane.turns[0]?.played).toMatchObject({ stopReason: 'end', text: expect.stringContaining('a stub') });
  });

  test('runs where it is repeatable, and never where a person has to allow it', async () => {
    const id = await talk('#book tea', 'more');
    const before = counts.ran;
    const { lane } = await recorder.play(id, { candidate: recorder.projectWith(other), policy: 'live' });
    expect(lane.stopped).toBeUndefined();
    expect(lane.turns[0]?.played?.calls).toMatchObject([{ name: 'book', source: 'live' }]);
    expect(counts.ran).toBe(before + 2);
    const paying = createScriptedModel(() => callTool('pay', { cents: 9 }));
    const paid = await recorder.play(id, { candidate: recorder.projectWith(paying), policy: 'live' });
    expect(paid.lane.stopped).toMatchObject({ turn: 'turn_0001', why: expect.stringContaining('waits for a person') });
    expect(counts.ran).toBe(before + 2);
  });
});

describe('a call that a person or an interrupt kept from running', () => {
  /** As `pay` was not run then, so nothing of it is known; with this it runs without being asked for. */
  const allowed = { settings: { approvals: [{ tool: 'pay', policy: 'allow' }] } };

  test.each<[why: string, end: (id: string, callId: string) => Promise<unknown>]>([
    ['refused', (id, callId) => recorder.world.client.decide(id, { callId, decision: 'deny', note: 'too much' })],
    ['interrupted', (id) => recorder.world.client.interrupt(id, 'enough')],
  ])('has no answer that stands for a run of it: %s', async (_why, end) => {
    const { client } = recorder.world;
    const id = recorder.world.id();
    await client.start(id, {});
    await client.message(id, '#pay 2');
    const [one] = await waiting(id);
    await end(id, one?.callId ?? '');
    await idle(id);
    const before = counts.ran;
    const candidate = recorder.projectWith(model, allowed);
    const stubbed = await recorder.play(id, { candidate, policy: 'stub', stub: () => 'a stub' });
    expect(stubbed.lane.turns[0]?.recorded?.calls).toMatchObject([{ outcome: expect.stringMatching(/^(rejected|cancelled)$/) }]);
    expect(stubbed.lane.turns[0]?.played?.calls).toMatchObject([{ source: 'stub', outcome: 'ok', result: 'a stub' }]);
    const stopped = await recorder.play(id, { candidate });
    expect(stopped.lane.stopped).toMatchObject({ turn: 'turn_0001', why: expect.stringContaining('pay was not called like this then') });
    expect(counts.ran).toBe(before);
  });
});

test("a sub-agent's answer is compared, and a difference says whose it is", async () => {
  const id = await talk('#delegate book tea', 'thanks');
  const isChild = ({ messages }: ModelRequest): boolean => JSON.stringify(messages[0]).includes('#book') && messages.length > 2;
  const other = createScriptedModel((request) =>
    isChild(request) && !JSON.stringify(request.messages).includes('#delegate') ? 'Booked, I think.' : answerAsRecorded(request),
  );
  const { lane } = await recorder.play(id, { candidate: recorder.projectWith(other) });
  const of = expect.stringMatching(new RegExp(`^${id}:`)) as unknown;
  expect(lane.divergence).toMatchObject({ turn: 'turn_0001', of, what: 'text', played: expect.stringContaining('Booked, I think.') });
});

test('pictures go along: in a message, and one that was uploaded; every request is the same', async () => {
  const { client, id: freshId } = recorder.world;
  const id = freshId();
  await client.start(id, {});
  await client.send(id, { text: 'what is this?', images: [{ mediaType: 'image/png', base64: PNG }] });
  const { ref } = await client.upload(Readable.from([Buffer.concat([Buffer.from(PNG, 'base64'), Buffer.from([1])])]));
  await client.send(id, { text: 'and this?', images: [await client.attachUploaded(id, ref)] });
  const { requests } = await expectSame(recorder, id, counts);
  expect(requests.compared).toBe(2);
  expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain(PNG);
});

test('memory as the candidate keeps it: sessions end with a consolidation of what is played', async () => {
  const { client } = recorder.world;
  const id = await talk('remember that I live in Oslo', 'and again');
  await client.reset(id);
  await client.send(id, 'where do I live?');
  const { lane } = await recorder.play(id, { memory: 'candidate' });
  expect(lane.stopped).toBeUndefined();
  expect(lane.turns.map(({ played }) => played?.stopReason)).toEqual(['end', 'end', 'end']);
});

describe('MEMORY.md as the candidate keeps it', () => {
  const shows = (request: ModelRequest | undefined, text: string): boolean => JSON.stringify(request).includes(text);

  test('where there is none yet, its consolidation makes it, and the next session begins with it', async () => {
    const { client, store } = recorder.world;
    const id = recorder.world.id();
    await client.start(id, { scope: 'nothing-yet' });
    await client.send(id, 'remember that I live in Oslo');
    await client.reset(id);
    await client.send(id, 'where do I live?');
    const requests: ModelRequest[] = [];
    const remembering = withStream(model, (request, options) => {
      requests.push(request);
      if (offlineConsolidation(request) === undefined) return model.stream(request, options);
      const update = JSON.stringify({ history_entry: '[2026-01-01 00:00] We talked.', memory_update: '- It is Oslo, the candidate says.' });
      return Promise.resolve({ blocks: [{ kind: 'text', text: update }], stop: 'end', usage: NO_USAGE });
    });
    const { lane } = await recorder.play(id, { memory: 'candidate', candidate: recorder.projectWith(remembering) });
    expect(lane.stopped).toBeUndefined();
    expect(requests.map((request) => [offlineConsolidation(request) !== undefined, shows(request, 'the candidate says')])).toEqual([
      [false, false],
      [true, false],
      [false, true],
    ]);
    expect(shows(requests.at(-1), 'where do I live?')).toBe(true);
    // Nothing of it is kept where it was recorded.
    expect((await store.documents.memory({ namespace: 'default', scope: 'nothing-yet' })).text).not.toContain('the candidate says');
  });

  test('where there was one, it begins as that was then', async () => {
    const { client, store } = recorder.world;
    const key = { namespace: 'default', scope: 'known' };
    const write = (from: string, id: string, text: string) =>
      store.documents.writeMemory(key, { id, ts: recorder.world.now() / 1000, cause: 'hand', from, text, lines: [] });
    const written = await write('empty', 'one', '- They have a boat.\n');
    const id = recorder.world.id();
    await client.start(id, { scope: 'known' });
    await client.send(id, 'hello');
    await write(written.status === 'written' ? written.version : '', 'two', '- They have sold it.\n');
    const { lane, requests } = await recorder.play(id, { memory: 'candidate' });
    expect([lane.divergence, requests]).toEqual([null, { equal: 1, compared: 1 }]);
    expect(shows(model.requests.at(-1), 'They have a boat')).toBe(true);
  });
});
