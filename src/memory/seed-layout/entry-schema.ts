/** Entries as an exported file has them: long texts in place. An entry that refers to a store is none of them. */
import { z } from 'zod';
import { CHUNK_TYPE, type Entry } from '../../records/message.js';

/** A slot beyond it is no count any more, and would make readers walk through nothing. */
export const HIGHEST_SLOT = 1_000_000;
/** Epoch seconds at the end of the year 9999: a later one is no date. */
export const LATEST = 253_402_300_799;

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
  chunk: chunkType.optional(),
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
  item: z.object({ id: z.string().regex(/^mem_[0-9a-f]{6,64}$/), citation: z.string().max(64 * 1024) }).optional(),
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

/** As it is exported: a text that was long enough to lie elsewhere is in place, so nothing points there. */
export function withoutRefs(entry: Entry): Entry {
  const { message } = entry;
  if (message.role !== 'assistant') return entry;
  const blocks = message.blocks.map((block) => {
    if (block.kind !== 'tool-call' || block.inputRef === undefined) return block;
    const { inputRef: _, ...inPlace } = block;
    return inPlace;
  });
  return { ...entry, message: { ...message, blocks } };
}
