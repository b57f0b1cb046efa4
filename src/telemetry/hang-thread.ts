/**
 * A separate program, run as a thread beside a worker and never imported: it sees that the worker stands still, asks it which activity it is
 * in, has Temporal remember that, and ends a process that does not come back, so that other workers go on.
 *
 * The question is answered by the thread that stands still: V8 runs it in the middle of its loop, with the stack that it has. What stands
 * still in a call of the system (a program waited for, a pipe read) cannot answer.
 *
 * It counts its ticks and looks at no clock, so a machine that slept, or a process that was stopped, did not stand still. Nor did a worker
 * that gets no processor: a tick counts as far as the worker computed in it, or wholly if it waited in a call of the system.
 */
import { readFileSync, writeSync } from 'node:fs';
import { Session } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';
import type { Connection, ConnectionOptions } from '@temporalio/client';

/** An activity that has begun; `id` is its task token in base64. */
export interface BegunActivity {
  readonly id: string;
  readonly what: string;
  /** How many attempts in a row it has ended already. */
  readonly hung: number;
}

export type HangMessage =
  | ({ readonly kind: 'began' } & BegunActivity)
  | { readonly kind: 'ended'; readonly id: string }
  /** This process ends in the middle of it. */
  | { readonly kind: 'exit'; readonly id: string };

export interface HangThreadData {
  readonly connectionOptions: ConnectionOptions;
  readonly namespace: string;
  /** Three numbers: one that changes as long as the worker does not stand still; 1 once an `exit` has been noted; 1 under a debugger. */
  readonly shared: SharedArrayBuffer;
  /** After so many milliseconds the process is ended; 0: never. */
  readonly endMs: number;
  /** Whether nothing but the worker runs in this process. */
  readonly isAlone: boolean;
}

/** What the worker's thread says of itself, in the middle of what it does. */
export interface HangAnswer {
  /** Of the activity; none outside of one. */
  readonly id?: string;
  readonly stack: string;
}

const TICK_MS = 250;
/** Ticks until the worker is questioned. */
const ASK_AFTER = 1_000 / TICK_MS;
/** If it stands still for so many more, what it answered is what holds it up, and not what happened to come next. */
const SURE_AFTER = 500 / TICK_MS;
/** One that has not answered by then waits in a call of the system. */
const SILENT_AFTER = 2_000 / TICK_MS;
/** A worker is not ended before its activity has been noted, for so many ticks. */
const NOTE_TICKS = 5_000 / TICK_MS;
/** Of Linux's counts. */
const CLOCK_TICK_MS = 10;
/** As Symbol.for has it (worker-health.ts). */
const QUESTION = "globalThis[Symbol.for('perdura.hang-answer')]?.()";

/** One time that the worker stands still. */
interface Block {
  answer?: HangAnswer | 'silent';
  /** The tick at which the answer came. */
  answeredAt: number;
  readonly session: Session;
  noted: 'no' | 'noting' | 'noted';
}

const { connectionOptions, namespace, shared, endMs, isAlone } = workerData as HangThreadData;
const numbers = new Int32Array(shared);
const begun = new Map<string, BegunActivity>();
let connection: Promise<Connection> | undefined;
let beat = -1;
/** Ticks since. */
let still = 0;
/** What the worker's thread had computed at the last tick, in milliseconds. */
let worked: number | undefined;
let block: Block | undefined;
/** Where Linux does not count for each thread: what counts for the worker's, and what the process has used, in milliseconds. */
let [elsewhere, elsewhereUsed] = [0, 0];

function tick(): void {
  const now = Atomics.load(numbers, 0);
  // Under a debugger it stands still for as long as a person looks at it.
  if (now !== beat || Atomics.load(numbers, 2) === 1) {
    beat = now;
    still = 0;
    worked = undefined;
    block?.session.disconnect();
    block = undefined;
    return;
  }
  still += countTick();
  if (still >= ASK_AFTER) block ??= ask();
  if (!block) return;
  if (block.answer === undefined && still >= ASK_AFTER + SILENT_AFTER) take(block, 'silent');
  const activity = still >= block.answeredAt + SURE_AFTER ? findHolder(block) : undefined;
  if (activity && block.noted === 'no') noteHung(block, activity);
  if (endMs > 0 && still * TICK_MS >= endMs) endWith(block, activity);
}

/** How many ticks the worker's thread computed since the last one, which may have come late; 1 if it waited. */
function countTick(): number {
  const { isWaiting, ms } = readThread();
  const before = worked ?? ms;
  worked = ms;
  return isWaiting ? 1 : (ms - before) / TICK_MS;
}

/** Linux knows of each thread; elsewhere the whole process stands for it, and a call that waits is not noticed. */
function readThread(): { readonly isWaiting: boolean; readonly ms: number } {
  try {
    // The process's id is also that of its first thread. The name in brackets may have blanks: the state comes behind it.
    const [state, ...rest] = readFileSync(`/proc/self/task/${process.pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
    return { isWaiting: state === 'S', ms: (Number(rest[10]) + Number(rest[11])) * CLOCK_TICK_MS };
  } catch {
    const { user, system } = process.cpuUsage();
    // Of several threads at once no more than one stands still.
    elsewhere += Math.min(TICK_MS, (user + system) / 1_000 - elsewhereUsed);
    elsewhereUsed = (user + system) / 1_000;
    return { isWaiting: false, ms: elsewhere };
  }
}

function ask(): Block {
  // A busy machine needs seconds for it, and Temporal waits for a sign of life no longer than ten.
  void connect().catch(() => undefined);
  const session = new Session();
  const one: Block = { session, answeredAt: Infinity, noted: 'no' };
  session.connectToMainThread();
  session.post('Runtime.evaluate', { expression: QUESTION, returnByValue: true }, (error, answered) => {
    if (!error) take(one, (answered?.result.value as HangAnswer | undefined) ?? { stack: '' });
  });
  return one;
}

/** The first answer counts. */
function take(one: Block, answer: HangAnswer | 'silent'): void {
  if (one.answer !== undefined) return;
  one.answer = answer;
  one.answeredAt = still;
  one.session.disconnect();
}

/** Of a silent worker only if it has one activity, and there is nothing else in its process that could be silent. */
function findHolder({ answer }: Block): BegunActivity | undefined {
  if (answer === 'silent') return isAlone && begun.size === 1 ? [...begun.values()][0] : undefined;
  return answer?.id === undefined ? undefined : begun.get(answer.id);
}

function noteHung(one: Block, activity: BegunActivity): void {
  one.noted = 'noting';
  const stack = one.answer === 'silent' ? undefined : one.answer?.stack;
  say(`nothing else runs in this worker: it stands still in ${activity.what}`, { stack });
  void note(activity).then(() => (one.noted = 'noted'));
}

function endWith({ answer, answeredAt, noted }: Block, activity: BegunActivity | undefined): void {
  const waits = noted === 'noting' || (noted === 'no' && still < answeredAt + SURE_AFTER);
  if (waits && still * TICK_MS < endMs + NOTE_TICKS * TICK_MS) return;
  // What is no activity may be the start of a worker, which is busy for long and does nothing for anyone yet.
  if (!activity && !(isAlone && begun.size > 0)) return;
  const what = activity?.what ?? (answer === 'silent' ? 'a call of the system' : 'what is no activity');
  say(`this worker has stood still for ${endMs} ms, in ${what}: it is ended, so that another one goes on`);
  // No other signal reaches a thread that stands still.
  process.kill(process.pid, 'SIGKILL');
}

/** In the details of its heartbeat, which its next attempt is given. One that goes on after all beats again, and takes that away. */
async function note({ id, what, hung }: BegunActivity): Promise<void> {
  try {
    const { workflowService } = await connect();
    const details = {
      payloads: [{ metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from(JSON.stringify({ hung: hung + 1 })) }],
    };
    await workflowService.recordActivityTaskHeartbeat({ namespace, taskToken: Buffer.from(id, 'base64'), details });
  } catch (error) {
    connection = undefined;
    say(`that ${what} holds up its worker could not be noted with Temporal`, { error: String(error) });
  }
}

async function connect(): Promise<Connection> {
  connection ??= import('@temporalio/client').then((client) => client.Connection.connect(withBuffers(connectionOptions)));
  return await connection;
}

/** What came here as bytes were buffers, and gRPC takes nothing else for a certificate. */
function withBuffers<T>(value: T): T {
  if (value instanceof Uint8Array) return Buffer.from(value) as unknown as T;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withBuffers) as unknown as T;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withBuffers(one as unknown)])) as T;
}

/** In the form of the worker's log, which cannot be reached from here. */
function say(msg: string, more: object = {}): void {
  writeSync(2, `${JSON.stringify({ level: 'error', time: new Date().toISOString(), pid: process.pid, ...more, msg })}\n`);
}

parentPort?.on('message', (message: HangMessage) => {
  switch (message.kind) {
    case 'began':
      return void begun.set(message.id, message);
    case 'ended':
      return void begun.delete(message.id);
    case 'exit': {
      const activity = begun.get(message.id);
      if (activity) say(`this process ends in the middle of ${activity.what}`);
      void (activity ? note(activity) : Promise.resolve()).then(() => {
        Atomics.store(numbers, 1, 1);
        Atomics.notify(numbers, 1);
      });
    }
  }
});
setInterval(tick, TICK_MS);
