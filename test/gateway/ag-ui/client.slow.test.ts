/** AG-UI's own client, unchanged, over a socket, with a real worker: its schemas and its verifier look at every event. */
import { buildResumeArray, HttpAgent, type BaseEvent } from '@ag-ui/client';
import type { InputContent, Message, RunAgentInput } from '@ag-ui/core';
import { oneToken } from '../../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../../src/gateway/index.js';
import { askUser } from '../../../src/tools/builtin/conversation-tools.js';
import { callTool, callTools, gate, text } from '../../support/provider-apis/reply.js';
import { createStage, resultTexts, say } from '../../support/stage.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';
import { createLookAndPay, LONG } from '../look-and-pay.js';
import { expectNoWarnings } from './strict-client.js';

const TOKEN = 'a-token-that-only-tests-have';
const { tools, paid } = createLookAndPay();
const stage = createStage();
let world: World;
let served: ServedGateway;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools: [...tools, askUser] });
  served = await serveGateway({ client: world.client, authenticate: oneToken(TOKEN), port: 0 });
});
afterAll(async () => {
  await served.close();
  await world.close();
});
expectNoWarnings(() => world);

const agentOf = (threadId: string, token = TOKEN): HttpAgent =>
  new HttpAgent({ url: `${served.url}/agui`, threadId, headers: { authorization: `Bearer ${token}` } });

interface Ran {
  readonly events: BaseEvent[];
  readonly types: string[];
  readonly last: BaseEvent;
}

type Params = Parameters<HttpAgent['runAgent']>[0];

async function runIt(agent: HttpAgent, params?: Params): Promise<Ran> {
  const events: BaseEvent[] = [];
  await agent.runAgent(params, { onEvent: ({ event }) => void events.push(structuredClone(event)) });
  const last = events.at(-1);
  if (last === undefined) throw new Error('there was no event');
  return { events, types: events.map(({ type }) => type), last };
}

function ask(agent: HttpAgent, id: string, content: string | InputContent[], params?: Params): Promise<Ran> {
  agent.addMessage({ id, role: 'user', content });
  return runIt(agent, params);
}

const words = (messages: readonly Message[]): string[] =>
  messages.flatMap((one) => (one.role === 'assistant' && one.content !== undefined ? [one.content] : []));

test('a message is thought about, looked up and answered; the same run again is the same turn, and the client has it once', async () => {
  const id = world.id();
  stage.play(
    id,
    {
      thinking: { text: 'Let me look.', signature: 'signed' },
      text: 'I look.',
      toolCalls: [
        { name: 'look', input: { at: LONG } },
        { name: 'look', input: { at: 'nothing' } },
      ],
    },
    text('All is ', 'well.'),
  );
  const agent = agentOf(id);
  const { events, types, last } = await ask(agent, 'm1', say(id, 'how is it?'), { runId: 'r1' });
  expect(types.slice(0, 2)).toEqual(['RUN_STARTED', 'STATE_DELTA']);
  expect(events[0]).toMatchObject({ threadId: id, runId: 'r1', protocolVersion: '1.0' });
  expect(last).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' }, result: { turn: 'turn_0001', stopReason: 'end' } });
  expect(last['usage']).toHaveLength(1);
  expect(agent.state).toMatchObject({ perdura: { conversation: id, turn: 'turn_0001', phase: 'ended', stopReason: 'end' } });
  const seen = structuredClone(agent.messages);
  // A tool that ends before the other begins has its result before that one's call.
  const roles = seen.map(({ role }) => role);
  expect([roles.slice(0, 3), roles.at(-1)]).toEqual([['user', 'reasoning', 'assistant'], 'assistant']);
  expect(seen[1]).toMatchObject({ content: 'Let me look.' });
  expect(seen[2]).toMatchObject({ content: 'I look.' });
  const calls = seen.flatMap((one) => (one.role === 'assistant' ? (one.toolCalls ?? []) : []));
  const given = Object.fromEntries(calls.map(({ id: callId, function: called }) => [callId, JSON.parse(called.arguments) as unknown]));
  expect(given).toEqual({ 'turn_0001/c1': { at: LONG }, 'turn_0001/c2': { at: 'nothing' } });
  const results = seen.filter(({ role }) => role === 'tool').map(({ content }) => content);
  expect(results).toEqual(expect.arrayContaining([`${LONG} ${LONG}`, expect.stringContaining('there is nothing')]));
  expect(words(seen).join('|')).toBe('I look.|All is well.');

  await runIt(agent, { runId: 'r1' });
  expect(words(agent.messages)).toEqual(words(seen));
  expect(new Set(agent.messages.map((one) => JSON.stringify(one)))).toEqual(new Set(seen.map((one) => JSON.stringify(one))));
  expect(stage.requests(id)).toHaveLength(2);
});

test('a client that lost its connection in the middle runs the same again, and ends with the whole answer once', async () => {
  const id = world.id();
  const held = gate({ chars: 10 });
  stage.play(id, { thinking: { text: 'Counting.', signature: 'signed' }, ...text('One two three four five.'), hold: held });
  const agent = agentOf(id);
  const first = ask(agent, 'm1', say(id, 'count'), { runId: 'r1' });
  await held.reached;
  await waitFor(
    () => agent.messages.length,
    (count) => count >= 2,
  );
  agent.abortRun();
  await first.catch(() => undefined);
  expect(agent.messages.length).toBeGreaterThan(1);
  const again = runIt(agent, { runId: 'r1' });
  await waitFor(
    () => agent.isRunning,
    (isRunning) => isRunning,
  );
  held.release();
  expect((await again).last).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } });
  expect(words(agent.messages)).toEqual(['One two three four five.']);
  expect(agent.messages.flatMap((one) => (one.role === 'reasoning' ? [one.content] : []))).toEqual(['Counting.']);
  // A disconnect is no stop.
  expect((await world.client.turn(id, 'turn_0001')).stopReason).toBe('end');
  expect(stage.requests(id)).toHaveLength(1);
});

test('a failed attempt is taken away from the client again', async () => {
  const id = world.id();
  stage.play(
    id,
    { ...text('Half of it is lost'), chunks: { size: 6, delayMs: 150 }, fault: { kind: 'reset', at: 'before-block-stop' } },
    text('Whole, this time.'),
  );
  const agent = agentOf(id);
  const { events, types } = await ask(agent, 'm1', say(id, 'go'));
  expect(types).toContain('MESSAGES_SNAPSHOT');
  expect(events.filter(({ metadata }) => (metadata as { perdura?: { void?: boolean } } | undefined)?.perdura?.void === true)).toHaveLength(
    1,
  );
  expect(words(agent.messages)).toEqual(['Whole, this time.']);
});

test('stop is a route of its own: the run ends as cancelled, and what was said stays', async () => {
  const id = world.id();
  const held = gate({ chars: 10 });
  stage.play(id, { ...text('One two three four five.'), hold: held });
  const agent = agentOf(id);
  const running = ask(agent, 'm1', say(id, 'count'));
  await held.reached;
  const stopped = await fetch(`${served.url}/agui/${id}/stop`, { method: 'POST', headers: { authorization: `Bearer ${TOKEN}` } });
  expect(stopped.status).toBe(204);
  expect((await running).last).toMatchObject({
    type: 'RUN_FINISHED',
    outcome: { type: 'cancelled' },
    result: { stopReason: 'interrupted' },
  });
  held.release();
  expect('One two three four five.'.startsWith(words(agent.messages).join(''))).toBe(true);
});

test('approvals are interrupts: one allowed and one refused in one resume, and the run that answers goes on from there', async () => {
  const id = world.id();
  stage.play(id, callTools({ name: 'pay', input: { to: 'Ada' } }, { name: 'pay', input: { to: 'Bob' } }), (request) =>
    text(`Results: ${resultTexts(request).join('; ')}`),
  );
  const agent = agentOf(id);
  const { last } = await ask(agent, 'm1', say(id, 'pay them'));
  expect(last).toMatchObject({ outcome: { type: 'interrupt', interrupts: [{ reason: 'tool_call' }, { reason: 'tool_call' }] } });
  expect(agent.state).toMatchObject({ perdura: { phase: 'waiting' } });
  expect(paid).toEqual([]);
  const interrupts = structuredClone(agent.pendingInterrupts);
  const calls = agent.messages.flatMap((one) => (one.role === 'assistant' ? (one.toolCalls ?? []) : []));
  const isAda = (callId: string | undefined): boolean => calls.some((one) => one.id === callId && one.function.arguments.includes('Ada'));
  const resume = buildResumeArray(
    interrupts,
    Object.fromEntries(
      interrupts.map((one) => [
        one.id,
        { status: 'resolved', payload: isAda(one.toolCallId) ? { approved: true } : { approved: false, reason: 'not him' } },
      ]),
    ),
  );

  // As the protocol has it: what is open is answered before anything else is said; what is sent again is shown again.
  const other = agentOf(id);
  await expect(ask(other, 'm2', 'hello?')).resolves.toMatchObject({ last: { type: 'RUN_ERROR', code: 'interrupted' } });
  const reloaded = agentOf(id);
  const shown = await ask(reloaded, 'm1', say(id, 'pay them'));
  expect(shown.last).toMatchObject({ outcome: { type: 'interrupt', interrupts: [{}, {}] } });

  const { types, last: end } = await runIt(agent, { runId: 'r2', resume });
  expect(types).not.toContain('TOOL_CALL_START');
  expect(types).not.toContain('MESSAGES_SNAPSHOT');
  expect(end).toMatchObject({ type: 'RUN_FINISHED', runId: 'r2', outcome: { type: 'success' } });
  expect(agent.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
  expect(words(agent.messages).join('')).toContain('paid Ada');
  expect(words(agent.messages).join('')).toContain('not him');
  expect(paid).toEqual([{ to: 'Ada' }]);

  // Sent twice, it is decided once, and the client has the turn once.
  const before = words(agent.messages);
  await runIt(agent, { runId: 'r2', resume });
  expect(words(agent.messages)).toEqual(before);
  expect(agent.messages).toHaveLength(5);
  expect(paid).toHaveLength(1);
});

test('an approval counts for the arguments that the client has, may bring others, and words alone do not allow a call', async () => {
  const id = world.id();
  stage.play(id, callTool('pay', { to: 'Ada' }), (request) => text(resultTexts(request).join()));
  const agent = agentOf(id);
  await ask(agent, 'm1', say(id, 'pay'));
  const answer = async (payload: unknown, edit: (json: string) => string = (json) => json): Promise<BaseEvent> => {
    const one = agentOf(id);
    one.setMessages(JSON.parse(edit(JSON.stringify(agent.messages))) as Message[]);
    return (await runIt(one, { resume: [{ interruptId: 'turn_0001/c1', status: 'resolved', payload }] })).last;
  };
  expect(await answer({ approved: true }, (json) => json.replaceAll('Ada', 'Eve'))).toMatchObject({
    type: 'RUN_ERROR',
    message: expect.stringContaining('other arguments'),
  });
  expect(await answer('yes please')).toMatchObject({ type: 'RUN_ERROR', message: expect.stringContaining('an approval or a refusal') });
  expect(await world.client.approvals(id)).toHaveLength(1);
  const at = paid.length;
  expect(await answer({ approved: true, editedArgs: { to: 'Cleo' } })).toMatchObject({ outcome: { type: 'success' } });
  expect(paid.slice(at)).toEqual([{ to: 'Cleo' }]);
});

test('a question is an interrupt that is answered in words', async () => {
  const id = world.id();
  stage.play(id, callTool('ask_user', { question: 'Which colour?' }), (request) => text(`So: ${resultTexts(request).join()}`));
  const agent = agentOf(id);
  const { last } = await ask(agent, 'm1', say(id, 'paint'));
  expect(last).toMatchObject({
    outcome: { interrupts: [{ reason: 'input_required', message: expect.stringContaining('Which colour?') }] },
  });
  const [one] = agent.pendingInterrupts;
  const resume = [{ interruptId: one?.id ?? '', status: 'resolved', payload: { answer: 'Blue' } } as const];
  expect((await runIt(agent, { resume })).last).toMatchObject({ outcome: { type: 'success' } });
  expect(words(agent.messages).join('')).toContain('Blue');
});

test('a picture and what the page knows reach the model', async () => {
  const id = world.id();
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const content: InputContent[] = [
    { type: 'text', text: say(id, 'what is it?') },
    { type: 'image', source: { type: 'data', value: png, mimeType: 'image/png' } },
  ];
  const agent = agentOf(id);
  await ask(agent, 'm1', content, { context: [{ description: 'the page', value: 'the "cart"\nof Ada' }] });
  const asked = JSON.stringify(stage.requests(id)[0]);
  expect(asked).toContain(png);
  expect(asked).toContain(JSON.stringify(JSON.stringify({ description: 'the page', value: 'the "cart"\nof Ada' })).slice(1, -1));
  const cleared = await ask(agent, 'm2', '/new', { context: [{ description: 'the page', value: 'x' }] });
  expect(cleared.last).toMatchObject({ result: { stopReason: 'reset' } });
  expect(words(agent.messages).at(-1)).toBe('Session cleared.');
});

test('any string is the id of a thread, and what a conversation begins with comes in forwardedProps', async () => {
  const id = world.id();
  const agent = agentOf(`thread/${id}?ü`);
  const { last } = await ask(agent, 'm1', say(id, 'hi'), { forwardedProps: { perdura: { title: 'Of a page' }, other: [1] } });
  expect(last).toMatchObject({ threadId: `thread/${id}?ü`, outcome: { type: 'success' } });
  const { conversation } = (agent.state as { perdura: { conversation: string } }).perdura;
  expect(await world.client.describe(conversation)).toMatchObject({ title: 'Of a page' });
});

test('a turn that fails is RUN_ERROR, and a wrong token or request is refused with a status and the same words', async () => {
  const id = world.id();
  stage.play(id, { fault: { kind: 'status', status: 400, type: 'invalid_request_error', message: 'not like this' } });
  const failed = await ask(agentOf(id), 'm1', say(id, 'go'));
  expect(failed.last).toMatchObject({ type: 'RUN_ERROR', message: expect.stringContaining('not like this') });
  const refusal = (status: number, payload: object): object => ({ status, payload: expect.objectContaining(payload) as object });
  await expect(ask(agentOf(id, 'wrong'), 'm2', 'x')).rejects.toMatchObject(refusal(401, { code: 'unauthorized' }));
  await expect(runIt(agentOf(id))).rejects.toMatchObject(refusal(400, { code: 'invalid' }));
  await expect(ask(agentOf(id), 'm4', 'x', { forwardedProps: { perdura: { agent: 1 } } })).rejects.toMatchObject(refusal(400, {}));
  await expect(ask(agentOf(id), 'm5', 'x', { forwardedProps: { perdura: { rights: 'all' } } })).rejects.toMatchObject(refusal(400, {}));
  const noPdf: InputContent = { type: 'document', source: { type: 'data', value: 'AAAA', mimeType: 'application/pdf' } };
  await expect(ask(agentOf(id), 'm6', [noPdf])).rejects.toMatchObject(refusal(415, { code: 'media-type' }));
  await expect(ask(agentOf(id), '', 'x')).rejects.toMatchObject({ status: 400 });
});

test('broken JSON, more of it than a request may have, and answers to calls that there are not', async () => {
  const post = async (body: string): Promise<unknown[]> => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const response = await fetch(`${served.url}/agui`, { method: 'POST', headers, body });
    return [response.status, response.headers.get('content-type'), await response.text()];
  };
  const json = expect.stringContaining('application/json') as string;
  expect(await post('{"threadId":')).toEqual([400, json, '{"message":"the body is no JSON","code":"invalid"}']);
  expect(await post(`"${'x'.repeat(9 * 1024 * 1024)}"`)).toEqual([413, json, expect.stringContaining('too-large')]);
  const id = world.id();
  await world.client.send(id, say(id, 'hi'), { start: {} });
  const input: Partial<RunAgentInput> = { threadId: id, runId: 'r', messages: [] };
  const of = (interruptId: string): Promise<unknown[]> =>
    post(JSON.stringify({ ...input, resume: [{ interruptId, status: 'cancelled' }] }));
  const frames = [200, expect.stringContaining('text/event-stream'), expect.stringMatching(/RUN_STARTED[\s\S]*RUN_ERROR/)];
  expect(await of('what')).toEqual(frames);
  expect(await of('turn_0099/c1')).toEqual(frames);
});
