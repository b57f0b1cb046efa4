/**
 * A server as the worker knows it over all its connections: opened when it is needed, opened again after a loss, left alone for a
 * while when that fails.
 *
 * - No caller waits for the server twice in vain: while the server is left alone a caller gets the error at once, and a caller that comes
 *   while others wait joins their wait.
 * - Its list of tools stays known while it is away.
 * - When the server reports a changed list, the link notes it and reads the list on the next request: a storm of reports costs nothing.
 */
import type { JsonObject } from '../../records/message.js';
import { connect } from './connect.js';
import { ConnectionFault, type Asking, type Connection, type Listed, type ListedItems } from './connection.js';
import { createKnownSecrets, type KnownSecrets } from '../../platform/known-secrets.js';
import { type McpServer, expandServer, secretsOfServer, type Variables, createValueRedactor } from './server-config.js';
import { readServerTools, type LeftOut, type ServerTool } from './server-tool.js';
import { maySignIn, type HttpServer } from './sign-in/sign-ins.js';
import { findSignInNeeded, type SignInSession } from './sign-in/session.js';
import { errorFields, errorMessage } from '../../platform/errors.js';
import { isRecord } from '../../platform/json.js';
import { orUndefinedAfter } from '../../platform/promises.js';

export interface Listing {
  readonly tools: readonly ServerTool[];
  readonly leftOut: readonly LeftOut[];
  readonly hasResources: boolean;
  readonly hasPrompts: boolean;
}

export type LinkState =
  { readonly kind: 'idle' | 'connecting' | 'up' } | { readonly kind: 'down'; readonly reason: string; readonly retryInMs: number };

export interface ServerLink {
  readonly server: McpServer;
  state(): LinkState;
  /** What it has listed last, also of a connection that is gone. */
  listing(): Listing | undefined;
  /** Sees to it that `listing` is fresh, and waits at most so long. Never throws. */
  refresh(patienceMs: number): Promise<void>;
  /** Throws `ServerDown`, or what the server answers. */
  ask(method: string, params: JsonObject, how: Asking): Promise<Record<string, unknown>>;
  list(what: Listed): Promise<ListedItems>;
  /** With those that the server was given: it neither shows them to a model, nor is sent one without a person's leave. */
  readonly secrets: KnownSecrets;
  /** Of a server at which people may sign in, once it was reached. */
  signIn(): SignInSession | undefined;
  lastUsed(): number;
  close(): Promise<void>;
}

/** The reason is for people and models, without our secrets. */
export class ServerDown extends Error {
  override readonly name = 'ServerDown';
}

export interface LinkOptions {
  readonly variables: Variables;
  readonly version: string;
  readonly log: (line: string) => void;
  readonly now: () => number;
  /** Below the heartbeat's timeout, and well above what a healthy server takes to start. */
  readonly connectMs?: number;
  /** Called before each start. */
  readonly whyNotStart?: (server: McpServer) => Promise<string | undefined>;
  /** Learns what servers are given in confidence. */
  readonly secrets?: KnownSecrets;
  /** The token for an expanded server. */
  readonly openSignIn?: (server: HttpServer, learn: (secrets: readonly string[]) => void) => SignInSession | undefined;
}

const CONNECT_MS = 8_000;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** A connection that held so long was a good one. */
const GOOD_MS = 30_000;
/** Not every server says when its list changes, or how long it stays as it is. */
const LIST_AGE_MS = 60_000;
const MIN_LIST_AGE_MS = 1_000;
const MAX_LIST_AGE_MS = 10 * 60_000;

export function createServerLink(server: McpServer, options: LinkOptions): ServerLink {
  const { log, now } = options;
  const timeoutMs = options.connectMs ?? CONNECT_MS;
  let opening: Promise<Connection> | undefined;
  let connection: Connection | undefined;
  let since = 0;
  let listing: Listing | undefined;
  let listedAt = 0;
  let listAgeMs = LIST_AGE_MS;
  let isStale = true;
  let relisting: Promise<void> | undefined;
  let busySince: number | undefined;
  let failures = 0;
  let retryAt = 0;
  let reason = '';
  let stderrTail = '';
  const { secrets = createKnownSecrets() } = options;
  let redactValues = (text: string): string => text;
  let signIn: SignInSession | undefined;
  let used = now();
  let isClosed = false;

  const failed = (error: unknown, pauseMs: number): void => {
    const why = redactValues(errorMessage(error));
    stderrTail = error instanceof ConnectionFault ? redactValues(error.stderrTail).slice(-300) : '';
    if (why !== reason) log(`MCP server ${server.name}: ${forPeople(why, stderrTail)}`);
    reason = why;
    retryAt = now() + pauseMs;
  };

  const lost = (error: unknown): void => {
    connection = undefined;
    opening = undefined;
    isStale = true;
    if (isClosed) return;
    // The first loss of a good connection is mended at once.
    failures = now() - since > GOOD_MS ? 0 : failures;
    failed(error, pauseAfter(failures));
    failures += 1;
  };

  const relist = async (of: Connection): Promise<void> => {
    isStale = false;
    listedAt = now();
    const { items, isCut, freshMs }: ListedItems = of.hasTools ? await of.list('tools') : { items: [], isCut: false };
    listAgeMs = freshMs ? Math.min(MAX_LIST_AGE_MS, Math.max(MIN_LIST_AGE_MS, freshMs)) : LIST_AGE_MS;
    const { tools, leftOut } = readServerTools(server.name, secrets.redactIn(items), of);
    if (isCut) leftOut.push({ tool: '(more)', reason: `it lists more tools than the ${items.length} that are looked at` });
    listing = { tools, leftOut, hasResources: of.hasResources, hasPrompts: of.hasPrompts };
  };

  const openAnew = async (): Promise<Connection> => {
    let isLost = false;
    let mine: Connection | undefined;
    const refusal = await options.whyNotStart?.(server);
    if (refusal !== undefined) throw new Error(refusal);
    const expanded = expandServer(server, options.variables);
    redactValues = createValueRedactor(expanded);
    secrets.add(secretsOfServer(expanded));
    if (maySignIn(expanded)) signIn ??= options.openSignIn?.(expanded, (tokens) => secrets.add(tokens));
    const opened = await connect(expanded, {
      ...options,
      signIn,
      timeoutMs,
      onToolsChanged: () => (isStale = true),
      onLost: (fault) => {
        isLost = true;
        if (mine !== undefined && connection === mine) lost(fault);
      },
    });
    try {
      await relist(opened);
      if (isLost || isClosed) throw new Error('it ended at once');
    } catch (error) {
      await opened.close();
      throw error;
    }
    connection = mine = opened;
    since = now();
    reason = '';
    return opened;
  };

  const open = (): Promise<Connection> => {
    if (isClosed) return Promise.reject(new ServerDown('the worker is shutting down'));
    if (opening) return opening;
    const wait = retryAt - now();
    if (wait > 0) return Promise.reject(new ServerDown(`${reason}; it is tried again in ${Math.ceil(wait / 1000)} s`));
    opening = openAnew().catch((error: unknown) => {
      opening = undefined;
      const needed = findSignInNeeded(error);
      if (needed !== undefined) {
        // It is there, and is tried again once a person has signed in.
        failed(needed, 0);
        throw needed;
      }
      failures += 1;
      failed(error, pauseAfter(failures));
      throw new ServerDown(reason, { cause: error });
    });
    return opening;
  };

  const drop = async (gone: Connection, why: string): Promise<void> => {
    if (connection !== gone) return;
    lost(new ConnectionFault(why));
    await gone.close();
  };

  /** A session that the server has ended is no failure of the server: the next one begins at once. */
  const forget = async (gone: Connection): Promise<void> => {
    if (connection !== gone) return;
    connection = undefined;
    opening = undefined;
    isStale = true;
    await gone.close();
  };

  /** A request that never reached the server may be sent again; one that failed otherwise may have been done. */
  const withConnection = async <T>(work: (of: Connection) => Promise<T>): Promise<T> => {
    const opened = await open();
    try {
      return await work(opened);
    } catch (error) {
      const needed = findSignInNeeded(error);
      if (needed !== undefined) throw needed;
      if (isAnswer(error)) throw error;
      if (isOldSession(error)) {
        await forget(opened);
        return work(await open());
      }
      if (wasNotReached(error)) {
        await drop(opened, 'it is not there any more');
        return work(await open());
      }
      // One call that hangs may be a slow one. A server that does not answer a ping is no longer there.
      void opened.isAlive().then((alive) => (alive ? undefined : drop(opened, 'it does not answer any more')));
      throw error;
    }
  };

  const refreshed = async (): Promise<void> => {
    await open();
    if (!isStale && now() - listedAt < listAgeMs) return;
    relisting ??= withConnection(relist)
      .catch((error: unknown) => log(`MCP server ${server.name}: cannot list its tools: ${redactValues(errorMessage(error))}`))
      .finally(() => (relisting = undefined));
    await relisting;
  };

  return {
    server,
    state() {
      if (connection) return { kind: 'up' };
      if (opening) return { kind: 'connecting' };
      return reason === ''
        ? { kind: 'idle' }
        : { kind: 'down', reason: forPeople(reason, stderrTail), retryInMs: Math.max(0, retryAt - now()) };
    },
    listing: () => listing,
    secrets,
    signIn: () => signIn,
    lastUsed: () => used,

    async refresh(patienceMs) {
      used = now();
      busySince ??= used;
      const work = refreshed()
        .catch(() => undefined)
        .finally(() => (busySince = undefined));
      const left = patienceMs - (used - busySince);
      if (left > 0) await orUndefinedAfter(left, work);
    },

    async ask(method, params, how) {
      used = now();
      try {
        return await withConnection((of) => of.ask(method, params, how));
      } finally {
        used = now();
      }
    },

    list: (what) => withConnection((of) => of.list(what)),

    async close() {
      isClosed = true;
      await opening?.then(
        (opened) => opened.close(),
        () => undefined,
      );
    },
  };
}

/** A model is not shown what the process wrote to its operator. */
function forPeople(reason: string, stderrTail: string): string {
  return stderrTail === '' ? reason : `${reason}; its last output: ${stderrTail}`;
}

/** 0, 1, 2, 4, … 60 s. */
function pauseAfter(failures: number): number {
  return failures === 0 ? 0 : Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
}

/** The server itself says that it could not: it is there. */
function isAnswer(error: unknown): boolean {
  const { name, code, data } = errorFields(error);
  // A modern server sends that with the status that an older one has for a session that it does not know.
  const text = isRecord(data) ? String(data['text']) : '';
  return (name === 'ProtocolError' && code !== OTHER_REVISION) || (name === 'SdkHttpError' && NO_SUCH_METHOD.test(text));
}

/**
 * A server that was started anew, or has ended the session, does not know it: 404 by the protocol, 400 by the examples of its libraries. It
 * may be of another revision by now.
 */
function isOldSession(error: unknown): boolean {
  const { code, status } = errorFields(error);
  return status === 404 || status === 400 || code === OTHER_REVISION;
}

/** One that is away takes no connection. */
function wasNotReached(error: unknown): boolean {
  const { code, cause } = errorFields(error);
  return code === 'ECONNREFUSED' || (cause !== undefined && wasNotReached(cause));
}

const OTHER_REVISION = -32_022;
const NO_SUCH_METHOD = /"code":\s*-32601\b/;
