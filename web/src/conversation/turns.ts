/**
 * Turns as they are shown. Pure: made of what is recorded, and of live events where a turn still runs.
 *
 * @rule web/ended-turn-as-recorded: A turn that has ended is what is recorded of it, and nothing else. (test: test/page/turns.test.ts)
 * @rule web/running-turn-from-events: A running turn is its live events from its beginning; if they were lost, its record, and live events
 *   after that. (test: test/page/turns.test.ts)
 * @rule web/failed-attempt-taken-back: The text of a failed attempt is taken back (`reset`). (test: test/page/turns.test.ts)
 */
import { textOf, type Entry, type Media, type NamedMedia } from '../api/entries.js';
import type { TurnEvent, TurnResult, Usage } from '../api/events.js';

export interface Call {
  readonly kind: 'call';
  readonly callId: string;
  readonly name: string;
  /** JSON, or its beginning. */
  readonly input: string;
  readonly state: 'waiting' | 'running' | 'ok' | 'error' | 'rejected' | 'cancelled' | 'unknown';
  readonly output?: string;
  readonly ms?: number;
  /** Epoch milliseconds. */
  readonly startedAt?: number;
  /** How often it was started. */
  readonly attempts: number;
  readonly decision?: string;
}

export type Part =
  | { readonly kind: 'text'; readonly key: string; readonly text: string }
  | { readonly kind: 'thinking'; readonly key: string; readonly text: string }
  | { readonly kind: 'notice'; readonly key: string; readonly text: string }
  | Call;

export interface Words {
  readonly id: string | undefined;
  readonly text: string;
  readonly images: readonly Media[];
  readonly documents: readonly NamedMedia[];
  /** Beside images: how many sounds and videos came along. */
  readonly others: number;
}

export interface Turn {
  readonly id: string;
  readonly session: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly said: readonly Words[];
  readonly parts: readonly Part[];
  readonly isRunning: boolean;
  readonly model?: string;
  readonly usage?: Usage;
  readonly result?: Pick<TurnResult, 'stopReason' | 'error' | 'fallback'>;
  /** Why it goes on later. */
  readonly waits?: { readonly for: string; readonly until: number };
}

export function turnNumber(id: string): number {
  return Number(id.replace(/^turn_/, ''));
}

/** Of entries in their order. */
export function toTurns(entries: readonly Entry[]): Turn[] {
  const turns = new Map<string, Entry[]>();
  for (const entry of entries) {
    const known = turns.get(entry.turn);
    if (known === undefined) turns.set(entry.turn, [entry]);
    else known.push(entry);
  }
  return [...turns.values()].map(toTurn);
}

function toTurn(entries: readonly Entry[]): Turn {
  const [first] = entries;
  const results = new Map(
    entries.flatMap(({ message, ts }) => (message.role === 'tool' ? [[message.callId, { message, ts }] as const] : [])),
  );
  const said: Words[] = [];
  const parts: Part[] = [];
  let model: string | undefined;
  for (const { message, slot, messageId, ts } of entries) {
    if (message.role === 'user' && message.from === undefined) {
      const { images = [], audio = [], video = [], documents = [] } = message;
      said.push({ id: messageId, text: textOf(message.text), images, documents, others: audio.length + video.length });
    } else if (message.role === 'user') parts.push({ kind: 'notice', key: `n${slot}`, text: textOf(message.text) });
    else if (message.role === 'assistant') {
      model = message.model;
      for (const [at, block] of message.blocks.entries()) {
        const key = `${slot}.${at}`;
        if (block.kind === 'text') parts.push({ kind: 'text', key, text: textOf(block.text) });
        else if (block.kind === 'thinking') parts.push({ kind: 'thinking', key, text: block.text });
        else if (block.kind === 'tool-call') {
          const result = results.get(block.callId);
          parts.push({
            kind: 'call',
            callId: block.callId,
            name: block.name,
            input: block.inputRef === undefined ? JSON.stringify(block.input, null, 2) : textOf(block.inputRef),
            state: (result?.message.outcome ?? 'running') as Call['state'],
            ...(result && { output: textOf(result.message.text) }),
            startedAt: ts * 1000,
            attempts: 1,
          });
        }
      }
    }
  }
  return {
    id: first?.turn ?? '',
    session: first?.session ?? 1,
    at: (first?.ts ?? 0) * 1000,
    said,
    parts,
    isRunning: false,
    ...(model !== undefined && { model }),
  };
}

export function emptyTurn(id: string, at: number): Turn {
  return { id, session: 0, at, said: [], parts: [], isRunning: true };
}

/** A running turn after one of its live events. `keyOf` a text is its call: another attempt of it takes its place. */
export function withEvent(turn: Turn, event: TurnEvent): Turn {
  switch (event.kind) {
    case 'message':
      if (turn.said.some(({ id }) => id === event.messageId)) return turn;
      return { ...turn, said: [...turn.said, { id: event.messageId, text: event.preview, images: [], documents: [], others: 0 }] };
    case 'text':
    case 'thinking':
      return { ...turn, waits: undefined, parts: withText(turn.parts, event.kind, `${event.kind}:${event.call}`, event.text) };
    case 'reset':
      return { ...turn, parts: turn.parts.filter((part) => part.kind === 'call' || !part.key.endsWith(`:${event.call}`)) };
    case 'tool-started':
      return {
        ...turn,
        waits: undefined,
        parts: changed(turn.parts, event.callId, (known) => ({
          kind: 'call',
          callId: event.callId,
          name: event.name,
          input: event.input,
          state: 'running',
          startedAt: known?.startedAt ?? Date.now(),
          attempts: (known?.attempts ?? 0) + 1,
          ...(known?.decision !== undefined && { decision: known.decision }),
        })),
      };
    case 'tool-finished':
      return {
        ...turn,
        parts: changed(turn.parts, event.callId, (known) => ({
          kind: 'call',
          callId: event.callId,
          name: event.name,
          input: known?.input ?? '',
          state: event.outcome as Call['state'],
          output: event.preview,
          attempts: Math.max(1, known?.attempts ?? 1),
          ...(event.ms !== undefined && { ms: event.ms }),
          ...(known?.startedAt !== undefined && { startedAt: known.startedAt }),
          ...(known?.decision !== undefined && { decision: known.decision }),
        })),
      };
    case 'asked':
      return {
        ...turn,
        parts: changed(turn.parts, event.callId, (known) => ({
          kind: 'call',
          callId: event.callId,
          name: event.name,
          input: known?.input ?? '',
          attempts: known?.attempts ?? 0,
          state: 'waiting',
        })),
      };
    case 'decided':
      return {
        ...turn,
        parts: changed(
          turn.parts,
          event.callId,
          (known) => known && { ...known, state: known.state === 'waiting' ? 'running' : known.state, decision: event.decision },
        ),
      };
    case 'waiting':
      return { ...turn, waits: { for: event.for, until: event.until } };
    case 'fallback':
      return {
        ...turn,
        parts: [
          ...turn.parts.filter((part) => part.kind === 'call' || !part.key.endsWith(`:${event.call}`)),
          {
            kind: 'notice',
            key: `f:${event.call}`,
            text: `${event.insteadOf} could not answer (${event.for}); ${event.model} answers instead.`,
          },
        ],
      };
    case 'paused':
      return { ...turn, waits: { for: event.why, until: 0 } };
    case 'compacted':
      return {
        ...turn,
        parts: [
          ...turn.parts,
          {
            kind: 'notice',
            key: `k:${event.epoch}`,
            text: `Older turns became memory: ${event.tokensBefore} tokens are now ${event.tokensAfter}.`,
          },
        ],
      };
    case 'turn-finished':
      return { ...turn, isRunning: false, waits: undefined, result: event.result, usage: event.result.usage };
  }
}

function withText(parts: readonly Part[], kind: 'text' | 'thinking', key: string, text: string): readonly Part[] {
  const last = parts.at(-1);
  if (last?.kind === kind && last.key === key) return [...parts.slice(0, -1), { ...last, text: last.text + text }];
  return [...parts, { kind, key, text }];
}

function changed(parts: readonly Part[], callId: string, change: (known: Call | undefined) => Call | undefined): readonly Part[] {
  const at = parts.findIndex((part) => part.kind === 'call' && part.callId === callId);
  const made = change(parts[at] as Call | undefined);
  if (made === undefined) return parts;
  return at < 0 ? [...parts, made] : parts.map((part, index) => (index === at ? made : part));
}
