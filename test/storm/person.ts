/**
 * A person with one conversation: says, asks and decides by chance and at any moment, by the names of the contract (design section 3), by
 * the client or through the gateway, and then lets it come to rest. What is refused, or comes too late, is as good as what is done; what was
 * said, and what came back, stands in the journal. A customer waits for answers, and says the same again where none came; a tester tries
 * everything there is.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError, WorkflowNotFoundError, type Client, type WorkflowHandle } from '@temporalio/client';
import type { PerduraClient } from '../../src/client.js';
import type { Message } from '../../src/conversation/protocol/contract.js';
import { timeoutSignal } from '../../src/platform/promises.js';
import { audit, type Audited } from './audit.js';
import { approveMeanwhile, CUSTOMER, decideAll, goOn, TESTER, type Deeds, type Standing } from './deeds.js';
import type { Journal, Lane } from './journal.js';
import { pick, type Random } from './random.js';

export interface TalkOptions {
  readonly temporal: Client;
  readonly client: PerduraClient;
  readonly taskQueue: string;
  readonly journal: Journal;
  /** Where the gateway is, and what it asks for; absent where there is none. */
  readonly gateway?: { readonly url: string; readonly token: string };
  readonly id: string;
  readonly scope: string;
  readonly kind: 'customer' | 'tester';
  readonly random: Random;
  readonly deeds: number;
  /** Once it is true, nothing more is said. */
  readonly isOver: () => boolean;
  /** Told how it stands, now and then, once all is said. */
  readonly onStanding: (id: string, words: string) => void;
  /** How long nothing may change then before there is nothing more to do. */
  readonly restMs: number;
}

export interface Talk {
  readonly id: string;
  readonly kind: 'customer' | 'tester';
  /** Forks that were talked to as well. */
  readonly forks: readonly string[];
  /** What was said, and what came of it, in order: to understand a failure. */
  readonly log: readonly string[];
  /** Milliseconds from its start until there was nothing more to do. */
  readonly ms: number;
  /** Milliseconds that a customer has waited for each answer. */
  readonly turnMs: readonly number[];
  /** Answers by how they ended. */
  readonly ends: Readonly<Record<string, number>>;
  readonly audited?: Audited;
  /** Undefined when it came to rest. */
  readonly trouble?: string;
}

export interface Said {
  readonly conversation: string;
  readonly message: Message & { readonly id: string };
  readonly lane: Lane;
}

/** What deeds are done with. */
export interface Person extends TalkOptions {
  readonly handle: WorkflowHandle;
  /** Oldest first. */
  readonly said: Said[];
  readonly forks: string[];
  readonly turnMs: number[];
  readonly ends: Record<string, number>;
  readonly leaving: AbortSignal;
  readonly update: <T = unknown>(name: string, argument?: object | string, to?: string) => Promise<T>;
  readonly signal: (name: string, argument?: object | string, to?: string) => Promise<void>;
  readonly query: (name: string, to?: string) => Promise<unknown>;
}

/** Times that: a machine under load takes its time. */
const SLOWEST = 4;

export async function talk(options: TalkOptions): Promise<Talk> {
  const { id, kind, temporal, taskQueue, scope, random, isOver } = options;
  const log: string[] = [];
  const begin = Date.now();
  const leaving = new AbortController();
  setMaxListeners(0, leaving.signal);
  const person = personOf(options, log, leaving.signal);
  const deeds = kind === 'customer' ? CUSTOMER : TESTER;
  const agent = pick(random, ['default', 'brief', 'brief', 'small']);
  const mode = kind === 'tester' && random() < 0.1 ? 'stepping' : 'auto';
  // One that a worker that is stopped for a while cannot keep. A machine without a processor for it cannot either, and tries for ever.
  const hurried = random() < 0.15 ? ({ workflowTaskTimeout: '4s' } as const) : {};
  log.push(`start ${kind} ${agent} ${mode} ${hurried.workflowTaskTimeout ?? ''}`);
  const outstanding: Promise<unknown>[] = [];
  let audited: Audited | undefined;
  const trouble = await (async () => {
    await begun(temporal, { workflowId: id, taskQueue, args: [{ agent, scope, mode }], ...hurried });
    const names = namesOf(deeds);
    // A reset, or a compaction, waits for a turn that waits for its person.
    const stop = kind === 'customer' ? approveMeanwhile(person) : () => undefined;
    for (let n = 0; n < options.deeds && !isOver(); n++) {
      // Now and then several at once: they come in one task, or end one.
      const many = Array.from({ length: pick(random, [1, 1, 1, 2, kind === 'tester' ? 4 : 2]) }, () =>
        done(deeds, n === 0 ? 'send' : pick(random, names), person, log),
      );
      outstanding.push(...many);
      if (kind === 'customer') await Promise.all(many);
      await sleep(pick(random, [0, 5, 20, 60, 150, 400, 1_000]) * random());
    }
    stop();
    await rest(person);
    audited = await audit(person);
    if (random() < 0.3) await end(person);
  })().then(
    () => undefined,
    (error: unknown) => wordsOf(error),
  );
  const ms = Date.now() - begin;
  leaving.abort();
  await Promise.all(outstanding);
  const { forks, turnMs, ends } = person;
  return { id, kind, forks, log, ms, turnMs, ends, audited, ...(trouble === undefined ? {} : { trouble }) };
}

/** Temporal may be away for a moment; the same start twice is one. */
async function begun(temporal: Client, options: Parameters<Client['workflow']['start']>[1]): Promise<void> {
  for (let left = 200; ; left--) {
    try {
      await temporal.workflow.start('conversation', { ...options, workflowIdConflictPolicy: 'USE_EXISTING' });
      return;
    } catch (error) {
      if (left === 0) throw error;
      await sleep(300);
    }
  }
}

function namesOf(deeds: Deeds): readonly string[] {
  return Object.entries(deeds).flatMap(([name, { weight }]) => Array.from({ length: weight }, () => name));
}

function personOf(options: TalkOptions, log: string[], leaving: AbortSignal): Person {
  const { temporal, id } = options;
  const to = (whom = id): WorkflowHandle => temporal.workflow.getHandle(whom);
  /** While no worker answers, the server lets a question wait for longer than we do. */
  const within = <T>(ms: number, call: () => Promise<T>): Promise<T> =>
    temporal.withAbortSignal(AbortSignal.any([leaving, timeoutSignal(ms)]), call);
  const given = (argument: object | string | undefined): { args: [object | string] } | undefined =>
    argument === undefined ? undefined : { args: [argument] };
  const told = (what: string, argument: object | string | undefined, whom: string | undefined): void => {
    const of = typeof argument === 'object' && 'id' in argument ? ` ${String(argument.id)}` : '';
    log.push(`${Date.now() % 1e7} ${what}${of}${whom === undefined ? '' : ` to ${whom}`}`);
  };
  return {
    ...options,
    ...{ handle: to(), said: [], forks: [], turnMs: [], ends: {}, leaving },
    update: (name, argument, whom) => {
      told(`update ${name}`, argument, whom);
      return within(60_000, () => to(whom).executeUpdate<never, [object | string]>(name, { args: given(argument)?.args ?? [{}] }));
    },
    signal: (name, argument, whom) => {
      told(`signal ${name}`, argument, whom);
      return within(10_000, () => to(whom).signal(name, ...(given(argument)?.args ?? [])));
    },
    query: (name, whom) => within(10_000, () => to(whom).query(name)),
  };
}

/** Never rejects. */
async function done(deeds: Deeds, name: string, person: Person, log: string[]): Promise<void> {
  const result = await deeds[name]?.act(person).catch((error: unknown) => error);
  if (result instanceof Error) log.push(`${Date.now() % 1e7} ${name}: ${wordsOf(result)}`);
}

/** Decides what waits and lets it run, until there is nothing to do. Slow it may be, not stuck. */
async function rest(person: Person): Promise<void> {
  const { journal, id } = person;
  const latest = Date.now() + SLOWEST * person.restMs;
  let until = Date.now() + person.restMs;
  let last = 'no answer';
  let progress = '';
  // clock: only a hang meets this bound
  while (Date.now() < Math.min(until, latest)) {
    try {
      // No query is answered while its latest task has run out of time, which on a loaded machine one after the other may.
      const { historyLength, runId } = await person.handle.describe();
      const now = `${runId} ${historyLength}`;
      if (now !== progress) until = Date.now() + person.restMs;
      progress = now;
      const calledAt = journal.now();
      const standing = (await person.query('status')) as Standing;
      const { phase, mode, turn, queued, pendingApprovals } = standing;
      last = `${phase} ${mode}, turn ${turn}, ${queued} queued, ${pendingApprovals} to approve, ${JSON.stringify(standing.waiting ?? null)}`;
      if (mode !== 'auto') await goOn(person);
      if (pendingApprovals > 0) await decideAll(person);
      if (mode === 'auto' && phase === 'idle' && queued + pendingApprovals === 0) {
        journal.rested(id, calledAt);
        return;
      }
    } catch (error) {
      last = wordsOf(error);
    }
    person.onStanding(id, last);
    await sleep(150);
  }
  throw new Error(`nothing has changed for ${person.restMs / 1000} s; last seen: ${last}`);
}

/** Closes it, and it must complete. */
async function end(person: Person): Promise<void> {
  const until = Date.now() + SLOWEST * person.restMs;
  let isClosed = false;
  let last = '';
  // clock: only a hang meets this bound
  while (Date.now() < until) {
    try {
      // Temporal may be away when it is told, too.
      if (!isClosed) await person.signal('close').then(() => (isClosed = true));
      const { status } = await person.handle.describe();
      if (status.name === 'COMPLETED') return;
      last = status.name;
    } catch (error) {
      last = wordsOf(error);
    }
    await sleep(200);
  }
  throw new Error(`closed, and not completed after ${(SLOWEST * person.restMs) / 1000} s; last seen: ${last}`);
}

export function wordsOf(error: unknown): string {
  if (error instanceof WorkflowNotFoundError) return 'not there';
  if (error instanceof ServiceError) return `${error.message}: ${String((error.cause as Error | undefined)?.message ?? '')}`;
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
