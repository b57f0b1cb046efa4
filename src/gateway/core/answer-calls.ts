/**
 * A client's answers to calls that wait in a turn: decisions of a person, and results of the client's tools. The same answers once more are
 * the same request, with the same response.
 *
 * @rule core/answered-together: Calls that began to wait together are answered together, or none is. (test:
 *   test/gateway/client-tools.slow.test.ts)
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PerduraClient, Pending } from '../../client.js';
import { ClientError, type ClientErrorKind } from '../../client/errors.js';
import { isClientTool, toPrefixed } from '../../conversation/protocol/message.js';
import type { Message } from '../../conversation/protocol/contract.js';
import type { Approval, Decision } from '../../conversation/protocol/human-input.js';
import { callFingerprint } from '../../memory/bodies.js';
import type { JsonValue } from '../../records/message.js';
import { OLDEST } from '../../stores/feed-cursor.js';
import type { Segment } from './answer.js';
import { withAttachments } from './attachments.js';
import { describeClientWait, isSameAnswer, publicCallId, readCallId, resultsByCall, type ToolAnswer } from './client-calls.js';
import type { Conversations } from './conversations.js';
import type { Submitted } from '../../client/turns/stream.js';
import { GatewayError, invalid } from './errors.js';
import type { TurnEventAt } from '../../client/turns/follow-turn.js';
import { readStatus } from '../../client/turns/turn-status.js';

/** An answer to a call that a client knows by its id here (AG-UI, AI SDK). */
export type CallAnswer = Pick<Decision, 'callId' | 'decision' | 'note' | 'input' | 'isError'> & {
  /**
   * What the client took it for: words that answer a question must not allow a call. `answer`: of a question, or of a tool that it runs.
   * Absent: whatever waits is refused.
   */
  readonly to?: 'approval' | 'question' | 'client-tool' | 'answer';
  /** The call as the client has shown it: an approval counts for these arguments alone. */
  readonly shown?: { readonly name: string; readonly input: JsonValue };
  /** The answer of a tool of the client. */
  readonly output?: JsonValue;
};

export interface DecidedCalls {
  /** The turn that goes on. */
  readonly turn: string;
  /** Those of the calls that waited until now; the others were decided before, by this client or elsewhere. */
  readonly decided: readonly { readonly callId: string; readonly kind: Approval['kind'] }[];
}

const ANSWERS = { approval: 'an approval or a refusal', question: 'an answer in words', 'client-tool': 'what its client answers' };
const CALL_ID = /^(turn_\d{4,15})\/c\d{1,6}$/;

export function isCallId(id: string): boolean {
  return CALL_ID.test(id);
}

interface Beside {
  /** Joins the turn before the first of the calls is decided; not at all where none waits. */
  readonly words?: (Message & { readonly id: string }) | undefined;
  /** What the request asks for, for the rest of the turn. */
  readonly wishes?: Pick<Message, 'tools' | 'output'> | undefined;
}

export async function answerCalls(
  client: PerduraClient,
  id: string,
  answers: readonly CallAnswer[],
  { words, wishes }: Beside = {},
): Promise<DecidedCalls> {
  const [, turn] = CALL_ID.exec(answers.at(-1)?.callId ?? '') ?? [];
  // Nothing waits in what has ended.
  const waiting = await readWaiting(client, id, ['closed']);
  const open = answers.flatMap((answer) => {
    const call = waiting.find(({ callId }) => callId === answer.callId);
    return call ? [{ answer, call }] : [];
  });
  for (const { answer, call } of open) {
    if (!fits(answer.to, call.kind)) throw invalid(`${call.tool} (${call.callId}) waits for ${ANSWERS[call.kind]}`);
  }
  if (turn === undefined) throw invalid('the toolCallId is none of this conversation');
  if (open.length > 0 && words) await client.enqueue(id, { ...(await withAttachments(client, id, words)), delivery: 'steer' });
  const isClients = open.some(({ call }) => call.kind === 'client-tool');
  const wished = isClients && wishes ? await client.keepWishes(id, wishes) : undefined;
  const decided: DecidedCalls['decided'][number][] = [];
  for (const { answer, call } of open) {
    if (await decide(client, id, call, { ...answer, ...(wished && { wishes: wished }) }))
      decided.push({ callId: call.callId, kind: call.kind });
  }
  return { turn, decided };
}

function fits(to: CallAnswer['to'], kind: Approval['kind']): boolean {
  return to === undefined || to === kind || (to === 'answer' && kind !== 'approval');
}

/** False where another request was first with what a tool of the client has answered: that is no fault of this one's. */
async function decide(
  client: PerduraClient,
  id: string,
  { kind, tool }: Pending,
  answer: CallAnswer & Pick<Decision, 'wishes'>,
): Promise<boolean> {
  const { callId, decision, note, input, isError, output, shown, wishes } = answer;
  if (kind === 'client-tool' && output !== undefined) {
    return bringOutput(client, id, { callId, output, isError: isError === true, ...(wishes && { wishes }) });
  }
  const words = note === undefined ? {} : { note };
  if (kind !== 'approval') await client.decide(id, { callId, decision, ...words });
  else {
    const name = shown && isClientTool(tool) ? toPrefixed(shown.name) : shown?.name;
    const hash = shown && name !== undefined ? { hash: callFingerprint(name, shown.input) } : {};
    await client.decide(id, { callId, decision, ...words, ...(input !== undefined && { input }), ...hash });
  }
  return true;
}

/** False where another request was first. */
async function bringOutput(
  client: PerduraClient,
  id: string,
  { isError, ...brought }: Pick<Decision, 'callId' | 'output' | 'wishes'> & { readonly isError: boolean },
): Promise<boolean> {
  try {
    await client.decide(id, { ...brought, decision: 'approve', ...(isError && { isError }) }, { awaited: true });
    return true;
  } catch (error) {
    if (error instanceof ClientError && error.kind === 'not-waiting') return false;
    throw error;
  }
}

/** The calls that wait in the conversation itself; none where it cannot be read for one of these reasons. */
async function readWaiting(client: PerduraClient, id: string, none: readonly ClientErrorKind[]): Promise<readonly Pending[]> {
  const waiting = await client.approvals(id).catch((error: unknown): Pending[] => {
    if (error instanceof ClientError && none.includes(error.kind)) return [];
    throw error;
  });
  return waiting.filter(({ conversation }) => conversation === id);
}

function readClientWaits({ client }: Pick<Conversations, 'client'>, id: string): Promise<readonly Pending[]> {
  return readWaiting(client, id, ['not-found', 'closed']).then((waiting) => waiting.filter(({ kind }) => kind === 'client-tool'));
}

/** Where a request's answer comes from. */
export interface AnswerSource extends Omit<Segment, 'mayPause'> {
  /** How many turns come before it. */
  readonly position: number;
  /** The turn's events, from its beginning on. */
  readonly follow: (core: Conversations, signal: AbortSignal) => AsyncGenerator<TurnEventAt, void>;
  readonly submitted?: Submitted;
}

export function fromSubmitted(submitted: Submitted): AnswerSource {
  const { conversation, turn, position } = submitted;
  return { conversation, turn, position, follow: (core, signal) => core.answer(submitted, signal), submitted };
}

interface NamedCalls {
  readonly conversation: string;
  readonly turn: string;
  readonly callIds: readonly string[];
}

/** Undefined where they are not all of one turn here. */
export function readCallIds(answers: readonly Pick<ToolAnswer, 'id'>[]): NamedCalls | undefined {
  const names = answers.map(({ id }) => readCallId(id));
  const [first] = names;
  if (!first || !names.every((name) => name?.conversation === first.conversation && name.turn === first.turn)) return undefined;
  return { conversation: first.conversation, turn: first.turn, callIds: names.flatMap((name) => name?.callId ?? []) };
}

interface ClientAnswers {
  readonly conversation: string;
  readonly turn: string;
  readonly answers: readonly ToolAnswer[];
  /** Message of the user beside them: joins the turn. */
  readonly words?: (Message & { readonly id: string }) | undefined;
  /** What the request asks for, for the rest of the turn. */
  readonly wishes?: Pick<Message, 'tools' | 'output'>;
  readonly signal: AbortSignal;
}

/** A result may take a moment to reach the store. */
const BETWEEN_LOOKS_MS = 200;
const PATIENCE_MS = 10_000;

/**
 * Hands over answers of a client's tools, in protocols with public ids of calls; `gone`: the turn has gone on without them, or with others.
 */
export async function answerClientCalls(
  core: Conversations,
  { conversation, turn, answers, words, wishes = {}, signal }: ClientAnswers,
): Promise<AnswerSource | 'gone'> {
  const { client } = core;
  const byCall = new Map(answers.map((answer) => [readCallId(answer.id)?.callId ?? '', answer] as const));
  let isRepeated = false;
  for (const until = Date.now() + PATIENCE_MS; ; await sleep(BETWEEN_LOOKS_MS, undefined, { signal })) {
    const waiting = await readClientWaits(core, conversation);
    const entries = (await client.history(conversation)).filter((entry) => entry.turn === turn);
    const results = resultsByCall(entries);
    const open = waiting.filter(({ callId }) => byCall.has(callId));
    const known = [...byCall].filter(([callId]) => !open.some((one) => one.callId === callId));
    const isOther = known.some(([callId, answer]) => {
      const result = results.get(callId);
      return result !== undefined && !isSameAnswer(result, answer);
    });
    if (isOther) return 'gone';
    if (known.every(([callId]) => results.has(callId))) {
      refuseMissing(conversation, waiting, open, byCall);
      isRepeated = open.length === 0 && !entries.some(({ messageId }) => messageId === words?.id);
      if (words && open.length > 0)
        await client.enqueue(conversation, { ...(await withAttachments(client, conversation, words)), delivery: 'steer' });
      const wished = open.length > 0 && (wishes.tools ?? wishes.output) ? await client.keepWishes(conversation, wishes) : undefined;
      if (await bringAll(core, conversation, open, byCall, wished)) break;
    } else if (Date.now() > until) return 'gone';
  }
  // The turn has gone on without these words: they become a separate message.
  if (words && isRepeated) return fromSubmitted(await core.submit(conversation, words, { signal }));
  const after = [...byCall.keys()].reduce((last, callId) => (callNumber(callId) > callNumber(last) ? callId : last));
  return {
    conversation,
    turn,
    after,
    position: 0,
    follow: (via, gone) => via.attach({ id: conversation, turn, after: OLDEST, signal: gone }),
  };
}

/** False where another request was first with one of them: then it is looked at again. */
async function bringAll(
  { client }: Conversations,
  conversation: string,
  open: readonly Pending[],
  answers: ReadonlyMap<string, ToolAnswer>,
  wishes: Decision['wishes'],
): Promise<boolean> {
  for (const { callId } of open) {
    const { output = '', isError = false } = answers.get(callId) ?? {};
    if (!(await bringOutput(client, conversation, { callId, output, isError, ...(wishes && { wishes }) }))) return false;
  }
  return true;
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
  if (left.length > 0) throw missing(conversation, left);
}

function missing(conversation: string, calls: readonly Pending[]): Error {
  const ids = calls.map(({ callId }) => publicCallId(conversation, callId)).join(', ');
  return invalid(`No tool output found for function call ${ids}: the turn waits for it`);
}

function callNumber(callId: string): number {
  return Number(/\/c(\d+)$/.exec(callId)?.[1] ?? 0);
}

/** Clients that do not know that it waits would wait for their message in vain; one that sent it before has its answer. */
export async function refuseWhileWaiting(core: Conversations, conversation: string, messageId: string): Promise<void> {
  const waiting = await readClientWaits(core, conversation).catch((): Pending[] => []);
  if (waiting.length > 0 && !(await hasMessage(core, conversation, messageId))) throw missing(conversation, waiting);
}

/** The same for clients that cannot answer it: they read what waits, and who can. */
export async function refuseWhileClientRuns(core: Pick<Conversations, 'client'>, conversation: string, messageId: string): Promise<void> {
  const status = await readStatus(core.client, conversation);
  if (status === null || status.pendingApprovals === 0) return;
  const words = describeClientWait(conversation, await readClientWaits(core, conversation).catch(() => []));
  if (words === undefined || (await hasMessage(core, conversation, messageId))) return;
  throw new GatewayError({ status: 409, type: 'waiting-for-client', message: `the message was not taken: ${words}` });
}

async function hasMessage({ client }: Pick<Conversations, 'client'>, conversation: string, messageId: string): Promise<boolean> {
  return (await client.history(conversation)).some((entry) => entry.messageId === messageId);
}
