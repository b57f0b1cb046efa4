/** A language model, any provider's: a stateless function from a request to a stream. */
import type { AssistantBlock, ConversationMessage, JsonObject, ModelStop, Usage } from '../records/message.js';
import type { SeenLimits } from '../records/rate-limit.js';

/** A tool as a model is shown it. */
export interface ToolDescription {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input, an object schema. */
  readonly inputSchema: JsonObject;
}

/** What an answer should be: JSON of this schema. */
export interface AnswerSchema {
  /** Letters, digits, "_" and "-". */
  readonly name: string;
  /** JSON Schema, an object schema. */
  readonly schema: JsonObject;
}

/** A request to a model. Messages come normalized (`normalize.ts`), with every body's text at hand. */
export interface ModelRequest {
  /** The provider's name of the model, without the `provider/` prefix. */
  readonly model: string;
  readonly maxTokens: number;
  readonly system: string;
  /** UTF-16 units at the beginning of `system` that sessions share: a cache may keep them by themselves. Absent: all of it. */
  readonly sharedSystem?: number;
  readonly tools: readonly ToolDescription[];
  readonly messages: readonly ConversationMessage[];
  /** Tokens of prompt and answer together, as `contextWindow` of the model has answered; absent where the provider knows them. */
  readonly contextWindow?: number;
  /** A wish: it goes along where the provider and the model are known to take it, so the answer may be anything still. */
  readonly answerSchema?: AnswerSchema;
  /** One of `tools` must be called. No wish: a provider that cannot hold its model to it gets no such request (`Model.takesMustCall`). */
  readonly mustCall?: true;
  /** A wish: at most one tool is called in the answer. */
  readonly oneCall?: true;
  /** A wish: the answer ends before the first of these texts. */
  readonly stopAt?: readonly string[];
  /** The same for all requests of a conversation, and says nothing about it: a provider may keep their prompts together. */
  readonly cacheKey?: string;
  /** A wish: the prompt is kept for an hour, since the next request may take longer than five minutes. */
  readonly cachesForHour?: true;
}

/** A piece of an answer, as it arrives. A new attempt starts over: readers learn that from the feed, not here. */
export type ModelDelta =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking'; readonly text: string }
  | { readonly kind: 'tool-call'; readonly name: string };

/** What a call took, in tokens; its price is the registry's to say. */
export interface ModelUsage extends Omit<Usage, 'costUsd'> {
  /** Of `cacheWriteTokens`, those that are kept for an hour, which costs more. */
  readonly hourWriteTokens?: number;
}

/** Blocks as the provider gave them; tool calls carry the provider's id in `callId`, the activity replaces it by ours. */
export interface ModelResponse {
  readonly blocks: readonly AssistantBlock[];
  readonly stop: ModelStop;
  /** The text of `stopAt` at which it ended, where the provider names it. */
  readonly stoppedAt?: string;
  readonly usage: ModelUsage;
}

/** Milliseconds for which a provider may be silent before its call is given up. */
export interface SilenceLimits {
  /** Until the first byte of an answer. Default: 60,000; for Ollama, and behind a base URL that was set, all that the call may take. */
  readonly firstByteMs?: number;
  /** After that, between two bytes. Default: 60,000. */
  readonly betweenBytesMs?: number;
}

/** How one call of a model is made. */
export interface StreamOptions {
  /** Aborting it stops the request; the promise then rejects with ModelInterrupted, which has what was complete by then. */
  readonly signal: AbortSignal;
  /** Given each piece of the answer as it comes. */
  readonly onDelta: (delta: ModelDelta) => void;
  /** Milliseconds without a byte, the first or a later one, after which the call is given up. Default: as `silence` says. */
  readonly idleMs?: number;
  /** How long the provider may be silent, as `perdura.config` says. */
  readonly silence?: SilenceLimits;
  /** Milliseconds for the whole call; default 600,000. */
  readonly totalMs?: number;
  /** Told who answers, as that becomes known: for traces. */
  readonly onServed?: (served: Served) => void;
  /** Told what the answer says is left of the provider's limits, once, before the answer or its refusal. */
  readonly onLimits?: (seen: SeenLimits) => void;
}

/** Who answers a call, as its server says. */
export interface Served {
  /** Of the answer. */
  readonly id?: string;
  /** The model's name: often a dated one. */
  readonly model?: string;
  /** Where the request went. */
  readonly url?: string;
}

/** How a model without native tool calls writes a call. */
export type TextToolFormat = 'xml' | 'json';

/** A provider of models; implement it to add a custom one. */
export interface Model {
  readonly provider: string;
  /** For a provider whose models have no native tool calls: calls are written in the text, in this format. */
  readonly textTools?: TextToolFormat;
  /** `ModelRequest.mustCall` holds with it. */
  readonly takesMustCall?: true;
  /** Names the key by a hash: calls with one key share a provider's limits. Absent: all of this provider have one. */
  readonly account?: string;
  /** The same under the name that `providers` gives it, for a model that is made before it has one. */
  named?(provider: string): Model;
  /**
   * Context window of a model (by the provider's name for it) where its server tells it, within `wanted` tokens. Never rejects. Absent for
   * a provider whose models are in the registry. Such a server may cut a prompt silently, so what it has read is compared with what was
   * sent.
   */
  contextWindow?(model: string, wanted: number | undefined): Promise<ContextWindow>;
  /** Resolves once the provider has sent the whole answer; rejects with ModelFailure or ModelInterrupted, nothing else. */
  stream(request: ModelRequest, options: StreamOptions): Promise<ModelResponse>;
}

/** @internal A model that answers by another way, and is as it was in all else. */
export function withStream(model: Model, stream: Model['stream']): Model {
  const { provider, textTools, takesMustCall, account } = model;
  return {
    provider,
    ...(textTools && { textTools }),
    ...(takesMustCall && { takesMustCall }),
    ...(account !== undefined && { account }),
    ...(model.contextWindow && { contextWindow: model.contextWindow.bind(model) }),
    stream,
  };
}

/**
 * What went wrong, in the words that decide what to do about it.
 * `rate-limit`, `overloaded`, `server`, `connection`, `timeout`, `broken-stream` may pass; the others will not by themselves.
 */
export type ModelFailureKind =
  | 'auth'
  | 'billing'
  | 'forbidden'
  | 'not-found'
  | 'invalid-request'
  | 'too-large'
  | 'context-full'
  | 'rate-limit'
  | 'overloaded'
  | 'server'
  | 'connection'
  | 'timeout'
  | 'broken-stream'
  | 'missing-key'
  | 'missing-package';

/** Why a model did not answer. `kind` decides whether it is called again. */
export class ModelFailure extends Error {
  override readonly name = 'ModelFailure';
  constructor(
    readonly kind: ModelFailureKind,
    message: string,
    readonly options: {
      readonly retryAfterMs?: number;
      readonly status?: number;
      readonly cause?: unknown;
      /** What it has cost all the same, where an answer had begun to come. */
      readonly usage?: ModelUsage;
    } = {},
  ) {
    super(message, { cause: options.cause });
  }
}

/** The caller's signal stopped the call. */
export class ModelInterrupted extends Error {
  override readonly name = 'ModelInterrupted';
  constructor(
    /** Blocks that had ended before the stop; never half of one, and no tool call. */
    readonly blocks: readonly AssistantBlock[],
    readonly usage: ModelUsage,
  ) {
    super('the model call was stopped');
  }
}

/** Room for prompt and answer together, where a provider's server gives it instead of the model's name. */
export interface ContextWindow {
  /** What the request sets for the server in each call. */
  readonly tokens: number;
  /** False: the server did not say how much the model takes, so this is the agent's number or a default. */
  readonly isKnown: boolean;
}

/** An answer takes no more than half of a small window, and then a quarter: the prompt needs the rest. */
export function answerTokens(wanted: number, window: number): number {
  return wanted <= window / 2 ? wanted : Math.floor(window / 4);
}

interface PromptCut {
  /** Tokens: what was sent, by estimate, and what the server has read. */
  readonly sent: number;
  readonly read: number;
}

/** Below it the estimate alone may be that far off; a server that cuts leaves more. */
const MIN_READ = 1_024;

/**
 * A server that cuts a prompt does not say so: it reads far less than was sent, where estimates miss by less than half; or just as much as
 * its window has (Ollama's `prompt_eval_count` is then `num_ctx`).
 */
export function promptCut(sent: number, read: number, window = Infinity): PromptCut | undefined {
  return read >= MIN_READ && (read * 2 < sent || read >= window) ? { sent, read } : undefined;
}

// Hooks around each model call (seed 000, phase D): they see what goes out and what comes back, explicitly, and hold no history.
// They look on: what a hook changes in what it is given, returns or throws does not reach the conversation.

/** The call of a model that a hook looks at. */
export interface HookedCall {
  readonly conversation: string;
  readonly turn: string;
  /** `turn_0007/m2` */
  readonly call: string;
  /** `provider/model` */
  readonly model: string;
}

/** Reads the requests to models and their answers, and changes nothing. What it throws is logged. */
export interface ModelHook {
  /** Unique, for logs. */
  readonly name: string;
  /** `payload` is the whole request, before its provider renders it. */
  beforeInvoke?(messages: readonly ConversationMessage[], payload: ModelRequest, call: HookedCall): void | Promise<void>;
  /** Not called for a call that failed. */
  afterInvoke?(messages: readonly ConversationMessage[], response: ModelResponse, call: HookedCall): void | Promise<void>;
}

/** Runs one side of all hooks, each to its end; what one throws goes to `onFailure` and stops nothing. */
export async function runHooks(
  hooks: readonly ModelHook[],
  run: (hook: ModelHook) => void | Promise<void>,
  onFailure: (hook: string, error: unknown) => void,
): Promise<void> {
  for (const hook of hooks) {
    try {
      await run(hook);
    } catch (error) {
      onFailure(hook.name, error);
    }
  }
}
