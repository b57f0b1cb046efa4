/**
 * What people asked of a storm's conversations, what they were told, and what the model saw of it, as logs for the checker. All in one
 * process, so all by one clock. Sub-agents have no log: what they are told has no id.
 */
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import { linearize, queueModel, type QueueOperation } from './linearizable.js';

export type Lane = 'queue' | 'free';

/** A message by its id, in the text that the model sees. */
export const MARK = /\[\[([\w-]+)\]\]/g;
const ID = /^(.+)-m\d+$/;

export function messageIdOf(conversation: string, n: number): string {
  return `${conversation}-m${n}`;
}

export interface Journal {
  /** Records what comes of it. `isRefusal`: it was not taken, for sure; any other failure may have been taken all the same. */
  accept<T>(conversation: string, id: string, lane: Lane, work: () => Promise<T>, isRefusal?: (error: unknown) => boolean): Promise<T>;
  withdraw(conversation: string, id: string, work: () => Promise<boolean>): Promise<boolean>;
  /** That this came back as the answer to the message. */
  answered(conversation: string, id: string, calledAt: number, result: TurnResult): void;
  /** Nothing waits. */
  rested(conversation: string, calledAt: number): void;
  /** The model was asked: `marks` are the messages that it was shown, oldest first. Called before it answers. */
  sighted(marks: readonly string[]): void;
  now(): number;
  /** Ids that the model has seen in it, in their order. */
  seen(conversation: string): readonly string[];
  /** Whether somebody was told that it was taken. */
  isAccepted(conversation: string, id: string): boolean;
  isAnswered(conversation: string, id: string): boolean;
  /** How its turn ended, as far as somebody was told. */
  outcomeOf(conversation: string, id: string): string | undefined;
  /** What is wrong with a conversation's log, in words; its log is then forgotten, unless something is. */
  check(conversation: string): readonly string[];
  log(conversation: string): readonly QueueOperation[];
  readonly counts: {
    accepted: number;
    answered: number;
    repeated: number;
    checked: number;
    undecided: number;
    operations: number;
    steered: number;
  };
}

export function createJournal(now: () => number = () => performance.now()): Journal {
  const logs = new Map<string, QueueOperation[]>();
  const sights = new Map<string, string[]>();
  const counts = { accepted: 0, answered: 0, repeated: 0, checked: 0, undecided: 0, operations: 0, steered: 0 };
  const logOf = (conversation: string): QueueOperation[] => logs.get(conversation) ?? logs.set(conversation, []).get(conversation) ?? [];
  const seenIn = (conversation: string): string[] => sights.get(conversation) ?? sights.set(conversation, []).get(conversation) ?? [];

  const isAccepted = (conversation: string, id: string): boolean =>
    logOf(conversation).some((op) => op.kind === 'accept' && op.id === id && op.return !== Infinity);

  const outcomeOf = (conversation: string, id: string): string | undefined =>
    logOf(conversation).flatMap((op) => (op.kind === 'answer' && op.id === id ? [op.outcome] : []))[0];

  return {
    now,
    counts,
    isAccepted,
    outcomeOf,
    isAnswered: (conversation, id) => outcomeOf(conversation, id) !== undefined,
    seen: (conversation) => seenIn(conversation),
    log: (conversation) => complete(logOf(conversation)),
    async accept(conversation, id, lane, work, isRefusal = () => false) {
      const log = logOf(conversation);
      const isNew = !log.some((op) => op.kind === 'accept' && op.id === id);
      const call = now();
      const op = { kind: 'accept' as const, id, lane, call, return: Infinity };
      log.push(op);
      try {
        const result = await work();
        op.return = now();
        if (isNew) counts.accepted += 1;
        else counts.repeated += 1;
        if (isNew && lane === 'free') counts.steered += 1;
        return result;
      } catch (error) {
        if (isRefusal(error)) log.splice(log.indexOf(op), 1);
        throw error;
      }
    },
    async withdraw(conversation, id, work) {
      const call = now();
      const withdrawn = await work().catch((error: unknown) => {
        logOf(conversation).push({ kind: 'withdraw', id, withdrawn: true, call, return: Infinity });
        throw error;
      });
      logOf(conversation).push({ kind: 'withdraw', id, withdrawn, call, return: now() });
      return withdrawn;
    },
    answered(conversation, id, call, { turnId, stopReason, text }) {
      const names = stopReason === 'end' ? { names: [...text.matchAll(MARK)].flatMap(([, name]) => name ?? []) } : {};
      logOf(conversation).push({ kind: 'answer', id, turn: turnId ?? '', outcome: stopReason, ...names, call, return: now() });
      counts.answered += 1;
    },
    rested(conversation, call) {
      logOf(conversation).push({ kind: 'rest', id: '', call, return: now() });
    },
    sighted(marks) {
      const conversation = ID.exec(marks.at(-1) ?? '')?.[1];
      if (conversation === undefined) return;
      const seen = seenIn(conversation);
      // A fork is shown what was said elsewhere.
      const fresh = marks.filter((id) => ID.exec(id)?.[1] === conversation && !seen.includes(id));
      for (const id of new Set(fresh)) {
        seen.push(id);
        const first = logOf(conversation).find((op) => op.kind === 'accept' && op.id === id);
        logOf(conversation).push({ kind: 'take', id, process: 'model', call: first?.call ?? 0, return: now() });
      }
    },
    check(conversation) {
      const log = complete(logOf(conversation));
      counts.checked += 1;
      counts.operations += log.length;
      const verdict = linearize(queueModel, log);
      // Too many messages at once for the time that there is: neither found right nor wrong, and told as such.
      if (!verdict.ok && verdict.why === 'too many to try') counts.undecided += 1;
      else if (!verdict.ok)
        return [
          `${conversation}: its queue has no possible order (${verdict.why}); what cannot come next: ${verdict.stuck.map(wordsOf).join('; ')}`,
        ];
      logs.delete(conversation);
      sights.delete(conversation);
      return [];
    },
  };
}

/**
 * Without what nothing came of: a message whose sender heard nothing, and that nobody has seen. A message that did not get a whole answer
 * was taken at some time before it was answered: the model may never see it, or only later, where a rewind leads back to it.
 */
export function complete(all: readonly QueueOperation[]): readonly QueueOperation[] {
  const broken = new Set(all.flatMap((op) => (op.kind === 'answer' && !['end', 'withdrawn'].includes(op.outcome) ? [op.id] : [])));
  const log = all.filter(({ kind, id }) => kind !== 'take' || !broken.has(id));
  const of = (kind: QueueOperation['kind'], id: string): QueueOperation[] => all.filter((op) => op.kind === kind && op.id === id);
  const taken = new Set(log.flatMap((op) => (op.kind === 'take' ? [op.id] : [])));
  const kept = log.filter(({ kind, id, return: end }) => {
    if (end !== Infinity) return true;
    if (kind === 'withdraw') return !taken.has(id) && of('answer', id).every((op) => op.kind === 'answer' && op.outcome === 'withdrawn');
    return taken.has(id) || of('answer', id).length > 0 || of('withdraw', id).length > 0;
  });
  const unseen = new Set(kept.flatMap((op) => (op.kind === 'answer' && op.outcome !== 'withdrawn' && !taken.has(op.id) ? [op.id] : [])));
  const supplied = [...unseen].map((id): QueueOperation => {
    const call = Math.min(...of('accept', id).map((op) => op.call));
    const known = [...of('answer', id), ...of('take', id)];
    return { kind: 'take', id, call, return: Math.min(...known.map((op) => op.return)) };
  });
  return [...kept, ...supplied];
}

export function wordsOf(op: QueueOperation): string {
  const at = `${op.call.toFixed(0)}–${op.return === Infinity ? '?' : op.return.toFixed(0)}`;
  switch (op.kind) {
    case 'accept':
      return `accept ${op.id} (${op.lane}) ${at}`;
    case 'take':
      return `take ${op.id} ${at}`;
    case 'withdraw':
      return `withdraw ${op.id} → ${op.withdrawn} ${at}`;
    case 'answer':
      return `answer ${op.id} → ${op.turn} ${op.outcome}${op.names ? ` for ${op.names.join(' ')}` : ''} ${at}`;
    case 'rest':
      return `rest ${at}`;
  }
}
