/** Tasks of a context, or of the conversations that began last. */
import { z } from 'zod';
import type { PerduraClient } from '../../client.js';
import { turnId, turnNumber } from '../../records/identity.js';
import { byTurn } from '../../records/turn-end.js';
import type { Conversations } from '../core/conversations.js';
import { isOver, isRunning, readStatus } from '../core/turn-status.js';
import { toConversationId, readAs } from '../core/read-body.js';
import { invalid } from '../core/errors.js';
import { lastTime, decideState, renderTask, type TaskFacts } from './task.js';
import { MAX_CONTEXT, readTaskId, taskName } from './task-id.js';
import type { State, Task } from './wire.js';

/** Without a context: more would have to be read whole for each request. */
export const MAX_CONVERSATIONS = 50;
const AT_ONCE = 10;

export interface Listing {
  readonly contextId: string;
  /** Absent: any. */
  readonly state?: State;
  readonly pageSize?: number | undefined;
  readonly pageToken: string;
  readonly historyLength?: number | undefined;
  readonly statusTimestampAfter?: string | undefined;
  readonly includeArtifacts?: boolean | undefined;
}

const paging = z.object({
  pageSize: z.int().min(1).max(100).default(50),
  historyLength: z.int().min(0).optional(),
  statusTimestampAfter: z.iso.datetime({ offset: true }).optional(),
});

export async function listTasks(core: Conversations, wanted: Listing, signal: AbortSignal): Promise<object> {
  const { pageSize, historyLength = 0, statusTimestampAfter } = readAs(paging, wanted);
  if (wanted.contextId.length > MAX_CONTEXT) throw invalid(`contextId may have ${MAX_CONTEXT} characters`);
  const contexts =
    wanted.contextId === '' ? (await core.client.list({ limit: MAX_CONVERSATIONS })).map(({ id }) => id) : [wanted.contextId];
  const found: TaskFacts[] = [];
  for (let at = 0; at < contexts.length; at += AT_ONCE) {
    signal.throwIfAborted();
    found.push(...(await Promise.all(contexts.slice(at, at + AT_ONCE).map((context) => readTasks(core, context)))).flat());
  }
  const since = statusTimestampAfter === undefined ? -Infinity : Date.parse(statusTimestampAfter);
  const fit = found
    .filter((facts) => (wanted.state === undefined || decideState(facts) === wanted.state) && readTime(facts) >= since)
    .sort((a, b) => readTime(b) - readTime(a) || byTurn(b.name, a.name));
  const begin = wanted.pageToken === '' ? 0 : afterToken(fit, wanted.pageToken);
  const page = fit.slice(begin, begin + pageSize);
  return {
    tasks: page.map((facts) => listed(renderTask(facts, { historyLength }), wanted.includeArtifacts === true)),
    nextPageToken: begin + page.length < fit.length ? (page.at(-1)?.name.task ?? '') : '',
    pageSize,
    totalSize: fit.length,
  };
}

function listed({ artifacts, ...task }: Task, withArtifacts: boolean): object {
  return withArtifacts ? { ...task, artifacts } : task;
}

/** A token is the last task of the page before. */
function afterToken(fit: readonly TaskFacts[], token: string): number {
  const at = fit.findIndex(({ name }) => name.task === token);
  if (at >= 0) return at + 1;
  if (readTaskId(token)) return fit.length;
  throw invalid('pageToken is none of this gateway', 'pageToken');
}

function readTime({ entries }: TaskFacts): number {
  return lastTime(entries) ?? 0;
}

async function readTasks(core: Conversations, context: string): Promise<readonly TaskFacts[]> {
  const id = toConversationId(context);
  const { client } = core;
  if ((await isRunning(client, id)) === undefined) return [];
  const [entries, ends, status] = await Promise.all([client.history(id), client.turnEnds(id), runningStatus(client, id)]);
  const turns = [...new Set(entries.map(({ turn }) => turn))].sort((a, b) => byTurn({ turn: a }, { turn: b }));
  const latest = Math.max(status?.turn ?? 0, turnNumber(turns.at(-1) ?? turnId(0)));
  const waiting = status !== undefined && status !== null && status.pendingApprovals > 0 ? await client.approvals(id).catch(() => []) : [];
  return turns.map((turn): TaskFacts => {
    const task = { name: taskName(context, turn), entries: entries.filter((entry) => entry.turn === turn) };
    const end = ends.findLast((one) => one.turn === turn);
    const goesOn = status !== undefined && (status === null ? turnNumber(turn) === latest && end === undefined : !isOver(turn, status));
    if (goesOn) return { ...task, waiting: turnNumber(turn) === latest ? waiting : [] };
    return { ...task, waiting: [], end: { stopReason: end?.stopReason ?? 'end', text: '', ...(end?.error && { error: end.error }) } };
  });
}

/** Undefined where it has ended; null where no worker answers. */
async function runningStatus(client: PerduraClient, id: string) {
  return (await isRunning(client, id)) === true ? readStatus(client, id) : undefined;
}
