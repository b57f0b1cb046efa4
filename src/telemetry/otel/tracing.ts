/**
 * Spans and metrics by OpenTelemetry's conventions. Loaded only where OTEL_* settings ask for it.
 *
 * - Every call of a model is a span: below the turn, below the tool that asks it, or below what the memory's care does.
 * - A tool run is a span around its activity; of a tool that rode on a model step it is made from the times in its result. What else asks
 *   models (compaction, consolidation, memory care, a title) is a span around its activity. A turn is a span made at its end (turn-spans.ts).
 * - An attempt that finds its work done makes no span and counts nothing.
 * - No content, unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says so; then bounded, and without our secrets.
 * - A failure here is logged and reaches neither an activity nor an observer.
 */
import {
  context,
  createContextKey,
  metrics,
  ROOT_CONTEXT,
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
import { NodeSDK } from '@opentelemetry/sdk-node';
import type {
  ModelStepInput,
  ModelStepResult,
  RunToolInput,
  TitleInput,
  ToolFinished,
} from '../../conversation/turn/model-step-effects.js';
import type { CompactInput, Compacted, ConsolidateInput } from '../../conversation/context/compaction-effects.js';
import type { ConversationEvent } from '../../conversation/event.js';
import { shownText, type JsonValue } from '../../records/message.js';
import { costUsd, type Models } from '../../models/known-models.js';
import { ModelInterrupted, withStream, type Model, type ModelRequest, type ModelResponse, type StreamOptions } from '../../models/model.js';
import type { Observed, DeliveryLog } from '../observer.js';
import type { Redactor } from '../log.js';
import {
  A,
  BUCKETS,
  createContent,
  FINISH,
  METRIC,
  SPAN,
  toModelAttributes,
  toModelName,
  toServer,
  toUsageAttributes,
} from './conventions.js';
import { toArguments, createTurnSpans, toResult, whose } from './turn-spans.js';
import { createTurnContext, deriveIds, createGivenIds, type GivenIds } from './turn-trace.js';
import { orUndefinedAfter } from '../../platform/promises.js';

const SCOPE = 'perdura';
const NAME_CHARACTERS = 100;

export interface TracingOptions {
  readonly ids: GivenIds;
  readonly version: string;
  readonly redactor: Pick<Redactor, 'text'>;
  readonly captureContent: boolean;
}

export interface Tracing {
  readonly activities: ActivityInterceptorsFactory;
  readonly observer: (event: ConversationEvent, of: Observed) => void;
  /** The same models, each call of which is a span where an activity makes it. */
  readonly traced: (models: Models) => Models;
  /** A tool of the running activity has been given these arguments. */
  readonly toolCalled: (callId: string, input: JsonValue) => void;
}

interface Place {
  readonly namespace: string;
  readonly conversation: string;
  readonly attempt: number;
}

/** What the running activity is, for the spans inside it. */
const WORK = createContextKey('perdura.work');

interface Work {
  readonly attributes: Attributes;
  readonly arguments: Map<string, JsonValue>;
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
  const content = captureContent ? createContent((text) => redactor.text(text)) : undefined;
  const short = (text: string, characters: number): string => redactor.text(text).slice(0, characters);

  const measure = (ms: number, attributes: Attributes): void => duration.record(ms / 1_000, pick(attributes, MEASURED));
  const failed = (span: Span, { type, message }: { readonly type: string; readonly message: string }): Attributes => {
    span.setStatus({ code: SpanStatusCode.ERROR, message: short(message, 300) });
    return { [A.errorType]: type };
  };
  const within = <T>(parent: Context, work: Work, run: () => Promise<T>): Promise<T> => context.with(parent.setValue(WORK, work), run);
  const turnContext = ({ namespace, conversation }: Place, life: string, turn: string): Context =>
    createTurnContext(tracer, ids, deriveIds({ namespace, conversation, life, turn }));
  const inTurn = ({ identity, turn }: Pick<ModelStepInput, 'identity' | 'turn'>, { conversation, attempt }: Place): Attributes => ({
    ...{ [A.conversation]: conversation, [A.agent]: identity.agent, [A.turn]: turn, [A.life]: identity.life },
    ...whose(conversation, identity),
    [A.attempt]: attempt,
  });

  const toolNamed = ({ name, callId }: { readonly name: string; readonly callId: string }): Attributes => ({
    [A.kind]: 'TOOL',
    [A.operation]: SPAN.executeTool,
    [A.toolName]: short(name, NAME_CHARACTERS),
    [A.toolCallId]: callId,
    [A.toolType]: 'function',
  });
  const startTool = (named: Attributes, at: number, parent: Context): Span => {
    const options = { kind: SpanKind.INTERNAL, attributes: named, startTime: at };
    return tracer.startSpan(`${SPAN.executeTool} ${String(named[A.toolName])}`, options, parent);
  };
  const endTool = (span: Span, { outcome, text, callId }: ToolFinished, work: Work, at?: number): Attributes => {
    const given = work.arguments.get(callId);
    const ending: Attributes = {
      [A.outcome]: outcome,
      ...(outcome === 'ok' ? {} : failed(span, { type: outcome, message: outcome })),
      ...(content && given !== undefined && toArguments(content.json(given))),
      ...(content && toResult(content.text(shownText(text)))),
    };
    span.setAttributes(ending).end(at);
    return ending;
  };

  const executeTool = async (input: RunToolInput, place: Place, run: () => Promise<ToolFinished>): Promise<ToolFinished> => {
    const parent = turnContext(place, input.identity.life, input.turn);
    const work: Work = { attributes: inTurn(input, place), arguments: new Map() };
    const named = toolNamed(input);
    const startedAt = Date.now();
    const span = startTool({ ...work.attributes, ...named }, startedAt, parent);
    try {
      const finished = await within(trace.setSpan(parent, span), work, run);
      if (!isEarlier(finished.ts, startedAt)) measure(Date.now() - startedAt, { ...named, ...endTool(span, finished, work) });
      return finished;
    } catch (error) {
      const ending = failed(span, readFailure(error));
      span.setAttributes(ending).end();
      measure(Date.now() - startedAt, { ...named, ...ending });
      throw error;
    }
  };

  const modelStep = async (input: ModelStepInput, place: Place, run: () => Promise<ModelStepResult>): Promise<ModelStepResult> => {
    const parent = turnContext(place, input.identity.life, input.turn);
    const work: Work = { attributes: inTurn(input, place), arguments: new Map() };
    const startedAt = Date.now();
    const result = await within(parent, work, run);
    for (const finished of result.tools) {
      if (isEarlier(finished.ts, startedAt)) continue;
      const named = toolNamed(finished);
      const endedAt = finished.ts * 1_000;
      const span = startTool({ ...work.attributes, ...named }, endedAt - finished.ms, parent);
      measure(finished.ms, { ...named, ...endTool(span, finished, work, endedAt) });
    }
    return result;
  };

  /** Beside the model steps and tools of a turn: a link of the chain, above the models that it asks. */
  const chain = async <T>(
    name: string,
    { parent, attributes }: { readonly parent: Context; readonly attributes: Attributes },
    run: () => Promise<T>,
    describe: (result: T) => Attributes = () => ({}),
  ): Promise<T> => {
    const span = tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes: { ...attributes, [A.kind]: 'CHAIN' } }, parent);
    try {
      const result = await within(trace.setSpan(parent, span), { attributes, arguments: new Map() }, run);
      span.setAttributes(describe(result));
      return result;
    } catch (error) {
      span.setAttributes(failed(span, readFailure(error)));
      throw error;
    } finally {
      span.end();
    }
  };

  const compact = (input: CompactInput, place: Place, run: () => Promise<Compacted>): Promise<Compacted> => {
    const { identity, currentTurn: turn } = input;
    const attributes = turn === null ? beside(place, identity) : inTurn({ identity, turn }, place);
    const parent = turn === null ? ROOT_CONTEXT : turnContext(place, identity.life, turn);
    return chain('compaction', { parent, attributes }, run, (made) => {
      if (made.kind !== 'compacted') return { [A.method]: made.kind };
      const { method, tokensBefore, tokensAfter, base } = made;
      const numbers = { [A.method]: method, [A.tokensBefore]: tokensBefore, [A.tokensAfter]: tokensAfter };
      return { ...numbers, ...(content && { [A.output]: content.text(base.text), [A.outputMime]: 'text/plain' }) };
    });
  };

  const beside = ({ conversation, attempt }: Place, of: { readonly agent: string; readonly scope: string; readonly life: string }) => ({
    ...{ [A.conversation]: conversation, [A.agent]: of.agent, [A.life]: of.life, [A.attempt]: attempt },
    ...whose(conversation, of),
  });

  /** In the memory's workflow, often long after the turns that it is about: a separate trace in their session. */
  const consolidate = <T>({ scope, request }: ConsolidateInput, place: Place, run: () => Promise<T>): Promise<T> => {
    const { conversation, life, agent } = request;
    return chain('consolidation', { parent: ROOT_CONTEXT, attributes: beside({ ...place, conversation }, { agent, scope, life }) }, run);
  };

  /** The same, of a scope's memory and of no conversation. */
  const care = <T>(of: { readonly scope: string; readonly agent: string }, life: string, place: Place, run: () => Promise<T>): Promise<T> =>
    chain('memory care', { parent: ROOT_CONTEXT, attributes: beside(place, { ...of, life }) }, run);

  const title = <T>(input: TitleInput, place: Place, run: () => Promise<T>): Promise<T> =>
    chain('title', { parent: turnContext(place, input.identity.life, input.turn), attributes: inTurn(input, place) }, run);

  const callModel = async (name: string, model: Model, limits: Models['limits'], request: ModelRequest, options: StreamOptions) => {
    const work = context.active().getValue(WORK) as Work | undefined;
    if (!work) return model.stream(request, options);
    const named: Attributes = { [A.operation]: SPAN.chat, ...toModelAttributes(name) };
    const attributes: Attributes = {
      ...{ ...work.attributes, ...named, [A.kind]: 'LLM', [A.maxTokens]: request.maxTokens, [A.stream]: true },
      ...(request.answerSchema && { [A.outputType]: 'json' }),
    };
    const startedAt = Date.now();
    const span = tracer.startSpan(`${SPAN.chat} ${toModelName(name)}`, { kind: SpanKind.CLIENT, attributes, startTime: startedAt });
    if (content) {
      const tools = request.tools.map((tool) => ({ type: 'function', name: tool.name }));
      span.setAttributes(content.input(request.system, request.messages));
      if (tools.length > 0) span.setAttribute(A.toolDefinitions, content.json(tools));
    }
    const seen: Record<string, string | number> = {};
    const watched: StreamOptions = {
      ...options,
      onServed(served) {
        if (served.url !== undefined) Object.assign(seen, toServer(served.url));
        if (served.id !== undefined) seen[A.responseId] = served.id;
        if (served.model !== undefined) seen[A.responseModel] = served.model;
        options.onServed?.(served);
      },
      onDelta(delta) {
        seen[A.firstChunk] ??= (Date.now() - startedAt) / 1_000;
        options.onDelta(delta);
      },
    };
    const end = (ending: Attributes): void => {
      const all = { ...seen, ...ending };
      span.setAttributes(all).end();
      measure(Date.now() - startedAt, { ...named, ...all });
    };
    const answered = ({ blocks, stop, usage }: ModelResponse): Attributes => {
      const cost = costUsd(limits(name), usage);
      const isCounted = usage.inputTokens + usage.outputTokens > 0;
      if (isCounted) {
        const of = { ...named, ...pick(seen, MEASURED) };
        tokens.record(usage.inputTokens, { ...of, [A.tokenType]: 'input' });
        tokens.record(usage.outputTokens, { ...of, [A.tokenType]: 'output' });
      }
      return {
        ...(isCounted && toUsageAttributes({ ...usage, costUsd: cost })),
        ...(isCounted && cost !== null && { [A.cost]: cost }),
        [A.finishReasons]: [FINISH[stop]],
        ...content?.output(blocks, stop),
      };
    };
    try {
      const response = await model.stream(request, watched);
      end(answered(response));
      return response;
    } catch (error) {
      // A person's stop, or the worker's: no failure of the model's.
      if (error instanceof ModelInterrupted) end(answered({ blocks: error.blocks, stop: 'interrupted', usage: error.usage }));
      else end(failed(span, readFailure(error)));
      throw error;
    }
  };

  const tracedModel = (name: string, model: Model, limits: Models['limits']): Model =>
    withStream(model, (request, options) => callModel(name, model, limits, request, options));

  return {
    activities: ({ info }) => ({
      inbound: {
        execute(input, next) {
          const { workflowNamespace: namespace, workflowExecution, activityType, attempt } = info;
          if (!namespace || !workflowExecution) return next(input);
          const place = { namespace, conversation: workflowExecution.workflowId, attempt };
          const run = (): Promise<never> => next(input) as Promise<never>;
          const [given] = input.args;
          switch (activityType) {
            case 'model-step':
              return modelStep(given as ModelStepInput, place, run);
            case 'run-tool':
              return executeTool(given as RunToolInput, place, run);
            case 'compact':
              return compact(given as CompactInput, place, run);
            case 'consolidate':
              return consolidate(given as ConsolidateInput, place, run);
            case 'care':
              return care(given as Parameters<typeof care>[0], workflowExecution.runId, place, run);
            case 'title':
              return title(given as TitleInput, place, run);
            default:
              return next(input);
          }
        },
      },
    }),
    observer: createTurnSpans({ tracer, ids, content }),
    traced: (models) => Object.assign((name: string) => tracedModel(name, models(name), models.limits), { limits: models.limits }),
    toolCalled: (callId, input) => void (context.active().getValue(WORK) as Work | undefined)?.arguments.set(callId, input),
  };
}

/** Of what a metric has; no name of a person, a conversation or a tool's call. */
const MEASURED = [A.operation, A.provider, A.requestModel, A.responseModel, A.serverAddress, A.serverPort, A.errorType];

/** `ts`: epoch seconds of the commit. Clocks of two workers differ by a little. */
function isEarlier(ts: number, startedAt: number): boolean {
  return ts * 1_000 < startedAt - 50;
}

function pick(from: Attributes, names: readonly string[]): Attributes {
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])));
}

function readFailure(error: unknown): { readonly type: string; readonly message: string } {
  const { type, kind, name, message } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>;
  const word = [type, kind].find((one) => typeof one === 'string' && one !== '');
  return { type: String(word ?? name ?? '_OTHER'), message: String(message ?? error) };
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
  const sdk = new NodeSDK({ idGenerator: ids });
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
