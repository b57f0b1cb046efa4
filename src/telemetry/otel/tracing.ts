/**
 * Spans and metrics by OpenTelemetry's conventions (names.ts). Loaded only where OTEL_* settings ask for it.
 *
 * T1  A model call and a tool run are spans around their activities; a turn is a span made at its end, from what observers are told.
 * T2  An attempt that finds its work done by an earlier one makes no span and counts nothing.
 * T3  No content, unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says so; then bounded, and without our secrets.
 * T4  What fails here is logged and reaches neither an activity nor an observer.
 */
import { context, metrics, SpanKind, SpanStatusCode, trace, type Attributes, type Span } from '@opentelemetry/api';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import type { CallModelInput, ModelAnswer } from '../../conversation/effects.js';
import type { RunToolInput, ToolFinished } from '../../conversation/tool-effects.js';
import type { ConversationEvent } from '../../conversation/event.js';
import { shownText } from '../../conversation/message.js';
import type { ModelHook } from '../../models/hooks.js';
import type { Observed } from '../observer.js';
import type { Redactor } from '../redact.js';
import { ATTRIBUTE as A, BUCKETS, METRIC, modelOf, providerOf, SPAN } from './names.js';
import { contextOf, idsOf, type GivenIds } from './turn-trace.js';

const SCOPE = 'perdura';
const CONTENT_CHARACTERS = 64 * 1024;
const NAME_CHARACTERS = 100;
const MOST_OPEN_TURNS = 10_000;

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

/** What is said of a span when it ends; undefined: it was done before (T2). */
type Ending = Attributes | undefined;

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

  const around = async <T>(
    input: CallModelInput | RunToolInput,
    place: Place,
    { name, kind, attributes }: { name: string; kind: SpanKind; attributes: Attributes },
    work: () => Promise<T>,
    ending: (result: T, startedAt: number) => Ending,
  ): Promise<T> => {
    const { identity, turn } = input;
    const parent = contextOf(tracer, ids, idsOf({ ...place, life: identity.life, turn }));
    const startedAt = Date.now();
    const common = { [A.conversation]: place.conversation, [A.agent]: identity.agent, [A.turn]: turn, [A.life]: identity.life };
    const all = { ...common, ...attributes, [A.attempt]: place.attempt };
    const span = tracer.startSpan(name, { kind, attributes: all, startTime: startedAt }, parent);
    const end = (said: Attributes): void => {
      span.setAttributes(said);
      span.end();
      const measured = pick({ ...attributes, ...said }, [A.operation, A.provider, A.requestModel, A.errorType]);
      duration.record((Date.now() - startedAt) / 1_000, measured);
    };
    try {
      const result = await context.with(trace.setSpan(parent, span), work);
      const said = ending(result, startedAt);
      if (said) end(said);
      return result;
    } catch (error) {
      const { type, message } = failureOf(error);
      span.setStatus({ code: SpanStatusCode.ERROR, message: text(message, 300) });
      end({ [A.errorType]: type });
      throw error;
    }
  };

  const chat = (input: CallModelInput, place: Place, work: () => Promise<ModelAnswer>): Promise<ModelAnswer> => {
    const named = { [A.operation]: SPAN.chat, [A.provider]: providerOf(input.model), [A.requestModel]: modelOf(input.model) };
    return around(
      input,
      place,
      { name: `${SPAN.chat} ${modelOf(input.model)}`, kind: SpanKind.CLIENT, attributes: named },
      work,
      (answer, startedAt) => {
        if (isEarlier(answer.ts, startedAt)) return undefined;
        const { usage, stop } = answer;
        tokens.record(usage.inputTokens, { ...named, [A.tokenType]: 'input' });
        tokens.record(usage.outputTokens, { ...named, [A.tokenType]: 'output' });
        return { ...usageOf(usage), [A.finishReasons]: [stop] };
      },
    );
  };

  const executeTool = (input: RunToolInput, place: Place, work: () => Promise<ToolFinished>): Promise<ToolFinished> => {
    const tool = text(input.name, NAME_CHARACTERS);
    const named = { [A.operation]: SPAN.executeTool, [A.toolName]: tool, [A.toolCallId]: input.callId, [A.toolType]: 'function' };
    return around(
      input,
      place,
      { name: `${SPAN.executeTool} ${tool}`, kind: SpanKind.INTERNAL, attributes: named },
      work,
      (finished, startedAt) => {
        if (isEarlier(finished.ts, startedAt)) return undefined;
        const { outcome } = finished;
        const content = captureContent ? { [A.toolResult]: text(shownText(finished.text), CONTENT_CHARACTERS) } : {};
        return { [A.outcome]: outcome, ...(outcome === 'ok' ? {} : { [A.errorType]: outcome }), ...content };
      },
    );
  };

  return {
    activities: ({ info }) => ({
      inbound: {
        execute(input, next) {
          const { workflowNamespace: namespace, workflowExecution, activityType, attempt } = info;
          if (!namespace || !workflowExecution) return next(input);
          const place = { namespace, conversation: workflowExecution.workflowId, attempt };
          const work = (): Promise<never> => next(input) as Promise<never>;
          if (activityType === 'call-model') return chat(input.args[0] as CallModelInput, place, work);
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
        if (openTurns.size > MOST_OPEN_TURNS) openTurns.delete(openTurns.keys().next().value ?? '');
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
        ...(turn.model !== null && { [A.provider]: providerOf(turn.model), [A.requestModel]: modelOf(turn.model) }),
        ...usageOf(usage),
        ...(error === undefined ? {} : { [A.errorType]: error }),
        // It began on another worker.
        ...(startedAt === undefined ? { [A.startUnknown]: true } : {}),
      };
      const options = { root: true, kind: SpanKind.INTERNAL, attributes, startTime: startedAt ?? event.at };
      const span: Span = ids.during(idsOf(place), () => tracer.startSpan(`${SPAN.invokeAgent} ${turn.agent}`, options));
      if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
      span.end(event.at);
    },

    hooks: [contentHook(captureContent, (given) => text(given, CONTENT_CHARACTERS))],
  };
}

/** Runs inside the activity, where the span of its call is the active one. */
function contentHook(captures: boolean, text: (given: string) => string): ModelHook {
  const json = (value: unknown): string => text(JSON.stringify(value));
  return {
    name: 'opentelemetry',
    beforeInvoke(messages, payload) {
      const span = trace.getActiveSpan();
      span?.setAttribute(A.maxTokens, payload.maxTokens);
      if (captures) span?.setAttributes({ [A.systemInstructions]: text(payload.system), [A.inputMessages]: json(messages) });
    },
    afterInvoke(_messages, { blocks }) {
      if (captures) trace.getActiveSpan()?.setAttribute(A.outputMessages, json([{ role: 'assistant', blocks }]));
    },
  };
}

/** Input is all of it, what a cache had included. */
function usageOf({ inputTokens, cachedTokens, outputTokens, costUsd }: ModelAnswer['usage']): Attributes {
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

function failureOf(error: unknown): { readonly type: string; readonly message: string } {
  const { type, name, message } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>;
  return { type: typeof type === 'string' && type !== '' ? type : String(name ?? 'unknown'), message: String(message ?? error) };
}
