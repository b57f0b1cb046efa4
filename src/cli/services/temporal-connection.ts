/** Questions to a Temporal server that the CLI has itself, beside those of `PerduraClient`. */
import { connect } from 'node:net';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Connection } from '@temporalio/client';
import type { TemporalConnection } from '../../config.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { errorMessage } from '../../platform/errors.js';

export type Answer = 'temporal' | 'nothing' | 'something-else';

/** Who answers on the address where a dev server listens. */
export async function probeTemporal(address: string, timeout = 3000): Promise<Answer> {
  if (!(await isListening(address))) return 'nothing';
  const connection = await openConnection({ address }, timeout).catch(() => undefined);
  await connection?.close();
  return connection === undefined ? 'something-else' : 'temporal';
}

export function isListening(address: string): Promise<boolean> {
  // An address of IPv6 is written in brackets, and has colons.
  const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(address) ?? [];
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port), timeout: 1000 });
    const end = (answer: boolean) => (): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false));
  });
}

/** Throws a sentence when the server or the namespace is not there. */
export async function checkTemporal(temporal: TemporalConnection): Promise<void> {
  const connection = await openNamespace(temporal);
  await connection.close();
}

/** The same, and stays connected. */
export async function openNamespace(temporal: TemporalConnection): Promise<Connection> {
  const { address } = temporal.connectionOptions;
  let connection: Connection;
  try {
    // The usual case on a person's machine, and it need not take the five seconds of a connection that may still come up.
    if (!temporal.named && !(await isListening(address))) throw new Error('nothing listens there');
    connection = await openConnection(temporal.connectionOptions, 5000);
  } catch (cause) {
    const what = `cannot reach Temporal at ${address}`;
    if (temporal.named) {
      const advice = 'check TEMPORAL_ADDRESS, TEMPORAL_API_KEY and TEMPORAL_TLS_*, or unset them';
      throw new CliError(`${what}: ${errorMessage(cause)}; ${advice}`, EXIT.unreachable, { cause });
    }
    throw new CliError(
      (await isListening(address))
        ? `${what}: a program that is not Temporal, or hangs, has that port; stop it, or set TEMPORAL_ADDRESS`
        : `${what}: nothing listens there; \`${startCommands().up}\` starts one, or set TEMPORAL_ADDRESS`,
      EXIT.unreachable,
      { cause },
    );
  }
  try {
    await connection.workflowService.describeNamespace({ namespace: temporal.namespace });
    return connection;
  } catch (cause) {
    await connection.close();
    const missing = (cause as { code?: unknown }).code === 5;
    const advice = missing ? `create it with \`temporal operator namespace create -n ${temporal.namespace}\`` : 'check your access to it';
    throw new CliError(
      `Temporal at ${address} does not open namespace ${temporal.namespace}: ${missing ? 'it does not exist' : errorMessage(cause)}; ${advice}`,
      EXIT.unreachable,
      { cause },
    );
  }
}

/** Whether a worker has polled for work lately. Without one a message waits, which a person should know. */
export async function hasWorker({ workflowService }: Connection, namespace: string, taskQueue: string): Promise<boolean> {
  const { pollers } = await workflowService.describeTaskQueue({ namespace, taskQueue: { name: taskQueue }, taskQueueType: 1 });
  return (pollers?.length ?? 0) > 0;
}

export async function setRetention(temporal: TemporalConnection, days: number): Promise<void> {
  const { msToTs } = await import('@temporalio/common/lib/time.js');
  const connection = await openConnection(temporal.connectionOptions, 5000);
  try {
    await connection.workflowService.updateNamespace({
      namespace: temporal.namespace,
      config: { workflowExecutionRetentionTtl: msToTs(days * 24 * 60 * 60 * 1000) },
    });
  } finally {
    await connection.close();
  }
}

/** The page of a dev server on this machine is a thousand ports above it, unless it was started with another. */
export async function findUiPort(temporal: TemporalConnection): Promise<number | undefined> {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(temporal.connectionOptions.address) ?? [];
  if (!['127.0.0.1', 'localhost', '[::1]', '0.0.0.0'].includes(host)) return undefined;
  const uiPort = Number(port) + 1000;
  return (await isListening(`127.0.0.1:${uiPort}`)) ? uiPort : undefined;
}

/** Where a person sees a conversation in Temporal's page, where that is known. */
export function uiLink(temporal: TemporalConnection, uiPort: number | undefined, id: string): string | undefined {
  const { address } = temporal.connectionOptions;
  const path = `/namespaces/${temporal.namespace}/workflows/${id}`;
  if (address.includes('.tmprl.cloud') || address.includes('.api.temporal.io')) return `https://cloud.temporal.io${path}`;
  return uiPort === undefined ? undefined : `http://127.0.0.1:${uiPort}${path}`;
}

/** Where it shows one event of one run. */
export async function findEventLink(temporal: TemporalConnection): Promise<(id: string, run: string, event: number) => string | undefined> {
  const uiPort = await findUiPort(temporal);
  return (id, run, event) => {
    const link = uiLink(temporal, uiPort, encodeURIComponent(id));
    return link === undefined ? undefined : `${link}/${run}/history/events/${event}`;
  };
}

/** The same for a server that others started. */
export async function findUiLink(temporal: TemporalConnection): Promise<(id: string) => string | undefined> {
  const uiPort = await findUiPort(temporal);
  return (id) => uiLink(temporal, uiPort, id);
}

export async function openConnection(options: TemporalConnection['connectionOptions'], timeout: number): Promise<Connection> {
  const { openConnection: open } = await import('../../client/temporal/connection.js');
  return open({
    address: options.address,
    apiKey: options.apiKey,
    tls: options.tls,
    metadata: options.metadata,
    connectTimeout: timeout,
  });
}

// What a person types to start what is missing: in a clone, and in a project that has installed the package.

interface StartCommands {
  readonly isClone: boolean;
  /** All of it, with a chat. */
  readonly chat: string;
  /** A Temporal server, a worker and the page. */
  readonly up: string;
  readonly worker: string;
}

const PACKAGE_ROOT = join(__dirname, '..', '..', '..');

/** The package has no `scripts`. */
function isCloneAt(packageRoot: string): boolean {
  return existsSync(join(packageRoot, 'scripts', 'start.mjs'));
}

/** How hints name this program. While npx runs it, the folder of a project's programs is on PATH; in the person's shell it is not. */
export function programInHints(path: string, packageRoot: string = PACKAGE_ROOT): string {
  const isOnPath = path
    .split(delimiter)
    .some((dir) => dir !== '' && !/[\\/](?:node_modules|node-gyp-bin)(?:[\\/]|$)/.test(dir) && existsSync(join(dir, 'perdura')));
  return isOnPath || isCloneAt(packageRoot) ? 'perdura' : 'npx perdura';
}

export function startCommands(packageRoot: string = PACKAGE_ROOT): StartCommands {
  const isClone = isCloneAt(packageRoot);
  const program = isClone ? 'bin/perdura' : 'npx perdura';
  return { isClone, chat: isClone ? 'npm start' : `${program} chat --start-services`, up: `${program} up`, worker: `${program} worker` };
}
