/**
 * A turn as the answer that protocols without turns have: texts of the model, and calls of tools that the client runs. Where a turn waits for
 * such calls an answer ends, and the next one, of the request that answers them, begins there: each is a segment of the turn.
 *
 * @rule core/never-a-wrong-text: A protocol whose text only grows is sent a beginning of the valid texts, joined. After a failed attempt it
 *   gets nothing until the next attempt has the same words up to there. If that uses other words, the stream ends with an error, never with a
 *   wrong text. (test: test/gateway/begun-anew.test.ts)
 * @rule core/data-alone: Where an answer has to fit a schema, its last text is the answer, alone. A text is sent only once it is certain
 *   to be that; words before tools, and what a correction has replaced, are beside it. (test: test/gateway/data-alone.test.ts)
 */
import type { Approval } from '../../conversation/protocol/human-input.js';
import { partSchema } from '../../conversation/protocol/message.js';
import type { TurnResult } from '../../records/feed-event.js';
import { answerText, isFromPerson, NO_USAGE, shownText, type Entry, type JsonObject, type Usage } from '../../records/message.js';
import { callTexts, type CallText } from '../../records/turn-view.js';
import { callsIn, pauseAfter, type ClientCall, type Pause } from './client-calls.js';
import type { Conversations } from './conversations.js';
import { GatewayError, type Problem } from './errors.js';
import type { TurnEventAt } from '../../client/turns/follow-turn.js';
import { turnStream, withLooks, type TurnDelta } from './turn-stream.js';

/** A text for each model call that spoke. */
export type AnswerSnapshot =
  /** Those that are valid now; `isOpen`: the last still grows, or may be taken back. Once live events were lost only the end is sure. */
  ({ readonly kind: 'partial'; readonly texts: readonly string[]; readonly isOpen: boolean } & Beside) | FinalAnswer;

interface Beside {
  /** Texts before those of the answer, which are no part of it (core/data-alone). */
  readonly asides?: readonly string[];
}

/** With `calls`, which the client is to run, or none; then the last text is the answer. */
export interface FinalAnswer extends Beside {
  readonly kind: 'final';
  readonly result: TurnResult;
  readonly texts: readonly string[];
  readonly calls: readonly ClientCall[];
  /** The stop text of the request before which it ends, where that is known. */
  readonly stoppedAt?: string;
}

export interface Segment {
  readonly conversation: string;
  /** null: the session was cleared. */
  readonly turn: string | null;
  /** The last of the calls that the client has answered before it; absent: it begins with the turn. */
  readonly after?: string | undefined;
  /** It may come to wait for the client. */
  readonly mayPause: boolean;
  /** The answer has to fit a schema; absent: the record shows whether. */
  readonly wantsData?: boolean | undefined;
  /** Its request has stop texts, and its protocol tells which of them ended it. */
  readonly tellsStop?: boolean | undefined;
}

type Core = Pick<Conversations, 'client'>;

/** The texts at the end come from the result and the store, even if the live events had others. `events`: the turn's from its beginning. */
export async function* answerSnapshots(
  core: Core,
  segment: Segment,
  events: AsyncGenerator<TurnEventAt, void>,
): AsyncGenerator<AnswerSnapshot, void> {
  /** Texts of the turn that come before the segment; undefined until it begins. */
  let before = segment.after === undefined ? 0 : undefined;
  let used: Usage = NO_USAGE;
  let isSure = true;
  let { wantsData } = segment;
  const look = async (): Promise<readonly FinalAnswer[]> => {
    const paused = segment.mayPause ? await findPause(core, segment) : undefined;
    return paused === undefined ? [] : [paused];
  };
  for await (const delta of withLooks<TurnDelta | FinalAnswer>(turnStream(events), look)) {
    if ('kind' in delta) return yield delta;
    const all = callTexts(delta.view);
    const texts = all.slice(before);
    const latest = delta.changes.at(-1);
    if (latest?.kind === 'finished') {
      const { result } = latest;
      const hasMore = texts.length > 1 || !isSure || result.toolCalls > 0 || segment.tellsStop === true;
      return yield await finalAnswer(core, segment, { ...result, usage: without(result.usage, used) }, hasMore);
    }
    if (before !== undefined && isSure) {
      // What a model says is recorded after the message that it answers.
      if (texts.length > 0) wantsData ??= schemaIn((await readSegment(core, segment)).entries) !== undefined;
      yield partial(texts, wantsData === true);
    }
    isSure = delta.view.hasGap !== true;
    const pause = latest?.kind === 'asked' ? latest.calls : undefined;
    if (pause === undefined) continue;
    if (before !== undefined)
      return yield await answerAtPause(core, segment, { slot: pause.askedIn, ids: pause.ids }, without(pause.usage, used));
    if (segment.after === undefined || !pause.ids.includes(segment.after)) continue;
    before = all.length;
    used = pause.usage;
  }
}

function partial(all: readonly CallText[], wantsData: boolean): AnswerSnapshot {
  const texts = all.map(({ text }) => text);
  const isOpen = all.at(-1)?.isOpen === true;
  if (!wantsData) return { kind: 'partial', texts, isOpen };
  return { kind: 'partial', texts: [], isOpen: false, asides: isOpen ? texts.slice(0, -1) : texts };
}

/** For a client that reads no stream; rejects with the signal's reason where nothing is waited for any more. */
export async function waitForAnswer(snapshots: AsyncIterable<AnswerSnapshot>, signal: AbortSignal): Promise<FinalAnswer> {
  for await (const snapshot of snapshots) if (snapshot.kind === 'final') return snapshot;
  throw signal.reason;
}

/** The answer of a segment that has ended. `hasMore`: the text of the result may not be all of the model's text in it. */
export async function finalAnswer(core: Core, segment: Segment, result: TurnResult, hasMore = true): Promise<FinalAnswer> {
  const alone = result.text === '' ? [] : [result.text];
  if (!hasMore || result.turnId === null) return { kind: 'final', result, texts: alone, calls: [] };
  const { entries, from } = await readSegment(core, segment);
  // The texts that the live events did not show, because they were lost.
  const pause = pauseAfter(entries, [], from);
  if (pause) return answerAtPause(core, segment, pause, result.usage);
  const recorded = textsIn(entries.filter(({ slot }) => slot > from));
  const texts = recorded.length === 0 ? alone : recorded;
  const last = entries.at(-1)?.message;
  const stop = last?.role === 'assistant' && last.stoppedAt !== undefined && { stoppedAt: last.stoppedAt };
  if (schemaIn(entries) === undefined) return { kind: 'final', result, texts, calls: [], ...stop };
  return { kind: 'final', result, texts: texts.slice(-1), asides: texts.slice(0, -1), calls: [], ...stop };
}

/** Undefined where it waits for nothing that the client runs. */
export async function findPause(core: Core, segment: Segment): Promise<FinalAnswer | undefined> {
  const waiting = await core.client.approvals(segment.conversation).catch((): Approval[] => []);
  const open = waiting.filter(({ turnId, conversation }) => turnId === segment.turn && conversation === segment.conversation);
  const { entries, from } = await readSegment(core, segment);
  const pause = pauseAfter(entries, open, from);
  return pause && answerAtPause(core, segment, pause, NO_USAGE);
}

async function answerAtPause(core: Core, segment: Segment, { slot, ids }: Pause, usage: Usage): Promise<FinalAnswer> {
  const { entries, from } = await readSegment(core, segment);
  const texts = textsIn(entries.filter((entry) => entry.slot > from && entry.slot <= slot));
  const calls = entries
    .filter((entry) => entry.slot === slot)
    .flatMap((entry) => callsIn(entry).filter(({ callId }) => ids.includes(callId)));
  const result: TurnResult = { turnId: segment.turn, text: texts.at(-1) ?? '', stopReason: 'end', usage, toolCalls: calls.length };
  if (schemaIn(entries) === undefined) return { kind: 'final', result, texts, calls };
  return { kind: 'final', result, texts: [], asides: texts, calls };
}

/** The entries of its turn, and the slot after which it begins. */
async function readSegment(
  { client }: Core,
  { conversation, turn, after }: Segment,
): Promise<{ readonly entries: readonly Entry[]; readonly from: number }> {
  const entries = (await client.history(conversation)).filter((entry) => entry.turn === turn);
  const from = entries.find((entry) => callsIn(entry).some(({ callId }) => callId === after))?.slot ?? 0;
  return { entries, from };
}

export function textsIn(entries: readonly Entry[]): readonly string[] {
  return entries.flatMap(({ message }) => {
    const text = answerText(message);
    return text === '' ? [] : [text];
  });
}

/** The schema that the answer to one of these messages has to fit. */
export function schemaIn(entries: readonly Entry[]): JsonObject | undefined {
  for (const { message } of entries) {
    const output = isFromPerson(message) ? partSchema(shownText(message.text)).output : undefined;
    if (output !== undefined) return output;
  }
  return undefined;
}

/** Whether a client may have these words for the answer of a turn. */
export function isAnswer(words: string, entries: readonly Entry[]): boolean {
  if (joinTexts(textsIn(entries)).trim() === words.trim()) return true;
  if (schemaIn(entries) === undefined) return false;
  const last = entries.findLast(({ message }) => message.role === 'assistant');
  const isOver = last?.message.role === 'assistant' && last.message.blocks.every(({ kind }) => kind !== 'tool-call');
  return words.trim() === (isOver ? answerText(last.message).trim() : '');
}

/** Why there is less than an answer, in the terms of no protocol; undefined where it is whole. */
export function shortfall({
  stopReason,
  error,
}: Pick<TurnResult, 'stopReason' | 'error'>): 'length' | 'refusal' | 'failure' | 'stop' | undefined {
  switch (stopReason) {
    case 'end':
      return error?.type === 'max-tokens' ? 'length' : undefined;
    case 'tool-limit':
    case 'budget':
      return 'length';
    case 'refused':
      return 'refusal';
    case 'failed':
      return 'failure';
    case 'interrupted':
    case 'withdrawn':
      return 'stop';
    case 'continues':
    case 'queued':
    case 'reset':
      return undefined;
  }
}

const FAILED_STATUS: Readonly<Record<string, Problem['status']>> = { 'unknown-agent': 404, 'rate-limit': 429, overloaded: 503 };

/**
 * A failed turn, for protocols that answer it with an error: throws where it has failed. Where a limit ended it there is an answer, and the
 * protocol has a reason for that.
 */
export function refuseFailed(conversation: string, { result, texts, asides = [] }: FinalAnswer): void {
  if (result.stopReason !== 'failed') return;
  const { type, message } = result.error ?? { type: 'failed', message: 'the turn failed' };
  const text = joinTexts([...asides, ...texts]);
  const where = text === '' ? '' : '; the words before it are in "perdura" of this error, and the next message goes on from there';
  const failed = { conversation, turn: result.turnId, text };
  throw new GatewayError({ status: FAILED_STATUS[type] ?? 500, type, message: `${message}${where}`, failed });
}

/** As protocols have it whose answer is one text. */
export function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join('\n\n');
}

function without(usage: Usage, used: Usage): Usage {
  const { inputTokens, cachedTokens, outputTokens, cacheWriteTokens = 0, reasoningTokens = 0, costUsd } = usage;
  const written = cacheWriteTokens - (used.cacheWriteTokens ?? 0);
  const thought = reasoningTokens - (used.reasoningTokens ?? 0);
  return {
    inputTokens: Math.max(0, inputTokens - used.inputTokens),
    cachedTokens: Math.max(0, cachedTokens - used.cachedTokens),
    outputTokens: Math.max(0, outputTokens - used.outputTokens),
    ...(written > 0 && { cacheWriteTokens: written }),
    ...(thought > 0 && { reasoningTokens: thought }),
    costUsd: costUsd === null || used.costUsd === null ? null : Math.max(0, costUsd - used.costUsd),
  };
}

/** The text that each snapshot adds to one text that only grows; throws if the text sent before is wrong (core/never-a-wrong-text). */
export function createTextDeltas(): (snapshot: AnswerSnapshot) => string {
  let sent = '';
  return (snapshot) => {
    const standing = joinTexts(snapshot.texts);
    if (standing.startsWith(sent)) {
      const delta = standing.slice(sent.length);
      sent = standing;
      return delta;
    }
    // A text that was stopped half way may be recorded without its end.
    const isWhole = snapshot.kind === 'final' && snapshot.result.stopReason === 'end' && snapshot.result.error === undefined;
    if (sent.startsWith(standing) && (!isWhole || sent.slice(standing.length).trim() === '')) return '';
    throw new GatewayError({
      status: 503,
      type: 'answer-restarted',
      message:
        'the model failed half way and began its answer anew, in other words, which this protocol cannot show: the turn goes on, and the ' +
        'same request with the same Idempotency-Key answers with it',
    });
  };
}
