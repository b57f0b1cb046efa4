/** One turn by its name, for protocols whose ids name turns: how it ended, where it has, and how it is stopped. */
import { ClientError, type PerduraClient } from '../../../client.js';
import type { Status, TurnResult } from '../../../conversation/protocol/contract.js';
import { turnNumber } from '../../../records/identity.js';
import { timeoutSignal } from '../../../platform/promises.js';
import type { Conversations } from '../conversations.js';
import { statusOf } from '../status-of.js';

export interface TurnName {
  readonly conversation: string;
  readonly turn: string;
}

/** How long is waited for the end of a turn of which is not known that it has ended, and of one that has, or is being stopped. */
const LOOK_MS = 500;
export const END_PATIENCE_MS = 20_000;

/** Undefined where it has not ended within `patienceMs`; rejects with `not-found` where there is no such turn. */
export async function endOf(
  core: Conversations,
  { conversation, turn }: TurnName,
  signal: AbortSignal,
  patienceMs?: number,
): Promise<TurnResult | undefined> {
  const status = patienceMs === undefined ? await statusOf(core.client, conversation) : null;
  if (status !== null && goesOn(turn, status)) return undefined;
  const patience = timeoutSignal(patienceMs ?? (status !== null && isOver(turn, status) ? END_PATIENCE_MS : LOOK_MS));
  try {
    return await core.ended(conversation, turn, AbortSignal.any([signal, patience]));
  } catch (error) {
    if (!patience.aborted || signal.aborted) throw error;
    // A worker under load may be too late to say so itself.
    if (status !== null && isBeyond(turn, status)) throw new ClientError('not-found', `conversation ${conversation} has no turn ${turn}`);
    return undefined;
  }
}

/** By what the conversation does now: a machine under load takes its time to answer with the end itself. */
export function isOver(turn: string, { turn: latest, phase }: Pick<Status, 'turn' | 'phase'>): boolean {
  return turnNumber(turn) < latest || (turnNumber(turn) === latest && (phase === 'idle' || phase === 'closing'));
}

function goesOn(turn: string, status: Status): boolean {
  const { turn: latest, phase } = status;
  const isBetween = phase === 'idle' || phase === 'closing' || phase === 'resetting' || phase === 'compacting';
  return turnNumber(turn) === latest ? !isBetween : turnNumber(turn) > latest && !isBeyond(turn, status);
}

/** What waits in the queue has its turn already. */
function isBeyond(turn: string, { turn: latest, queued }: Pick<Status, 'turn' | 'queued'>): boolean {
  return turnNumber(turn) > latest + queued;
}

/** What runs is stopped, what waits is taken back, what has ended stays. */
export async function stopTurn(client: PerduraClient, { conversation, turn }: TurnName, reason: string): Promise<void> {
  const { phase, turn: running } = await client.status(conversation);
  if (turnNumber(turn) === running && phase !== 'idle') return client.interrupt(conversation, reason);
  if (turnNumber(turn) <= running) return;
  for (const { event } of await client.queue(conversation)) {
    if (event.kind === 'message' && event.turnId === turn) await client.withdraw(conversation, event.messageId);
  }
}
