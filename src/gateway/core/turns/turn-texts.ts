/**
 * A turn as texts of the model: what stands of it while it streams, and what it was when it has ended. Where a turn waits for tools that the
 * client runs, what protocols call an answer ends there, and the next one begins after these calls.
 */
import type { Approval } from '../../../conversation/protocol/human-input.js';
import type { TurnResult } from '../../../records/feed-event.js';
import { answerText, NO_USAGE, type Entry, type Usage } from '../../../records/message.js';
import { callTexts } from '../../../records/turn-view.js';
import { callsIn, pauseAfter, type ClientCall, type Pause } from '../calls/client-calls.js';
import type { Conversations } from '../conversations.js';
import { answerStream } from './answer-stream.js';
import type { Followed } from './follow-turn.js';
import { orSilence } from '../../../platform/promises.js';

export type TurnPiece =
  /** Those that stand now; `isOpen`: the last is still spoken, or may be taken back. Once live events were lost only the end is sure. */
  | { readonly kind: 'live'; readonly texts: readonly string[]; readonly isOpen: boolean }
  /** The last: each text that the model said in it, in order, and calls that the client is to run, or none; then the last text is the answer. */
  | { readonly kind: 'whole'; readonly result: TurnResult; readonly texts: readonly string[]; readonly calls: readonly ClientCall[] };

export type Whole = Extract<TurnPiece, { readonly kind: 'whole' }>;

/** A part of a turn. */
export interface Part {
  readonly conversation: string;
  /** null: the session was cleared. */
  readonly turn: string | null;
  /** The last of the calls that the client has answered before it; absent: it begins with the turn. */
  readonly after?: string | undefined;
  /** It may come to wait for the client. */
  readonly mayPause: boolean;
}

/** A feed that is silent for so long may have lost that the turn waits; asked less and less often. */
const FIRST_LOOK_MS = 3_000;
const LAST_LOOK_MS = 30_000;

/** The texts at the end come from the result and the store, whatever the live events had. `followed`: the turn's events from its beginning. */
export async function* turnPieces(core: Conversations, part: Part, followed: AsyncGenerator<Followed, void>): AsyncGenerator<TurnPiece> {
  /** Texts of the turn that come before the part; undefined until it begins. */
  let before = part.after === undefined ? 0 : undefined;
  let used: Usage = NO_USAGE;
  let wait = FIRST_LOOK_MS;
  let isSure = true;
  for await (const batch of orSilence(answerStream(followed), () => (part.mayPause ? wait : undefined))) {
    if (batch === undefined) {
      wait = Math.min(LAST_LOOK_MS, 2 * wait);
      const paused = await lookForPause(core, part);
      if (paused === undefined) continue;
      yield paused;
      return;
    }
    const all = callTexts(batch.view);
    const texts = all.slice(before);
    const latest = batch.events.at(-1);
    if (latest?.kind === 'finished') {
      const { result } = latest;
      yield await wholeAtEnd(core, part, { ...result, usage: without(result.usage, used) }, texts.length > 1 || !isSure);
      return;
    }
    const pause = latest?.kind === 'asked' ? latest.calls : undefined;
    if (before !== undefined && isSure) yield { kind: 'live', texts: texts.map(({ text }) => text), isOpen: texts.at(-1)?.isOpen === true };
    isSure = batch.view.hasGap !== true;
    if (pause === undefined) continue;
    if (before !== undefined) {
      yield await wholeAtPause(core, part, { slot: pause.askedIn, ids: pause.ids }, without(pause.usage, used));
      return;
    }
    if (part.after === undefined || !pause.ids.includes(part.after)) continue;
    before = all.length;
    used = pause.usage;
  }
}

/** The same of a part that has ended. */
export async function wholeAtEnd(
  core: Pick<Conversations, 'client'>,
  part: Part,
  result: TurnResult,
  isLonger = result.toolCalls > 0,
): Promise<Whole> {
  const alone = result.text === '' ? [] : [result.text];
  const whole = { kind: 'whole', result, calls: [] } as const;
  if ((!isLonger && result.toolCalls === 0) || result.turnId === null) return { ...whole, texts: alone };
  const { entries, from } = await entriesOf(core, part);
  // What the live events did not show, because they were lost.
  const pause = pauseAfter(entries, [], from);
  if (pause) return wholeAtPause(core, part, pause, result.usage);
  const texts = textsOf(entries.filter(({ slot }) => slot > from));
  return { ...whole, texts: texts.length === 0 ? alone : texts };
}

/** Undefined where it waits for nothing that the client runs. */
export async function lookForPause(core: Pick<Conversations, 'client'>, part: Part): Promise<Whole | undefined> {
  const waiting = await core.client.approvals(part.conversation).catch((): Approval[] => []);
  const own = waiting.filter(({ turnId, conversation }) => turnId === part.turn && conversation === part.conversation);
  const { entries, from } = await entriesOf(core, part);
  const pause = pauseAfter(entries, own, from);
  return pause && wholeAtPause(core, part, pause, NO_USAGE);
}

async function wholeAtPause(core: Pick<Conversations, 'client'>, part: Part, { slot, ids }: Pause, usage: Usage): Promise<Whole> {
  const { entries, from } = await entriesOf(core, part);
  const texts = textsOf(entries.filter((entry) => entry.slot > from && entry.slot <= slot));
  const calls = entries
    .filter((entry) => entry.slot === slot)
    .flatMap((entry) => callsIn(entry).filter(({ callId }) => ids.includes(callId)));
  const result: TurnResult = { turnId: part.turn, text: texts.at(-1) ?? '', stopReason: 'end', usage, toolCalls: calls.length };
  return { kind: 'whole', result, texts, calls };
}

/** Those of the turn, and the slot after which the part begins. */
async function entriesOf(
  { client }: Pick<Conversations, 'client'>,
  { conversation, turn, after }: Part,
): Promise<{ readonly entries: readonly Entry[]; readonly from: number }> {
  const entries = (await client.history(conversation)).filter((entry) => entry.turn === turn);
  const from = entries.find((entry) => callsIn(entry).some(({ callId }) => callId === after))?.slot ?? 0;
  return { entries, from };
}

export function textsOf(entries: readonly Entry[]): readonly string[] {
  return entries.flatMap(({ message }) => {
    const text = answerText(message);
    return text === '' ? [] : [text];
  });
}

/** As protocols have it whose answer is one text. */
export function joined(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join('\n\n');
}

function without(usage: Usage, used: Usage): Usage {
  const { inputTokens, cachedTokens, outputTokens, costUsd } = usage;
  return {
    inputTokens: Math.max(0, inputTokens - used.inputTokens),
    cachedTokens: Math.max(0, cachedTokens - used.cachedTokens),
    outputTokens: Math.max(0, outputTokens - used.outputTokens),
    costUsd: costUsd === null || used.costUsd === null ? null : Math.max(0, costUsd - used.costUsd),
  };
}
