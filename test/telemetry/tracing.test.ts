/** Spans of a model step: its call from the moment that the model is asked, and the tools that rode on it. */
import { metrics, trace } from '@opentelemetry/api';
import { node, tracing as sdk } from '@opentelemetry/sdk-node';
import type { ModelStepInput, ModelStepResult, ToolFinished } from '../../src/conversation/turn/model-step-effects.js';
import type { ModelRequest, ModelResponse } from '../../src/models/model.js';
import { createTracing, type Tracing } from '../../src/telemetry/otel/tracing.js';
import { createGivenIds } from '../../src/telemetry/otel/turn-trace.js';

const exporter = new sdk.InMemorySpanExporter();
let tracing: Tracing;

beforeAll(() => {
  const ids = createGivenIds();
  const provider = new node.NodeTracerProvider({ idGenerator: ids, spanProcessors: [new sdk.SimpleSpanProcessor(exporter)] });
  provider.register();
  tracing = createTracing({ ids, version: '0', redactor: { text: (text) => text }, captureContent: true });
});
beforeEach(() => exporter.reset());
afterAll(() => {
  trace.disable();
  metrics.disable();
});

const USAGE = { inputTokens: 5, cachedTokens: 0, outputTokens: 2, costUsd: null };
const OF = { written: { messages: [] } };

function ran(callId: string, more: Partial<ToolFinished> = {}): ToolFinished {
  const own = { life: 'l', session: 1, turn: 'turn_0001', callId, name: 'get_time', slot: 3, persisted: true };
  return { ...own, ts: Date.now() / 1000, ms: 20, outcome: 'ok', text: 'noon', ...more };
}

function answered(tools: readonly ToolFinished[]): ModelStepResult {
  const own = { life: 'l', session: 1, turn: 'turn_0001', call: 'turn_0001/m2', slot: 4, ts: 1, model: 'anthropic/claude-x' };
  return { ...OF, tools, kind: 'answered', answer: { ...own, blocks: [], stop: 'end', usage: USAGE, plans: [], persisted: true } };
}

/** What the activity does, as far as hooks see it. */
async function ask(): Promise<void> {
  const call = { conversation: 'c', turn: 'turn_0001', call: 'turn_0001/m2', model: 'anthropic/claude-x' };
  const request: ModelRequest = { model: 'claude-x', maxTokens: 100, system: 'be brief', tools: [], messages: [] };
  const response: ModelResponse = { blocks: [{ kind: 'text', text: 'noon' }], stop: 'end', usage: USAGE };
  await Promise.resolve();
  for (const hook of tracing.hooks) await hook.beforeInvoke?.([], request, call);
  for (const hook of tracing.hooks) await hook.afterInvoke?.([], response, call);
}

/** The spans that have ended, by name. */
async function step(work: () => Promise<ModelStepResult>): Promise<Map<string, sdk.ReadableSpan>> {
  const info = { workflowNamespace: 'n', workflowExecution: { workflowId: 'c' }, activityType: 'model-step', attempt: 1 };
  const { inbound } = tracing.activities({ info } as Parameters<Tracing['activities']>[0]);
  const input = { identity: { life: 'l', agent: 'desk', scope: 's' }, turn: 'turn_0001' } as ModelStepInput;
  await inbound?.execute?.({ args: [input], headers: {} }, work).catch(() => undefined);
  return new Map(
    exporter.getFinishedSpans().map((span) => [`${span.name} ${String(span.attributes['gen_ai.tool.call.id'] ?? '')}`.trim(), span]),
  );
}

const ms = ([seconds, nanos]: readonly [number, number]): number => seconds * 1_000 + nanos / 1e6;

test('the call begins when the model is asked; a tool that rode ended when its result says, and ran as long as that says', async () => {
  const asked = Date.now() - 60_000;
  const tool = ran('turn_0001/c1', { ms: 300, outcome: 'error' });
  const spans = await step(async () => {
    const clock = jest.spyOn(Date, 'now').mockReturnValue(asked);
    await ask();
    clock.mockRestore();
    return answered([tool]);
  });
  const [chat, rode] = [spans.get('chat claude-x'), spans.get('execute_tool get_time turn_0001/c1')];
  expect(spans.size).toBe(2);
  expect(ms(chat!.startTime)).toBe(asked);
  expect(chat?.attributes).toMatchObject({
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.request.max_tokens': 100,
    'gen_ai.usage.input_tokens': 5,
    'gen_ai.system_instructions': 'be brief',
    'gen_ai.output.messages': expect.stringContaining('noon'),
    'gen_ai.agent.name': 'desk',
    'perdura.attempt': 1,
  });
  expect([Math.round(ms(rode!.duration)), Math.round(ms(rode!.endTime))]).toEqual([300, Math.round(tool.ts * 1_000)]);
  expect(rode?.attributes).toMatchObject({ 'perdura.tool.outcome': 'error', 'error.type': 'error', 'gen_ai.tool.call.result': 'noon' });
  expect([rode?.parentSpanId, rode?.spanContext().traceId]).toEqual([chat?.parentSpanId, chat?.spanContext().traceId]);
});

test('what an earlier attempt had done is no span: neither a tool nor an answer', async () => {
  const spans = await step(() => Promise.resolve(answered([ran('turn_0001/c1', { ts: Date.now() / 1000 - 5 })])));
  expect([...spans.keys()]).toEqual([]);
});

test('a model that failed is a span with its failure, whether the step says so or throws; a step that was deferred has none', async () => {
  const failure = { type: 'overloaded', message: 'too many', transient: true };
  const told = await step(() => ask().then(() => ({ ...OF, tools: [], kind: 'failed', failure })));
  expect(told.get('chat claude-x')).toMatchObject({ status: { code: 2, message: 'too many' }, attributes: { 'error.type': 'overloaded' } });
  exporter.reset();
  const thrown = await step(() => ask().then(() => Promise.reject(Object.assign(new Error('gone'), { type: 'transient' }))));
  expect(thrown.get('chat claude-x')).toMatchObject({ status: { code: 2, message: 'gone' }, attributes: { 'error.type': 'transient' } });
  exporter.reset();
  const deferred = await step(() => Promise.resolve({ ...OF, tools: [ran('turn_0001/c1')], kind: 'deferred', reason: 'budget' }));
  expect([...deferred.keys()]).toEqual(['execute_tool get_time turn_0001/c1']);
});
