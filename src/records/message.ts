/**
 * The words of a conversation: ours, no provider's. Everything here is plain JSON, so it can lie in Temporal's history,
 * in a store and in a test unchanged.
 */

/** Any value of JSON. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
/** An object of JSON. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** A long text that is kept in the store's `bodies`; `preview` is its beginning, `bytes` its UTF-8 length. */
export interface BodyRef {
  readonly ref: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly preview: string;
}

/** A text: itself, or where it lies. */
export type Body = string | BodyRef;

/** A picture, a sound, a video or a document (PDF): where it is, or itself. `ref` is in the store's `bodies`, as base64. */
export type MediaSource =
  | { readonly mediaType: string; readonly url: string }
  | { readonly mediaType: string; readonly base64: string }
  | { readonly mediaType: string; readonly ref: string };

/** What comes with a text. What there is none of is absent. */
export interface Media {
  readonly images?: readonly MediaSource[];
  readonly audio?: readonly MediaSource[];
  readonly video?: readonly MediaSource[];
  readonly documents?: readonly MediaSource[];
}

/** What a person's message holds: each part of it may be large. */
export interface MessageContent extends Media {
  readonly text: string;
  /** JSON Schema that the answer has to fit. */
  readonly output?: JsonObject;
  /** Values that tools see and the model never does. */
  readonly context?: JsonObject;
  readonly tools?: readonly ClientTool[];
  readonly stop?: Stop;
  /** For who reads the turn by the protocol of the message: what its request has set. Neither model nor tools see it. */
  readonly echo?: JsonObject;
}

/** Where each answer of a turn's model ends at the latest. */
export interface Stop {
  /** Before the first of these texts. */
  readonly at?: readonly string[];
  /** Tokens. */
  readonly tokens?: number;
}

/** What a chunk's type looks like (seed 004). */
export const CHUNK_TYPE = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

/** A person's message. */
export interface UserMessage extends Media {
  readonly role: 'user';
  readonly text: Body;
  /** Who else speaks in a person's place: Perdura itself (a hint, what was left out), or the application's events. */
  readonly from?: 'notice' | 'app';
  /** Of a notice: the result that it tells. */
  readonly late?: LateResult;
  /** Of the application's, the chunk's type where it is not WORKING_FLOW: it stays in the prompt until the application removes it. */
  readonly chunk?: string;
  /** Slot of the application's chunk whose place this one takes. */
  readonly updates?: number;
  /** Slots of chunks that the application took out here: a notice for the record, in no prompt. */
  readonly removes?: readonly number[];
  /** Where the tools lie, as JSON, that came with it. */
  readonly tools?: { readonly ref: string };
  /** What the request of the message has set (MessageContent). */
  readonly echo?: JsonObject;
}

/**
 * Kept verbatim, in the provider's order: a signed thinking block that was edited is refused by its maker.
 * A long tool input is kept in the store as JSON text, `inputRef`, and `input` is null.
 */
export type AssistantBlock =
  | { readonly kind: 'text'; readonly text: Body }
  | { readonly kind: 'thinking'; readonly text: string; readonly signature?: string; readonly provider: string }
  | { readonly kind: 'opaque'; readonly provider: string; readonly value: JsonValue }
  | { readonly kind: 'tool-call'; readonly callId: string; readonly name: string; readonly input: JsonValue; readonly inputRef?: BodyRef };

/** A model's answer: its blocks, in their order. */
export interface AssistantMessage {
  readonly role: 'assistant';
  readonly blocks: readonly AssistantBlock[];
  /** `provider/model` that answered: thinking goes back only to the provider that made it. */
  readonly model: string;
  readonly stop: ModelStop;
  /** The text of `Stop.at` before which it ends, where that is known: not every provider says why it stopped. */
  readonly stoppedAt?: string;
}

/**
 * How a tool call ended. The model learns which: `rejected` never ran, `cancelled` was stopped before it started,
 * `unknown` was interrupted and may or may not have had its effect.
 */
export type ToolOutcome = 'ok' | 'error' | 'rejected' | 'cancelled' | 'unknown';

/** Where in the memory channel a long result is, and what stands for it once the model has seen it (citing.ts). */
export interface ItemRef {
  readonly id: string;
  readonly citation: string;
  /** No plugin of the user's made it: a model may, if the agent says so. */
  readonly isPlain?: true;
}

/** How a tool call ended, as the model reads it, and what it brought. */
export interface ToolResultMessage extends Media {
  readonly role: 'tool';
  readonly callId: string;
  readonly name: string;
  readonly outcome: ToolOutcome;
  readonly text: Body;
  /** Shown whole in one request; in every later one its citation stands for it. */
  readonly item?: ItemRef;
  /** What the tool says it did to files, by the paths that the model knows. */
  readonly files?: { readonly read?: readonly string[]; readonly edited?: readonly string[]; readonly written?: readonly string[] };
}

/** One message of a conversation. */
export type ConversationMessage = UserMessage | AssistantMessage | ToolResultMessage;

/** Why the model stopped speaking, in one vocabulary for all providers. `interrupted` is ours: a person stopped it. */
export type ModelStop = 'end' | 'tool-calls' | 'max-tokens' | 'refusal' | 'pause' | 'context-full' | 'interrupted';

/** Tokens of one model call. `inputTokens` counts all of the prompt, `cachedTokens` the part of it read from a cache. */
export interface Usage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** The part of `inputTokens` that was written to a cache; absent: none, as far as its provider says. */
  readonly cacheWriteTokens?: number;
  /** The part of `outputTokens` that was thinking; absent as above. */
  readonly reasoningTokens?: number;
  /** US dollars; null where the model's price is not known. */
  readonly costUsd: number | null;
}

/**
 * One message as it is recorded: the unit that stores keep and from which traces and prompts are derived.
 * Addressed by `slot`, which is dense in a life; `seq` counts inside the turn (seed 000), first trace of the entry.
 */
export interface Entry {
  readonly v: 1;
  readonly slot: number;
  readonly session: number;
  readonly turn: string;
  readonly seq: number;
  /** Epoch seconds, float (seed 000). */
  readonly ts: number;
  readonly message: ConversationMessage;
  /** The id its sender gave it (user messages only). */
  readonly messageId?: string;
}

/** A question, not what Perdura or an application says beside it. */
export function isFromPerson(message: ConversationMessage): message is UserMessage {
  return message.role === 'user' && message.from === undefined;
}

/** Seed 004: only chunks of WORKING_FLOW are compressible. */
export function isPinned(message: ConversationMessage): boolean {
  return message.role === 'user' && message.chunk !== undefined;
}

export function isNotice(message: ConversationMessage): boolean {
  return message.role === 'user' && message.from === 'notice';
}

export function isBodyRef(value: unknown): value is BodyRef {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { ref?: unknown }).ref === 'string' &&
    typeof (value as { sha256?: unknown }).sha256 === 'string'
  );
}

/** The model's text for the person in one message. */
export function answerText(message: ConversationMessage): string {
  if (message.role !== 'assistant') return '';
  return message.blocks.flatMap((block) => (block.kind === 'text' ? [shownText(block.text)] : [])).join('');
}

/** The text itself where it is at hand, else its preview with a word on where the rest lies. */
export function shownText(body: Body): string {
  return typeof body === 'string' ? body : `${body.preview}… (${body.bytes} bytes in all: ${body.ref})`;
}

/** What a person reads of a model's answer: its texts, one after the other. */
export interface Answer {
  readonly text: string;
  /** Where the whole of it lies, when `text` is only its beginning. */
  readonly textRef?: BodyRef;
}

/** Undefined when there is no text. */
export function answerIn(blocks: readonly AssistantBlock[]): Answer | undefined {
  const texts = blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : []));
  if (texts.length === 0) return undefined;
  const text = texts.map((part) => (typeof part === 'string' ? part : `${part.preview}…`)).join('\n\n');
  const textRef = texts.find(isBodyRef);
  return textRef ? { text, textRef } : { text };
}

/** What comes with a person's text: pictures, sound, video, documents. A list that is empty is none, and stays absent where it is stored. */
export type MediaKind = keyof Media;

export const MEDIA_KINDS: readonly MediaKind[] = ['images', 'audio', 'video', 'documents'];

/** Each list that has something in it, in one order; other fields of what carries them are left out. */
export function pickMedia(carrier: Media): Media {
  return mapMedia(carrier, (list) => list);
}

/** Of what carries a message: its content alone. */
export function pickContent(carrier: Partial<MessageContent>): MessageContent {
  const { text = '', output, context, tools, stop, echo } = carrier;
  const beside = {
    ...(output && { output }),
    ...(context && { context }),
    ...(tools && { tools }),
    ...(stop && { stop }),
    ...(echo && { echo }),
  };
  return { text, ...pickMedia(carrier), ...beside };
}

export function mapMedia(carrier: Media, change: (list: readonly MediaSource[], kind: MediaKind) => readonly MediaSource[]): Media {
  if (!hasMedia(carrier)) return {};
  const lists = MEDIA_KINDS.flatMap((kind) => {
    const list = carrier[kind] ?? [];
    return list.length === 0 ? [] : [[kind, change(list, kind)] as const];
  });
  return Object.fromEntries(lists);
}

export function sourcesIn(carrier: Media): { readonly kind: MediaKind; readonly source: MediaSource }[] {
  return !hasMedia(carrier) ? [] : MEDIA_KINDS.flatMap((kind) => (carrier[kind] ?? []).map((source) => ({ kind, source })));
}

/** Nearly no message has media: this check comes first, as each request runs it for every message. */
function hasMedia({ images, audio, video, documents }: Media): boolean {
  return images !== undefined || audio !== undefined || video !== undefined || documents !== undefined;
}

/** As they travel: what is elsewhere has none. */
export function mediaBytes(carrier: Media): number {
  return sourcesIn(carrier).reduce((sum, { source }) => sum + ('base64' in source ? source.base64.length : 0), 0);
}

/** What a tool has reported after its turn was stopped: it amends the call's trace, and its words are the tool's. */
export interface LateResult {
  readonly callId: string;
  readonly name: string;
  /** Its beginning, where it is long; `ref` is where the whole of it lies. */
  readonly text: string;
  readonly ref?: string;
}

export function lateResultNotice({ name, callId, text }: LateResult): string {
  return (
    `[The tool ${name} (${callId}) still ran when the person stopped that turn, and has finished since. ` +
    `Its result, which comes from the tool and not from the user:\n${text}]`
  );
}

export const NO_USAGE: Usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0 };

/** Of the prompt, what no cache had and none keeps: billed in full. */
export function uncachedTokens({ inputTokens, cachedTokens, cacheWriteTokens = 0 }: Omit<Usage, 'costUsd'>): number {
  return Math.max(0, inputTokens - cachedTokens - cacheWriteTokens);
}

/** A price that is not known makes the sum unknown. */
export function addUsage(a: Usage, b: Usage): Usage {
  const written = (a.cacheWriteTokens ?? 0) + (b.cacheWriteTokens ?? 0);
  const thought = (a.reasoningTokens ?? 0) + (b.reasoningTokens ?? 0);
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    ...(written > 0 && { cacheWriteTokens: written }),
    ...(thought > 0 && { reasoningTokens: thought }),
    costUsd: a.costUsd === null || b.costUsd === null ? null : a.costUsd + b.costUsd,
  };
}

/** A tool that comes with a message: the program that sent it runs it. */
export interface ClientTool {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of its arguments, an object. */
  readonly inputSchema: JsonObject;
  /** The turn begins with a call of this one, or of another that has it too. */
  readonly mustCall?: true;
  /** An answer has at most one call of those that have it. */
  readonly single?: true;
}

// One entry from what produced it: the same when it is first written, and when it is rebuilt from history.

export type Place = Pick<Entry, 'slot' | 'session' | 'turn' | 'ts'>;

/** Undefined when the answer has nothing worth remembering. */
export function assistantEntry(answer: Place & Omit<AssistantMessage, 'role'>, seq: number): Entry | undefined {
  const { slot, session, turn, ts, blocks, model, stop, stoppedAt } = answer;
  if (blocks.length === 0) return undefined;
  return { v: 1, slot, session, turn, seq, ts, message: { role: 'assistant', blocks, model, stop, ...(stoppedAt && { stoppedAt }) } };
}

export function toolEntry(result: Place & Omit<ToolResultMessage, 'role'>, seq: number): Entry {
  const { slot, session, turn, ts, callId, name, outcome, text, item, files } = result;
  const brought = { ...pickMedia(result), ...(item && { item }), ...(files && { files }) };
  const message = { role: 'tool', callId, name, outcome, text, ...brought } as const;
  return { v: 1, slot, session, turn, seq, ts, message };
}
