/**
 * Clients of stateless protocols send the whole history with each request. The messages alone decide which conversation the request goes
 * on with, and so any gateway finds it: the one that began it at once, another one when Temporal lists it.
 *
 * @rule core/family-in-the-id: A conversation of a stateless request has an id that begins with its family: a hash of the token, the `user`
 *   value, the agent, the instructions and the first message. (test: test/gateway/supplied-history.test.ts)
 * @rule core/exactly-the-turns: A request continues a conversation of its family if its messages, without the newest, are exactly the turns
 *   of that conversation: no turn more, none less, no other word. (test: test/gateway/supplied-history.test.ts)
 * @rule core/calls-are-history: Calls of the client's tools and their results are part of the history. A request that answers such calls
 *   continues their turn, if everything before it matches (core/exactly-the-turns). (test: test/gateway/client-tools.slow.test.ts)
 * @rule core/history-in-first-message: If no conversation matches, the first message of a new one carries the client's history, marked as
 *   that. The next request finds the conversation by its first message. (test: test/gateway/supplied-history.test.ts)
 */
import { createHash } from 'node:crypto';
import { ClientError } from '../../client/errors.js';
import { invalid, GatewayError } from './errors.js';
import { partSchema } from '../../conversation/protocol/message.js';
import { withoutTextFiles } from '../../records/file-type.js';
import { HISTORY_MARK, INSTRUCTIONS_MARK, TYPED_MARK } from '../../records/message-parts.js';
import { isFromPerson, MEDIA_KINDS, shownText, sourcesIn, type Entry, type JsonValue, type Media } from '../../records/message.js';
import { LIMITS } from '../../conversation/protocol/limits.js';
import {
  callsForClient,
  isSameAnswer,
  readCallId,
  resultsByCall,
  type ToolAnswer,
  callsIn,
  describeFile,
  describeFiles,
} from './client-calls.js';
import { isAnswer, joinTexts } from './answer.js';
import type { Message } from '../../conversation/protocol/contract.js';
import { turnId, turnNumber } from '../../records/identity.js';
import type { Conversations } from './conversations.js';
import type { Submitted } from '../../client/turns/stream.js';
import { answerClientCalls, readCallIds, fromSubmitted, type AnswerSource } from './answer-calls.js';

export interface SuppliedMessage {
  readonly role: 'user' | 'assistant';
  readonly text: string;
  /** Files of it, and of what joined its turn. */
  readonly media?: Media;
  /** Of a user: words that came beside answers of tools, and so joined the turn. */
  readonly joined?: readonly string[];
  /** Of the assistant: calls of tools that the client has run. */
  readonly calls?: readonly SuppliedCall[];
}

export interface SuppliedCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonValue;
  /** Absent: it is not answered. */
  readonly answer?: Omit<ToolAnswer, 'id'>;
}

/** The messages of a request, one after the other. */
export type Spoken = Omit<SuppliedMessage, 'joined'> | { readonly role: 'tool'; readonly answers: readonly ToolAnswer[] };

export interface Supplied {
  /** Instructions of the client for the model; they come after the agent's instructions. */
  readonly instructions?: string;
  /** In turns: user and assistant; the last one is a user's, or the assistant's whose calls the request answers. */
  readonly messages: readonly SuppliedMessage[];
  /** The request brings these, and maybe words beside them: the turn that waits goes on. */
  readonly answers?: readonly ToolAnswer[];
  readonly beside?: string;
  readonly besideMedia?: Media;
}

export interface Asking {
  readonly principal: string;
  readonly user: string;
  readonly agent: string;
}

/** The beginning of its conversations' ids (core/family-in-the-id). */
export function toFamily({ principal, user, agent }: Asking, { instructions = '', messages }: Supplied): string {
  return `api-${shortHash([principal, user, agent, instructions, messages[0]?.text ?? ''])}`;
}

export function shortHash(words: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(words)).digest('hex').slice(0, 24);
}

/**
 * Joins messages in a row of one side. Messages before the first one of the user count as words of the client too. Answers of tools go to
 * their calls: throws for an answer without a call.
 */
export function inTurns(messages: readonly Spoken[]): Pick<Supplied, 'messages' | 'answers' | 'beside' | 'besideMedia'> {
  const turns: SuppliedMessage[] = [];
  let answers: ToolAnswer[] = [];
  let beside: string[] = [];
  let files: Media = {};
  for (const message of messages) {
    const last = turns.at(-1);
    if (message.role === 'tool') {
      for (const { media = {}, ...answer } of message.answers) {
        const name = answerCall(turns, answer);
        if (sourcesIn(media).length > 0) beside.push(`[What the tool ${name} has answered: ${describeFiles(media)}]`);
        files = joinMedia(files, media);
        answers.push(answer);
      }
    } else if (message.role === 'user' && answers.length > 0) {
      beside.push(message.text);
      files = joinMedia(files, message.media);
    } else {
      joinLast(turns, beside, files);
      [answers, beside, files] = [[], [], {}];
      if (last?.role === message.role) turns[turns.length - 1] = put(last, message);
      else turns.push(message);
    }
  }
  if (answers.length === 0) return { messages: turns };
  const words = joinTexts(beside);
  const isBeside = words !== '' || sourcesIn(files).length > 0;
  return { messages: turns, answers, ...(isBeside && { beside: words, besideMedia: files }) };
}

function put({ role, text, joined: words, calls = [], media }: SuppliedMessage, more: SuppliedMessage): SuppliedMessage {
  const all = [...calls, ...(more.calls ?? [])];
  return {
    ...{ role, text: joinTexts([text, more.text]) },
    ...((media ?? more.media) && { media: joinMedia(media, more.media) }),
    ...(words && { joined: words }),
    ...(all.length > 0 && { calls: all }),
  };
}

function joinLast(turns: SuppliedMessage[], words: readonly string[], media: Media): void {
  const at = turns.findLastIndex(({ role }) => role === 'user');
  const user = turns[at];
  if (user && words.length > 0) turns[at] = { ...user, joined: [...(user.joined ?? []), ...words], media: joinMedia(user.media, media) };
}

export function joinMedia(first: Media = {}, second: Media = {}): Media {
  const lists = MEDIA_KINDS.map((kind) => [kind, [...(first[kind] ?? []), ...(second[kind] ?? [])]] as const);
  return Object.fromEntries(lists.filter(([, list]) => list.length > 0));
}

/** Attaches an answer to its call in the last message; returns the tool's name. */
function answerCall(turns: SuppliedMessage[], { id, ...answer }: ToolAnswer): string {
  const last = turns.at(-1);
  if (!last) return '';
  const call = last.calls?.find((one) => one.id === id);
  if (!call) throw invalid(`an answer of the tool call ${JSON.stringify(id.slice(0, 100))}, which was not made just before it`);
  turns[turns.length - 1] = { ...last, calls: last.calls?.map((one) => (one === call ? { ...one, answer } : one)) ?? [] };
  return call.name;
}

const ANSWERED = '[The tools that were called last have answered, as it says above: go on from there.]';

/** The beginning of a conversation that starts at this request (core/history-in-first-message). */
export function firstMessage({ instructions, messages, answers, beside = '', besideMedia = {} }: Supplied): string {
  const before = answers === undefined ? messages.slice(0, -1) : messages;
  const newest = answers === undefined ? (messages.at(-1)?.text ?? '') : joinTexts([ANSWERED, beside]);
  const room = roomForFiles({ messages, ...(answers && { answers, besideMedia }) });
  let left = before.reduce((sum, { media = {} }) => sum + sourcesIn(media).length, 0);
  const describe = (message: SuppliedMessage): string =>
    toLine(
      message,
      sourcesIn(message.media ?? {}).map((one) => `${describeFile(one)}${left-- > room ? ', no longer shown' : ''}`),
    );
  return [
    ...(instructions === undefined ? [] : [INSTRUCTIONS_MARK, instructions, '']),
    ...(before.length === 0 ? [] : [HISTORY_MARK, ...before.map(describe), '']),
    ...(instructions === undefined ? [] : [TYPED_MARK]),
    newest,
  ].join('\n');
}

/** Files of its history come with a first message as far as it takes them: the latest. */
function roomForFiles(supplied: Supplied): number {
  return Math.max(0, LIMITS.mediaPerMessage - sourcesIn(newestMedia(supplied)).length);
}

/** Of what the request adds to its history. */
export function newestMedia({ messages, answers, besideMedia = {} }: Supplied): Media {
  return answers === undefined ? (messages.at(-1)?.media ?? {}) : besideMedia;
}

/** Those of the history come first, in its order. */
export function firstMedia(supplied: Supplied): Media {
  const before = supplied.answers === undefined ? supplied.messages.slice(0, -1) : supplied.messages;
  const files = before.flatMap(({ media = {} }) => sourcesIn(media));
  const shown = files.slice(Math.max(0, files.length - roomForFiles(supplied)));
  return [...shown.map(({ kind, source }): Media => ({ [kind]: [source] })), newestMedia(supplied)].reduce(joinMedia, {});
}

function toLine({ role, text, joined: words, calls }: SuppliedMessage, files: readonly string[]): string {
  const made = calls?.map(({ name, arguments: given, answer }) => ({ name, arguments: given, ...(answer && { answer: answer.output }) }));
  const shown = files.length > 0 && { files };
  return JSON.stringify({ role, text: joinTexts([text, ...(words ?? [])]), ...shown, ...(made && { calls: made }) });
}

/**
 * (core/exactly-the-turns), of everything that is recorded of a conversation; `upTo`: up to the slot of the calls that the request answers.
 */
export function goesOnWith(entries: readonly Entry[], supplied: Supplied, upTo = Infinity): boolean {
  const { messages, answers } = supplied;
  const known = entries.filter(({ slot, message }) => slot <= upTo || message.role === 'tool');
  const last = known.findLast(({ slot, message }) => slot <= upTo && message.role !== 'tool')?.turn;
  const all = [...new Set(known.map(({ turn }) => turn))];
  const turns = upTo === Infinity || last === undefined ? all : all.slice(0, all.indexOf(last) + 1);
  if (turns.length === 0) return false;
  // Of the requests that may have begun it, the one that leaves as many turns as there are.
  const began = (answers === undefined ? messages.length - 1 : messages.length) - 2 * turns.length;
  return turns.every((turn, i) => {
    const at = began + 2 * i;
    const [question, answer] = [messages[at], messages[at + 1]];
    if (question?.role !== 'user' || answer === undefined) return false;
    const ofTurn = known.filter((entry) => entry.turn === turn);
    const first = i === 0 ? firstMessage(instructed(supplied, messages.slice(0, at + 1))) : question.text;
    const words = ofTurn.flatMap(({ message }) =>
      message.role === 'user' && isFromPerson(message) ? [withoutTextFiles(partSchema(shownText(message.text)).text)] : [],
    );
    const expected = joinTexts([first, ...(question.joined ?? [])]);
    return joinTexts(words) === expected && isAnswer(answer.text, ofTurn) && hasCalls(ofTurn, answer.calls ?? []);
  });
}

function instructed({ instructions }: Supplied, messages: readonly SuppliedMessage[]): Supplied {
  return { messages, ...(instructions !== undefined && { instructions }) };
}

/** The same calls, with the same answers; those that are not recorded yet are those that the request brings. */
function hasCalls(entries: readonly Entry[], supplied: readonly SuppliedCall[]): boolean {
  const results = resultsByCall(entries);
  const made = entries.flatMap((entry) => callsForClient(entry, results));
  return (
    made.length === supplied.length &&
    made.every(({ callId, name }, i) => {
      const call = supplied[i];
      const result = results.get(callId);
      if (call === undefined || call.name !== name || readCallId(call.id)?.callId !== callId) return false;
      return !result || (call.answer !== undefined && isSameAnswer(result, { id: call.id, ...call.answer }));
    })
  );
}

/** What a request asks for beside its words and files. */
export type Beside = Pick<Message, 'tools' | 'output' | 'stop' | 'echo'>;

/** Conversations that begin with the same words for the same user: of more, those that began last are looked through. */
const MAX_FAMILY = 32;

interface Stateless extends Asking {
  readonly supplied: Supplied;
  /** The value of `Idempotency-Key`: the same one is one message. */
  readonly key: string | undefined;
  /** The id of its message without one: another for each request, the same for one that is repeated. */
  readonly fresh: string;
  readonly beside: Beside;
  readonly signal: AbortSignal;
}

/** Finds the conversation by the request's history, or begins one. */
export async function submitSupplied(core: Conversations, stateless: Stateless): Promise<AnswerSource> {
  const { supplied, key, fresh, beside, signal, ...asking } = stateless;
  const family = toFamily(asking, supplied);
  const start = { agent: asking.agent };
  if (supplied.answers) {
    const goes = await answerWaiting(core, family, stateless);
    if (goes) return goes;
  }
  const id = key ?? fresh;
  const next = { ...beside, ...newestMedia(supplied), id, text: supplied.messages.at(-1)?.text ?? '' };
  if (supplied.messages.length > 1 && !supplied.answers) {
    for (const member of await listMembers(core, family)) {
      const entries = await readHistory(core, member);
      if (entries.some(({ messageId }) => messageId === id)) return fromSubmitted(await core.submit(member, next, { signal }));
      const latest = entries.at(-1)?.turn;
      if (latest === undefined || !goesOnWith(entries, supplied)) continue;
      const taken = await submitAfter(core, { conversation: member, turn: latest, message: next, signal });
      if (taken) return fromSubmitted(taken);
    }
  }
  const conversation = `${family}-${shortHash([supplied.answers && key === undefined ? firstMessage(supplied) : id])}`;
  const message = {
    ...{ ...beside, ...firstMedia(supplied), text: firstMessage(supplied) },
    id: supplied.answers && key === undefined ? shortHash([conversation]) : id,
  };
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
  const words = wordsBeside(conversation, { supplied, key, beside });
  const source = await answerClientCalls(core, { conversation, turn, answers, words, wishes: beside, signal });
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
  const words = wordsBeside(conversation, { supplied, key, beside });
  const source = await answerClientCalls(core, { conversation, turn: named.turn, answers, words, wishes: beside, signal });
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
  const { besideMedia = {} } = supplied;
  return { ...beside, ...besideMedia, id: key ?? shortHash([conversation, ...ids, supplied.beside]), text: supplied.beside };
}

/** Latest first. */
async function listMembers({ client, begunLately }: Conversations, family: string): Promise<readonly string[]> {
  const listed = await client.list({ limit: MAX_FAMILY, idPrefix: `${family}-` });
  return [...new Set([...begunLately(`${family}-`), ...listed.map(({ id }) => id)])].slice(0, MAX_FAMILY);
}

/** Nothing of one that has been deleted since it was listed. */
async function readHistory({ client }: Conversations, member: string): Promise<readonly Entry[]> {
  return client.history(member).catch((error: unknown) => {
    if (error instanceof ClientError && error.kind === 'not-found') return [];
    throw error;
  });
}

interface After {
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
