/**
 * A turn for protocols whose clients answer waiting calls with another request. They send it once the stream has ended, so the stream ends
 * where the turn waits only for a person or for the client itself; a client that answers has the turn up to there.
 */
import type { PerduraClient } from '../../client.js';
import { orSilence } from '../../platform/promises.js';
import type { TurnEvent } from '../../records/feed-event.js';
import { OLDEST } from '../../stores/feed-cursor.js';
import type { Conversations } from './conversations.js';
import type { Submitted } from '../../client/turns/stream.js';
import type { TurnEventAt } from '../../client/turns/follow-turn.js';
import { turnStream, withLooks, type Change } from './turn-stream.js';
import { type Entry, type JsonValue, shownText } from '../../records/message.js';
import { cut } from '../../records/text.js';

/** Several calls of one step begin to wait one after the other: for so long a stream waits for the next of them before it ends. */
const PAUSE_MS = 300;

export interface TurnSource {
  readonly id: string;
  readonly turn: string | null;
  readonly follow: (signal: AbortSignal) => AsyncGenerator<TurnEventAt, void>;
  /** The feed's newest cursor when the reader came; absent for one that is there from the beginning. */
  readonly edge?: string;
}

export type WaitingCall = Extract<Change, { readonly kind: 'asked' }>;

/** A call that the client has answered. One that a person had to allow may wait once more, then for the client that runs it. */
export interface AnsweredCall {
  readonly callId: string;
  readonly isApproval: boolean;
}

type InteractiveChange =
  /** `isKnown`: the client has it. */
  | { readonly kind: 'change'; readonly change: Change; readonly isKnown: boolean }
  /** The last: nothing goes on until these are answered. */
  | { readonly kind: 'pause'; readonly waiting: readonly WaitingCall[] };

export interface Reader {
  readonly gone: AbortSignal;
  /** Calls that the client has just answered. */
  readonly answered?: readonly AnsweredCall[];
  /** The client has the turn up to where these calls began to wait; default: those that it has answered. */
  readonly known?: readonly AnsweredCall[];
}

export async function* interactiveTurn(
  { client }: Pick<Conversations, 'client'>,
  { id, turn, follow, edge }: TurnSource,
  { gone, answered = [], known = answered }: Reader,
): AsyncGenerator<InteractiveChange, void> {
  const waiting = createWaitingCalls(answered);
  const isKnown = createKnownUpTo(known);
  const calls = createToolCalls(client, id, turn ?? '');
  const seen = new Set<string>();
  const left = new AbortController();
  const events = withLooks(follow(AbortSignal.any([gone, left.signal])), () => missedWaits(client, { id, turn }, seen));
  try {
    for await (const delta of orSilence(turnStream(events, edge), () => (waiting.all().length > 0 ? PAUSE_MS : undefined))) {
      if (delta === undefined) return yield { kind: 'pause', waiting: waiting.all() };
      for (const each of delta.changes) {
        if (each.kind === 'asked') seen.add(waitKey(each.callId, each.what));
        for (const change of await calls.expand(each)) {
          waiting.take(change);
          yield { kind: 'change', change, isKnown: isKnown(change) };
        }
      }
    }
  } finally {
    left.abort();
  }
}

/** The calls that now wait in the conversation, without those that the live events have shown. */
async function missedWaits(
  client: PerduraClient,
  { id, turn }: Pick<TurnSource, 'id' | 'turn'>,
  seen: ReadonlySet<string>,
): Promise<readonly TurnEventAt[]> {
  const waiting = await client.approvals(id).catch(() => []);
  return waiting.flatMap(({ callId, conversation, turnId, kind, tool, target, expiresAt }): TurnEventAt[] => {
    if (conversation !== id || turnId !== turn || seen.has(waitKey(callId, kind))) return [];
    const event: TurnEvent = { kind: 'asked', turn: turnId, callId, name: tool, what: kind, target, until: expiresAt };
    return [{ cursor: null, event }];
  });
}

function waitKey(callId: string, what: WaitingCall['what']): string {
  return `${callId} ${what}`;
}

/** The turn of a submitted message, from its beginning. */
export async function openSubmitted(core: Conversations, submitted: Submitted): Promise<TurnSource> {
  const { conversation: id, turn, acceptedAs, after } = submitted;
  const edge = acceptedAs === 'duplicate' ? await core.client.newestCursor(id) : after;
  return { id, turn, follow: (signal) => core.answer(submitted, signal), edge };
}

/** A turn that began before. */
export async function openTurn(core: Conversations, id: string, turn: string): Promise<TurnSource> {
  const edge = await core.client.newestCursor(id);
  return { id, turn, follow: (signal) => core.attach({ id, turn, after: OLDEST, signal }), edge };
}

interface WaitingCalls {
  take(change: Change): void;
  /** Those that wait, while nothing else goes on; otherwise empty. */
  all(): readonly WaitingCall[];
}

/** `answered`: calls that the client has just answered. They no longer wait, even if the live events still show them. */
export function createWaitingCalls(answered: readonly AnsweredCall[] = []): WaitingCalls {
  const justAnswered = new Set(answered.map(answerKey));
  const running = new Set<string>();
  const waiting = new Map<string, WaitingCall>();
  return {
    take(change) {
      switch (change.kind) {
        case 'asked':
          if (!justAnswered.delete(answerKey(toAnswer(change)))) waiting.set(change.callId, change);
          return;
        case 'tool-started':
          running.add(change.callId);
          waiting.delete(change.callId);
          return;
        case 'tool-finished':
          running.delete(change.callId);
          waiting.delete(change.callId);
          return;
        case 'decided':
          waiting.delete(change.callId);
          return;
        default:
      }
    },
    all: () => (running.size === 0 ? [...waiting.values()] : []),
  };
}

/**
 * True up to where the last of these calls began to wait: a client that answers them has everything before. Where the feed no longer has
 * that event, the next event of the call ends it.
 */
function createKnownUpTo(answered: readonly AnsweredCall[]): (change: Change) => boolean {
  const open = new Map(answered.map((one) => [answerKey(one), one.callId]));
  let isOver = open.size === 0;
  return (change) => {
    if (isOver) return false;
    if (change.kind === 'asked' && open.delete(answerKey(toAnswer(change)))) {
      isOver = open.size === 0;
      return true;
    }
    // An approval is no sign of what its client answers then.
    const isSign =
      (change.kind === 'tool-started' || change.kind === 'tool-finished' || (change.kind === 'decided' && change.decision !== 'approve')) &&
      [...open.values()].includes(change.callId);
    isOver = isSign || change.kind === 'finished';
    return !isOver;
  };
}

function toAnswer({ callId, what }: WaitingCall): AnsweredCall {
  return { callId, isApproval: what === 'approval' };
}

function answerKey({ callId, isApproval }: AnsweredCall): string {
  return `${callId} ${isApproval}`;
}

/** The feed cuts at 200, and drops half a surrogate pair there. */
const MAX_WHOLE = 198;
/** Characters of a result that a client gets. */
const MAX_RESULT = 100_000;

interface ToolCalls {
  /** Never throws: what the store does not have stays as the feed has it. */
  expand(change: Change): Promise<readonly Change[]>;
}

/**
 * Tool calls with their inputs and results in full: the feed has the beginnings, and the store the rest. The entry of a
 * call is in the store before the call shows in the feed, and so is that of its result.
 */
export function createToolCalls(client: Pick<PerduraClient, 'history'>, id: string, turn: string): ToolCalls {
  const shown = new Set<string>();
  /** Slots up to it are of earlier turns. */
  let before = 0;

  const readTurn = async (): Promise<readonly Entry[]> => {
    const entries = await client.history(id, { after: before }).catch(() => []);
    const first = entries.find((entry) => entry.turn === turn);
    if (first) before = Math.max(before, first.slot - 1);
    return entries.filter((entry) => entry.turn === turn);
  };

  const wholeInput = async (callId: string, beginning: string | undefined): Promise<JsonValue> => {
    const whole = beginning !== undefined && beginning.length <= MAX_WHOLE ? parsed(beginning) : undefined;
    return whole ?? inputIn(await readTurn(), callId) ?? beginning ?? {};
  };

  const called = async (callId: string, name: string, beginning?: string): Promise<readonly Change[]> => {
    if (shown.has(callId)) return [];
    shown.add(callId);
    return [{ kind: 'tool-called', callId, name, input: await wholeInput(callId, beginning) }];
  };

  return {
    async expand(change) {
      if (change.kind === 'tool-started') return [...(await called(change.callId, change.name, change.input)), change];
      if (change.kind === 'asked') return [...(await called(change.callId, change.name)), change];
      if (change.kind !== 'tool-finished') return [change];
      const isWhole = change.preview.length <= MAX_WHOLE;
      const text = isWhole ? change.preview : (resultIn(await readTurn(), change.callId) ?? change.preview);
      return [...(await called(change.callId, change.name)), { ...change, preview: cut(text, MAX_RESULT) }];
    },
  };
}

function inputIn(entries: readonly Entry[], callId: string): JsonValue | undefined {
  for (const { message } of entries) {
    if (message.role !== 'assistant') continue;
    for (const block of message.blocks) if (block.kind === 'tool-call' && block.callId === callId) return block.input;
  }
  return undefined;
}

function resultIn(entries: readonly Entry[], callId: string): string | undefined {
  const found = entries.findLast(({ message }) => message.role === 'tool' && message.callId === callId);
  return found?.message.role === 'tool' ? shownText(found.message.text) : undefined;
}

function parsed(json: string): JsonValue | undefined {
  try {
    return JSON.parse(json) as JsonValue;
  } catch {
    return undefined;
  }
}
