/**
 * Traces with the seed's fields and no others (seed 000, RAW_TRACE), and what can be made of them again: entries. A call and its
 * result are matched by `correlation_id`; where another program wrote none, by the tool's name, in order.
 */
import { z } from 'zod';
import {
  type AssistantBlock,
  type ConversationMessage,
  type Entry,
  type JsonValue,
  type MediaSource,
  MEDIA_KINDS,
  pickMedia,
  type Media,
  type MediaKind,
  CHUNK_TYPE,
} from '../../records/message.js';
import { turnId } from '../../records/identity.js';
import { isLate, toTraces } from '../traces.js';

/** Epoch seconds at the end of the year 9999: a later one is no date. */
const LATEST = 253_402_300_799;
const addresses = z.array(z.string()).optional();

export const seedTraceSchema = z.object({
  ts: z.number().nonnegative().max(LATEST),
  turn_id: z.string().min(1).max(200),
  seq: z.number().int().nonnegative(),
  trace_type: z.enum(['user', 'assistant', 'tool_call', 'tool_result']),
  content: z.string(),
  media: z.object({ images: addresses, audio: addresses, video: addresses, documents: addresses }).optional(),
  tool_name: z.string().max(200).optional(),
  tool_args: z.unknown().optional(),
  tool_result: z.unknown().optional(),
  tool_error: z.unknown().optional(),
  correlation_id: z.string().max(200).optional(),
  tool_call_id: z.string().max(200).optional(),
  tags: z.array(z.string()).optional(),
});
export type SeedTrace = z.output<typeof seedTraceSchema>;

/** One line for each trace of an entry. */
export function toSeedLines(entry: Entry): string[] {
  return toTraces(entry, '').map(
    ({
      id,
      ts,
      turn_id,
      seq,
      trace_type,
      content,
      source_event,
      media,
      tool_name,
      tool_args,
      tool_result,
      tool_error,
      tool_call_id,
      tags,
    }) =>
      seedLine({
        ...{ id, ts, turn_id, seq, trace_type, content, source_event, media, tool_name, tool_args, tool_result, tool_error },
        ...{ correlation_id: tool_call_id, tags },
      }),
  );
}

/** `ts` is a float for readers that distinguish the two: 1738100000 is written 1738100000.0. */
export function seedLine(item: { readonly id: string; readonly ts: number }): string {
  return JSON.stringify(item).replace(/^(\{"id":"[^"\\]*","ts":\d+)([,}])/, '$1.0$2');
}

/** What a summary tells of a turn whose traces are not there. */
const STAND_IN = '[The messages of this turn were not among what was imported. Its summary is all that there is of it.]';

/** Turns that have no traces, for what summarizes them; they come first. */
export interface SummarizedTurns {
  readonly ids: readonly string[];
  /** Epoch seconds. */
  readonly ts: number;
}

/** Slots from 1 on, in the order given. Turns of any name are numbered as they come, and their numbers are noted in `turns`. */
export function toEntries(
  traces: readonly SeedTrace[],
  { summarized, turns = new Map() }: { readonly summarized?: SummarizedTurns; readonly turns?: Map<string, string> } = {},
): Entry[] {
  const entries = (summarized?.ids ?? []).map((id, at) => {
    turns.set(id, turnId(at + 1));
    return toEntry(at + 1, turnId(at + 1), 1, summarized?.ts ?? 0, { role: 'user', text: STAND_IN, from: 'notice' });
  });
  let open: { readonly callId: string; readonly name: string }[] = [];
  let calls = 0;
  for (const trace of traces) {
    const { ts, seq, turn_id } = trace;
    const turn = turns.get(turn_id) ?? turnId(turns.size + 1);
    turns.set(turn_id, turn);
    const name = trace.tool_name ?? 'unknown';
    const given = trace.correlation_id ?? trace.tool_call_id;
    if (trace.trace_type === 'tool_call') {
      calls += 1;
      const callId = given ?? `${turn}/c${calls}`;
      open = [...open, { callId, name }];
      const block: AssistantBlock = { kind: 'tool-call', callId, name, input: (trace.tool_args ?? {}) as JsonValue };
      const before = entries.at(-1);
      if (before?.turn === turn && before.message.role === 'assistant') {
        entries[entries.length - 1] = {
          ...before,
          message: { ...before.message, stop: 'tool-calls', blocks: [...before.message.blocks, block] },
        };
        continue;
      }
      entries.push(
        toEntry(entries.length + 1, turn, seq, ts, { role: 'assistant', blocks: [block], model: UNKNOWN_MODEL, stop: 'tool-calls' }),
      );
      continue;
    }
    const callId = given ?? open.find((call) => call.name === name)?.callId ?? `${turn}/lost`;
    if (trace.trace_type === 'tool_result') open = open.filter((call) => call.callId !== callId);
    const message = toMessage(trace, { callId, name });
    const amended = isLate(trace) ? entries.findLastIndex((entry) => entry.message.role === 'tool' && entry.message.callId === callId) : -1;
    const at = entries[amended];
    if (at) entries[amended] = { ...at, message };
    else entries.push(toEntry(entries.length + 1, turn, seq, ts, message));
  }
  return entries;
}

/** The seed does not say who spoke. */
const UNKNOWN_MODEL = 'imported/unknown';

function toMessage(trace: SeedTrace, call: { readonly callId: string; readonly name: string }): ConversationMessage {
  switch (trace.trace_type) {
    case 'user':
      return { role: 'user', text: trace.content, ...toMedia(trace) };
    case 'tool_result': {
      const isError = trace.tool_error !== undefined && trace.tool_error !== null;
      const text = toText(isError ? trace.tool_error : (trace.tool_result ?? trace.content));
      return { role: 'tool', ...call, outcome: isError ? 'error' : 'ok', text, ...toMedia(trace) };
    }
    default: {
      const stop = trace.tags?.includes('interrupted') === true ? 'interrupted' : 'end';
      return { role: 'assistant', blocks: [{ kind: 'text', text: trace.content }], model: UNKNOWN_MODEL, stop };
    }
  }
}

function toEntry(slot: number, turn: string, seq: number, ts: number, message: ConversationMessage): Entry {
  return { v: 1, slot, session: 1, turn, seq, ts, message };
}

function toMedia({ media }: SeedTrace): Media {
  const lists = MEDIA_KINDS.map((kind) => [kind, (media?.[kind] ?? []).flatMap((address) => toSource(kind, address))] as const);
  return pickMedia(Object.fromEntries(lists));
}

/** A path of another machine is no address here. */
function toSource(kind: MediaKind, address: string): MediaSource[] {
  const [, mediaType, base64] =
    /^data:((?:image|audio|video)\/[a-z0-9+.-]+|application\/pdf);base64,([A-Za-z0-9+/=]+)$/.exec(address) ?? [];
  const usual = USUAL_TYPE[kind];
  if (mediaType !== undefined && base64 !== undefined)
    return mediaType.split('/')[0] === usual.split('/')[0] ? [{ mediaType, base64 }] : [];
  return /^https?:\/\//.test(address) ? [{ mediaType: usual, url: address }] : [];
}

/** The seed does not say of what type something elsewhere is. */
const USUAL_TYPE: Readonly<Record<MediaKind, string>> = {
  images: 'image/png',
  audio: 'audio/mpeg',
  video: 'video/mp4',
  documents: 'application/pdf',
};

function toText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

// Entries as an exported file has them: long texts in place. An entry that refers to a store is none of them.

/** A slot beyond it is no count any more, and would make readers walk through nothing. */
export const HIGHEST_SLOT = 1_000_000;

const source = z.union([
  z.object({ mediaType: z.string(), url: z.string() }).strict(),
  z.object({ mediaType: z.string(), base64: z.string() }).strict(),
]);
const paths = z.array(z.string()).optional();
const sources = z.array(source).optional();
const media = { images: sources, audio: sources, video: sources, documents: sources };
const chunkType = z.string().regex(CHUNK_TYPE);
const user = z.object({
  role: z.literal('user'),
  text: z.string(),
  from: z.enum(['notice', 'app']).optional(),
  late: z.object({ callId: z.string(), name: z.string(), text: z.string(), ref: z.string().optional() }).optional(),
  chunk: chunkType.optional(),
  updates: z.number().int().min(1).optional(),
  removes: z.array(z.number().int().min(1)).max(1_000).optional(),
  ...media,
});
const assistant = z.object({
  role: z.literal('assistant'),
  blocks: z.array(
    z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('text'), text: z.string() }),
      z.object({ kind: z.literal('thinking'), text: z.string(), signature: z.string().optional(), provider: z.string() }),
      z.object({ kind: z.literal('opaque'), provider: z.string(), value: z.json() }),
      z.object({ kind: z.literal('tool-call'), callId: z.string(), name: z.string(), input: z.json() }),
    ]),
  ),
  model: z.string(),
  stop: z.enum(['end', 'tool-calls', 'max-tokens', 'refusal', 'pause', 'context-full', 'interrupted']),
});
const tool = z.object({
  role: z.literal('tool'),
  callId: z.string(),
  name: z.string(),
  outcome: z.enum(['ok', 'error', 'rejected', 'cancelled', 'unknown']),
  text: z.string(),
  item: z
    .object({ id: z.string().regex(/^mem_[0-9a-f]{6,64}$/), citation: z.string().max(64 * 1024), isPlain: z.literal(true).optional() })
    .optional(),
  files: z.object({ read: paths, edited: paths, written: paths }).optional(),
});

const entrySchema = z.object({
  v: z.literal(1),
  slot: z.number().int().min(1).max(HIGHEST_SLOT),
  session: z.number().int().min(1).max(HIGHEST_SLOT),
  turn: z.string().regex(/^turn_\d{4,9}$/),
  seq: z.number().int().min(0),
  ts: z.number().nonnegative().max(LATEST),
  message: z.discriminatedUnion('role', [user, assistant, tool]),
  messageId: z.string().max(128).optional(),
});

export function readEntry(value: unknown): Entry | undefined {
  // zod says `| undefined` of what may be left out; JSON has no undefined.
  return entrySchema.safeParse(value).data as Entry | undefined;
}

/** As it is exported: a text that was long enough to be stored elsewhere is in place, so nothing points there. */
export function withoutRefs(entry: Entry): Entry {
  const { message } = entry;
  if (message.role === 'user' && message.late?.ref !== undefined) {
    const { ref: _, ...late } = message.late;
    return { ...entry, message: { ...message, late } };
  }
  if (message.role !== 'assistant') return entry;
  const blocks = message.blocks.map((block) => {
    if (block.kind !== 'tool-call' || block.inputRef === undefined) return block;
    const { inputRef: _, ...inPlace } = block;
    return inPlace;
  });
  return { ...entry, message: { ...message, blocks } };
}
