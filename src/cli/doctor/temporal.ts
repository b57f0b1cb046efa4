/** The Temporal server that the settings name: reached, known, prepared, quick. */
import { randomUUID } from 'node:crypto';
import type { Connection, Client } from '@temporalio/client';
import { temporalConnection, type Config, webhookEndpoints, type WebhookEndpoint } from '../../config.js';
import type { Status } from '../../conversation/protocol/contract.js';
import { statusQuery, WORKFLOW_TYPE, WEBHOOK_WORKFLOW_TYPE } from '../../workflows/messages.js';
import { encryptOn, openClient } from '../../client/temporal/encryption.js';
import { missingAttributes } from '../../client/temporal/connection.js';
import { hasWorker, openNamespace } from '../services/temporal-connection.js';
import { broken, ok, warning, type Finding } from './checks.js';
import { errorMessage } from '../../platform/errors.js';
import { counted } from '../../records/text.js';

const FEW_DAYS = 7;
const MAX_ASKED = 20;
const STATUS_PATIENCE = 3_000;
/** Unlimited servers stay below it even when the machine is busy; 20 tasks a second are 50. */
const QUICK_MS = 40;

export async function checkServer(config: Config, { measures = true }: { readonly measures?: boolean } = {}): Promise<Finding[]> {
  const temporal = await temporalConnection(config).catch((error: unknown) => errorMessage(error));
  if (typeof temporal === 'string') return [broken('Temporal', temporal, 'correct TEMPORAL_* or the profile')];
  let connection: Connection;
  try {
    connection = await openNamespace(temporal);
  } catch (error) {
    return [
      broken('Temporal', errorMessage(error), temporal.named ? 'correct TEMPORAL_*, or unset them and run `npm start`' : 'perdura up'),
    ];
  }
  const { namespace } = temporal;
  encryptOn(connection, config.encryptionRoots());
  try {
    return [
      await tried('Temporal', () => checkVersion(connection, temporal.connectionOptions.address)),
      await tried('Namespace', () => checkRetention(connection, namespace)),
      await tried('Search', () => checkAttributes(connection, namespace)),
      ...(measures ? [await tried('Speed', async () => speedFinding(await measureHops(connection, namespace)))] : []),
      ...(await checkWorker(connection, namespace, config.taskQueue)),
      ...(await triedAll('Webhooks', () => checkWebhooks(openClient({ connection, namespace }), config, Date.now()))),
    ];
  } finally {
    await connection.close();
  }
}

async function checkWorker(connection: Connection, namespace: string, taskQueue: string): Promise<Finding[]> {
  const has = await hasWorker(connection, namespace, taskQueue).catch((error: unknown) => errorMessage(error));
  if (typeof has === 'string') return [warning('Worker', `cannot be statuses: ${has}`, 'check the rights of this user')];
  if (!has) return [warning('Worker', `none takes work from ${taskQueue} now: messages wait`, 'perdura worker, or npm start')];
  const waiting = await tried('Conversations', async () => storeFinding(await readStatuses(connection, namespace, taskQueue)));
  return [ok('Worker', `one takes work from ${taskQueue}`), waiting];
}

/** Undefined: it did not answer in time. */
type ConversationStatus = { readonly id: string; readonly status: Pick<Status, 'waiting'> | undefined };

/** Of the newest that run. The store of the workers may be another's disk, so only they know that it fails. */
async function readStatuses(connection: Connection, namespace: string, taskQueue: string): Promise<ConversationStatus[]> {
  const client = openClient({ connection, namespace });
  const query = `WorkflowType = '${WORKFLOW_TYPE}' AND ExecutionStatus = 'Running' AND TaskQueue = '${taskQueue.replaceAll("'", "''")}'`;
  const ids: string[] = [];
  for await (const { workflowId } of client.workflow.list({ query, pageSize: MAX_ASKED })) {
    if (ids.push(workflowId) === MAX_ASKED) break;
  }
  return Promise.all(
    ids.map(async (id) => {
      const ask = (): Promise<Status> => client.workflow.getHandle(id).query(statusQuery);
      return { id, status: await client.withDeadline(Date.now() + STATUS_PATIENCE, ask).catch(() => undefined) };
    }),
  );
}

/** A store that fails for a moment is tried again and soon forgotten; who still waits for it is named here. */
export function storeFinding(statuses: readonly ConversationStatus[]): Finding {
  const failing = statuses.flatMap(({ id, status }) =>
    status?.waiting?.kind === 'retry' && status.waiting.reason === 'StoreUnavailable' ? [{ id, message: status.waiting.message }] : [],
  );
  const [first] = failing;
  const silent = statuses.filter(({ status }) => status === undefined).length;
  if (first) {
    const who = failing.length === 1 ? first.id : `${first.id} and ${failing.length - 1} more`;
    return broken(
      'Conversations',
      `the store fails for ${who}: ${first.message}`,
      'mend the store of the workers; they try again by themselves',
    );
  }
  if (silent > 0) {
    const which = statuses.find(({ status }) => status === undefined)?.id;
    return warning('Conversations', `${silent} of ${statuses.length} did not answer in time`, `perdura debug inspect ${which}`);
  }
  return ok('Conversations', statuses.length === 0 ? 'none runs' : `none of the newest ${statuses.length} waits for the store`);
}

async function checkVersion({ workflowService }: Connection, address: string): Promise<Finding> {
  const { serverVersion } = await workflowService.getSystemInfo({});
  const [major = 0, minor = 0] = (serverVersion ?? '').split('.').map(Number);
  const found = `${address}, server ${serverVersion || 'of an unknown version'}`;
  // Updates with start came with 1.26; without them the first message of a conversation fails.
  if (serverVersion && (major < 1 || (major === 1 && minor < 26))) return broken('Temporal', found, 'upgrade the server to 1.26 or newer');
  return ok('Temporal', found);
}

async function checkRetention({ workflowService }: Connection, namespace: string): Promise<Finding> {
  const { config } = await workflowService.describeNamespace({ namespace });
  const days = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) / 86_400;
  const found = `${namespace}, history is kept ${days} ${days === 1 ? 'day' : 'days'} after a conversation has ended`;
  return days < FEW_DAYS ? warning('Namespace', found, 'perdura admin setup') : ok('Namespace', found);
}

async function checkAttributes(connection: Connection, namespace: string): Promise<Finding> {
  const missing = await missingAttributes(connection, namespace);
  return missing.length === 0
    ? ok('Search', 'all search attributes are registered')
    : warning('Search', `not registered: ${missing.join(', ')}`, 'perdura admin setup');
}

export function speedFinding({ perHop, isEager }: HopSpeed): Finding {
  const found = `${Math.round(perHop)} ms for each hop through a queue, eager activities are ${isEager ? 'on' : 'off'}`;
  const flags = [
    ...(perHop < QUICK_MS ? [] : ['history.transferProcessorMaxPollRPS=2000']),
    ...(isEager ? [] : ['system.enableActivityEagerExecution=true']),
  ];
  if (flags.length === 0) return ok('Speed', found);
  return warning('Speed', found, `set in the server's dynamic config, unless this machine was busy: ${flags.join(' and ')}`);
}

/** A question that a server does not allow is no reason to leave the others unasked. */
async function tried(what: string, check: () => Promise<Finding>): Promise<Finding> {
  const [finding] = await triedAll(what, async () => [await check()]);
  return finding!;
}

async function triedAll(what: string, check: () => Promise<Finding[]>): Promise<Finding[]> {
  return check().catch((error: unknown) => [warning(what, `cannot be statuses: ${errorMessage(error)}`, 'check the rights of this user')]);
}

/**
 * How long a task waits in Temporal's queues, and whether activities may start eagerly: the two settings that a turn's speed
 * depends on. Measured by raw calls, without a worker: one workflow on a separate queue, whose activities are answered
 * at once. A hop is the time from one task's start to the next one's, by the server's clock: a server that hands out 20
 * tasks a second, as they do by default, needs 50 ms for each.
 */
interface HopSpeed {
  /** Milliseconds. */
  readonly perHop: number;
  readonly isEager: boolean;
}

/** The first ones live on the burst credit that an idle server has saved: only the last ones show its pace. */
const ROUNDS = 40;
const COUNTED = 40;
const PATIENCE = 10_000;
const IDENTITY = 'perdura doctor';

const SCHEDULE_ACTIVITY = 1;
const COMPLETE_WORKFLOW = 4;

/** Leaves nothing behind but one closed workflow, which it deletes where that is allowed. */
async function measureHops(connection: Connection, namespace: string): Promise<HopSpeed> {
  const { workflowService: service } = connection;
  const name = `perdura-doctor-${randomUUID()}`;
  const common = { namespace, taskQueue: { name }, identity: IDENTITY };
  const execution = { workflowId: name };
  const patiently = <T>(call: () => Promise<T>): Promise<T> => connection.withDeadline(Date.now() + PATIENCE, call);
  const nextDecision = () => patiently(() => service.pollWorkflowTaskQueue(common));
  const nextActivity = () => patiently(() => service.pollActivityTaskQueue(common));
  const answer = (taskToken: Uint8Array, command: object) =>
    service.respondWorkflowTaskCompleted({ namespace, taskToken, identity: IDENTITY, commands: [command] });
  const giveBack = (taskToken: Uint8Array) => service.respondActivityTaskCompleted({ namespace, taskToken, identity: IDENTITY });

  await service.startWorkflowExecution({
    ...common,
    workflowId: name,
    workflowType: { name: 'perdura-doctor' },
    requestId: randomUUID(),
    workflowExecutionTimeout: seconds(60),
  });
  let isEager = false;
  try {
    // Each poll is under way before there is something for it: a hop holds the server's waiting, not ours.
    let decision = await nextDecision();
    for (let round = 0; round < ROUNDS; round += 1) {
      const [task] = await Promise.all([nextActivity(), answer(decision.taskToken, activity(name, round, false))]);
      [decision] = await Promise.all([nextDecision(), giveBack(task.taskToken)]);
    }
    const { activityTasks } = await answer(decision.taskToken, activity(name, ROUNDS, true));
    const eager = activityTasks?.[0]?.taskToken ?? undefined;
    isEager = eager !== undefined;
    await giveBack(eager ?? (await nextActivity()).taskToken);
    await answer((await nextDecision()).taskToken, { commandType: COMPLETE_WORKFLOW, completeWorkflowExecutionCommandAttributes: {} });
    const { history } = await service.getWorkflowExecutionHistory({ namespace, execution });
    return { perHop: measureHop(history?.events ?? []), isEager };
  } finally {
    await service
      .terminateWorkflowExecution({ namespace, workflowExecution: execution, reason: 'measured', identity: IDENTITY })
      .catch(() => {});
    await service.deleteWorkflowExecution({ namespace, workflowExecution: execution }).catch(() => {});
  }
}

interface TimedEvent {
  readonly eventTime?: { readonly seconds?: unknown; readonly nanos?: number | null } | null;
  readonly workflowTaskStartedEventAttributes?: object | null;
  readonly activityTaskStartedEventAttributes?: object | null;
}

function measureHop(events: readonly TimedEvent[]): number {
  const starts = events
    .filter((event) => (event.activityTaskStartedEventAttributes ?? event.workflowTaskStartedEventAttributes ?? undefined) !== undefined)
    .map(({ eventTime }) => toMilliseconds(eventTime));
  const counted = starts.slice(2 * ROUNDS - COUNTED, 2 * ROUNDS);
  return ((counted.at(-1) ?? 0) - (counted[0] ?? 0)) / Math.max(counted.length - 1, 1);
}

function toMilliseconds(time: TimedEvent['eventTime']): number {
  return Number(time?.seconds ?? 0) * 1000 + (time?.nanos ?? 0) / 1_000_000;
}

function activity(name: string, round: number, requestEagerExecution: boolean): object {
  return {
    commandType: SCHEDULE_ACTIVITY,
    scheduleActivityTaskCommandAttributes: {
      activityId: String(round),
      activityType: { name: 'perdura-doctor' },
      taskQueue: { name },
      scheduleToCloseTimeout: seconds(30),
      startToCloseTimeout: seconds(30),
      requestEagerExecution,
    },
  };
}

function seconds(count: number): { seconds: never } {
  // The generated types want a Long; the wire takes a number.
  return { seconds: count as never };
}

// Whether events can go out, and whether any did not.

const DAY_MS = 24 * 3_600_000;

/** Nothing where there is no webhook and never was one. `now`: epoch milliseconds. */
async function checkWebhooks(client: Client, config: Config, now: number): Promise<Finding[]> {
  let endpoints: readonly WebhookEndpoint[];
  try {
    endpoints = webhookEndpoints(config);
  } catch (error) {
    return [broken('Webhooks', errorMessage(error), 'correct PERDURA_WEBHOOK_URL, PERDURA_WEBHOOK_SECRET or the file of PERDURA_WEBHOOKS')];
  }
  const of = `WorkflowType = '${WEBHOOK_WORKFLOW_TYPE}' AND TaskQueue = '${config.taskQueue.replaceAll("'", "''")}'`;
  const count = async (what: string): Promise<number> => (await client.workflow.count(`${of} AND ${what}`)).count;
  const [failed, trying] = await Promise.all([
    count(`ExecutionStatus = 'Failed' AND CloseTime > '${new Date(now - DAY_MS).toISOString()}'`),
    count(`ExecutionStatus = 'Running'`),
  ]);
  return webhookFindings(endpoints, { failed, trying });
}

function webhookFindings(
  endpoints: readonly WebhookEndpoint[],
  { failed, trying }: { readonly failed: number; readonly trying: number },
): Finding[] {
  // The rest of an address may be a secret.
  const hosts = [...new Set(endpoints.flatMap(({ url }) => (url === null ? [] : [new URL(url).host])))];
  const to = hosts.length === 0 ? 'no address is set' : `events go to ${hosts.slice(0, 3).join(', ')}${hosts.length > 3 ? ', …' : ''}`;
  if (failed > 0) {
    const look = `temporal workflow list --query "WorkflowType = '${WEBHOOK_WORKFLOW_TYPE}' AND ExecutionStatus = 'Failed'"`;
    return [
      warning('Webhooks', `${to}; ${counted(failed, 'delivery', 'deliveries')} given up in the last day`, `mend the receiver; ${look}`),
    ];
  }
  if (hosts.length === 0 && trying > 0) {
    const mend = 'set PERDURA_WEBHOOK_URL where a worker runs, or wait: each is given up after a day';
    return [warning('Webhooks', `${to}, and ${counted(trying, 'delivery waits', 'deliveries wait')} for a worker that has one`, mend)];
  }
  if (hosts.length === 0) return [];
  return [ok('Webhooks', `${to}; ${trying === 0 ? 'none waits' : `${counted(trying, 'delivery is', 'deliveries are')} under way`}`)];
}
