/** What people do in a storm, each with how often. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApplicationFailure, WorkflowUpdateFailedError } from '@temporalio/client';
import type { Enqueued, TurnResult, Withdrawn } from '../../src/conversation/protocol/contract.js';
import { turnId } from '../../src/records/identity.js';
import { sendThroughGateway } from './gateway-client.js';
import { messageIdOf, type Lane } from './journal.js';
import type { Person, Said } from './person.js';
import { planned } from './plans.js';
import { pick } from './random.js';

export type Deed = (person: Person) => Promise<unknown>;
export type Deeds = Readonly<Record<string, { readonly weight: number; readonly act: Deed }>>;

export interface Standing {
  readonly phase: string;
  readonly mode: string;
  readonly turn: number;
  readonly turns: number;
  readonly queued: number;
  readonly pendingApprovals: number;
  readonly waiting?: unknown;
}

interface Asked {
  readonly callId: string;
  readonly conversation: string;
}

const QUERIES = ['status', 'status', 'queue', 'context', 'approvals', 'control'];
const LOOK_MS = 700;

export const CUSTOMER: Deeds = {
  send: { weight: 12, act: (person) => askAndWait(person, compose(person, 'queue')) },
  again: { weight: 2, act: (person) => askAndWait(person, pick(person.random, person.said.slice(-3))) },
  twice: { weight: 1, act: askTwice },
  enqueue: { weight: 3, act: (person) => enqueue(person, compose(person, 'queue')) },
  message: { weight: 2, act: (person) => signalMessage(person, compose(person, 'queue')) },
  withdraw: { weight: 1, act: takeBack },
  ask: { weight: 3, act: lookAround },
  reset: { weight: 1, act: (person) => person.client.reset(person.id, { signal: person.leaving }) },
  compact: { weight: 1, act: (person) => person.update('compact', {}) },
  fork: { weight: 1, act: fork },
};

export const TESTER: Deeds = {
  message: { weight: 4, act: (person) => signalMessage(person, anyMessage(person)) },
  send: { weight: 6, act: (person) => sendOnce(person, anyMessage(person)) },
  enqueue: { weight: 4, act: (person) => enqueue(person, anyMessage(person)) },
  withdraw: { weight: 2, act: takeBack },
  ask: { weight: 8, act: lookAround },
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
  fork: { weight: 1, act: fork },
};

/** A message that was never said. */
function compose({ random, said, id: own, kind }: Person, delivery: 'queue' | 'steer' | 'interrupt', conversation = own): Said {
  const id = messageIdOf(conversation, said.filter((one) => one.conversation === conversation).length + 1);
  const one: Said = {
    conversation,
    message: { id, text: `[[${id}]] ${planned(random, 1, kind === 'customer')}`, delivery },
    lane: delivery === 'queue' ? 'queue' : 'free',
  };
  said.push(one);
  return one;
}

/** Now and then the last one again: the same words and the same id. */
function anyMessage(person: Person): Said {
  const known = person.random() < 0.1 ? person.said.findLast(({ conversation }) => conversation === person.id) : undefined;
  return known ?? compose(person, pick(person.random, ['queue', 'queue', 'queue', 'queue', 'steer', 'interrupt']));
}

/** What a worker has looked at and not taken; anything else that fails may have been taken. */
export function isRefusal(error: unknown): boolean {
  const cause = error instanceof WorkflowUpdateFailedError ? error.cause : undefined;
  return cause instanceof ApplicationFailure && ['ConversationClosing', 'InvalidMessage'].includes(cause.type ?? '');
}

export function accepted<T>(person: Person, { conversation, message, lane }: Said, work: () => Promise<T>): Promise<T> {
  return person.journal.accept(conversation, message.id, lane, work, isRefusal);
}

export function noteAnswer(person: Person, { conversation, message }: Said, calledAt: number, result: TurnResult): void {
  person.journal.answered(conversation, message.id, calledAt, result);
  person.ends[result.stopReason] = (person.ends[result.stopReason] ?? 0) + 1;
}

/** Until there is an answer, whatever dies meanwhile; what has to be approved is decided. */
async function askAndWait(person: Person, said: Said | undefined): Promise<void> {
  if (said === undefined) return;
  const { journal, client, leaving, gateway, random } = person;
  const { conversation, message } = said;
  const calledAt = journal.now();
  const way = gateway !== undefined && random() < 0.5 ? gateway : undefined;
  const begin = Date.now();
  const work = accepted(person, said, () =>
    way ? sendThroughGateway(way, conversation, message, leaving) : client.send(conversation, message, { signal: leaving }),
  );
  const stop = approveMeanwhile(person);
  try {
    noteAnswer(person, said, calledAt, await work);
    person.turnMs.push(Date.now() - begin);
  } finally {
    stop();
  }
}

async function askTwice(person: Person): Promise<void> {
  const one = compose(person, 'queue');
  await Promise.all([askAndWait(person, one), askAndWait(person, one)]);
}

export function approveMeanwhile(person: Person): () => void {
  let isOver = false;
  void (async () => {
    for (;;) {
      await sleep(LOOK_MS, undefined, { ref: false });
      if (isOver || person.leaving.aborted) return;
      await decideAll(person).catch(() => undefined);
    }
  })();
  return () => void (isOver = true);
}

/** One attempt, as by a program that looks no further. */
async function sendOnce(person: Person, said: Said): Promise<void> {
  const calledAt = person.journal.now();
  const result = await accepted(person, said, () => person.update<TurnResult>('send', said.message));
  if (result.stopReason !== 'continues' && result.stopReason !== 'queued') noteAnswer(person, said, calledAt, result);
}

const enqueue = (person: Person, said: Said): Promise<unknown> =>
  accepted(person, said, () => person.update<Enqueued>('enqueue', said.message));

const signalMessage = (person: Person, said: Said): Promise<unknown> =>
  accepted(person, said, () => person.signal('message', said.message));

async function takeBack(person: Person): Promise<void> {
  const last = person.said.findLast(({ conversation }) => conversation === person.id);
  if (last === undefined) return;
  const messageId = last.message.id;
  await person.journal.withdraw(person.id, messageId, async () => (await person.update<Withdrawn>('withdraw', { messageId })).withdrawn);
}

function lookAround(person: Person): Promise<unknown> {
  return Promise.all([1, 2, 3].map(() => person.query(pick(person.random, QUERIES))));
}

/** In its conversation, and in the forks that it was talked to in: what was asked in the past is asked in these again. */
export async function decideAll(person: Pick<Person, 'random' | 'update' | 'signal' | 'query' | 'forks'>): Promise<void> {
  const { random, update, signal, query } = person;
  const decideIn = async (whom?: string): Promise<void> => {
    const waiting = (await query('approvals', whom)) as readonly Asked[];
    await Promise.all(
      waiting.map(({ callId, conversation }) => {
        const decision = { callId, conversation, decision: pick(random, ['approve', 'approve', 'deny']) };
        return random() < 0.5 ? signal('decide', decision, whom) : update('decide', decision, whom);
      }),
    );
  };
  // A fork may not have begun.
  await Promise.all([decideIn(), ...person.forks.map((fork) => decideIn(fork).catch(() => undefined))]);
}

async function rewind(person: Person): Promise<void> {
  const { random, update, query } = person;
  const { turn } = (await query('status')) as Standing;
  if (turn === 0) return;
  const chosen = turnId(1 + Math.floor(turn * random()));
  if (random() < 0.5) return void (await update('rewind', { to: chosen, id: randomUUID() }));
  // It is answered before all that waits. Where the rewind fails, it has taken the message back.
  const one = { ...compose(person, 'queue'), lane: 'free' as Lane };
  const begun = () => accepted(person, one, () => update('rewind', { before: chosen, id: randomUUID(), message: one.message }));
  await person.journal.withdraw(person.id, one.message.id, () => begun().then(() => false));
}

async function stepThrough({ random, update }: Person): Promise<void> {
  await update('setMode', { mode: 'stepping' });
  for (let n = 1 + Math.floor(5 * random()); n > 0; n--) await update('step', {});
}

export async function goOn({ update }: Pick<Person, 'update'>): Promise<void> {
  await Promise.all([update('setBreakpoints', {}), update('setMode', { mode: 'auto' })]);
}

/** A conversation of its own from one of the turns, and a message in it. */
async function fork(person: Person): Promise<void> {
  const { client, id, forks, random, query } = person;
  const { turns } = (await query('status')) as Standing;
  if (turns === 0 || forks.length >= 2) return;
  const made = `${id}-f${forks.length + 1}`;
  forks.push(made);
  await client.fork(id, { at: turnId(1 + Math.floor(turns * random())), id: made });
  await askAndWait(person, compose(person, 'queue', made));
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
