/**
 * Which store and which agents a worker has, by its identity, which Temporal keeps with each poller and each event:
 * `4711@host#k3f9a1.x2a1`. Workers of one task queue must have the same: a turn that another store's worker takes would find
 * no earlier messages.
 */
import { createHash } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { realpath } from 'node:fs/promises';
import type { ConnectionLike, Connection } from '@temporalio/client';
import { isAlive } from '../../platform/processes.js';
import { qualifiedScope } from '../../records/identity.js';

export interface WorkerPlace {
  /** As the store calls itself. */
  readonly store: string;
  /** Of the agents folder; compared between workers of one machine alone, where a path means one folder. */
  readonly agents: string;
}

export interface OtherWorker {
  readonly identity: string;
  readonly differs: 'store' | 'agents';
  /** `process 4711 in /home/jo/a`. */
  readonly words: string;
}

interface Identity {
  readonly pid: number;
  readonly host: string;
  readonly place?: WorkerPlace;
}

/** A poll lasts a minute: one that was not seen for longer is gone. */
const GONE_MS = 75_000;
const HASH_LENGTH = 4;

/** Of the folder's real path. */
export function agentsMark(folder: string): string {
  return createHash('sha256').update(folder).digest('hex').slice(0, HASH_LENGTH);
}

export function toIdentity(place: WorkerPlace | undefined): string {
  const process_ = `${process.pid}@${hostname()}`;
  return place === undefined ? process_ : `${process_}#${place.store}.${place.agents}`;
}

/** Undefined for one that is not ours. */
export function readIdentity(identity: string): Identity | undefined {
  const [, pid, host, store, agents] = /^(\d{1,10})@([^#]{1,255})(?:#([0-9a-z]{6})\.([0-9a-f]{4}))?$/.exec(identity) ?? [];
  if (pid === undefined || host === undefined) return undefined;
  return { pid: Number(pid), host, ...(store !== undefined && agents !== undefined && { place: { store, agents } }) };
}

/** Workers of the task queue that have another store, or on this machine another agents folder. */
export async function findOthers(
  { workflowService }: Pick<ConnectionLike, 'workflowService'>,
  { namespace, taskQueue, place }: { readonly namespace: string; readonly taskQueue: string; readonly place: WorkerPlace },
): Promise<OtherWorker[]> {
  const { pollers } = await workflowService.describeTaskQueue({ namespace, taskQueue: { name: taskQueue }, taskQueueType: 1 });
  return (pollers ?? []).flatMap(({ identity, lastAccessTime }) => {
    const seenAt = Number(lastAccessTime?.seconds ?? 0) * 1000;
    const differs = Date.now() - seenAt < GONE_MS ? differenceTo(identity ?? '', place) : undefined;
    return differs === undefined || !identity ? [] : [{ identity, differs, words: describeProcess(identity) }];
  });
}

/** Whether a worker of the task queue has polled lately, and lives as far as this machine knows. */
export async function hasLiveWorker(
  { workflowService }: Pick<ConnectionLike, 'workflowService'>,
  { namespace, taskQueue }: { readonly namespace: string; readonly taskQueue: string },
): Promise<boolean> {
  const { pollers } = await workflowService.describeTaskQueue({ namespace, taskQueue: { name: taskQueue }, taskQueueType: 1 });
  return (pollers ?? []).some(({ identity, lastAccessTime }) => {
    if (Date.now() - Number(lastAccessTime?.seconds ?? 0) * 1000 >= GONE_MS) return false;
    const known = readIdentity(identity ?? '');
    return known?.host !== hostname() || isAlive(known.pid);
  });
}

/** Whether a worker of the task queue may have other agents than this folder of this machine: then only that worker knows which. */
export async function mayHaveOtherAgents(
  { workflowService }: Pick<ConnectionLike, 'workflowService'>,
  { namespace, taskQueue, agents }: { readonly namespace: string; readonly taskQueue: string; readonly agents: string },
): Promise<boolean> {
  const { pollers } = await workflowService.describeTaskQueue({ namespace, taskQueue: { name: taskQueue }, taskQueueType: 1 });
  return (pollers ?? []).some(({ identity }) => {
    const other = readIdentity(identity ?? '');
    if (other?.host !== hostname()) return true;
    return isAlive(other.pid) && other.place?.agents !== agents;
  });
}

/** Whether all workers of the task queue have the agents of this folder of this machine, and there is one. */
export async function hasTheseAgents(
  connection: Pick<ConnectionLike, 'workflowService'>,
  place: { readonly namespace: string; readonly taskQueue: string; readonly agents: string },
): Promise<boolean> {
  return (await hasLiveWorker(connection, place)) && !(await mayHaveOtherAgents(connection, place));
}

export function describeTakenQueue(taskQueue: string, { differs, words }: OtherWorker): string {
  const what = differs === 'store' ? 'another store' : 'another agents folder';
  return (
    `task queue ${taskQueue} has a worker with ${what} (${words}), and each would take turns of the other's conversations: ` +
    'set PERDURA_TASK_QUEUE to another name here, or end that worker'
  );
}

/** Undefined: it has the same, or does not say, or has died. */
function differenceTo(identity: string, here: WorkerPlace): OtherWorker['differs'] | undefined {
  const other = readIdentity(identity);
  if (other?.place === undefined) return undefined;
  const isHere = other.host === hostname();
  if (isHere && !isAlive(other.pid)) return undefined;
  if (other.place.store !== here.store) return 'store';
  return isHere && other.place.agents !== here.agents ? 'agents' : undefined;
}

/** For people: the process, and on this machine its folder where the system says. */
export function describeProcess(identity: string): string {
  const known = readIdentity(identity);
  if (known === undefined) return identity;
  if (known.host !== hostname()) return `process ${known.pid} on ${known.host}`;
  return `process ${known.pid}${findFolder(known.pid)}`;
}

function findFolder(pid: number): string {
  try {
    return ` in ${readlinkSync(`/proc/${pid}/cwd`)}`;
  } catch {
    return '';
  }
}

/** For one look at many conversations: looks up each task queue once; where Temporal cannot tell, it has no worker. */
export function askedOnce(hasWorker: (taskQueue: string) => Promise<boolean>): (taskQueue: string) => Promise<boolean> {
  const known = new Map<string, Promise<boolean>>();
  return (taskQueue) => {
    const answer = known.get(taskQueue) ?? hasWorker(taskQueue).catch(() => false);
    known.set(taskQueue, answer);
    return answer;
  };
}

// An agent that the worker of this very folder could not use is refused before anything starts in its name.

interface KnownAgents {
  readonly namespace: string;
  readonly taskQueue: string;
  /** Where agents are, as the worker of this folder finds them. */
  readonly folder: string;
}

/** Why; undefined where it can be used, or where only a worker of another place knows. */
export async function agentRefusal(
  connection: Pick<Connection, 'workflowService'>,
  { namespace, taskQueue, folder }: KnownAgents,
  agent: string,
  tenant?: string,
): Promise<string | undefined> {
  const { AgentConfigError, loadAgent } = await import('../../agents/load-agent.js');
  const error = await loadAgent(folder, agent, qualifiedScope(tenant, agent)).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (!(error instanceof AgentConfigError)) return undefined;
  const agents = agentsMark(await realpath(folder).catch(() => folder));
  const isKnown = await hasTheseAgents(connection, { namespace, taskQueue, agents }).catch(() => false);
  return isKnown ? error.message : undefined;
}
