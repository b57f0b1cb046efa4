/**
 * What tools answered in a recorded conversation: by name and arguments, the nth time for the nth time. What a person or the agent's rules did
 * not let run has no answer here.
 */
import type { RunToolInput } from '../conversation/turn/model-step-effects.js';
import type { ToolEnd } from '../activities/dependencies.js';
import { callFingerprint, readInput, readText } from '../memory/bodies.js';
import { pickMedia, type Entry, type JsonValue } from '../records/message.js';
import type { ConversationKey, Store } from '../stores/store.js';
import type { Track } from './recording.js';

export interface RecordedAnswers {
  /** How the next recorded call like this one ended; undefined: none is left. */
  next(input: RunToolInput, argument: JsonValue): Promise<ToolEnd | undefined>;
}

interface RecordedCall {
  readonly callId: string;
  /** Of the result. */
  readonly slot: number;
}

const PAGE = 500;

/** Reads all of its entries once, and keeps a line for each call. */
export async function readAnswers(store: Store, track: Track, after: number): Promise<RecordedAnswers> {
  const { key } = track.conversation;
  const calls = new Map<string, RecordedCall[]>();
  const open = new Map<string, string>();
  for (let from = after, last = Infinity; from < last; from += PAGE) {
    const page = await store.entries.page(key, from, PAGE);
    last = page.last;
    for (const entry of page.entries) await note(store, key, entry, calls, open);
  }
  return {
    async next({ name, callId, person, plan }, argument) {
      // What a person has written in place of the arguments is written again by that person.
      const left = calls.get(person?.input === undefined ? callFingerprint(name, argument) : (plan.fingerprint ?? ''));
      // The same call at the same place is itself, whatever was cut or interrupted between.
      const same = left?.findIndex((one) => one.callId === callId) ?? -1;
      const [found] = left?.splice(Math.max(0, same), 1) ?? [];
      return found && readEnd(store, key, track, found, person?.note);
    },
  };
}

async function note(
  store: Store,
  key: ConversationKey,
  { slot, message }: Entry,
  calls: Map<string, RecordedCall[]>,
  open: Map<string, string>,
): Promise<void> {
  if (message.role === 'assistant') {
    for (const block of message.blocks) {
      if (block.kind === 'tool-call') open.set(block.callId, callFingerprint(block.name, await readInput(store, key, block)));
    }
  } else if (message.role === 'tool') {
    const fingerprint = open.get(message.callId);
    open.delete(message.callId);
    if (fingerprint === undefined || message.outcome === 'rejected' || message.outcome === 'cancelled') return;
    const same = calls.get(fingerprint) ?? [];
    calls.set(fingerprint, same);
    same.push({ callId: message.callId, slot });
  }
}

/** Without the words of a person about it, which is added again. */
async function readEnd(
  store: Store,
  key: ConversationKey,
  track: Track,
  { callId, slot }: RecordedCall,
  note: string | undefined,
): Promise<ToolEnd | undefined> {
  const finished = track.tool(callId);
  const [entry] = finished ? [] : await store.entries.read(key, [slot]);
  const message = finished ?? (entry?.message.role === 'tool' ? entry.message : undefined);
  if (!message) return undefined;
  const whole = await readText(store, key, message.text);
  const { outcome, files } = message;
  const { task, appContext, contextChange } = finished ?? {};
  return {
    ...pickMedia(message),
    ...{ outcome, text: withoutNote(whole, note) },
    ...(files && { files }),
    ...(task && { task }),
    ...(appContext && { appContext }),
    ...(contextChange && { contextChange }),
  };
}

function withoutNote(text: string, note: string | undefined): string {
  const at = text.lastIndexOf('\n[A person changed the arguments before it ran: ');
  if (at >= 0) return text.slice(0, at);
  const added = `\n[The person who allowed it says: ${note}]`;
  return note !== undefined && text.endsWith(added) ? text.slice(0, -added.length) : text;
}
