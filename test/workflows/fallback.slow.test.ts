/** Two providers over HTTP, one of which cannot answer: the other does, and everybody reads which one it was. */
import { z } from 'zod';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createCircuits, type Circuits } from '../../src/models/circuit-breaker.js';
import { startChatApi, type ChatRequest } from '../support/provider-apis/chat-api.js';
import { errorEvent, httpError, overloaded, promptTooLong, rateLimited, silence } from '../support/provider-apis/faults.js';
import { callTool, text, type Reply } from '../support/provider-apis/reply.js';
import type { ScriptedApi } from '../support/provider-apis/scripted-api.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { startWorld, type World } from '../support/world.js';

const letters = defineTool({
  name: 'letters',
  description: 'So many letters.',
  input: z.object({ count: z.int() }),
  policy: { repeatable: true },
  run: ({ count }) => 'plum '.repeat(count),
});
const FIRST = 'anthropic/claude-test';
const SECOND = 'openai/gpt-4o-mini';
const stage = createStage();
let world: World;
let second: ScriptedApi<ChatRequest>;
let circuits: Circuits | undefined;

beforeAll(async () => {
  second = await startChatApi({ answer: (request) => scripted(request) });
  world = await startWorld({
    withoutLimits: true,
    // Shown while it lasts.
    holds: (why) => why.endsWith('rate-limit'),
    answer: stage.answer,
    tools: [...builtinTools, letters],
    // Consolidations too are the stage's.
    aside: () => undefined,
    idleMs: 30_000,
    openai: second.url,
    circuits: { refusal: (name) => circuits?.refusal(name), note: (name, error) => circuits?.note(name, error) },
  });
  await world.writeAgent('pair', { models: [FIRST, SECOND], limits: { modelTries: 1 } });
  await world.writeAgent('patient', { models: [FIRST, SECOND] });
  await world.writeAgent('forgetful', { models: [FIRST, SECOND], limits: { modelTries: 1 }, context: { keepTurns: 0 } });
  await world.writeAgent('naming', { models: [FIRST, SECOND], titles: 'model' });
  await world.writeAgent('citing', { models: [FIRST, SECOND], memory: { compactWithModel: true } });
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

test.concurrent('the first is asked as often as the agent says before the second is', async () => {
  const id = await started('patient', [overloaded()]);
  expect(await world.client.send(id, say(id, 'hi'))).toMatchObject({ text: 'The first is back.' });
  expect(asked(id)).toEqual([]);
  const other = await started('patient', [overloaded(), overloaded()]);
  expect(await world.client.send(other, say(other, 'hi'))).toMatchObject({ text: 'The second speaks.' });
  expect(stage.requests(other)).toHaveLength(2);
});

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

/** What the store knows of it: which model was paid for what. */
async function paid(id: string): Promise<string[]> {
  const kinds: string[] = [];
  for await (const one of world.store.spendings.all(await world.client.key(id)))
    if (one.conversation === id && one.failed !== true) kinds.push(`${one.kind} ${one.model}`);
  return kinds.sort();
}

test.concurrent(
  'what is asked beside a call falls over as the call does: a title, what stands for a long result, a tool’s own question',
  async () => {
    const named = await started('naming', [text('Hello.'), overloaded()], text('Named by the second'));
    await world.client.send(named, say(named, 'hi'));
    await waitFor(
      () => world.client.status(named),
      ({ title }) => title === 'Named by the second',
    );
    expect(await paid(named)).toEqual([`answer ${FIRST}`, `title ${SECOND}`]);

    const id = await started(
      'citing',
      [callTool('letters', { count: 2_000 }), text('Read.'), overloaded(), text('Yes.')],
      text('{"summary": "Plums, says the second.", "keyFacts": []}'),
      text('Summed up by the second.'),
    );
    await world.client.send(id, say(id, 'fetch'));
    expect(await world.client.send(id, say(id, 'sure?'))).toMatchObject({ text: 'Yes.' });
    const cited = JSON.stringify(stage.requests(id).at(-1)?.messages);
    expect(cited).toContain('Plums, says the second.');
    const item = /mem_\w+/.exec(cited)?.[0];
    // `started` has put one more line there.
    stage.play(id, callTool('retrieve_from_memory', { id: item, transform: 'summary', goal: id }), overloaded(), text('Done.'));
    expect(await world.client.send(id, say(id, 'once more'))).toMatchObject({ text: 'The first is back.' });
    expect(await world.client.send(id, say(id, 'sum it up'))).toMatchObject({ text: 'Done.' });
    expect(JSON.stringify(stage.requests(id).at(-1)?.messages)).toContain('Summed up by the second.');
    expect((await paid(id)).filter((one) => !one.startsWith('answer'))).toEqual([`citation ${SECOND}`, `tool ${SECOND}`]);
  },
);

test.concurrent('when neither answers it waits, says so, and begins with the first again', async () => {
  const id = await started('pair', [rateLimited({ retryAfter: 12 })], rateLimited({ retryAfter: 8 }));
  const sent = world.client.send(id, say(id, 'hi'));
  await waitFor(
    () => world.client.status(id),
    ({ phase }) => phase === 'waiting-to-retry',
  );
  await world.advance(20_000);
  const answer = await sent;
  expect(answer).toMatchObject({ text: 'The first is back.' });
  expect(answer).not.toHaveProperty('fallback');
});

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

test.concurrent('a person’s own choice answers alone', async () => {
  const id = world.id();
  stage.play(id, overloaded(), overloaded(), text('Only me.'));
  await world.client.start(id, { agent: 'pair', model: FIRST });
  expect(await world.client.send(id, say(id, 'hi'))).toMatchObject({ text: 'Only me.' });
  expect(asked(id)).toEqual([]);
});

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
});

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
  await waitFor(history, (entries) => entries.includes('They counted.'));
  expect(asked(id)).toHaveLength(1);
});

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
});
