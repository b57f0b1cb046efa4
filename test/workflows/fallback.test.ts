/** Two providers over HTTP, one of which cannot answer: the other does, and everybody reads which one it was. */
import { createCircuits, type Circuits } from '../../src/models/circuit-breaker.js';
import { startChatApi, type ChatRequest } from '../support/provider-apis/chat-api.js';
import { errorEvent, httpError, overloaded, promptTooLong, rateLimited, silence } from '../support/provider-apis/faults.js';
import { callTool, text, type Reply } from '../support/provider-apis/reply.js';
import type { ScriptedApi } from '../support/provider-apis/scripted-api.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { startWorld, type World } from '../support/world.js';

const FIRST = 'anthropic/claude-test';
const SECOND = 'openai/gpt-4o-mini';
const stage = createStage();
let world: World;
let second: ScriptedApi<ChatRequest>;
let circuits: Circuits | undefined;

beforeAll(async () => {
  second = await startChatApi({ answer: (request) => scripted(request) });
  world = await startWorld({
    answer: stage.answer,
    // Consolidations too are the stage's.
    aside: () => undefined,
    idleMs: 700,
    openai: second.url,
    circuits: { refusal: (name) => circuits?.refusal(name), note: (name, error) => circuits?.note(name, error) },
  });
  await world.writeAgent('pair', { models: [FIRST, SECOND], limits: { modelTries: 1 } });
  await world.writeAgent('patient', { models: [FIRST, SECOND] });
  await world.writeAgent('forgetful', { models: [FIRST, SECOND], limits: { modelTries: 1 }, context: { keepTurns: 0 } });
  await world.writeAgent('typo', { models: [FIRST, 'nobody/x'] });
});
beforeEach(() => void (circuits = undefined));
afterAll(async () => {
  await world.close();
  await second.close();
});

const atSecond = new Map<string, Reply[]>();
const asked = (id: string): ChatRequest[] =>
  second.hits.flatMap(({ body }) => (body && JSON.stringify(body.messages).includes(id) ? [body] : []));

function scripted({ messages }: ChatRequest): Reply {
  const said = JSON.stringify(messages);
  const id = [...atSecond.keys()].find((one) => said.includes(one)) ?? '';
  return atSecond.get(id)?.shift() ?? text('The second speaks.');
}

async function started(agent: string, weather: readonly Reply[], ...answers: Reply[]): Promise<string> {
  const id = world.id();
  stage.play(id, ...weather, text('The first is back.'));
  atSecond.set(id, answers);
  await world.client.start(id, { agent });
  return id;
}

const BAD: readonly [what: string, weather: Reply, reason: string][] = [
  ['408', httpError(408), 'timeout'],
  ['429', rateLimited(), 'rate-limit'],
  ['429 that asks for an hour', rateLimited({ retryAfter: 3_600 }), 'rate-limit'],
  ['500', httpError(500), 'server'],
  ['503', httpError(503), 'server'],
  ['529', overloaded(), 'overloaded'],
  ['a stream that is overloaded in its middle', errorEvent(4), 'overloaded'],
  ['a stream that falls silent', silence(), 'timeout'],
];

test.concurrent.each(BAD)(
  'after %s the second model answers, at its own price, and it is named where the answer is',
  async (_what, weather, reason) => {
    const id = await started('pair', [weather]);
    const answer = await world.client.send(id, say(id, 'hi'));
    expect(answer).toMatchObject({ text: 'The second speaks.', stopReason: 'end', fallback: { model: SECOND, insteadOf: FIRST, reason } });
    expect(await world.client.status(id)).toMatchObject({ model: FIRST, fallback: { model: SECOND, turn: 'turn_0001', reason } });
    const { inputTokens, cachedTokens, outputTokens, costUsd } = answer.usage;
    expect(costUsd).toBeCloseTo(((inputTokens - cachedTokens) * 0.15 + cachedTokens * 0.075 + outputTokens * 0.6) / 1e6, 12);
    const said = (await world.client.history(id)).flatMap(({ message }) => (message.role === 'assistant' ? [message.model] : []));
    expect(said).toEqual([SECOND]);
    expect([stage.requests(id).length, asked(id).length]).toEqual([1, 1]);
    // The next turn begins with the first again.
    const next = await world.client.send(id, say(id, 'and now?'));
    expect(next).toMatchObject({ text: 'The first is back.' });
    expect(next).not.toHaveProperty('fallback');
    expect(await workflowTaskFailures(world, id)).toEqual([]);
  },
  120_000,
);

test.concurrent.each([400, 401, 403, 404, 413, 422])('%i is the request’s own fault: the second is not asked', async (status) => {
  const id = await started('pair', [httpError(status), httpError(status), httpError(status)]);
  const answer = await world.client.send(id, say(id, 'hi'));
  expect(answer).toMatchObject({ stopReason: 'failed' });
  expect(asked(id)).toEqual([]);
});

test.concurrent('a prompt that is too long is not sent elsewhere', async () => {
  const id = await started(
    'pair',
    Array.from({ length: 5 }, () => promptTooLong()),
  );
  expect(await world.client.send(id, say(id, 'hi'))).toMatchObject({ stopReason: 'failed' });
  expect(asked(id)).toEqual([]);
});

test.concurrent(
  'the first is asked as often as the agent says before the second is',
  async () => {
    const id = await started('patient', [overloaded()]);
    expect(await world.client.send(id, say(id, 'hi'))).toMatchObject({ text: 'The first is back.' });
    expect(asked(id)).toEqual([]);
    const other = await started('patient', [overloaded(), overloaded()]);
    expect(await world.client.send(other, say(other, 'hi'))).toMatchObject({ text: 'The second speaks.' });
    expect(stage.requests(other)).toHaveLength(2);
  },
  60_000,
);

test.concurrent('in the middle of a turn the second goes on with the tools of the first, and keeps the turn', async () => {
  const id = world.id();
  stage.play(id, { thinking: { text: 'Hm.', signature: 'c2ln' }, ...callTool('get_time') }, overloaded());
  atSecond.set(id, [callTool('get_time'), text('Both clocks agree.')]);
  await world.client.start(id, { agent: 'pair' });
  expect(await world.client.send(id, say(id, 'what time is it?'))).toMatchObject({ text: 'Both clocks agree.', toolCalls: 2 });
  expect(stage.requests(id)).toHaveLength(2);
  expect(asked(id)).toHaveLength(2);
  // Nothing of the first one's signed thinking goes to the second.
  expect(JSON.stringify(asked(id))).not.toContain('c2ln');
  expect(await world.client.send(id, say(id, 'thanks'))).toMatchObject({ text: 'Understood.' });
  expect(world.api.problems).toEqual([]);
  expect(second.problems).toEqual([]);
});

test.concurrent(
  'when neither answers it waits, says so, and begins with the first again',
  async () => {
    const id = await started('pair', [rateLimited({ retryAfter: 12 })], rateLimited({ retryAfter: 8 }));
    const sent = world.client.send(id, say(id, 'hi'));
    await waitFor(
      () => world.client.status(id),
      ({ phase }) => phase === 'waiting-to-retry',
    );
    const answer = await sent;
    expect(answer).toMatchObject({ text: 'The first is back.' });
    expect(answer).not.toHaveProperty('fallback');
  },
  60_000,
);

test.concurrent('a stop while the second thinks keeps the conversation usable', async () => {
  const id = await started('pair', [overloaded()], silence(2));
  const sent = world.client.send(id, say(id, 'hi'));
  await waitFor(
    () => asked(id).length,
    (count) => count === 1,
  );
  await world.client.interrupt(id);
  expect(await sent).toMatchObject({ stopReason: 'interrupted' });
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ text: 'The first is back.' });
});

test.concurrent(
  'a person’s own choice answers alone',
  async () => {
    const id = world.id();
    stage.play(id, overloaded(), overloaded(), text('Only me.'));
    await world.client.start(id, { agent: 'pair', model: FIRST });
    expect(await world.client.send(id, say(id, 'hi'))).toMatchObject({ text: 'Only me.' });
    expect(asked(id)).toEqual([]);
  },
  60_000,
);

test.concurrent('a provider that there is not is found before it is needed', async () => {
  const id = world.id();
  await world.client.start(id, { agent: 'typo' });
  expect(await world.client.send(id, say(id, 'hi'))).toMatchObject({ stopReason: 'failed', error: { type: 'not-found' } });
});

test('a summary is asked of the second where the first is away, and it is named', async () => {
  const id = await started('forgetful', [text('One.'), text('Two.'), overloaded()]);
  for (const words of ['one', 'two']) await world.client.send(id, say(id, words));
  const summary = { episodic: { summary: 'They counted.', tags: [], salience: 0.5 }, semantic: [] };
  atSecond.set(id, [text(JSON.stringify(summary))]);
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', method: 'model' });
  expect((await world.client.memory(id)).episodes).toMatchObject([{ summary: 'They counted.', made: { model: SECOND } }]);
  expect(asked(id)).toHaveLength(1);
}, 60_000);

test('so is a consolidation', async () => {
  const id = await started('forgetful', [text('One.'), text('Two.'), overloaded()]);
  for (const words of ['one', 'two']) await world.client.send(id, say(id, words));
  atSecond.set(id, [text(JSON.stringify({ history_entry: '[2026-11-24] They counted.', memory_update: '' }))]);
  await world.client.reset(id);
  const history = async (): Promise<string> => {
    const entries: unknown[] = [];
    for await (const entry of await world.client.scope('forgetful').history()) entries.push(entry);
    return JSON.stringify(entries);
  };
  await waitFor(history, (entries) => entries.includes('They counted.'), 20_000);
  expect(asked(id)).toHaveLength(1);
}, 60_000);

test('what was drawn of the first is void for whoever watches', async () => {
  const id = await started('pair', [errorEvent(4, 'overloaded_error', text('Half of an answer that never'))]);
  const watched: string[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    for await (const { event } of world.client.watch(id, { signal: stop.signal })) {
      watched.push(event.kind === 'text' ? `text ${event.call}` : event.kind);
      if (event.kind === 'turn-finished') return event;
    }
    return undefined;
  })();
  await world.client.send(id, say(id, 'hi'));
  const end = await watching;
  stop.abort();
  expect(watched).toContain('fallback');
  expect(watched.indexOf('fallback')).toBeLessThan(watched.lastIndexOf('text turn_0001/m2'));
  expect(end).toMatchObject({ result: { text: 'The second speaks.', fallback: { model: SECOND } } });
});

test('a worker that knows that the first is away does not ask it, and asks it again once it answers', async () => {
  let now = 0;
  circuits = createCircuits({ now: () => now });
  const id = await started('pair', [overloaded(), overloaded(), overloaded()]);
  for (let i = 0; i < 5; i++) expect(await world.client.send(id, say(id, `${i}`))).toMatchObject({ text: 'The second speaks.' });
  expect(stage.requests(id)).toHaveLength(3);
  expect(circuits.open()).toMatchObject([{ of: FIRST, reason: 'overloaded' }]);
  now = 30_000;
  expect(await world.client.send(id, say(id, 'again'))).toMatchObject({ text: 'The first is back.' });
  expect(circuits.open()).toEqual([]);
}, 60_000);
