/**
 * One conversation that is looked at: what is recorded of it, what happens in it now, what was sent to it, and what it waits for.
 * Recorded turns are read from the end; live events begin with the turn that runs, so that a reload misses no word.
 */
import { batch, computed, signal, type ReadonlySignal, type Signal } from '@preact/signals';
import type { EventInTurn } from '../../../src/records/feed-event.js';
import { turnId, turnNumber } from '../../../src/records/identity.js';
import type { CallPart, TurnPart } from '../../../src/records/turn-view.js';
import { follow, type LiveEvent } from '../api/connection.js';
import { request, RequestError, type Schema } from '../api/request.js';
import { refreshList } from '../conversations.js';
import { whileVisible } from '../ui/while-visible.js';
import { refreshWaiting, type Waiting } from '../waiting.js';
import { createOutbox, takeFirst, type Outbox } from './outbox.js';
import { emptyTurn, toTurns, withEvent, type Entry, type Turn, type TurnEnd, type Words } from './turns.js';

export type Conversation = Schema<'Conversation'>;
export type Branch = Schema<'Branch'>;

export interface Opened {
  readonly id: string;
  /** `missing`: there is none of that id. */
  readonly state: Signal<'loading' | 'there' | 'missing' | 'failed'>;
  readonly error: Signal<unknown>;
  readonly about: Signal<Conversation | undefined>;
  readonly turns: ReadonlySignal<readonly Turn[]>;
  readonly running: ReadonlySignal<Turn | undefined>;
  readonly approvals: Signal<readonly Waiting[]>;
  readonly branches: Signal<readonly Branch[]>;
  readonly outbox: Outbox;
  /** No worker answers for it, though something of it waits for one. */
  readonly isAway: ReadonlySignal<boolean>;
  /** Turns before those at hand; a promise while they are read. */
  readonly hasEarlier: ReadonlySignal<boolean>;
  readEarlier(): Promise<void>;
  refresh(): Promise<void>;
  /** For what takes turns back: what is recorded is read anew as soon as that is done, and again at the end of the answer. */
  again(change: () => Promise<unknown>): Promise<void>;
  refreshApprovals(): Promise<void>;
  close(): void;
}

/** How many turns have ended says nothing of a fork, which begins with those of another. */
const IN_A_TURN: ReadonlySet<string> = new Set(['thinking', 'running-tools', 'waiting-for-person', 'waiting-to-retry', 'stepping']);
const PAGE = 160;
const DRAW_MS = 60;
const LOOK_MS = 15_000;
const SILENT_MS = 2_000;
const SETTLE_MS = 700;
const SETTLE_TRIES = 5;
const ASK_AGAIN_MS = 800;

export function openConversation(id: string): Opened {
  const state = signal<'loading' | 'there' | 'missing' | 'failed'>('loading');
  const error = signal<unknown>(undefined);
  const about = signal<Conversation | undefined>(undefined);
  const recorded = signal<readonly Entry[]>([]);
  const ends = signal<readonly TurnEnd[]>([]);
  const previous = signal<number | null>(null);
  const live = signal<ReadonlyMap<string, Turn>>(new Map());
  const approvals = signal<readonly Waiting[]>([]);
  const branches = signal<readonly Branch[]>([]);
  const ended = new Map<string, Turn>();
  /** Words that this page has sent: an event has only their beginning. */
  const sentWords = new Map<string, Words>();
  const leaving = new AbortController();
  let unfollow: () => void = () => undefined;

  const isAway = signal(false);
  let heardAt = Date.now();
  const outbox = createOutbox(id, { onReset: () => void refresh(), onSent: () => void onSent() });
  const recordedTurns = computed(() => toTurns(recorded.value, ends.value));
  const turns = computed<readonly Turn[]>(() => {
    const going = live.value;
    const now = runningNow(about.value);
    const known = recordedTurns.value.map((turn) => {
      const one = going.get(turn.id) ?? withEnd(turn, ended.get(turn.id));
      // Its live events have not come yet.
      return turn.id === now && !going.has(turn.id) && !ended.has(turn.id) ? { ...one, isRunning: true } : one;
    });
    const ids = new Set(known.map((turn) => turn.id));
    const fresh = [...going.values()].filter((turn) => !ids.has(turn.id));
    return [...known, ...fresh].sort((a, b) => turnNumber(a.id) - turnNumber(b.id));
  });
  const running = computed(() => turns.value.findLast((turn) => turn.isRunning));

  const readTail = async (): Promise<void> => {
    const read = await request('get', '/v1/conversations/{id}/entries', { path: { id }, query: { last: PAGE }, signal: leaving.signal });
    const { entries } = read;
    const first = entries[0]?.slot ?? 0;
    // What a rewind has cut is no longer in it: the tail is taken as it is.
    const before = recorded.value.filter(({ slot }) => slot < first);
    batch(() => {
      if (before.length === 0) previous.value = read.previous;
      recorded.value = [...before, ...entries];
      ends.value = [...ends.value.filter(({ turn }) => before.some((entry) => entry.turn === turn)), ...read.ends];
      for (const turn of recordedTurns.value) for (const words of turn.messages) if (words.id !== undefined) outbox.taken(words.id);
    });
  };

  const readAbout = async (): Promise<void> => {
    about.value = await request('get', '/v1/conversations/{id}', { path: { id }, signal: leaving.signal });
  };

  const readBranches = async (): Promise<void> => {
    const read = await request('get', '/v1/conversations/{id}/branches', { path: { id }, signal: leaving.signal });
    branches.value = read.branches;
  };

  let again: number | undefined;
  const refreshApprovals = async (): Promise<void> => {
    const read = await request('get', '/v1/conversations/{id}/approvals', { path: { id }, signal: leaving.signal }).catch(() => undefined);
    if (leaving.signal.aborted) return;
    if (read !== undefined) approvals.value = read.approvals;
    void refreshWaiting();
    // The event may come before its conversation answers.
    const known = new Set(approvals.value.map(({ callId }) => callId));
    const isMissing = running.value?.parts.some((part) => part.kind === 'call' && part.state === 'waiting' && !known.has(part.callId));
    clearTimeout(again);
    if (isMissing === true) again = setTimeout(() => void refreshApprovals(), ASK_AGAIN_MS);
  };

  const refresh = async (): Promise<void> => {
    try {
      // In this order: what its status does not say of a turn, because that came later, is recorded by then or comes as an event.
      await readAbout();
      await readTail();
      batch(() => {
        state.value = 'there';
        error.value = undefined;
      });
      void readBranches().catch(() => undefined);
      if ((about.value?.status?.pendingApprovals ?? 0) > 0 || approvals.value.length > 0) void refreshApprovals();
    } catch (problem) {
      if (leaving.signal.aborted) return;
      if (state.value === 'there') return;
      state.value = problem instanceof RequestError && problem.status === 404 ? 'missing' : 'failed';
      error.value = problem;
    }
  };

  const listen = (): void => {
    unfollow();
    const status = about.value?.status;
    const last = recordedTurns.value.at(-1);
    const number = status?.turn ?? turnNumber(last?.id ?? 'turn_0001');
    // Its last answer may be in the store a moment later than its end is known.
    const isWhole =
      status?.phase === 'idle' && (number === 0 || (turnNumber(last?.id ?? '') === number && last?.parts.at(-1)?.kind === 'text'));
    unfollow = follow(id, turnId(Math.max(1, number + (isWhole ? 1 : 0))), onEvent);
  };

  const begin = async (): Promise<void> => {
    const first = takeFirst(id);
    if (first !== undefined) {
      state.value = 'missing';
      outbox.send(first);
      return;
    }
    await refresh();
    if (state.value === 'there' && !leaving.signal.aborted) listen();
  };

  /** The first message of a conversation begins it. */
  const onSent = async (): Promise<void> => {
    if (state.value !== 'there') await begin();
    void refreshList();
  };

  // Many events come in one piece: they are drawn together.
  let pending: EventInTurn[] = [];
  let timer: number | undefined;
  const onEvent = (event: LiveEvent): void => {
    heardAt = Date.now();
    isAway.value = false;
    if (event.kind === 'resync' || event.kind === 'session') {
      void refresh();
      return;
    }
    pending.push(event);
    if (event.kind === 'turn-finished' || event.kind === 'message' || event.kind === 'asked') draw();
    else timer ??= setTimeout(draw, DRAW_MS);
  };
  const draw = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const events = pending;
    pending = [];
    const next = new Map(live.value);
    let hasBegun = false;
    for (const event of events) {
      const known = next.get(event.turn);
      if (known === undefined && event.kind !== 'turn-finished') {
        hasBegun = true;
        next.set(event.turn, withSentWords(withEvent(readBeginning(event), event)));
      } else if (known !== undefined) next.set(event.turn, withSentWords(withEvent(known, event)));
    }
    batch(() => {
      for (const event of events) if (event.kind === 'message') noteTaken(event.messageId);
      live.value = new Map([...next].map(([turn, one]) => [turn, withSentWords(one)]));
    });
    if (hasBegun) void refresh();
    if (events.some(({ kind }) => kind === 'asked' || kind === 'decided')) void refreshApprovals();
    const finished = events.filter(({ kind }) => kind === 'turn-finished').map(({ turn }) => turn);
    if (finished.length > 0) void settle(finished);
  };

  const noteTaken = (messageId: string): void => {
    const sent = outbox.taken(messageId);
    if (sent !== undefined)
      sentWords.set(messageId, { id: messageId, text: sent.text, images: sent.images, documents: sent.documents ?? [], others: 0 });
  };

  const withSentWords = (turn: Turn): Turn => ({ ...turn, messages: turn.messages.map((words) => findWords(words.id) ?? words) });

  const findWords = (messageId: string | undefined): Words | undefined => {
    if (messageId === undefined) return undefined;
    const found = recordedTurns.value.findLast(({ messages }) => messages.some((words) => words.id === messageId));
    return found?.messages.find((words) => words.id === messageId) ?? sentWords.get(messageId);
  };

  /** Its beginning was lost if the first event is another one than its message (web/running-turn-from-events). */
  const readBeginning = (event: EventInTurn): Turn => {
    const known = recordedTurns.value.find((turn) => turn.id === event.turn);
    const at = event.kind === 'message' ? event.ts * 1000 : (known?.at ?? Date.now());
    if (event.kind === 'message' || known === undefined) return emptyTurn(event.turn, at);
    return { ...known, isRunning: true };
  };

  /** What is recorded of them takes the place of what was live, once it is whole: the store may have the answer a moment later. */
  const settle = async (ids: readonly string[], tries = SETTLE_TRIES): Promise<void> => {
    for (const turn of ids) {
      const one = live.value.get(turn);
      if (one !== undefined) ended.set(turn, one);
    }
    await refresh();
    if (leaving.signal.aborted) return;
    const sizes = new Map(recordedTurns.value.map(({ id: turn, parts }) => [turn, textsIn(parts)]));
    const isWhole = ([turn, { parts }]: readonly [string, Turn]): boolean => (sizes.get(turn) ?? -1) >= textsIn(parts);
    live.value = new Map([...live.value].filter((one) => one[1].isRunning || !isWhole(one)));
    const late = ids.filter((turn) => live.value.has(turn));
    if (late.length > 0 && tries > 0) setTimeout(() => void settle(late, tries - 1), SETTLE_MS);
    else void refreshList();
  };

  let earlier: Promise<void> | undefined;
  void begin();
  const isWaiting = (): boolean => running.value !== undefined || outbox.all.value.some((one) => one.state === 'sending');
  const stopAsking = whileVisible(async () => {
    const isSilent = isWaiting() && Date.now() - heardAt > SILENT_MS;
    // One who waits for a person, or for a time, is silent too: its worker answers.
    if (isSilent) await readAbout().catch(() => undefined);
    isAway.value = isSilent && about.value !== undefined && about.value.state === 'running' && about.value.status === null;
  }, SILENT_MS);
  // Where live events are lost for good, what is recorded still says how it goes on.
  const stopLooking = whileVisible(() => (running.value === undefined ? Promise.resolve() : refresh()), LOOK_MS);
  return {
    id,
    state,
    error,
    about,
    turns,
    running,
    approvals,
    branches,
    outbox,
    isAway,
    hasEarlier: computed(() => previous.value !== null),
    readEarlier() {
      const before = previous.value;
      if (before === null) return Promise.resolve();
      earlier ??= request('get', '/v1/conversations/{id}/entries', {
        path: { id },
        query: { last: PAGE * 2, before },
        signal: leaving.signal,
      })
        .then((read) =>
          batch(() => {
            previous.value = read.previous;
            recorded.value = [...read.entries, ...recorded.value];
            ends.value = [...read.ends, ...ends.value];
          }),
        )
        .catch(() => undefined)
        .finally(() => (earlier = undefined));
      return earlier;
    },
    refresh,
    async again(change) {
      const before = turns.value;
      try {
        await change();
      } finally {
        if (turns.value !== before || !leaving.signal.aborted) {
          recorded.value = [];
          await refresh();
        }
      }
    },
    refreshApprovals,
    close() {
      leaving.abort();
      clearTimeout(timer);
      clearTimeout(again);
      stopLooking();
      stopAsking();
      unfollow();
      outbox.close();
    },
  };
}

/** The turn that runs, as far as its status says. */
function runningNow(about: Conversation | undefined): string | undefined {
  const status = about?.status;
  return status !== undefined && status !== null && IN_A_TURN.has(status.phase) ? turnId(status.turn) : undefined;
}

/** What only its live events have said: how it ended, how long its tools took. */
function withEnd(turn: Turn, end: Turn | undefined): Turn {
  if (end === undefined) return turn;
  const calls = new Map(end.parts.flatMap((part) => (part.kind === 'call' ? [[part.callId, part] as const] : [])));
  const parts = turn.parts.map((part) => (part.kind === 'call' ? withTimes(part, calls.get(part.callId)) : part));
  return { ...turn, parts, ...(end.result && { result: end.result }) };
}

function withTimes(call: CallPart, seen: CallPart | undefined): CallPart {
  if (seen === undefined) return call;
  const { ms, attempts, decision } = seen;
  return { ...call, attempts, ...(ms !== undefined && { ms }), ...(decision !== undefined && { decision }) };
}

function textsIn(parts: readonly TurnPart[]): number {
  return parts.filter(({ kind }) => kind === 'text').length;
}
