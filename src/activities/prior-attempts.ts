/**
 * What an activity has paid before an attempt of it failed: the next attempt counts it, and asks nothing again that was answered. It goes
 * along with heartbeats, which outlive the worker.
 */
import { createHash } from 'node:crypto';
import type { Context } from '@temporalio/activity';
import type { Ask } from '../memory/long-record.js';
import { type Usage, addUsage, NO_USAGE } from '../records/message.js';
import type { Asker } from './ask-model.js';

/** All answers together, in characters: a heartbeat is a small thing. */
const KEPT_CHARACTERS = 128 * 1024;

interface Paid {
  readonly usage: Usage;
  /** By the hash of the question. */
  readonly answers: Readonly<Record<string, string>>;
}

export interface PriorAttempts {
  /** Of this attempt and those before it. */
  readonly spent: () => Usage;
  /** For heartbeats. */
  readonly details: () => Paid;
  /** The same questions, counted; `keeps`: one that was answered before is not sent again. */
  readonly counted: (asker: Asker, options?: { readonly keeps?: boolean }) => Ask;
}

export function createPriorAttempts(
  activity: Pick<Context, 'heartbeat'> & { readonly info: Pick<Context['info'], 'heartbeatDetails'> },
): PriorAttempts {
  const before = paidIn(activity.info.heartbeatDetails);
  const answers = new Map(Object.entries(before.answers));
  const askers = new Set<Asker>();
  const spent = (): Usage => [...askers].reduce((sum, asker) => addUsage(sum, asker.spent()), before.usage);
  const details = (): Paid => ({ usage: spent(), answers: Object.fromEntries(answers) });
  const hasRoomFor = (text: string): boolean =>
    [...answers.values()].reduce((sum, { length }) => sum + length, text.length) <= KEPT_CHARACTERS;
  const counted: PriorAttempts['counted'] = (asker, { keeps = false } = {}) => {
    askers.add(asker);
    return async (system, text) => {
      const question = createHash('sha256')
        .update(JSON.stringify([system, text]))
        .digest('hex')
        .slice(0, 32);
      const known = keeps ? answers.get(question) : undefined;
      if (known !== undefined) return known;
      const answer = await asker.ask(system, text);
      if (keeps && hasRoomFor(answer)) answers.set(question, answer);
      // At once: what fails next takes the last beat along.
      activity.heartbeat(details());
      return answer;
    };
  };
  return { spent, details, counted };
}

/** Ours, of an attempt before this one; nothing where there was none, or it was another version's. */
function paidIn(details: unknown): Paid {
  const { usage, answers } = (details ?? {}) as Partial<Paid>;
  return { usage: usage ?? NO_USAGE, answers: answers ?? {} };
}
