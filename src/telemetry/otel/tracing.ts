/**
 * Spans and metrics by OpenTelemetry's conventions. Loaded only where OTEL_* settings ask for it.
 *
 * - A tool run is a span around its activity. In a model step the call is a span, from the moment that the worker calls the model, and so
 *   is each tool that rode on it, from the times in its result. A turn is a span made at its end, from what observers get.
 * - An attempt that finds its work done makes no span and counts nothing.
 * - No content, unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says so; then bounded, and without our secrets.
 * - A failure here is logged and reaches neither an activity nor an observer.
 */
import {
  context,
  createContextKey,
  metrics,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  diag,
  DiagLogLevel,
} from '@opentelemetry/api';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import { NodeSDK, resources } from '@opentelemetry/sdk-node';
import type {
  ModelAnswer,
  ModelStepInput,
  ModelStepResult,
  RunToolInput,
  ToolFinished,
} from '../../conversation/turn/model-step-effects.js';
import type { ConversationEvent } from '../../conversation/event.js';
import { shownText } from '../../records/message.js';
import { PROVIDERS } from '../../models/known-models.js';
import type { ModelHook } from '../../models/model.js';
import type { Observed, DeliveryLog } from '../observer.js';
import type { Redactor } from '../log.js';
import { createTurnContext, deriveIds, type GivenIds, createGivenIds } from './turn-trace.js';
import { orUndefinedAfter } from '../../platform/promises.js';

const SCOPE = 'perdura';
const CONTENT_CHARACTERS = 64 * 1024;
const NAME_CHARACTERS = 100;
const MAX_OPEN_TURNS = 10_000;

export interface TracingOptions {
  readonly ids: GivenIds;
  readonly version: string;
  readonly redactor: Pick<Redactor, 'text'>;
  readonly captureContent: boolean;
}

export interface Tracing {
  readonly activities: ActivityInterceptorsFactory;
  readonly observer: (event: ConversationEvent, of: Observed) => void;
  readonly hooks: readonly ModelHook[];
}

interface Place {
  readonly namespace: string;
  readonly conversation: string;
  readonly attempt: number;
}

/** Where a model step keeps the span of its call, for the hook that begins it. */
const STEP = createContextKey('perdura.model-step');

interface OpenStep {
  readonly parent: Context;
  readonly attributes: Attributes;
  call?: { readonly span: Span; readonly named: Attributes; readonly startedAt: number };
}

export function createTracing({ ids, version, redactor, captureContent }: TracingOptions): Tracing {
  const tracer = trace.getTracer(SCOPE, version);
  const meter = metrics.getMeter(SCOPE, version);
  const tokens = meter.createHistogram(METRIC.tokens, {
    unit: '{token}',
    description: 'Tokens of model calls',
    advice: { explicitBucketBoundaries: [...BUCKETS.tokens] },
  });
  const duration = meter.createHistogram(METRIC.duration, {
    unit: 's',
    description: 'Duration of model calls and tool runs',
    advice: { explicitBucketBoundaries: [...BUCKETS.seconds] },
  });
  const text = (given: string, characters: number): string => redactor.text(given).slice(0, characters);
  const openTurns = new Map<string, number>();

  const findParent = ({ identity, turn }: ModelStepInput | RunToolInput, place: Place): Context =>
    createTurnContext(tracer, ids, deriveIds({ ...place, life: identity.life, turn }));
  const placed = ({ identity, turn }: ModelStepInput | RunToolInput, place: Place): Attributes => ({
    ...{ [A.conversation]: place.conversation, [A.agent]: identity.agent, [A.turn]: turn, [A.life]: identity.life },
    [A.attempt]: place.attempt,
  });
  const measure = (ms: number, attributes: Attributes): void =>
    duration.record(ms / 1_000, pick(attributes, [A.operation, A.provider, A.requestModel, A.errorType]));
  const failed = (span: Span, { type, message }: { readonly type: string; readonly message: string }): Attributes => {
    span.setStatus({ code: SpanStatusCode.ERROR, message: text(message, 300) });
    return { [A.errorType]: type };
  };

  const toolNamed = ({ name, callId }: { readonly name: string; readonly callId: string }): Attributes => ({
    [A.operation]: SPAN.executeTool,
    [A.toolName]: text(name, NAME_CHARACTERS),
    [A.toolCallId]: callId,
    [A.toolType]: 'function',
  });
  const startTool = (named: Attributes, at: number, parent: Context): Span => {
    const options = { kind: SpanKind.INTERNAL, attributes: named, startTime: at };
    return tracer.startSpan(`${SPAN.executeTool} ${String(named[A.toolName])}`, options, parent);
  };
  const endingOfTool = ({ outcome, text: result }: ToolFinished): Attributes => ({
    [A.outcome]: outcome,
    ...(outcome === 'ok' ? {} : { [A.errorType]: outcome }),
    ...(captureContent ? { [A.toolResult]: text(shownText(result), CONTENT_CHARACTERS) } : {}),
  });

  const executeTool = async (input: RunToolInput, place: Place, work: () => Promise<ToolFinished>): Promise<ToolFinished> => {
    const parent = findParent(input, place);
    const named = toolNamed(input);
    const startedAt = Date.now();
    const span = startTool({ ...placed(input, place), ...named }, startedAt, parent);
    const end = (ending: Attributes): void => {
      span.setAttributes(ending);
      span.end();
      measure(Date.now() - startedAt, { ...named, ...ending });
    };
    try {
      const finished = await context.with(trace.setSpan(parent, span), work);
      if (!isEarlier(finished.ts, startedAt)) end(endingOfTool(finished));
      return finished;
    } catch (error) {
      end(failed(span, readFailure(error)));
      throw error;
    }
  };

  const modelStep = async (input: ModelStepInput, place: Place, work: () => Promise<ModelStepResult>): Promise<ModelStepResult> => {
    const step: OpenStep = { parent: findParent(input, place), attributes: placed(input, place) };
    const startedAt = Date.now();
    const endCall = (describe: (span: Span, named: Attributes) => Attributes): void => {
      if (!step.call) return;
      const { span, named } = step.call;
      const all = describe(span, named);
      span.setAttributes(all);
      span.end();
      measure(Date.now() - step.call.startedAt, { ...named, ...all });
    };
    try {
      const result = await context.with(step.parent.setValue(STEP, step), work);
      for (const finished of result.tools) {
        if (isEarlier(finished.ts, startedAt)) continue;
        const named = toolNamed(finished);
        const ending = endingOfTool(finished);
        const endedAt = finished.ts * 1_000;
        startTool({ ...step.attributes, ...named, ...ending }, endedAt - finished.ms, step.parent).end(endedAt);
        measure(finished.ms, { ...named, ...ending });
      }
      if (result.kind === 'failed') endCall((span) => failed(span, result.failure));
      if (result.kind === 'answered') endCall((_span, named) => endingOfCall(result.answer, named));
      return result;
    } catch (error) {
      endCall((span) => failed(span, readFailure(error)));
      throw error;
    }
  };

  const endingOfCall = ({ usage, stop }: ModelAnswer, named: Attributes): Attributes => {
    tokens.record(usage.inputTokens, { ...named, [A.tokenType]: 'input' });
    tokens.record(usage.outputTokens, { ...named, [A.tokenType]: 'output' });
    return { ...toUsageAttributes(usage), [A.finishReasons]: [stop] };
  };

  /** Runs inside the step: a call that was committed before it is not repeated, and begins no span. */
  const callHook: ModelHook = {
    name: 'opentelemetry',
    beforeInvoke(messages, payload, { model }) {
      const step = context.active().getValue(STEP) as OpenStep | undefined;
      if (!step) return;
      const named = { [A.operation]: SPAN.chat, [A.provider]: toProvider(model), [A.requestModel]: toModelName(model) };
      const startedAt = Date.now();
      const attributes = { ...step.attributes, ...named, [A.maxTokens]: payload.maxTokens };
      const options = { kind: SpanKind.CLIENT, attributes, startTime: startedAt };
      const span = tracer.startSpan(`${SPAN.chat} ${toModelName(model)}`, options, step.parent);
      step.call = { span, named, startedAt };
      if (captureContent) {
        span.setAttributes({
          [A.systemInstructions]: text(payload.system, CONTENT_CHARACTERS),
          [A.inputMessages]: text(JSON.stringify(messages), CONTENT_CHARACTERS),
        });
      }
    },
    afterInvoke(_messages, { blocks }) {
      if (!captureContent) return;
      const step = context.active().getValue(STEP) as OpenStep | undefined;
      step?.call?.span.setAttribute(A.outputMessages, text(JSON.stringify([{ role: 'assistant', blocks }]), CONTENT_CHARACTERS));
    },
  };

  return {
    activities: ({ info }) => ({
      inbound: {
        execute(input, next) {
          const { workflowNamespace: namespace, workflowExecution, activityType, attempt } = info;
          if (!namespace || !workflowExecution) return next(input);
          const place = { namespace, conversation: workflowExecution.workflowId, attempt };
          const work = (): Promise<never> => next(input) as Promise<never>;
          if (activityType === 'model-step') return modelStep(input.args[0] as ModelStepInput, place, work);
          if (activityType === 'run-tool') return executeTool(input.args[0] as RunToolInput, place, work);
          return next(input);
        },
      },
    }),

    observer(event, { namespace, conversation, change }) {
      const turn = change?.turn;
      if (!turn) return;
      const place = { namespace, conversation, life: turn.life, turn: turn.turnId };
      const key = JSON.stringify(Object.values(place));
      if (!turn.ended) {
        openTurns.set(key, event.at);
        if (openTurns.size > MAX_OPEN_TURNS) openTurns.delete(openTurns.keys().next().value ?? '');
        return;
      }
      const { stopReason, usage, toolCalls, error } = turn.ended;
      const startedAt = openTurns.get(key);
      openTurns.delete(key);
      const attributes: Attributes = {
        [A.operation]: SPAN.invokeAgent,
        [A.conversation]: conversation,
        [A.agent]: turn.agent,
        [A.turn]: turn.turnId,
        [A.life]: turn.life,
        [A.stopReason]: stopReason,
        [A.toolCalls]: toolCalls,
        ...(turn.model !== null && { [A.provider]: toProvider(turn.model), [A.requestModel]: toModelName(turn.model) }),
        ...toUsageAttributes(usage),
        ...(error === undefined ? {} : { [A.errorType]: error }),
        // It began on another worker.
        ...(startedAt === undefined ? { [A.startUnknown]: true } : {}),
      };
      const options = { root: true, kind: SpanKind.INTERNAL, attributes, startTime: startedAt ?? event.at };
      const span: Span = ids.during(deriveIds(place), () => tracer.startSpan(`${SPAN.invokeAgent} ${turn.agent}`, options));
      if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
      span.end(event.at);
    },

    hooks: [callHook],
  };
}

/** Input is all of it, what a cache had included. */
function toUsageAttributes({ inputTokens, cachedTokens, outputTokens, costUsd }: ModelAnswer['usage']): Attributes {
  return {
    [A.inputTokens]: inputTokens,
    [A.cachedTokens]: cachedTokens,
    [A.outputTokens]: outputTokens,
    ...(costUsd === null || costUsd === undefined ? {} : { [A.costUsd]: costUsd }),
  };
}

/** `ts`: epoch seconds of the commit. Clocks of two workers differ by a little. */
function isEarlier(ts: number, startedAt: number): boolean {
  return ts * 1_000 < startedAt - 50;
}

function pick(from: Attributes, names: readonly string[]): Attributes {
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])));
}

function readFailure(error: unknown): { readonly type: string; readonly message: string } {
  const { type, name, message } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>;
  return { type: typeof type === 'string' && type !== '' ? type : String(name ?? 'unknown'), message: String(message ?? error) };
}

// OpenTelemetry's SDK, set up by its OTEL_* settings. Only this file loads it.

const SAID_EVERY_MS = 60_000;

export interface StartedTracing extends Tracing {
  /** Sends what is left, for at most `ms`. */
  close(ms: number): Promise<void>;
}

export function startTracing(options: Omit<TracingOptions, 'ids'> & { readonly log: () => DeliveryLog }): StartedTracing {
  const ids = createGivenIds();
  let saidAt = -Infinity;
  const quiet = (): void => undefined;
  const warn = (message: string): void => {
    if (Date.now() - saidAt < SAID_EVERY_MS) return;
    saidAt = Date.now();
    options.log().warn(`OpenTelemetry: ${message}`);
  };
  // Its first lines, before its logger, which OTEL_LOG_LEVEL turns on, may take over.
  diag.setLogger(
    { error: warn, warn, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
  const sdk = new NodeSDK({
    idGenerator: ids,
    resource: new resources.Resource({ 'service.name': 'perdura', 'service.version': options.version }),
  });
  sdk.start();
  return {
    ...createTracing({ ...options, ids }),
    async close(ms) {
      await orUndefinedAfter(
        ms,
        sdk.shutdown().catch((error: unknown) => warn(String(error))),
      );
    },
  };
}

/**
 * OpenTelemetry's semantic conventions for generative AI: every name that we use of them. They are in development: a change of them
 * changes this table alone.
 */
const SPAN = { invokeAgent: 'invoke_agent', chat: 'chat', executeTool: 'execute_tool' } as const;

const A = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  maxTokens: 'gen_ai.request.max_tokens',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  cachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  conversation: 'gen_ai.conversation.id',
  agent: 'gen_ai.agent.name',
  toolName: 'gen_ai.tool.name',
  toolCallId: 'gen_ai.tool.call.id',
  toolType: 'gen_ai.tool.type',
  toolResult: 'gen_ai.tool.call.result',
  systemInstructions: 'gen_ai.system_instructions',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  tokenType: 'gen_ai.token.type',
  errorType: 'error.type',
  // Ours, where the conventions have none.
  turn: 'perdura.turn',
  life: 'perdura.life',
  stopReason: 'perdura.turn.stop_reason',
  toolCalls: 'perdura.turn.tool_calls',
  costUsd: 'perdura.cost_usd',
  attempt: 'perdura.attempt',
  outcome: 'perdura.tool.outcome',
  startUnknown: 'perdura.turn.start_unknown',
} as const;

const METRIC = { tokens: 'gen_ai.client.token.usage', duration: 'gen_ai.client.operation.duration' } as const;

/** As the conventions give them. */
const BUCKETS = {
  tokens: [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
  seconds: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
} as const;

/** Of `provider/model`. */
function toProvider(model: string): string {
  const ours = model.split('/', 1)[0] ?? '';
  return PROVIDERS.get(ours)?.inTraces ?? ours;
}

/** The provider's name of the model. */
function toModelName(model: string): string {
  return model.slice(model.indexOf('/') + 1);
}
