/** The present state of a conversation and its turns: from its worker where one answers, else from Temporal and the live events. */
import type { Description } from '../describe.js';
import { ClientError } from '../errors.js';
import type { PerduraClient } from '../interface.js';
import type { Status, TurnResult } from '../../conversation/protocol/contract.js';
import { turnId, turnNumber } from '../../records/identity.js';
import { orUndefinedAfter, timeoutSignal } from '../../platform/promises.js';
import { recordedResult } from './follow-turn.js';
import { OLDEST, parseCursor } from '../../stores/feed-cursor.js';

/** Longest wait for a worker: without one, Temporal and the store answer. */
const STATUS_PATIENCE_MS = 2_000;

/** Null where nothing answers in time. */
export async function readStatus(client: Pick<PerduraClient, 'status'>, id: string): Promise<Status | null> {
  const answer = client.status(id).catch(() => null);
  return (await orUndefinedAfter(STATUS_PATIENCE_MS, answer)) ?? null;
}

/** From Temporal, with a worker or without; undefined where there is no such conversation. */
export async function isRunning(client: Pick<PerduraClient, 'describe'>, id: string): Promise<boolean | undefined> {
  const description = await describeIfAny(client, id);
  return description && description.state === 'running';
}

/** Undefined where there is no such conversation. */
export async function describeIfAny(client: Pick<PerduraClient, 'describe'>, id: string): Promise<Description | undefined> {
  try {
    return await client.describe(id);
  } catch (error) {
    if ((error as Partial<ClientError>).kind === 'not-found') return undefined;
    throw error;
  }
}

/** Undefined where nothing runs, and where there is no such conversation. */
export async function findRunningTurn(client: PerduraClient, id: string, signal: AbortSignal): Promise<string | undefined> {
  if (!(await isRunning(client, id))) return undefined;
  const status = await readStatus(client, id);
  if (status === null) return openInFeed(client, id, signal);
  // One that has just ended is shown once more: a page has it by the same id.
  return status.phase === 'idle' || status.phase === 'resetting' || status.turn === 0 ? undefined : turnId(status.turn);
}

/** The latest turn that began and shows no end. */
async function openInFeed(client: PerduraClient, id: string, signal: AbortSignal): Promise<string | undefined> {
  const newest = parseCursor(await client.newestCursor(id));
  if (newest === undefined) return undefined;
  let open: string | undefined;
  for await (const { cursor, event } of client.watch(id, { after: OLDEST, signal })) {
    if (event.kind === 'turn-finished') open = open === event.turn ? undefined : open;
    else if ('turn' in event) open = event.turn;
    const at = parseCursor(cursor);
    if (at === undefined || at.birth !== newest.birth || at.n >= newest.n) break;
  }
  return open;
}

interface SubmittedMessage {
  readonly messageId: string;
  /** A cursor from before the message was handed over. */
  readonly after: string;
  readonly signal: AbortSignal;
  /** The turn, from the call that waits for its end. */
  readonly answered: Promise<string>;
}

/** The turn that a message becomes, as soon as the live events or the answer name it. */
export async function findTurn(client: Pick<PerduraClient, 'watch'>, id: string, message: SubmittedMessage): Promise<string> {
  const { messageId, after, signal, answered } = message;
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const seen = async (): Promise<string> => {
    for await (const { event } of client.watch(id, { after, signal: either })) {
      if (event.kind === 'message' && event.messageId === messageId) return event.turn;
    }
    return new Promise(() => undefined);
  };
  try {
    return await Promise.race([answered, seen().catch(() => answered)]);
  } finally {
    answered.catch(() => undefined);
    stop.abort();
  }
}

/** For protocols whose ids name turns. */
export interface TurnName {
  readonly conversation: string;
  readonly turn: string;
}

interface TurnsOfConversations {
  readonly client: PerduraClient;
  ended(id: string, turn: string, signal: AbortSignal): Promise<TurnResult>;
}

/** How long is waited for the end of a turn of which is not known that it has ended, and of one that has, or is being stopped. */
const LOOK_MS = 500;
export const END_PATIENCE_MS = 20_000;

/**
 * Undefined where it has not ended within `patienceMs`, or without that now; rejects with `not-found` where there is no such turn, and
 * with `no-worker` where nothing tells whether there is.
 */
export async function waitForEnd(
  core: TurnsOfConversations,
  { conversation, turn }: TurnName,
  signal: AbortSignal,
  patienceMs?: number,
): Promise<TurnResult | undefined> {
  const status = patienceMs === undefined ? await readStatus(core.client, conversation) : null;
  if (status !== null && goesOn(turn, status)) return undefined;
  const patience = timeoutSignal(patienceMs ?? (status !== null && isOver(turn, status) ? END_PATIENCE_MS : LOOK_MS));
  try {
    return await core.ended(conversation, turn, AbortSignal.any([signal, patience]));
  } catch (error) {
    if (!patience.aborted || signal.aborted) throw error;
    // A worker under load may be too late to report that itself.
    if (status !== null && isBeyond(turn, status)) throw new ClientError('not-found', `conversation ${conversation} has no turn ${turn}`);
    return status === null && patienceMs === undefined ? findRecorded(core, { conversation, turn }) : undefined;
  }
}

/** Where no worker answers. What came after it shows that it has ended; how, only the store tells. */
async function findRecorded({ client }: TurnsOfConversations, { conversation, turn }: TurnName): Promise<TurnResult | undefined> {
  const [entries, ends] = await Promise.all([client.history(conversation), client.turnEnds(conversation)]);
  const recorded = recordedResult(turn, entries, ends);
  if (recorded === undefined) {
    const why = `no worker answers for ${conversation}, and the store has no ${turn} of it yet; ask again once one does`;
    throw new ClientError('no-worker', why);
  }
  const isOver = ends.some((end) => end.turn === turn) || entries.some((entry) => turnNumber(entry.turn) > turnNumber(turn));
  return isOver ? recorded : undefined;
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

/** A message in the queue has its turn already. */
function isBeyond(turn: string, { turn: latest, queued }: Pick<Status, 'turn' | 'queued'>): boolean {
  return turnNumber(turn) > latest + queued;
}

/** Stops a turn that runs, takes back one that waits, and leaves one that has ended. */
export async function stopTurn(client: PerduraClient, { conversation, turn }: TurnName, reason: string): Promise<void> {
  const { phase, turn: running } = await client.status(conversation);
  if (turnNumber(turn) === running && phase !== 'idle') return client.interrupt(conversation, reason);
  if (turnNumber(turn) <= running) return;
  for (const { event } of await client.queue(conversation)) {
    if (event.kind === 'message' && event.turnId === turn) await client.withdraw(conversation, event.messageId);
  }
}
