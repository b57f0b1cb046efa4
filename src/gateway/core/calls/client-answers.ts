/**
 * What a client's tools have answered, brought to the turn that waits for it.
 *
 * The same answers once more are the same request, with the same response.
 *
 * @rule core/answered-together: Calls that began to wait together are answered together, or none is. (test:
 *   test/gateway/client-tools.slow.test.ts)
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ClientError } from '../../../client/errors.js';
import type { Message } from '../../../conversation/protocol/contract.js';
import type { Pending } from '../../../client/human-input.js';
import { OLDEST } from '../../../stores/feed-cursor.js';
import { withAttachments } from '../attachments.js';
import { isAnsweredSo, publicCallId, readCallId, resultsOf, type ToolAnswer } from './client-calls.js';
import { clientWaitInWords } from './client-wait.js';
import type { Conversations, Submitted } from '../conversations.js';
import { GatewayError } from '../errors.js';
import type { Followed } from '../turns/follow-turn.js';
import { invalid } from '../read-body.js';
import { statusOf } from '../status-of.js';
import type { Part } from '../turns/turn-texts.js';

/** Where a request's answer comes from. */
export interface Going extends Omit<Part, 'mayPause'> {
  /** How many turns come before it. */
  readonly position: number;
  /** The turn's events, from its beginning on. */
  readonly follow: (core: Conversations, signal: AbortSignal) => AsyncGenerator<Followed, void>;
  readonly submitted?: Submitted;
}

export function submitted(taken: Submitted): Going {
  const { conversation, turn, position } = taken;
  return { conversation, turn, position, follow: (core, signal) => core.answer(taken, signal), submitted: taken };
}

export interface NamedCalls {
  readonly conversation: string;
  readonly turn: string;
  readonly callIds: readonly string[];
}

/** Undefined where they are not all of one turn here. */
export function namedBy(answers: readonly Pick<ToolAnswer, 'id'>[]): NamedCalls | undefined {
  const names = answers.map(({ id }) => readCallId(id));
  const [first] = names;
  if (!first || !names.every((name) => name?.conversation === first.conversation && name.turn === first.turn)) return undefined;
  return { conversation: first.conversation, turn: first.turn, callIds: names.flatMap((name) => name?.callId ?? []) };
}

export interface Answering {
  readonly conversation: string;
  readonly turn: string;
  readonly answers: readonly ToolAnswer[];
  /** Said beside them: joins the turn. */
  readonly words?: (Message & { readonly id: string }) | undefined;
  readonly signal: AbortSignal;
}

/** A result may take a moment to reach the store. */
const BETWEEN_LOOKS_MS = 200;
const PATIENCE_MS = 10_000;

/** `gone`: the turn has gone on without them, or with others. */
export async function answerClientCalls(
  core: Conversations,
  { conversation, turn, answers, words, signal }: Answering,
): Promise<Going | 'gone'> {
  const { client } = core;
  const byCall = new Map(answers.map((answer) => [readCallId(answer.id)?.callId ?? '', answer] as const));
  let isRepeated = false;
  for (const until = Date.now() + PATIENCE_MS; ; await sleep(BETWEEN_LOOKS_MS, undefined, { signal })) {
    const waiting = await waitingIn(core, conversation);
    const entries = (await client.history(conversation)).filter((entry) => entry.turn === turn);
    const results = resultsOf(entries);
    const open = waiting.filter(({ callId }) => byCall.has(callId));
    const known = [...byCall].filter(([callId]) => !open.some((one) => one.callId === callId));
    if (known.some(([callId, answer]) => isOther(results.get(callId), answer))) return 'gone';
    if (known.every(([callId]) => results.has(callId))) {
      refuseMissing(conversation, waiting, open, byCall);
      isRepeated = open.length === 0 && !entries.some(({ messageId }) => messageId === words?.id);
      if (words && open.length > 0)
        await client.enqueue(conversation, { ...(await withAttachments(client, conversation, words)), delivery: 'steer' });
      if (await decideAll(core, conversation, open, byCall)) break;
    } else if (Date.now() > until) return 'gone';
  }
  // The turn has gone on without these words: they are a message of their own.
  if (words && isRepeated) return submitted(await core.submit(conversation, words, { signal }));
  const after = [...byCall.keys()].reduce((last, callId) => (numberOf(callId) > numberOf(last) ? callId : last));
  return {
    conversation,
    turn,
    after,
    position: 0,
    follow: (via, gone) => via.attach({ id: conversation, turn, after: OLDEST, signal: gone }),
  };
}

/** What the conversation waits for of its client; nothing where it does not run. */
export async function waitingIn({ client }: Pick<Conversations, 'client'>, conversation: string): Promise<readonly Pending[]> {
  const waiting = await client.approvals(conversation).catch((error: unknown): Pending[] => {
    if (error instanceof ClientError && (error.kind === 'not-found' || error.kind === 'closed')) return [];
    throw error;
  });
  return waiting.filter((one) => one.kind === 'client-tool' && one.conversation === conversation);
}

/** Clients that do not know that it waits would wait for their message in vain; one that sent it before has its answer. */
export async function refuseWhileWaiting(core: Conversations, conversation: string, messageId: string): Promise<void> {
  const waiting = await waitingIn(core, conversation).catch((): Pending[] => []);
  if (waiting.length === 0) return;
  const isKnown = (await core.client.history(conversation)).some((entry) => entry.messageId === messageId);
  if (!isKnown)
    throw missing(
      conversation,
      waiting.map(({ callId }) => callId),
    );
}

/** The same for clients that cannot answer it: they read what waits, and who can. */
export async function refuseWhileClientRuns(core: Pick<Conversations, 'client'>, conversation: string, messageId: string): Promise<void> {
  const status = await statusOf(core.client, conversation);
  if (status === null || status.pendingApprovals === 0) return;
  const words = clientWaitInWords(conversation, await waitingIn(core, conversation).catch(() => []));
  if (words === undefined) return;
  const isKnown = (await core.client.history(conversation)).some((entry) => entry.messageId === messageId);
  if (!isKnown) throw new GatewayError({ status: 409, type: 'waiting-for-client', message: `the message was not taken: ${words}` });
}

/** (core/answered-together) */
function refuseMissing(
  conversation: string,
  waiting: readonly Pending[],
  open: readonly Pending[],
  given: ReadonlyMap<string, unknown>,
): void {
  const left = waiting.filter(
    (one) => !given.has(one.callId) && open.some(({ askedIn, askedAt }) => askedIn === one.askedIn && askedAt === one.askedAt),
  );
  if (left.length > 0)
    throw missing(
      conversation,
      left.map(({ callId }) => callId),
    );
}

function missing(conversation: string, callIds: readonly string[]): Error {
  const ids = callIds.map((callId) => publicCallId(conversation, callId)).join(', ');
  return invalid(`No tool output found for function call ${ids}: the turn waits for it`);
}

/** False where another request was first with one of them: then it is looked at again. */
async function decideAll(
  { client }: Conversations,
  conversation: string,
  open: readonly Pending[],
  answers: ReadonlyMap<string, ToolAnswer>,
): Promise<boolean> {
  for (const { callId } of open) {
    const { output = '', isError = false } = answers.get(callId) ?? {};
    try {
      await client.decide(conversation, { callId, decision: 'approve', output, ...(isError && { isError }) }, { awaited: true });
    } catch (error) {
      if (error instanceof ClientError && error.kind === 'not-waiting') return false;
      throw error;
    }
  }
  return true;
}

function isOther(
  result: ReturnType<typeof resultsOf> extends ReadonlyMap<string, infer R> ? R | undefined : never,
  answer: ToolAnswer,
): boolean {
  return result !== undefined && !isAnsweredSo(result, answer);
}

function numberOf(callId: string): number {
  return Number(/\/c(\d+)$/.exec(callId)?.[1] ?? 0);
}
