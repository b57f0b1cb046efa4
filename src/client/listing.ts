/** Which conversations there are, as Temporal's visibility knows, and their status now, as their workflows answer. */
import type { Client } from '@temporalio/client';
import pLimit from 'p-limit';
import { WORKFLOW_TYPE } from '../workflows/messages.js';
import { toListed, type Listed } from './describe.js';
import { toClientError, type ClientError } from './errors.js';
import type { Status } from '../conversation/protocol/contract.js';
import { askedOnce } from './temporal/worker-place.js';
import { orUndefinedAfter } from '../platform/promises.js';

/** Which conversations are listed. */
export interface ListOptions {
  readonly limit?: number;
  readonly query?: string;
  /** Only this tenant's; null: only those of no tenant. */
  readonly tenant?: string | null;
  /** Only those whose ids begin so. */
  readonly idPrefix?: string;
  /** Only those that fit, of the latest `scan` (default: as many as it takes). */
  readonly where?: (listed: Listed) => boolean;
  readonly scan?: number;
}

export function createList(client: Client): (options?: ListOptions) => Promise<Listed[]> {
  const find = async ({ limit = 50, query, tenant, idPrefix, where, scan = Infinity }: ListOptions, more?: string): Promise<Listed[]> => {
    // A run that handed over is a part of the conversation, as is an earlier life of the same id.
    const wanted = [
      `WorkflowType = '${WORKFLOW_TYPE}' AND ExecutionStatus != 'ContinuedAsNew'`,
      ...(idPrefix === undefined ? [] : [`WorkflowId STARTS_WITH '${idPrefix.replaceAll("'", "''")}'`]),
      ...(more === undefined ? [] : [more]),
      ...(query === undefined ? [] : [`(${query})`]),
    ];
    const found = new Map<string, Listed>();
    let seen = 0;
    try {
      for await (const info of client.workflow.list({ query: wanted.join(' AND ') })) {
        if (++seen > scan) break;
        // A schedule's message to another conversation.
        if (info.memo?.['into'] !== undefined) continue;
        const listed = toListed(info);
        // Whatever a query says, and however a database compares.
        if (tenant !== undefined && listed.tenant !== tenant) continue;
        if (idPrefix !== undefined && !listed.id.startsWith(idPrefix)) continue;
        if (where !== undefined && !where(listed)) continue;
        if (found.get(listed.id)?.running !== true && (!found.has(listed.id) || listed.running)) found.set(listed.id, listed);
        if (found.size === limit) break;
      }
    } catch (error) {
      throw toClientError(error, 'cannot list conversations');
    }
    return [...found.values()];
  };

  return async (options = {}) => {
    const { tenant, idPrefix } = options;
    if (tenant === undefined || idPrefix !== undefined) return find(options);
    try {
      // One that began a moment ago has the memo alone.
      const ofTenant = tenant === null ? '' : `AgentTenant = '${tenant.replaceAll("'", "''")}' OR `;
      return await find(options, `(${ofTenant}AgentTenant IS NULL)`);
    } catch (error) {
      // Where the attribute is not registered, all are looked at.
      if ((error as Partial<ClientError>).kind !== 'invalid') throw error;
      return find(options);
    }
  };
}

// How listed conversations stand now. Search attributes are as of the last tenth turn; the workflow itself knows better, and each is
// queried once, a few at a time, for as long as a list may take: a thousand of them, or a worker that is away, keep no one waiting.

const AT_ONCE = 8;
const MAX_ASKED = 100;
const PATIENCE_MS = 2_000;

/** `isCurrent`: `turns` and `costUsd` are as of now, and not as of the last tenth turn. */
export interface Standing extends Listed {
  readonly isCurrent: boolean;
  /** Of its model's last answer. */
  readonly answeredAt?: Date;
  /** What it does, where its workflow answered. */
  readonly phase?: Status['phase'];
  /** Of its last turn. */
  readonly lastError?: NonNullable<Status['lastError']>;
}

interface CurrentAsked {
  readonly statusOf: (id: string) => Promise<Status>;
  /** Whether a worker is there to answer for conversations of this task queue. */
  readonly hasWorker: (taskQueue: string) => Promise<boolean>;
  readonly patienceMs?: number;
}

export async function withCurrentStatus(
  listed: readonly Listed[],
  { statusOf, hasWorker, patienceMs = PATIENCE_MS }: CurrentAsked,
): Promise<Standing[]> {
  const known = new Map<string, Status>();
  const few = pLimit(AT_ONCE);
  const isServed = askedOnce(hasWorker);
  let isOver = false;
  const ask = async ({ id, taskQueue }: Listed): Promise<void> => {
    if (isOver || !(await isServed(taskQueue))) return;
    // One that does not answer, or is gone by now, is shown as it was listed.
    const status = await statusOf(id).catch(() => undefined);
    if (status) known.set(id, status);
  };
  await orUndefinedAfter(patienceMs, Promise.all(inOrder(listed).map((one) => few(() => ask(one)))));
  isOver = true;
  return listed.map((one) => toStanding(one, known.get(one.id)));
}

/** It ended by itself, and wrote its last status: what the list says of it stays true. */
export function isSettled({ state, turns }: Pick<Listed, 'state' | 'turns'>): boolean {
  return state === 'ended' && turns !== null;
}

/** Leaves out conversations that ended by themselves and wrote their last status. Running ones come first. */
function inOrder(listed: readonly Listed[]): readonly Listed[] {
  const toAsk = listed.filter((one) => !isSettled(one));
  return [...toAsk.filter(({ running }) => running), ...toAsk.filter(({ running }) => !running)].slice(0, MAX_ASKED);
}

function toStanding(one: Listed, status: Status | undefined): Standing {
  if (!status) return { ...one, isCurrent: isSettled(one) };
  const { turns, usage, title, model, lastError, pendingApprovals, phase, answeredAt } = status;
  const isFailed = phase === 'idle' && lastError?.stopReason === 'failed';
  const isWaiting = pendingApprovals > 0 || phase === 'stepping';
  return {
    ...one,
    isCurrent: true,
    ...(one.running && { status: isWaiting ? 'waiting' : isFailed ? 'failed' : 'running' }),
    ...(answeredAt !== undefined && { answeredAt: new Date(answeredAt) }),
    phase,
    turns,
    costUsd: usage.costUsd,
    title: title ?? one.title,
    model: model ?? one.model,
    ...(lastError && { lastError }),
  };
}
