/**
 * What becomes of a tool's text when it comes: long ones go to the store, and, with a memory channel, become items that are cited. The
 * results of one answer together stay below BATCH_INLINE in history: the more there are, the less of each.
 */
import { log } from '@temporalio/activity';
import type { RunToolInput } from '../../conversation/turn/tool-effects.js';
import type { Body, ItemRef, JsonValue, ToolOutcome } from '../../records/message.js';
import { truncate } from '../../records/text.js';
import { MEMORY_TOOLS, type ItemPlace, type ItemRecord } from '../../records/memory/agent-memory.js';
import { BUILTIN_PLUGINS, headAndTail, rowsPlugin } from '../../memory/channel/builtin-plugins.js';
import { CITATION_BYTES, createCompactors, type CompactedResult, type CompactionPlugins } from '../../memory/channel/compaction-plugin.js';
import { resultRecord, itemId } from '../../memory/channel/items-of-entries.js';
import { countCharacters } from '../../memory/channel/open-memory.js';
import { RESULT_INLINE, toBodyOrText } from '../../memory/bodies.js';
import type { ConversationDependencies } from '../dependencies.js';
import type { Store } from '../../stores/store.js';
import { sharedPlace } from './tool-context.js';
import { isRecord } from '../../platform/json.js';

/** UTF-8 bytes of texts, and of what stands for them, in the history of one round (design section 2). */
export const BATCH_INLINE = 256 * 1024;
/** A reference with its preview, about. */
const REFERENCE_BYTES = 800;

export interface Answered {
  readonly text: string;
  readonly outcome: ToolOutcome;
  readonly argument: JsonValue;
  /** Epoch seconds. */
  readonly ts: number;
  /** How many calls the answer made that this one is of. */
  readonly calls: number;
}

export interface KeptText {
  readonly text: Body;
  readonly item?: ItemRef;
  /** To be written with the result. */
  readonly record?: ItemRecord;
}

/** `inlineLimit`: UTF-8 bytes; undefined where there is no memory channel. */
export async function keepResult(
  { store, key, compactionPlugins = {} }: ConversationDependencies,
  { session, slot, name, callId, parent }: RunToolInput,
  answered: Answered,
  inlineLimit: number | undefined,
): Promise<KeptText> {
  const share = Math.floor(BATCH_INLINE / Math.max(1, answered.calls));
  const text = await toBodyOrText(store, key, answered.text, Math.min(RESULT_INLINE, share));
  if (inlineLimit === undefined || Buffer.byteLength(answered.text) <= inlineLimit) return { text };
  const room = Math.max(0, Math.min(CITATION_BYTES, share - REFERENCE_BYTES));
  if (MEMORY_TOOLS.includes(name)) return { text, ...citedAgain(name, answered, room) };
  const id = itemId(key, callId);
  const { compacted, isPlain } = compact(compactionPlugins, name, answered, id);
  const citation = toCitation(compacted, { name, length: answered.text.length, id, room });
  const item = { id, citation, ...(isPlain && { isPlain }) } as const;
  const content = typeof text === 'string' ? await store.bodies.put(key, text).catch(() => undefined) : text;
  // The store did not take it: nothing may be cited that might not be there.
  if (!content) return { text };
  const { ref, bytes } = content;
  const size = countCharacters(answered.text);
  const record = resultRecord({ id, session, slot, name, ts: answered.ts, size, content: { ref, bytes, json: false } });
  const shared = parent?.memory?.until === null ? sharedPlace(key, parent) : undefined;
  if (shared && !(await putShared(store, shared, { record, at: parent?.memory?.at }, answered.text))) return { text };
  return { text, item, record };
}

/** Where a tree of conversations has one memory, the others find the result there. By its id, so that another attempt changes nothing. */
async function putShared(
  store: Store,
  { session, ...key }: ItemPlace,
  { record: { slot: _, ...record }, at }: { readonly record: ItemRecord; readonly at: number | undefined },
  text: string,
): Promise<boolean> {
  try {
    await store.bodies.put(key, text);
    await store.items.put(key, [{ ...record, ...(at !== undefined && { slot: at }), session }]);
    return true;
  } catch {
    return false;
  }
}

/** What was read from memory lies there already. */
function citedAgain(name: string, { argument, text, outcome }: Answered, room: number): { readonly item?: ItemRef } {
  if (name !== 'retrieve_from_memory' || outcome !== 'ok' || !isRecord(argument) || typeof argument['id'] !== 'string') return {};
  const { id, ...range } = argument as { readonly id: string };
  const shown = Object.fromEntries(
    Object.entries(range).map(([field, value]) => [field, typeof value === 'string' ? truncate(value, 80) : value]),
  ) as CompactedResult;
  const compacted = { actionName: name, ...shown, head: truncate(text, 200), contentLength: text.length };
  return { item: { id, citation: toCitation(compacted, { name, length: text.length, id, room }) } };
}

function compact(
  plugins: CompactionPlugins,
  name: string,
  { text, outcome, argument }: Answered,
  memoryId: string,
): { readonly compacted: CompactedResult; readonly isPlain: boolean } {
  let isPlain = false;
  const otherwise: typeof headAndTail = {
    compact(...given) {
      isPlain = true;
      return headAndTail.compact(...given);
    },
  };
  const compactors = createCompactors({ byTool: { ...BUILTIN_PLUGINS, ...plugins }, byShape: [rowsPlugin], otherwise }, (tool, reason) =>
    log.warn('a compaction plugin failed: the result is cited by its beginning and end', { tool, reason }),
  );
  const compacted = compactors.compact({ message: text, outcome }, { name, input: argument }, { memoryId });
  return { compacted, isPlain };
}

/** As the seed writes it; where that is too much, the least that says what it was. */
function toCitation(
  compacted: CompactedResult,
  { name, length, id, room }: { readonly name: string; readonly length: number; readonly id: string; readonly room: number },
): string {
  const citation = JSON.stringify(compacted, null, 2);
  return Buffer.byteLength(citation) <= room
    ? citation
    : JSON.stringify({ actionName: name, contentLength: length, memoryId: id }, null, 2);
}
