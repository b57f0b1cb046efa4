/**
 * Raw traces: messages and calls, in the seed's format (seed 000, RAW_TRACE), derived from entries. Every entry leaves at
 * least one, so that a gap in the slots is a loss and never an answer without words.
 */
import {
  isBodyRef,
  shownText,
  sourcesIn,
  type AssistantMessage,
  type Body,
  type Entry,
  type JsonValue,
  type LateResult,
  type Media,
  type MediaSource,
  type ToolResultMessage,
  type UserMessage,
} from '../records/message.js';

/** One line of a conversation's record (seed 000). */
export interface RawTrace {
  readonly id: string;
  /** Epoch seconds. */
  readonly ts: number;
  readonly turn_id: string;
  readonly seq: number;
  readonly trace_type: 'user' | 'assistant' | 'tool_call' | 'tool_result';
  readonly content: string;
  /** Where the whole of a long content is, of which the trace has the beginning; of several parts, in their order, with a space between. */
  readonly content_ref?: string;
  readonly source_event: 'LLMUserMessageReadyEvent' | 'LLMCompleteResponseReceivedEvent' | 'PendingToolInvocationEvent' | 'ToolResultEvent';
  readonly media?: {
    readonly images: readonly string[];
    readonly audio: readonly string[];
    readonly video: readonly string[];
    readonly documents?: readonly string[];
  };
  readonly tool_name?: string;
  readonly tool_call_id?: string;
  /** The same, under the seed's name: a call and its result have one. */
  readonly correlation_id?: string;
  readonly tool_args?: JsonValue;
  readonly tool_result?: JsonValue;
  readonly tool_error?: string;
  /** Where the whole of a long text is, of which the trace has the beginning. */
  readonly tool_result_ref?: string;
  readonly tags?: readonly string[];
  readonly conversation_id: string;
  readonly slot: number;
}

/** What differs from trace to trace of one entry. */
type TraceBody = Omit<RawTrace, 'id' | 'ts' | 'turn_id' | 'seq' | 'conversation_id' | 'slot'>;

export function toTraces(entry: Entry, conversationId: string): RawTrace[] {
  const { late } = entry.message.role === 'user' ? entry.message : {};
  if (late) return [{ ...inTurn(entry, late), ...traceOfLate(late), conversation_id: conversationId, slot: entry.slot }];
  return toTraceBodies(entry).map(({ trace_type, content, source_event, ...more }, i) => ({
    id: traceId(entry.slot, i),
    ts: entry.ts,
    turn_id: entry.turn,
    seq: entry.seq + i,
    trace_type,
    content,
    source_event,
    ...more,
    conversation_id: conversationId,
    slot: entry.slot,
  }));
}

function traceId(slot: number, i: number): string {
  const id = `rt_${String(slot).padStart(3, '0')}`;
  return i === 0 ? id : `${id}_${i}`;
}

function toTraceBodies({ message }: Entry): TraceBody[] {
  switch (message.role) {
    case 'user':
      return [traceOfUser(message)];
    case 'assistant':
      return tracesOfAssistant(message);
    case 'tool':
      return [traceOfResult(message)];
    default:
      return message satisfies never;
  }
}

function traceOfUser(message: UserMessage): TraceBody {
  return {
    trace_type: 'user',
    content: shownText(message.text),
    ...toContentRef([message.text]),
    source_event: 'LLMUserMessageReadyEvent',
    ...(sourcesIn(message).length > 0 && { media: toAddresses(message) }),
    tags: ['processed'],
  };
}

function tracesOfAssistant({ blocks, stop }: AssistantMessage): TraceBody[] {
  const texts = blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : []));
  const text = texts.map(shownText).join('');
  const calls = blocks.flatMap((block): TraceBody[] =>
    block.kind === 'tool-call'
      ? [
          {
            trace_type: 'tool_call',
            content: '',
            source_event: 'PendingToolInvocationEvent',
            tool_name: block.name,
            tool_call_id: block.callId,
            correlation_id: block.callId,
            tool_args: block.inputRef === undefined ? block.input : { ...block.inputRef },
          },
        ]
      : [],
  );
  if (text === '' && calls.length > 0) return calls;
  const tags = stop === 'interrupted' ? ['interrupted'] : calls.length === 0 ? ['final'] : [];
  const answer: TraceBody = {
    trace_type: 'assistant',
    content: text,
    ...toContentRef(texts),
    source_event: 'LLMCompleteResponseReceivedEvent',
    ...(tags.length > 0 && { tags }),
  };
  return [answer, ...calls];
}

function traceOfResult({ callId, name, outcome, text, ...media }: ToolResultMessage): TraceBody {
  return {
    trace_type: 'tool_result',
    content: '',
    source_event: 'ToolResultEvent',
    tool_name: name,
    tool_call_id: callId,
    correlation_id: callId,
    ...(outcome === 'ok' ? { tool_result: shownText(text) } : { tool_error: shownText(text) }),
    ...toResultRef(text),
    ...(sourcesIn(media).length > 0 && { media: toAddresses(media) }),
    // The seed knows results and errors; the three other ends differ by their tag.
    ...(outcome !== 'ok' && outcome !== 'error' && { tags: [outcome] }),
  };
}

/** Seed 000: a result has the turn of its call, also where it comes after the next message. Nothing of that turn is after it. */
function inTurn({ slot, turn, ts }: Entry, { callId }: LateResult): Pick<RawTrace, 'id' | 'ts' | 'turn_id' | 'seq'> {
  return { id: traceId(slot, 0), ts, turn_id: /^turn_\d+(?=\/)/.exec(callId)?.[0] ?? turn, seq: slot };
}

/** In the place of the call's earlier result. */
const LATE = 'late';

export function isLate({ tags }: { readonly tags?: readonly string[] | undefined }): boolean {
  return tags?.includes(LATE) === true;
}

function traceOfLate({ callId, name, text, ref }: LateResult): TraceBody {
  const result = traceOfResult({ role: 'tool', callId, name, outcome: 'ok', text });
  return { ...result, ...(ref !== undefined && { tool_result_ref: ref }), tags: [LATE] };
}

function toContentRef(texts: readonly Body[]): Pick<RawTrace, 'content_ref'> {
  const refs = texts.flatMap((text) => (isBodyRef(text) ? [text.ref] : []));
  return refs.length === 0 ? {} : { content_ref: refs.join(' ') };
}

function toResultRef(text: Body): { readonly tool_result_ref?: string } {
  return isBodyRef(text) ? { tool_result_ref: text.ref } : {};
}

/** The seed knows no documents: the list is there where one is. */
function toAddresses({ images = [], audio = [], video = [], documents }: Media): NonNullable<RawTrace['media']> {
  const known = { images: images.map(toAddress), audio: audio.map(toAddress), video: video.map(toAddress) };
  return documents === undefined ? known : { ...known, documents: documents.map(toAddress) };
}

function toAddress(source: MediaSource): string {
  if ('url' in source) return source.url;
  return 'ref' in source ? source.ref : `data:${source.mediaType};base64,${source.base64}`;
}

/** A tool call with its result, found together (seed 000). */
export interface ToolInteraction {
  readonly tool_call_id: string;
  /** Of the call; a result that arrives in a later turn changes nothing. */
  readonly turn_id: string;
  readonly tool_name: string;
  /** null when the call's trace is lost. */
  readonly arguments: JsonValue;
  readonly result: JsonValue;
  readonly error: string | null;
  readonly status: 'PENDING' | 'SUCCESS' | 'ERROR';
}

/** In the order of the calls; with `turnId` of that turn only. A result whose call is lost is at the end, without arguments. */
export function toToolInteractions(traces: readonly RawTrace[], turnId?: string): ToolInteraction[] {
  const results = new Map<string, RawTrace[]>();
  for (const trace of traces) {
    if (trace.trace_type !== 'tool_result') continue;
    const id = trace.tool_call_id ?? '';
    const before = results.get(id) ?? [];
    results.set(id, isLate(trace) ? [...before.slice(0, -1), trace] : [...before, trace]);
  }
  const calls = traces.filter((trace) => trace.trace_type === 'tool_call');
  const called = calls.map((call) => toInteraction(call, results.get(call.tool_call_id ?? '')?.shift()));
  const ids = new Set(calls.map((call) => call.tool_call_id ?? ''));
  const lost = [...results].flatMap(([id, [first]]) => (first === undefined || ids.has(id) ? [] : [toInteraction(first, first)]));
  return [...called, ...lost].filter((interaction) => turnId === undefined || interaction.turn_id === turnId);
}

function toInteraction(call: RawTrace, result: RawTrace | undefined): ToolInteraction {
  const error = result?.tool_error ?? null;
  return {
    tool_call_id: call.tool_call_id ?? '',
    turn_id: call.turn_id,
    tool_name: call.tool_name ?? '',
    arguments: call.tool_args ?? null,
    result: result?.tool_result ?? null,
    error,
    status: result === undefined ? 'PENDING' : error === null ? 'SUCCESS' : 'ERROR',
  };
}
