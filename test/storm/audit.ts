/**
 * When a conversation has come to rest: every message that somebody was told was taken has its answer. Whoever says it again with its id
 * gets that answer, and no new turn begins; and the store has it once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import { approveMeanwhile, noteAnswer } from './deeds.js';
import type { Person, Said } from './person.js';

export interface Audited {
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
}

/** Of the messages whose answer was heard this part is asked for again. */
const AGAIN = 0.2;

export async function audit(person: Person): Promise<Audited> {
  // A fork may still wait for somebody.
  const stop = approveMeanwhile(person);
  try {
    return await auditMessages(person);
  } finally {
    stop();
  }
}

async function auditMessages(person: Person): Promise<Audited> {
  const { journal, said, kind, random, client, leaving } = person;
  const due = said.filter(({ conversation, message: { id } }) => {
    const isTaken = journal.isAccepted(conversation, id) || journal.seen(conversation).includes(id);
    return isTaken && (!journal.isAnswered(conversation, id) || random() < AGAIN);
  });
  const lost: string[] = [];
  for (const one of due) {
    const { conversation, message } = one;
    const wasSeen = journal.seen(conversation).includes(message.id);
    const calledAt = journal.now();
    const result: TurnResult = await client.send(conversation, message, { signal: leaving });
    // A turn that began only now: until then nobody knew of it.
    const isNew = !wasSeen && journal.seen(conversation).includes(message.id);
    if (isNew) lost.push(`${message.id} was taken, and not there when it was asked for: ${JSON.stringify(result).slice(0, 300)}`);
    noteAnswer(person, one, calledAt, result);
  }
  const stored = await Promise.all([...new Set(said.map(({ conversation }) => conversation))].map((id) => inStore(person, id)));
  return {
    lost: [...lost, ...(kind === 'customer' ? stored.flatMap(({ missing }) => missing) : [])],
    doubled: stored.flatMap(({ doubled }) => doubled),
  };
}

/** A customer takes nothing back but what waits, so that all that was answered is there. */
async function inStore({ client, journal, said }: Person, conversation: string): Promise<{ missing: string[]; doubled: string[] }> {
  const entries = await untilRead(() => client.history(conversation));
  const count = (id: string): number => entries.filter(({ messageId }) => messageId === id).length;
  const ids = said.filter((one: Said) => one.conversation === conversation).map(({ message }) => message.id);
  return {
    missing: ids
      .filter((id) => journal.outcomeOf(conversation, id) === 'end' && count(id) === 0)
      .map((id) => `${id} was answered, and the store does not have it`),
    doubled: ids.filter((id) => count(id) > 1).map((id) => `${id} is ${count(id)} times in the store`),
  };
}

/** The storm goes on around it: a store that is away just now is no violation, one that stays away is. */
async function untilRead<T>(read: () => Promise<T>): Promise<T> {
  for (let left = 120; ; left -= 1) {
    try {
      return await read();
    } catch (error) {
      if (left === 0) throw error;
      await sleep(500);
    }
  }
}
