/** Spans of activities and of turns, as an exporter gets them: names and attributes by the conventions, and nothing that is not theirs. */
import { context, metrics, trace, type Attributes } from '@opentelemetry/api';
import { node, tracing as sdk } from '@opentelemetry/sdk-node';
import type { ConversationEvent } from '../../src/conversation/event.js';
import type { TurnNews } from '../../src/conversation/views/observation.js';
import type { ModelStepInput, ModelStepResult, RunToolInput, ToolFinished } from '../../src/conversation/turn/model-step-effects.js';
import { createModelLimits, type Models } from '../../src/models/known-models.js';
import { ModelFailure, type Model, type ModelRequest, type ModelResponse } from '../../src/models/model.js';
import { createTracing, type Tracing, type TracingOptions } from '../../src/telemetry/otel/tracing.js';
import { createGivenIds, deriveCallIds, deriveIds } from '../../src/telemetry/otel/turn-trace.js';

const exporter = new sdk.InMemorySpanExporter();
const ids = createGivenIds();
const SECRET = 'sk-very-secret';
let tracing: Tracing;

function open(more: Partial<TracingOptions> = {}): Tracing {
  const redactor = { text: (text: string) => text.replaceAll(SECRET, '[redacted]') };
  return createTracing({ ids, version: '0', redactor, captureContent: true, ...more });
}

beforeAll(() => {
  new node.NodeTracerProvider({ idGenerator: ids, spanProcessors: [new sdk.SimpleSpanProcessor(exporter)] }).register();
  tracing = open();
});
beforeEach(() => exporter.reset());
afterAll(() => {
  trace.disable();
  context.disable();
  metrics.disable();
});

const MODEL = 'anthropic/claude-sonnet-4-5';
const USAGE = { inputTokens: 1_000, cachedTokens: 600, cacheWriteTokens: 300, outputTokens: 20 };
const ANSWER: ModelResponse = { blocks: [{ kind: 'text', text: 'noon' }], stop: 'end', usage: USAGE };
const REQUEST: ModelRequest = {
  model: 'claude-sonnet-4-5',
  maxTokens: 100,
  system: `be brief about ${SECRET}`,
  tools: [{ name: 'get_time', description: 'tells the time', inputSchema: { type: 'object' } }],
  messages: [
    {
      role: 'user',
      text: `what time is it, ${SECRET}?`,
      images: [
        { mediaType: 'image/png', base64: 'aGVq' },
        { mediaType: 'image/png', base64: 'A'.repeat(99_999) },
      ],
    },
    {
      role: 'assistant',
      blocks: [
        { kind: 'thinking', text: 'hm', provider: 'anthropic' },
        { kind: 'tool-call', callId: 'turn_0001/c1', name: 'get_time', input: { zone: 'UTC' } },
      ],
      model: MODEL,
      stop: 'tool-calls',
    },
    { role: 'tool', callId: 'turn_0001/c1', name: 'get_time', outcome: 'ok', text: 'noon' },
  ],
};
const IDENTITY = { life: 'l', agent: 'desk', scope: 'ada' };
const PLACE = { namespace: 'n', conversation: 'c', life: 'l', turn: 'turn_0001' };

function modelsThat(stream: Model['stream']): Models {
  return Object.assign((): Model => ({ provider: 'anthropic', stream }), { limits: createModelLimits() });
}

/** Asks as an activity does. */
async function ask(stream: Model['stream'] = () => Promise.resolve(ANSWER), of = tracing, request = REQUEST): Promise<void> {
  const model = of.traced(modelsThat(stream))(MODEL);
  await model.stream(request, { signal: new AbortController().signal, onDelta: () => undefined });
}

function ran(callId: string, more: Partial<ToolFinished> = {}): ToolFinished {
  const own = { life: 'l', session: 1, turn: 'turn_0001', callId, name: 'get_time', slot: 3, persisted: true };
  return { ...own, ts: Date.now() / 1000, ms: 20, outcome: 'ok', text: 'noon', ...more };
}

function stepped(tools: readonly ToolFinished[] = []): ModelStepResult {
  const own = { life: 'l', session: 1, turn: 'turn_0001', call: 'turn_0001/m2', slot: 4, ts: 1, model: MODEL };
  const answer = { ...own, blocks: [], stop: 'end', usage: { ...USAGE, costUsd: null }, plans: [], persisted: true } as const;
  return { written: { messages: [] }, tools, kind: 'answered', answer };
}

async function perform(activityType: string, input: unknown, work: () => Promise<unknown>, of = tracing): Promise<void> {
  const info = { workflowNamespace: 'n', workflowExecution: { workflowId: 'c' }, activityType, attempt: 1 };
  const { inbound } = of.activities({ info } as Parameters<Tracing['activities']>[0]);
  await inbound?.execute?.({ args: [input], headers: {} }, work).catch(() => undefined);
}
const step = (work: () => Promise<ModelStepResult>, of = tracing): Promise<void> =>
  perform('model-step', { identity: IDENTITY, turn: 'turn_0001' } as ModelStepInput, work, of);

const ended = (): sdk.ReadableSpan[] => exporter.getFinishedSpans();
const named = (name: string): sdk.ReadableSpan | undefined => ended().find((span) => span.name === name);
const ms = ([seconds, nanos]: readonly [number, number]): number => seconds * 1_000 + nanos / 1e6;
const json = (attributes: Attributes | undefined, name: string): unknown => JSON.parse(String(attributes?.[name]));

test('a model call has what the conventions ask for, in their words and parts; OpenInference’s kind and cost stand beside', async () => {
  await step(async () => {
    await ask((_request, { onServed, onDelta }) => {
      onServed?.({ url: 'https://api.anthropic.com/v1/messages?beta=true' });
      onServed?.({ id: 'msg_1', model: 'claude-sonnet-4-5-20250929' });
      onDelta({ kind: 'text', text: 'noon' });
      return Promise.resolve(ANSWER);
    });
    return stepped();
  });
  const chat = named('chat claude-sonnet-4-5');
  const { attributes = {} } = chat ?? {};
  expect(chat?.parentSpanContext?.spanId).toBe(deriveIds(PLACE).spanId);
  expect(attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.conversation.id': 'c',
    'gen_ai.agent.name': 'desk',
    'gen_ai.request.model': 'claude-sonnet-4-5',
    'gen_ai.request.max_tokens': 100,
    'gen_ai.request.stream': true,
    'gen_ai.response.id': 'msg_1',
    'gen_ai.response.model': 'claude-sonnet-4-5-20250929',
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.response.time_to_first_chunk': expect.any(Number),
    'gen_ai.usage.input_tokens': 1_000,
    'gen_ai.usage.cache_read.input_tokens': 600,
    'gen_ai.usage.cache_creation.input_tokens': 300,
    'gen_ai.usage.output_tokens': 20,
    'server.address': 'api.anthropic.com',
    'server.port': 443,
    'session.id': 'c',
    'user.id': 'ada',
    'openinference.span.kind': 'LLM',
    'output.value': 'noon',
    'output.mime_type': 'text/plain',
  });
  expect(attributes['llm.cost.total']).toBeCloseTo((100 * 3 + 600 * 0.3 + 300 * 3.75 + 20 * 15) / 1e6, 9);
  expect(json(attributes, 'gen_ai.system_instructions')).toEqual([{ type: 'text', content: 'be brief about [redacted]' }]);
  const input = [
    {
      role: 'user',
      parts: [
        { type: 'text', content: 'what time is it, [redacted]?' },
        { type: 'blob', modality: 'image', mime_type: 'image/png', content: 'aGVq' },
        { type: 'text', content: '[image/png, 75000 bytes: left out of the trace]' },
      ],
    },
    {
      role: 'assistant',
      parts: [
        { type: 'reasoning', content: 'hm' },
        { type: 'tool_call', id: 'turn_0001/c1', name: 'get_time', arguments: { zone: 'UTC' } },
      ],
    },
    { role: 'tool', parts: [{ type: 'tool_call_response', id: 'turn_0001/c1', response: 'noon' }] },
  ];
  expect(json(attributes, 'gen_ai.input.messages')).toEqual(input);
  expect(json(attributes, 'input.value')).toEqual([
    { role: 'system', parts: [{ type: 'text', content: 'be brief about [redacted]' }] },
    ...input,
  ]);
  expect(json(attributes, 'gen_ai.output.messages')).toEqual([
    { role: 'assistant', parts: [{ type: 'text', content: 'noon' }], finish_reason: 'stop' },
  ]);
  expect(json(attributes, 'gen_ai.tool.definitions')).toEqual([{ type: 'function', name: 'get_time' }]);
});

test.each([
  ['end', 'stop'],
  ['tool-calls', 'tool_call'],
  ['max-tokens', 'length'],
  ['context-full', 'length'],
  ['refusal', 'content_filter'],
  ['pause', 'stop'],
] as const)('an answer that ended by %s has the finish reason %s', async (stop, word) => {
  await step(() => ask(() => Promise.resolve({ ...ANSWER, stop })).then(() => stepped()));
  expect(ended()[0]?.attributes['gen_ai.response.finish_reasons']).toEqual([word]);
});

test('without the wish nothing of what was said is there', async () => {
  const silent = open({ captureContent: false });
  await step(() => ask(undefined, silent).then(() => stepped([ran('turn_0001/c1', { text: 'the word' })])), silent);
  expect(ended()).toHaveLength(2);
  const all = JSON.stringify(ended().map(({ attributes, name }) => [name, attributes]));
  for (const word of ['what time', 'be brief', 'noon', 'the word', 'messages', 'input.value', 'output.value', 'arguments'])
    expect(all).not.toContain(word);
});

test('a long conversation is cut to the newest of it, and stays JSON in the conventions’ form; no half of a secret is left', async () => {
  const long = { role: 'user', text: `${'x'.repeat(16 * 1024 - 5)}${SECRET}${'y'.repeat(40_000)}` } as const;
  await step(() => ask(undefined, tracing, { ...REQUEST, messages: Array.from({ length: 40 }, () => long) }).then(() => stepped()));
  const { attributes = {} } = ended()[0] ?? {};
  const messages = json(attributes, 'gen_ai.input.messages') as { parts: { content: string }[] }[];
  expect(String(attributes['gen_ai.input.messages']).length).toBeLessThanOrEqual(64 * 1024);
  expect(messages.length + Number(attributes['perdura.input.messages_left_out'])).toBe(40);
  expect(messages.at(-1)?.parts[0]?.content).toMatch(/characters left out\]$/);
  expect(JSON.stringify(attributes)).not.toContain('sk-ve');
});

test('a model that failed is a span with its failure and its server; what else asks models is a link of the chain above them', async () => {
  await step(async () => {
    await ask((_request, { onServed }) => {
      onServed?.({ url: 'http://127.0.0.1:11434/api/chat' });
      return Promise.reject(new ModelFailure('overloaded', 'too many'));
    });
    return stepped();
  });
  expect(named('chat claude-sonnet-4-5')).toMatchObject({
    status: { code: 2, message: 'too many' },
    attributes: { 'error.type': 'overloaded', 'server.address': '127.0.0.1', 'server.port': 11434 },
  });
  exporter.reset();
  const compacted = { kind: 'compacted', method: 'model', tokensBefore: 900, tokensAfter: 100, base: { ref: 'r', text: 'what was' } };
  await perform('compact', { identity: IDENTITY, currentTurn: 'turn_0001' }, () => ask().then(() => compacted));
  const [chat, compaction] = [named('chat claude-sonnet-4-5'), named('compaction')];
  expect(compaction?.attributes).toMatchObject({
    'openinference.span.kind': 'CHAIN',
    'perdura.compaction.tokens_after': 100,
    'session.id': 'c',
  });
  expect([compaction?.spanContext().traceId, compaction?.parentSpanContext?.spanId]).toEqual(Object.values(deriveIds(PLACE)));
  expect(chat?.parentSpanContext?.spanId).toBe(compaction?.spanContext().spanId);
  exporter.reset();
  await perform('consolidate', { scope: 'acme.ada', request: { conversation: 'c', life: 'l', agent: 'desk' } }, () => ask());
  expect(named('consolidation')?.attributes).toMatchObject({ 'session.id': 'c', 'user.id': 'ada', 'perdura.tenant': 'acme' });
  expect(named('consolidation')?.parentSpanContext).toBeUndefined();
  exporter.reset();
  await perform('care', { scope: 'acme.ada', agent: 'desk' }, () => ask());
  expect(named('memory care')?.attributes).toMatchObject({
    'openinference.span.kind': 'CHAIN',
    'user.id': 'ada',
    'perdura.tenant': 'acme',
  });
  expect(named('chat claude-sonnet-4-5')?.parentSpanContext?.spanId).toBe(named('memory care')?.spanContext().spanId);
});

test('a tool has its arguments, result, kind and id, whether it ran by itself or rode; the models that it asks are below it', async () => {
  const input = { identity: IDENTITY, turn: 'turn_0001', callId: 'turn_0001/c1', name: 'get_time' } as RunToolInput;
  await perform('run-tool', input, async () => {
    tracing.toolCalled('turn_0001/c1', { key: SECRET });
    await ask();
    return ran('turn_0001/c1');
  });
  const tool = named('execute_tool get_time');
  expect(tool?.attributes).toMatchObject({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'get_time',
    'gen_ai.tool.call.id': 'turn_0001/c1',
    'gen_ai.tool.type': 'function',
    'gen_ai.tool.call.arguments': '{"key":"[redacted]"}',
    'gen_ai.tool.call.result': 'noon',
    'input.value': '{"key":"[redacted]"}',
    'output.value': 'noon',
    'openinference.span.kind': 'TOOL',
    'perdura.tool.outcome': 'ok',
  });
  expect(named('chat claude-sonnet-4-5')?.parentSpanContext?.spanId).toBe(tool?.spanContext().spanId);
  exporter.reset();
  const rode = ran('turn_0001/c2', { ms: 300, outcome: 'error' });
  await step(async () => {
    tracing.toolCalled('turn_0001/c2', { n: 1 });
    return Promise.resolve(stepped([rode, ran('turn_0001/c3', { ts: Date.now() / 1000 - 5 })]));
  });
  // The third is of an earlier attempt.
  expect(ended()).toHaveLength(1);
  expect([Math.round(ms(ended()[0]!.duration)), Math.round(ms(ended()[0]!.endTime))]).toEqual([300, Math.round(rode.ts * 1_000)]);
  expect(ended()[0]).toMatchObject({
    status: { code: 2 },
    attributes: { 'error.type': 'error', 'gen_ai.tool.call.arguments': '{"n":1}' },
  });
});

const NEWS: TurnNews = { turnId: 'turn_0001', agent: 'desk', model: MODEL, life: 'l', scope: 'desk', messageIds: ['m1'] };
const END = { stopReason: 'end', usage: { ...USAGE, costUsd: 0.01 }, toolCalls: 2 } as const;

/** Events here count from it: OpenTelemetry takes a small number for the age of the process. */
const BEGAN = 1_795_000_000_000;

function tell(events: readonly (readonly [ConversationEvent, TurnNews?])[], conversation = 'c', of = tracing): void {
  for (const [given, turn] of events) {
    const event = 'at' in given ? { ...given, at: BEGAN + given.at } : given;
    const change = turn && { before: {}, after: {}, context: false, turn };
    of.observer(event, { namespace: 'n', conversation, runId: 'r', notifications: [], change: (change ?? null) as never });
  }
}

const said = (text: string, at: number, messageId = 'm1'): ConversationEvent => ({
  kind: 'message-received',
  messageId,
  delivery: 'queue',
  text,
  at,
});
function stepDone(at: number, answer: object): ConversationEvent {
  const output = { written: { messages: [] }, tools: [], kind: 'answered', answer };
  return { kind: 'effect-completed', effect: 'model-step', id: `s${at}`, output, at } as unknown as ConversationEvent;
}

test('a turn is an agent’s span with question, answer, session and sums; an approval is a link of its chain', () => {
  const call = { kind: 'tool-call', callId: 'turn_0001/c1', name: 'pay', input: { euros: 5 } };
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  tell([
    [said('pay him', 1_000)],
    [
      { kind: 'turn-begun', at: 1_100 },
      { ...NEWS, traceparent },
    ],
    [stepDone(1_200, { blocks: [call], plans: [{ approval: { policy: 'ask' } }] })],
    [{ kind: 'decided', decision: { callId: 'turn_0001/c9', decision: 'approve' }, at: 1_300 }],
    [{ kind: 'decided', decision: { callId: 'turn_0001/c1', decision: 'deny', note: 'too much' }, at: 5_200 }],
    [stepDone(6_000, { blocks: [{ kind: 'text', text: 'not paid' }] }), { ...NEWS, traceparent, ended: END }],
  ]);
  const [approval, turn] = [named('approval pay'), named('invoke_agent desk')];
  expect(ended()).toHaveLength(2);
  expect(approval).toMatchObject({
    attributes: {
      'openinference.span.kind': 'CHAIN',
      'perdura.approval.decision': 'deny',
      'gen_ai.tool.name': 'pay',
      'gen_ai.tool.call.id': 'turn_0001/c1',
      'input.value': '{"euros":5}',
      'output.value': 'too much',
    },
  });
  expect(ms(approval!.duration)).toBe(4_000);
  expect(approval?.parentSpanContext?.spanId).toBe(turn?.spanContext().spanId);
  expect({ ...turn?.spanContext() }).toMatchObject(deriveIds(PLACE));
  expect(turn?.parentSpanContext).toBeUndefined();
  expect(turn?.links.map(({ context: { traceId, spanId } }) => [traceId, spanId])).toEqual([
    ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'],
  ]);
  expect(turn?.attributes).toMatchObject({
    'openinference.span.kind': 'AGENT',
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.request.model': 'claude-sonnet-4-5',
    'gen_ai.usage.input_tokens': 1_000,
    'session.id': 'c',
    'input.value': 'pay him',
    'output.value': 'not paid',
    'perdura.turn.stop_reason': 'end',
    'perdura.cost_usd': 0.01,
  });
  expect(json(turn?.attributes, 'gen_ai.output.messages')).toEqual([
    { role: 'assistant', parts: [{ type: 'text', content: 'not paid' }], finish_reason: 'stop' },
  ]);
  // The agent's memory for all is no user.
  expect(turn?.attributes).not.toHaveProperty('user.id');
  expect(turn?.attributes).not.toHaveProperty('perdura.turn.start_unknown');
});

test('delegate is a tool’s span, and the sub-agent’s turn links to it, in the same session', () => {
  const child = 'c:turn_0001:1';
  const input = { callId: 'turn_0001/c1', child, options: { agent: 'clerk', delegation: { task: 'look it up' } } };
  const parent = { conversation: 'c', life: 'l', callId: 'turn_0001/c1' };
  const theirs: TurnNews = { ...NEWS, agent: 'clerk', life: 'l2', messageIds: ['task'], parent };
  tell([
    [{ kind: 'turn-begun', at: 1_000 }, NEWS],
    [{ kind: 'effect-started', effect: 'start-child', id: 'k', input, at: 1_500 } as unknown as ConversationEvent],
  ]);
  tell(
    [
      [{ kind: 'turn-begun', at: 1_600 }, theirs],
      [stepDone(2_000, { blocks: [{ kind: 'text', text: 'found' }] }), { ...theirs, ended: END }],
    ],
    child,
  );
  const report = { text: 'found', stopReason: 'end', usage: { ...USAGE, costUsd: null } } as const;
  tell([[{ kind: 'child-ended', callId: 'turn_0001/c1', report, at: 2_500 }]]);
  const [agent, tool] = [named('invoke_agent clerk'), named('execute_tool delegate')];
  expect(tool?.attributes).toMatchObject({
    'openinference.span.kind': 'TOOL',
    'gen_ai.tool.name': 'delegate',
    'gen_ai.tool.call.arguments': '{"agent":"clerk","task":"look it up"}',
    'gen_ai.tool.call.result': 'found',
    'perdura.child.conversation': child,
  });
  expect({ ...tool?.spanContext() }).toMatchObject(deriveCallIds(PLACE, 'turn_0001/c1'));
  expect(agent?.links.map(({ context: { spanId } }) => spanId)).toEqual([tool?.spanContext().spanId]);
  expect(agent?.attributes).toMatchObject({
    'session.id': 'c',
    'gen_ai.conversation.id': child,
    'input.value': 'look it up',
    'output.value': 'found',
  });
});

test('a worker that goes on after another one says that it does not know when the turn began', () => {
  tell([
    [
      { kind: 'time-passed', at: 9_000 },
      { ...NEWS, turnId: 'turn_0007', ended: { ...END, error: 'overloaded' } },
    ],
  ]);
  expect(named('invoke_agent desk')).toMatchObject({
    status: { code: 2 },
    attributes: { 'perdura.turn.start_unknown': true, 'error.type': 'overloaded' },
  });
});
