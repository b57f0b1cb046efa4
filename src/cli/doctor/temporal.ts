/** The Temporal server that the settings name: reached, known, prepared, quick. */
import type { Connection } from '@temporalio/client';
import type { Config } from '../../config.js';
import { temporalConnection } from '../../config.js';
import { missingAttributes } from '../../client/registered-attributes.js';
import { messageOf } from '../terminal/exit.js';
import { hasWorker, openNamespace } from '../services/temporal-connection.js';
import type { Finding } from './finding.js';
import { broken, ok, warning } from './finding.js';
import type { HopSpeed } from './hop-speed.js';
import { measureHops } from './hop-speed.js';

const FEW_DAYS = 7;
/** Unlimited servers stay below it even when the machine is busy; 20 tasks a second are 50. */
const QUICK_MS = 40;

export async function checkServer(config: Config): Promise<Finding[]> {
  const temporal = await temporalConnection(config).catch((error: unknown) => messageOf(error));
  if (typeof temporal === 'string') return [broken('Temporal', temporal, 'correct TEMPORAL_* or the profile')];
  let connection: Connection;
  try {
    connection = await openNamespace(temporal);
  } catch (error) {
    return [broken('Temporal', messageOf(error), temporal.named ? 'correct TEMPORAL_*, or unset them and run `npm start`' : 'perdura dev')];
  }
  const { namespace } = temporal;
  try {
    return [
      await tried('Temporal', () => checkVersion(connection, temporal.connectionOptions.address)),
      await tried('Namespace', () => checkRetention(connection, namespace)),
      await tried('Search', () => checkAttributes(connection, namespace)),
      await tried('Speed', async () => speedFinding(await measureHops(connection, namespace))),
      await tried('Worker', async () =>
        (await hasWorker(connection, namespace, config.taskQueue))
          ? ok('Worker', `one takes work from ${config.taskQueue}`)
          : warning('Worker', `none takes work from ${config.taskQueue} now: messages wait`, 'perdura worker, or npm start'),
      ),
    ];
  } finally {
    await connection.close();
  }
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
  return days < FEW_DAYS ? warning('Namespace', found, 'perdura setup') : ok('Namespace', found);
}

async function checkAttributes(connection: Connection, namespace: string): Promise<Finding> {
  const missing = await missingAttributes(connection, namespace);
  return missing.length === 0
    ? ok('Search', 'all search attributes are registered')
    : warning('Search', `not registered: ${missing.join(', ')}`, 'perdura setup');
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
  return check().catch((error: unknown) => warning(what, `cannot be asked: ${messageOf(error)}`, 'check the rights of this user'));
}
