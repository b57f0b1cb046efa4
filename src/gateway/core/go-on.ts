/** How a request finds its conversation in protocols whose clients do not name one. */
import { randomUUID } from 'node:crypto';
import type { Message } from '../../conversation/protocol/contract.js';
import { turnId, turnNumber } from '../../records/identity.js';
import type { Conversations, Submitted } from './conversations.js';
import { answerClientCalls, readCallIds, fromSubmitted, type AnswerSource } from './answer-calls.js';
import { GatewayError, invalid } from './errors.js';
import { callsIn, refuseLateChoice } from './client-calls.js';
import { toFamily, firstMessage, goesOnWith, shortHash, type Asking, type Supplied } from './supplied-history.js';

export type Beside = Omit<Message, 'id' | 'text'>;

/** Conversations that begin with the same words for the same user: of more, those that began last are looked through. */
const MAX_FAMILY = 32;

export interface Stateless extends Asking {
  readonly supplied: Supplied;
  /** The value of `Idempotency-Key`: the same one is one message. */
  readonly key: string | undefined;
  readonly beside: Beside;
  readonly signal: AbortSignal;
}

/** The request's history decides (supplied-history.ts). */
export async function submitSupplied(core: Conversations, stateless: Stateless): Promise<AnswerSource> {
  const { supplied, key, beside, signal, ...asking } = stateless;
  const family = toFamily(asking, supplied);
  const start = { agent: asking.agent };
  if (supplied.answers) {
    const goes = await answerWaiting(core, family, stateless);
    if (goes) return goes;
  }
  const id = key ?? randomUUID();
  const newest = supplied.messages.at(-1)?.text ?? '';
  if (supplied.messages.length > 1 && !supplied.answers) {
    for (const member of await listMembers(core, family)) {
      const entries = await core.client.history(member);
      if (entries.some(({ messageId }) => messageId === id))
        return fromSubmitted(await core.submit(member, { ...beside, id, text: newest }, { signal }));
      const latest = entries.at(-1)?.turn;
      if (latest === undefined || !goesOnWith(entries, supplied)) continue;
      const taken = await submitAfter(core, { conversation: member, turn: latest, message: { ...beside, id, text: newest }, signal });
      if (taken) return fromSubmitted(taken);
    }
  }
  const conversation = `${family}-${shortHash([supplied.answers && key === undefined ? firstMessage(supplied) : id])}`;
  const message = { ...beside, id: supplied.answers && key === undefined ? shortHash([conversation]) : id, text: firstMessage(supplied) };
  return fromSubmitted(await core.submit(conversation, message, { start, signal }));
}

/** The ids of the calls name the conversation; its family shows whether it belongs to this client (core/calls-are-history). */
async function answerWaiting(
  core: Conversations,
  family: string,
  { supplied, key, beside, signal }: Stateless,
): Promise<AnswerSource | undefined> {
  const { answers = [] } = supplied;
  const named = readCallIds(answers);
  if (!named || !named.conversation.startsWith(`${family}-`)) return undefined;
  const { conversation, turn } = named;
  const entries = await core.client.history(conversation).catch(() => []);
  const calling = entries.find((entry) => callsIn(entry).some(({ callId }) => callId === named.callIds[0]));
  if (!calling || !goesOnWith(entries, supplied, calling.slot)) return undefined;
  refuseLateChoice(beside.tools);
  const words = wordsBeside(conversation, { supplied, key, beside });
  const source = await answerClientCalls(core, { conversation, turn, answers, words, signal });
  return source === 'gone' ? undefined : source;
}

/** The request names its conversation, and the rest of its history is ignored. Throws where that does not wait for the answers. */
export async function answerNamed(
  core: Conversations,
  conversation: string,
  { supplied, key, beside, signal }: Pick<Stateless, 'supplied' | 'key' | 'beside' | 'signal'>,
  inTurn?: string,
): Promise<AnswerSource> {
  const { answers = [] } = supplied;
  const named = readCallIds(answers);
  if (named?.conversation !== conversation || (inTurn !== undefined && named.turn !== inTurn)) {
    throw invalid('the tool outputs answer no call of this conversation that was made last');
  }
  refuseLateChoice(beside.tools);
  const words = wordsBeside(conversation, { supplied, key, beside });
  const source = await answerClientCalls(core, { conversation, turn: named.turn, answers, words, signal });
  if (source !== 'gone') return source;
  throw new GatewayError({
    status: 409,
    type: 'not-waiting',
    message: 'the turn no longer waits for these tool outputs: it was stopped, has gone on without them, or was given others',
  });
}

function wordsBeside(
  conversation: string,
  { supplied, key, beside }: Pick<Stateless, 'supplied' | 'key' | 'beside'>,
): (Message & { readonly id: string }) | undefined {
  if (supplied.beside === undefined) return undefined;
  const ids = supplied.answers?.map(({ id }) => id) ?? [];
  return { ...beside, id: key ?? shortHash([conversation, ...ids, supplied.beside]), text: supplied.beside };
}

/** Latest first. */
async function listMembers({ client }: Conversations, family: string): Promise<readonly string[]> {
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
