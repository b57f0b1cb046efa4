/**
 * A person with one conversation: says, asks and decides by chance and at any moment, by nothing but the names of the contract
 * (design section 3), and then lets it come to rest. What is refused, or comes too late, is as good as what is done.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError, WorkflowNotFoundError, type Client, type WorkflowHandle } from '@temporalio/client';
import { planned } from './plans.js';
import { pick, type Random } from './random.js';
import { timeoutSignal } from '../../src/platform/promises.js';

export interface TalkOptions {
  readonly temporal: Client;
  readonly taskQueue: string;
  readonly id: string;
  readonly scope: string;
  readonly random: Random;
  readonly deeds: number;
  /** Told when all is said. */
  readonly onSaid: () => void;
  /** How long nothing may change then before there is nothing more to do. */
  readonly restMs: number;
}

export interface Talk {
  readonly id: string;
  /** What was said, and what came of it, in order: to understand a failure. */
  readonly log: readonly string[];
  /** Milliseconds from its start until there was nothing more to do. */
  readonly ms: number;
  /** Undefined when it came to rest. */
  readonly trouble?: string;
}

interface Person extends TalkOptions {
  readonly handle: WorkflowHandle;
  /** Message ids, oldest first. */
  readonly said: string[];
  readonly update: (name: string, argument?: object | string, to?: string) => Promise<unknown>;
  readonly signal: (name: string, argument?: object | string, to?: string) => Promise<void>;
  readonly query: (name: string, to?: string) => Promise<unknown>;
}

interface Asked {
  readonly callId: string;
  readonly conversation: string;
}

interface Standing {
  readonly phase: string;
  readonly mode: string;
  readonly turn: number;
  readonly turns: number;
  readonly queued: number;
  readonly pendingApprovals: number;
}

type Deed = (person: Person) => Promise<unknown>;

/** Times that: a machine under load takes its time. */
const SLOWEST = 4;

const QUERIES = ['status', 'status', 'queue', 'context', 'approvals', 'control'];

const deeds: Readonly<Record<string, { readonly weight: number; readonly act: Deed }>> = {
  message: { weight: 4, act: (person) => person.signal('message', message(person)) },
  send: { weight: 6, act: (person) => person.update('send', message(person)) },
  enqueue: { weight: 4, act: (person) => person.update('enqueue', message(person)) },
  withdraw: { weight: 2, act: (person) => person.update('withdraw', { messageId: person.said.at(-1) ?? 'none' }) },
  ask: { weight: 8, act: (person) => Promise.all([1, 2, 3].map(() => person.query(pick(person.random, QUERIES)))) },
  decide: { weight: 6, act: decideAll },
  setModel: { weight: 1, act: (person) => person.update('setModel', { model: pick(person.random, [null, 'anthropic/claude-test']) }) },
  compact: { weight: 2, act: (person) => person.update('compact', {}) },
  undoCompaction: { weight: 1, act: (person) => person.update('undoCompaction', {}) },
  truncate: { weight: 1, act: (person) => person.update('truncate', {}) },
  rewind: { weight: 2, act: rewind },
  step: { weight: 2, act: stepThrough },
  setBreakpoints: { weight: 1, act: (person) => person.update('setBreakpoints', { tools: ['note'] }) },
  auto: { weight: 2, act: goOn },
  reset: { weight: 2, act: (person) => person.update('reset', {}) },
  new: { weight: 1, act: (person) => person.signal('new', {}) },
  interrupt: { weight: 2, act: (person) => person.signal('interrupt', {}) },
  turn: { weight: 1, act: (person) => person.update('turn', { turnId: turnId(1 + Math.floor(3 * person.random())) }) },
  raiseBudget: { weight: 1, act: (person) => person.update('raiseBudget', {}) },
  child: { weight: 5, act: speakToChild },
  memory: { weight: 1, act: (person) => person.query('status', `memory:${person.scope}`) },
};

const NAMES = Object.entries(deeds).flatMap(([name, { weight }]) => Array.from({ length: weight }, () => name));

export async function talk(options: TalkOptions): Promise<Talk> {
  const { id, temporal, taskQueue, scope, random } = options;
  const log: string[] = [];
  const begin = Date.now();
  const leaving = new AbortController();
  setMaxListeners(0, leaving.signal);
  const person = personOf(options, log, leaving.signal);
  const agent = pick(random, ['default', 'brief', 'brief', 'small']);
  const mode = random() < 0.1 ? 'stepping' : 'auto';
  // One that a worker that is stopped for a while cannot keep.
  const hurried = random() < 0.6 ? ({ workflowTaskTimeout: '2s' } as const) : {};
  log.push(`start ${agent} ${mode} ${hurried.workflowTaskTimeout ?? ''}`);
  await temporal.workflow.start('conversation', { workflowId: id, taskQueue, args: [{ agent, scope, mode }], ...hurried });

  const outstanding: Promise<unknown>[] = [];
  for (let n = 0; n < options.deeds; n++) {
    // Now and then several at once: they come in one task, or end one.
    for (let many = pick(random, [1, 1, 1, 2, 4]); many > 0; many--) {
      const name = n === 0 ? 'send' : pick(random, NAMES);
      outstanding.push(done(name, person, log));
    }
    await sleep(pick(random, [0, 5, 20, 60, 150, 400, 3_000]) * random());
  }
  options.onSaid();
  const ends = random() < 0.3;
  const trouble = await rest(person, ends).then(
    () => undefined,
    (error: unknown) => String(error),
  );
  const ms = Date.now() - begin;
  leaving.abort();
  await Promise.all(outstanding);
  return { id, log, ms, ...(trouble === undefined ? {} : { trouble }) };
}

function personOf(options: TalkOptions, log: string[], leaving: AbortSignal): Person {
  const { temporal, id } = options;
  const to = (whom = id): WorkflowHandle => temporal.workflow.getHandle(whom);
  /** While no worker answers, the server lets a question wait for longer than we do. */
  const within = <T>(ms: number, call: () => Promise<T>): Promise<T> =>
    temporal.withAbortSignal(AbortSignal.any([leaving, timeoutSignal(ms)]), call);
  const given = (argument: object | string | undefined): { args: [object | string] } | undefined =>
    argument === undefined ? undefined : { args: [argument] };
  const told = (what: string, whom: string | undefined): void => void log.push(whom === undefined ? what : `${what} to ${whom}`);
  return {
    ...options,
    handle: to(),
    said: [],
    update: (name, argument, whom) => {
      told(`update ${name}`, whom);
      return within(60_000, () => to(whom).executeUpdate<unknown, [object | string]>(name, { args: given(argument)?.args ?? [{}] }));
    },
    signal: (name, argument, whom) => {
      told(`signal ${name}`, whom);
      return within(10_000, () => to(whom).signal(name, ...(given(argument)?.args ?? [])));
    },
    query: (name, whom) => within(10_000, () => to(whom).query(name)),
  };
}

/** Never rejects. */
async function done(name: string, person: Person, log: string[]): Promise<void> {
  const result = await deeds[name]?.act(person).catch((error: unknown) => error);
  if (result instanceof Error) log.push(`${name}: ${wordsOf(result)}`);
}

function message(person: Person): object {
  const { random, said, id } = person;
  const known = random() < 0.1 ? said.at(-1) : undefined;
  const messageId = known ?? `${id}-${said.length + 1}`;
  if (known === undefined) said.push(messageId);
  const delivery = pick(random, ['queue', 'queue', 'queue', 'queue', 'steer', 'interrupt']);
  return { id: messageId, text: planned(random, 1), delivery };
}

async function decideAll(person: Person): Promise<void> {
  const { random, update, signal, query } = person;
  const waiting = (await query('approvals')) as readonly Asked[];
  await Promise.all(
    waiting.map(({ callId, conversation }) => {
      const decision = { callId, conversation, decision: pick(random, ['approve', 'approve', 'deny']) };
      return random() < 0.5 ? signal('decide', decision) : update('decide', decision);
    }),
  );
}

async function rewind(person: Person): Promise<void> {
  const { random, update, query } = person;
  const { turn } = (await query('status')) as Standing;
  if (turn === 0) return;
  const chosen = turnId(1 + Math.floor(turn * random()));
  await update('rewind', random() < 0.5 ? { to: chosen } : { before: chosen, message: message(person) });
}

async function stepThrough({ random, update }: Person): Promise<void> {
  await update('setMode', { mode: 'stepping' });
  for (let n = 1 + Math.floor(5 * random()); n > 0; n--) await update('step', {});
}

async function goOn({ update }: Person): Promise<void> {
  await Promise.all([update('setBreakpoints', {}), update('setMode', { mode: 'auto' })]);
}

/** A child is named after the turn and the call that began it; most of those that are tried were never there, or have ended. */
async function speakToChild(person: Person): Promise<void> {
  const { id, random, update, signal, query } = person;
  const { turn } = (await query('status')) as Standing;
  const waiting = (await query('approvals')) as readonly Asked[];
  const child = waiting.find(({ conversation }) => conversation !== id)?.conversation ?? `${id}:${turnId(turn)}:${pick(random, [1, 1, 2])}`;
  const wish = pick<Deed>(random, [
    () => Promise.all(QUERIES.map((name) => query(name, child))),
    () => signal('message', { text: planned(random, 0), delivery: 'steer' }, child),
    () => update('enqueue', { text: planned(random, 0), delivery: 'steer' }, child),
    () => update('turn', { turnId: turnId(1) }, child),
    () => signal('interrupt', {}, child),
    () => Promise.all(waiting.map(({ callId }) => update('decide', { callId, decision: 'approve' }, child))),
  ]);
  await wish(person);
}

/** Decides what waits and lets it run, until there is nothing to do; `ends` closes it, and it must complete. Slow it may be, not stuck. */
async function rest(person: Person, ends: boolean): Promise<void> {
  const latest = Date.now() + SLOWEST * person.restMs;
  let until = Date.now() + person.restMs;
  let isClosed = !ends;
  let last = 'no answer';
  let progress = '';
  // clock: only a hang meets this bound
  while (Date.now() < Math.min(until, latest)) {
    try {
      // Temporal may be away when it is told, too.
      if (!isClosed) await person.signal('close').then(() => (isClosed = true));
      // No query is answered while its latest task has run out of time, which on a loaded machine one after the other may.
      const { historyLength, runId, status } = await person.handle.describe();
      if (ends && status.name === 'COMPLETED') return;
      const now = `${runId} ${historyLength}`;
      if (now !== progress) until = Date.now() + person.restMs;
      progress = now;
      const standing = (await person.query('status')) as Standing;
      last = JSON.stringify(standing).slice(0, 600);
      const { mode, phase, queued, pendingApprovals } = standing;
      if (mode !== 'auto') await goOn(person);
      if (pendingApprovals > 0) await decideAll(person);
      if (!ends && mode === 'auto' && phase === 'idle' && queued + pendingApprovals === 0) return;
    } catch (error) {
      last = wordsOf(error);
    }
    await sleep(150);
  }
  throw new Error(`nothing has changed for ${person.restMs / 1000} s; last seen: ${last}`);
}

function turnId(turn: number): string {
  return `turn_${String(turn).padStart(4, '0')}`;
}

function wordsOf(error: unknown): string {
  if (error instanceof WorkflowNotFoundError) return 'not there';
  if (error instanceof ServiceError) return `${error.message}: ${String((error.cause as Error | undefined)?.message ?? '')}`;
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
