/** Recorded conversations are played again: with nothing changed, nothing differs. */
import { callTool, createScriptedModel } from '../../src/testing/index.js';
import { waitFor } from '../support/wait-for.js';
import { createModel, createTools, type Counts } from './scripted.js';
import { expectSame, startRecorder, type Recorder } from './recorder.js';

const counts: Counts = { ran: 0, held: 0 };
const tools = createTools(counts);
const model = createModel(counts);
let recorder: Recorder;
beforeAll(async () => {
  recorder = await startRecorder(model, { tools });
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

test('memory as the candidate keeps it: sessions end with a consolidation of what is played', async () => {
  const { client } = recorder.world;
  const id = await talk('remember that I live in Oslo', 'and again');
  await client.reset(id);
  await client.send(id, 'where do I live?');
  const { lane } = await recorder.play(id, { memory: 'candidate' });
  expect(lane.stopped).toBeUndefined();
  expect(lane.turns.map(({ played }) => played?.stopReason)).toEqual(['end', 'end', 'end']);
});
