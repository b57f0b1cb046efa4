/** Reads a task: from Temporal, where it runs, and from the store. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pending } from '../../client.js';
import type { ClientError } from '../../client/errors.js';
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { turnNumber } from '../../records/identity.js';
import type { Entry } from '../../records/message.js';
import type { Conversations } from '../core/conversations.js';
import { waitForEnd, readStatus } from '../core/turn-status.js';
import type { TaskFacts } from './task.js';
import type { TaskName } from './task-id.js';

const BETWEEN_TRIES_MS = 1_000;

/** Rejects with `not-found` where there is no such task. `patienceMs`: of one that is about to end. */
export async function readTask(core: Conversations, name: TaskName, signal: AbortSignal, patienceMs?: number): Promise<TaskFacts> {
  const end = await waitForEnd(core, name, signal, patienceMs);
  if (end) return endedTask(core, name, end);
  const status = await readStatus(core.client, name.conversation);
  const isLatest = status?.turn === turnNumber(name.turn);
  const waiting = isLatest && status.pendingApprovals > 0 ? await core.client.approvals(name.conversation) : [];
  return {
    name,
    entries: await readEntries(core, name),
    waiting,
    isQueued: status !== null && turnNumber(name.turn) > status.turn,
  };
}

export async function endedTask(core: Conversations, name: TaskName, { stopReason, error, text }: TurnResult): Promise<TaskFacts> {
  return { name, entries: await readEntries(core, name), waiting: [], end: { stopReason, text, ...(error && { error }) } };
}

async function readEntries({ client }: Conversations, { conversation, turn }: TaskName): Promise<readonly Entry[]> {
  return (await client.history(conversation)).filter((entry) => entry.turn === turn);
}

/** The calls that wait for a person. If no worker answers, it waits for one, since nothing goes on without one. */
export async function waitingIn({ client }: Conversations, conversation: string, signal: AbortSignal): Promise<readonly Pending[]> {
  for (;;) {
    try {
      return await client.approvals(conversation);
    } catch (error) {
      signal.throwIfAborted();
      const { kind } = error as Partial<ClientError>;
      if (kind === 'not-found' || kind === 'closed') return [];
      if (kind !== 'no-worker' && kind !== 'unreachable') throw error;
      await sleep(BETWEEN_TRIES_MS, undefined, { signal });
    }
  }
}
