/** Turns of a conversation, as they stand in what was recorded. */
import type { TurnResult } from '../conversation/protocol/contract.js';
import { isFromPerson, shownText, type Entry } from '../records/message.js';
import { truncate, oneLine } from '../records/text.js';
import type { TurnEnd } from '../records/turn-end.js';

/** UTF-16 units. */
const MAX_QUESTION = 200;

/** A turn with its steps. */
export interface InspectedTurn {
  readonly turn: string;
  readonly startedAt: Date;
  /** Until the latest thing recorded. */
  readonly durationMs: number;
  readonly messages: number;
  readonly toolCalls: number;
  readonly question: string;
  /** Why it has no whole answer. */
  readonly problem?: string;
}

export function inspectTurns(entries: readonly Entry[], ends: readonly TurnEnd[], most: number): InspectedTurn[] {
  const problems = new Map(ends.map((end) => [end.turn, explainEnd(end)]));
  const turns = new Map<string, Entry[]>();
  for (const entry of entries) turns.set(entry.turn, [...(turns.get(entry.turn) ?? []), entry]);
  return [...turns].slice(-most).map(([turn, inTurn]) => {
    const times = inTurn.map(({ ts }) => ts * 1000);
    const request = inTurn.map(({ message }) => message).find(isFromPerson);
    return {
      turn,
      startedAt: new Date(Math.min(...times)),
      durationMs: Math.round(Math.max(...times) - Math.min(...times)),
      messages: inTurn.length,
      toolCalls: inTurn.filter(({ message }) => message.role === 'tool').length,
      question: request ? truncate(oneLine(shownText(request.text)), MAX_QUESTION) : '',
      ...(problems.get(turn) !== undefined && { problem: problems.get(turn) }),
    };
  });
}

/** Undefined where the answer is whole. */
export function explainEnd(result: Pick<TurnResult, 'stopReason' | 'error'>): string | undefined {
  switch (result.stopReason) {
    case 'end':
      return result.error?.message;
    case 'reset':
    case 'continues':
    case 'queued':
      return undefined;
    case 'interrupted':
      return '(stopped)';
    case 'withdrawn':
      return '(withdrawn before it was answered)';
    case 'tool-limit':
      return result.error?.message ?? "stopped: the agent's limit of tool calls is reached";
    case 'budget':
      return result.error?.message ?? 'stopped: the budget is used up';
    case 'refused':
      return result.error?.message ?? 'the model refused to answer';
    case 'failed':
      return result.error?.message ?? 'the turn failed, and no reason was given';
  }
}
