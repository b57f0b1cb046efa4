/** How a request finds its conversation in protocols whose clients do not name one. */
import { randomUUID } from 'node:crypto';
import type { Message } from '../../conversation/protocol/contract.js';
import { turnId, turnNumber } from '../../records/identity.js';
import type { Conversations, Submitted } from './conversations.js';
import { familyOf, firstMessage, goesOnWith, shortHash, type Asking, type Supplied } from './supplied-history.js';

export type Beside = Omit<Message, 'id' | 'text'>;

/** Conversations that begin with the same words for the same user: of more, those that began last are looked through. */
const MAX_FAMILY = 32;

export interface Stateless extends Asking {
  readonly supplied: Supplied;
  /** Of `Idempotency-Key`: the same one is one message. */
  readonly key: string | undefined;
  readonly beside: Beside;
  readonly signal: AbortSignal;
}

/** The request's history decides (supplied-history.ts). */
export async function submitSupplied(core: Conversations, { supplied, key, beside, signal, ...asking }: Stateless): Promise<Submitted> {
  const family = familyOf(asking, supplied);
  const start = { agent: asking.agent };
  const id = key ?? randomUUID();
  const newest = supplied.said.at(-1)?.text ?? '';
  if (supplied.said.length > 1) {
    for (const member of await membersOf(core, family)) {
      const entries = await core.client.history(member);
      if (entries.some(({ messageId }) => messageId === id)) return core.submit(member, { ...beside, id, text: newest }, { signal });
      const latest = entries.at(-1)?.turn;
      if (latest === undefined || !goesOnWith(entries, supplied)) continue;
      const submitted = await submitAfter(core, { conversation: member, turn: latest, message: { ...beside, id, text: newest }, signal });
      if (submitted) return submitted;
    }
  }
  const own = `${family}-${shortHash([id])}`;
  return core.submit(own, { ...beside, id, text: firstMessage(supplied) }, { start, signal });
}

/** Latest first. */
async function membersOf({ client }: Conversations, family: string): Promise<readonly string[]> {
  const listed = await client.list({ limit: MAX_FAMILY, idPrefix: `${family}-` });
  return listed.map(({ id }) => id);
}

export interface After {
  readonly conversation: string;
  /** After which it is to be answered. */
  readonly turn: string;
  readonly message: Message & { readonly id: string };
  readonly signal: AbortSignal;
}

/** Undefined where another message was first: then nothing was sent. */
export async function submitAfter(core: Conversations, { conversation, turn, message, signal }: After): Promise<Submitted | undefined> {
  const submitted = await core.submit(conversation, message, { start: {}, signal });
  const isNext = submitted.turn === null || submitted.turn === turnId(turnNumber(turn) + 1);
  if (isNext || submitted.acceptedAs === 'duplicate') return submitted;
  const { withdrawn } = await core.client.withdraw(conversation, message.id);
  return withdrawn ? undefined : submitted;
}
