/**
 * How listed conversations stand now. Search attributes are as of the last tenth turn; the workflow itself knows better, and each is
 * queried once, a few at a time, for as long as a list may take: a thousand of them, or a worker that is away, keep no one waiting.
 */
import pLimit from 'p-limit';
import type { Status } from '../conversation/protocol/contract.js';
import type { Listed } from './describe.js';
import { askedOnce } from './temporal/worker-place.js';
import { orUndefinedAfter } from '../platform/promises.js';

const AT_ONCE = 8;
const MAX_ASKED = 100;
const PATIENCE_MS = 2_000;

/** `isCurrent`: `turns` and `costUsd` are as of now, and not as of the last tenth turn. */
export interface Standing extends Listed {
  readonly isCurrent: boolean;
  /** What it does, where its workflow answered. */
  readonly phase?: Status['phase'];
  /** Of its last turn. */
  readonly lastError?: NonNullable<Status['lastError']>;
}

export interface CurrentAsked {
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

/** Leaves out conversations that ended by themselves and wrote their last status. Running ones come first. */
function inOrder(listed: readonly Listed[]): readonly Listed[] {
  const toAsk = listed.filter(({ state, turns }) => state !== 'ended' || turns === null);
  return [...toAsk.filter(({ running }) => running), ...toAsk.filter(({ running }) => !running)].slice(0, MAX_ASKED);
}

function toStanding(one: Listed, status: Status | undefined): Standing {
  if (!status) return { ...one, isCurrent: one.state === 'ended' && one.turns !== null };
  const { turns, usage, title, model, lastError, pendingApprovals, phase } = status;
  const isFailed = phase === 'idle' && lastError?.stopReason === 'failed';
  const isWaiting = pendingApprovals > 0 || phase === 'stepping';
  return {
    ...one,
    isCurrent: true,
    ...(one.running && { status: isWaiting ? 'waiting' : isFailed ? 'failed' : 'running' }),
    phase,
    turns,
    costUsd: usage.costUsd,
    title: title ?? one.title,
    model: model ?? one.model,
    ...(lastError && { lastError }),
  };
}
