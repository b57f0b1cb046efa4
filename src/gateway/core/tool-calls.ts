/**
 * Tool calls with their inputs and results in full: the feed has the beginnings, and the store the rest. The entry of a
 * call is in the store before the call shows in the feed, and so is that of its result.
 */
import type { PerduraClient } from '../../client.js';
import { type Entry, type JsonValue, shownText } from '../../records/message.js';
import { cut } from '../../records/text.js';
import type { Change } from './turn-stream.js';

/** The feed cuts at 200, and drops half a surrogate pair there. */
const MAX_WHOLE = 198;
/** Characters of a result that a client gets. */
const MAX_RESULT = 100_000;

export interface ToolCalls {
  /** Never throws: what the store does not have stays as the feed has it. */
  expand(change: Change): Promise<readonly Change[]>;
}

export function createToolCalls(client: Pick<PerduraClient, 'history'>, id: string, turn: string): ToolCalls {
  const shown = new Set<string>();
  /** Slots up to it are of earlier turns. */
  let before = 0;

  const readTurn = async (): Promise<readonly Entry[]> => {
    const entries = await client.history(id, { after: before }).catch(() => []);
    const first = entries.find((entry) => entry.turn === turn);
    if (first) before = Math.max(before, first.slot - 1);
    return entries.filter((entry) => entry.turn === turn);
  };

  const wholeInput = async (callId: string, beginning: string | undefined): Promise<JsonValue> => {
    const whole = beginning !== undefined && beginning.length <= MAX_WHOLE ? parsed(beginning) : undefined;
    return whole ?? inputIn(await readTurn(), callId) ?? beginning ?? {};
  };

  const called = async (callId: string, name: string, beginning?: string): Promise<readonly Change[]> => {
    if (shown.has(callId)) return [];
    shown.add(callId);
    return [{ kind: 'tool-called', callId, name, input: await wholeInput(callId, beginning) }];
  };

  return {
    async expand(change) {
      if (change.kind === 'tool-started') return [...(await called(change.callId, change.name, change.input)), change];
      if (change.kind === 'asked') return [...(await called(change.callId, change.name)), change];
      if (change.kind !== 'tool-finished') return [change];
      const isWhole = change.preview.length <= MAX_WHOLE;
      const text = isWhole ? change.preview : (resultIn(await readTurn(), change.callId) ?? change.preview);
      return [...(await called(change.callId, change.name)), { ...change, preview: cut(text, MAX_RESULT) }];
    },
  };
}

function inputIn(entries: readonly Entry[], callId: string): JsonValue | undefined {
  for (const { message } of entries) {
    if (message.role !== 'assistant') continue;
    for (const block of message.blocks) if (block.kind === 'tool-call' && block.callId === callId) return block.input;
  }
  return undefined;
}

function resultIn(entries: readonly Entry[], callId: string): string | undefined {
  const found = entries.findLast(({ message }) => message.role === 'tool' && message.callId === callId);
  return found?.message.role === 'tool' ? shownText(found.message.text) : undefined;
}

function parsed(json: string): JsonValue | undefined {
  try {
    return JSON.parse(json) as JsonValue;
  } catch {
    return undefined;
  }
}
