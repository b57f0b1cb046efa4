/** Questions to a Temporal server that the CLI has itself, beside those of `PerduraClient`. */
import { connect, isIP } from 'node:net';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { checkServerIdentity, connect as tlsConnect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import type { Connection } from '@temporalio/client';
import type { TemporalConnection } from '../../config.js';
import { CliError, EXIT, isRefused } from '../terminal/exit.js';
import { errorFields, errorMessage } from '../../platform/errors.js';
import { orUndefinedAfter } from '../../platform/promises.js';

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
    connection = await (temporal.named
      ? openOrExplain(temporal.connectionOptions)
      : openConnection(temporal.connectionOptions, CONNECT_MS));
  } catch (cause) {
    const what = `cannot reach Temporal at ${address}`;
    if (isRefused(cause)) throw toRefusal(cause, temporal);
    if (temporal.named) throw new CliError(`${what}: ${errorMessage(cause)}`, EXIT.unreachable, { cause });
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
    throw toRefusal(cause, temporal);
  }
}

const NOT_FOUND = 5;

/** Of a server that is there, and does not open its namespace. */
function toRefusal(cause: unknown, { namespace, connectionOptions: { address, apiKey } }: TemporalConnection): CliError {
  const why = innermostMessage(cause);
  const words =
    errorFields(cause).code === NOT_FOUND
      ? `it does not exist; create it with \`temporal operator namespace create -n ${namespace}\``
      : !isRefused(cause)
        ? `${errorMessage(cause)}; check your access to it`
        : apiKey === undefined
          ? `it asks for an API key (${why}); set TEMPORAL_API_KEY`
          : `the key in TEMPORAL_API_KEY does not allow that, or has expired (${why}); set one that may use this namespace`;
  return new CliError(`Temporal at ${address} does not open namespace ${namespace}: ${words}`, EXIT.unreachable, { cause });
}

function innermostMessage(error: unknown): string {
  return error instanceof Error && error.cause instanceof Error ? innermostMessage(error.cause) : errorMessage(error);
}

/** For a worker that could connect, and then was refused. Undefined where that is something else. */
export function describeRefusedWork(error: unknown, temporal: TemporalConnection): CliError | undefined {
  if (!isRefused(error)) return undefined;
  const { connectionOptions, namespace } = temporal;
  const what = `Temporal at ${connectionOptions.address} does not let this worker take work in namespace ${namespace}`;
  return new CliError(
    `${what} (${innermostMessage(error)}); set a TEMPORAL_API_KEY that may write there, and not only read`,
    EXIT.unreachable,
    { cause: error },
  );
}

// Why no connection comes up. gRPC says only that its time is over; a second connection to the same place says more.

const CONNECT_MS = 5_000;
/** A connection that is not there by then is looked into. */
const SUSPICIOUS_MS = 1_000;
const PROBE_MS = 1_500;
/** Over TLS 1.3 a server refuses a client's certificate after the client has taken the connection for open. */
const REFUSED_WITHIN_MS = 500;
const CHECK = 'check TEMPORAL_ADDRESS, TEMPORAL_API_KEY and TEMPORAL_TLS_*, or unset them';

interface Obstacle {
  readonly words: string;
  /** It does not go away by itself. */
  readonly isFinal: boolean;
}

/** Rejects with what is in the way and what to do. */
async function openOrExplain(options: TemporalConnection['connectionOptions']): Promise<Connection> {
  const opening = openConnection(options, CONNECT_MS);
  const look = async (): Promise<Obstacle | undefined> => {
    const early = await orUndefinedAfter(SUSPICIOUS_MS, opening).catch(() => undefined);
    return early === undefined ? findObstacle(options) : undefined;
  };
  const looking = look();
  const ended = opening.then(ignore, ignore);
  const obstacle = await Promise.race([looking, ended]);
  if (obstacle?.isFinal) {
    void opening.then((connection) => connection.close(), ignore);
    throw new Error(obstacle.words);
  }
  return opening.catch(async (cause: unknown) => {
    if (isRefused(cause)) throw cause;
    throw new Error((await looking)?.words ?? `${errorMessage(cause)}; ${CHECK}`, { cause });
  });
}

const ignore = (): undefined => undefined;

async function findObstacle({ address, tls }: TemporalConnection['connectionOptions']): Promise<Obstacle | undefined> {
  const [, host = '', port = '7233'] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(address) ?? [];
  const place = { host, port: Number(port) };
  const trouble = await tryTcp(place);
  if (trouble !== undefined) return { words: `${trouble}; ${CHECK}`, isFinal: false };
  if (!tls) {
    // Any answer to a greeting of TLS, also a refusal, is one of TLS.
    const answer = await tryTls({ ...place, rejectUnauthorized: false });
    const speaksTls = answer === undefined || TLS_ALERT.test(answer.code ?? '');
    return speaksTls ? { words: 'it speaks TLS alone; set TEMPORAL_TLS=true, and what TEMPORAL_TLS_* it needs', isFinal: true } : undefined;
  }
  const { serverNameOverride, serverRootCACertificate: ca, clientCertPair } = tls === true ? {} : tls;
  const name = serverNameOverride ?? host;
  const refusal = await tryTls({
    ...{ ...place, servername: isIP(name) ? '' : name, checkServerIdentity: (_, cert) => checkServerIdentity(name, cert) },
    ...(ca && { ca: Buffer.from(ca) }),
    ...(clientCertPair && { cert: Buffer.from(clientCertPair.crt), key: Buffer.from(clientCertPair.key) }),
  });
  if (refusal === undefined || refusal.code === SILENT) return refusal && { words: `nothing answers there; ${CHECK}`, isFinal: false };
  return { words: describeTlsRefusal(refusal, name, Boolean(clientCertPair)), isFinal: true };
}

interface TlsRefusal extends Error {
  readonly code?: string;
  readonly cert?: { readonly subjectaltname?: string; readonly subject?: { readonly CN?: string } };
}

const SILENT = 'ETIMEDOUT';
/** Some servers refuse a certificate without a word. */
const CLOSED = 'CLOSED_AFTER_THE_HANDSHAKE';
const TLS_ALERT = new RegExp(`ALERT|${CLOSED}`);
const UNKNOWN_ISSUER = /^(UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?)|(DEPTH_ZERO_)?SELF_SIGNED_CERT(_IN_CHAIN)?)$/;
const NOT_TLS = new Set(['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'ECONNRESET', 'EPROTO']);

function describeTlsRefusal({ code = '', message, cert }: TlsRefusal, name: string, hasCertificate: boolean): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = (cert?.subjectaltname ?? cert?.subject?.CN ?? 'another name').replaceAll(/DNS:|IP Address:/g, '').slice(0, 200);
    return `its certificate is for ${names}, and not for ${name}; set TEMPORAL_TLS_SERVER_NAME to the name that it has`;
  }
  if (UNKNOWN_ISSUER.test(code))
    return `its certificate comes from an authority that is not trusted here (${code}); set TEMPORAL_TLS_SERVER_CA_CERT_PATH to that authority's`;
  if (code === 'CERT_HAS_EXPIRED') return 'its certificate has expired; have it renewed';
  if (TLS_ALERT.test(code))
    return hasCertificate
      ? `it refuses this client's certificate (${code}); set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH to one that it trusts`
      : `it asks for a client's certificate (${code}); set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH`;
  if (NOT_TLS.has(code))
    return `it does not speak TLS (${code}); unset TEMPORAL_TLS, TEMPORAL_TLS_* and TEMPORAL_API_KEY, which turns TLS on, or correct TEMPORAL_ADDRESS`;
  return `TLS fails there (${message}); check TEMPORAL_TLS_*`;
}

const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no host of that name',
  EAI_AGAIN: 'the name of that host cannot be looked up now',
};

/** Undefined: something listens there. */
function tryTcp(place: { readonly host: string; readonly port: number }): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ ...place, timeout: PROBE_MS });
    const end = (answer: string | undefined) => (): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', end(undefined)).once('timeout', end('nothing answers there'));
    socket.once('error', ({ code = '', message }: NodeJS.ErrnoException) => end(NETWORK[code] ?? message)());
  });
}

/** Undefined: a connection comes up, and stays. */
function tryTls(options: ConnectionOptions): Promise<TlsRefusal | undefined> {
  return new Promise((resolve) => {
    const end = (answer?: TlsRefusal): void => {
      socket.destroy();
      resolve(answer);
    };
    const withCode = (code: string) => (): void => end(Object.assign(new Error(code), { code }));
    let reset = 'ECONNRESET';
    let socket: TLSSocket;
    try {
      socket = tlsConnect({ ...options, ALPNProtocols: ['h2'] });
    } catch (error) {
      // What was given as a certificate or a key is none.
      return resolve(error as TlsRefusal);
    }
    socket.once('secureConnect', () => {
      reset = CLOSED;
      setTimeout(end, REFUSED_WITHIN_MS);
    });
    socket.once('error', (error: TlsRefusal) => (error.code === 'ECONNRESET' ? withCode(reset)() : end(error)));
    socket.once('close', () => withCode(reset)());
    setTimeout(withCode(SILENT), PROBE_MS);
  });
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
