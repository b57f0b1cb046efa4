/**
 * Calls of tools that the client runs, as protocols show them: with ids from which any gateway finds conversation, turn and call. Such an id
 * gives no right: who answers must be the one whose conversation it is (go-on.ts).
 */
import { isClientTool, resultText, withoutPrefix } from '../../../conversation/protocol/client-tools.js';
import { ID_PATTERN } from '../../../conversation/protocol/contract.js';
import type { Approval } from '../../../conversation/protocol/human-input.js';
import { shownText, type Entry, type JsonValue } from '../../../records/message.js';

export interface ClientCall {
  readonly callId: string;
  /** As the client calls the tool. */
  readonly name: string;
  readonly input: JsonValue;
}

export interface CallName {
  readonly conversation: string;
  readonly turn: string;
  readonly callId: string;
}

/** What a client says that its tool has answered. */
export interface ToolAnswer {
  readonly id: string;
  readonly output: string;
  readonly isError: boolean;
}

const NAME = /^(.{1,64}):((turn_\d{4,15})\/c\d{1,6})$/;

export function publicCallId(conversation: string, callId: string, prefix = 'call_'): string {
  return `${prefix}${Buffer.from(`${conversation}:${callId}`).toString('base64url')}`;
}

/** Undefined for what no gateway has given out: a call of another server's, in a history that the client has brought along. */
export function readCallId(id: string): CallName | undefined {
  const [, encoded = ''] = /^(?:call|toolu)_([\w-]{1,160})$/.exec(id) ?? [];
  const [, conversation = '', callId = '', turn = ''] = NAME.exec(Buffer.from(encoded, 'base64url').toString()) ?? [];
  return ID_PATTERN.test(conversation) ? { conversation, callId, turn } : undefined;
}

/** In the order in which they were made. */
export function callsIn({ message }: Entry): readonly ClientCall[] {
  if (message.role !== 'assistant') return [];
  return message.blocks.flatMap((block) =>
    block.kind === 'tool-call' && isClientTool(block.name)
      ? [{ callId: block.callId, name: withoutPrefix(block.name), input: block.input }]
      : [],
  );
}

type Result = Extract<Entry['message'], { readonly role: 'tool' }>;

export function resultsOf(entries: readonly Entry[]): ReadonlyMap<string, Result> {
  return new Map(entries.flatMap(({ message }) => (message.role === 'tool' ? [[message.callId, message] as const] : [])));
}

/** The very answer stands there already: the same request came twice. */
export function isAnsweredSo(result: Result, { output, isError }: ToolAnswer): boolean {
  return result.outcome === (isError ? 'error' : 'ok') && shownText(result.text) === resultText(output);
}

/** Calls that the client was asked to run: what was refused at once, and what never began, it has not seen. */
export function askedOf(entry: Entry, results: ReadonlyMap<string, Result>): readonly ClientCall[] {
  return callsIn(entry).filter(({ callId }) => {
    const outcome = results.get(callId)?.outcome;
    return outcome !== 'rejected' && outcome !== 'cancelled';
  });
}

/** Where an answer ends, because what comes next is the client's. */
export interface Pause {
  /** Slot of what the model said then. */
  readonly slot: number;
  readonly ids: readonly string[];
}

/** The first pause after slot `from`, as the store and the conversation have it; for what the live events no longer show. */
export function pauseAfter(entries: readonly Entry[], waiting: readonly Approval[], from: number): Pause | undefined {
  const results = resultsOf(entries);
  const open = waiting.filter(({ kind }) => kind === 'client-tool');
  const again = open.filter(({ askedIn }) => askedIn === from).map(({ callId }) => callId);
  if (again.length > 0) return { slot: from, ids: again };
  for (const entry of entries) {
    if (entry.slot <= from) continue;
    const ids = askedOf(entry, results)
      .map(({ callId }) => callId)
      .filter((callId) => results.has(callId) || open.some((one) => one.callId === callId));
    if (ids.length > 0) return { slot: entry.slot, ids };
  }
  return undefined;
}
