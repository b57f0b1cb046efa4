/**
 * Turns of a real conversation as evals keep them: the words of a person, the model and its tools, without what must not
 * leave the installation. They are files of a project, so what is read back is checked, and every fault is named by its place.
 */
import { z } from 'zod';
import { withSortedKeys } from '../platform/json.js';
import { answerIn, isFromPerson, shownText, sourcesIn, type ConversationMessage, type Entry, type JsonValue } from '../records/message.js';
import { turnNumber } from '../records/identity.js';
import type { TurnEnd } from '../records/turn-end.js';

const json = z.json() as unknown as z.ZodType<JsonValue>;
const inputSchema = z.record(z.string(), json);
const answerSchema = z.strictObject({
  text: z.string().optional(),
  calls: z.array(z.strictObject({ name: z.string().min(1), input: inputSchema })).optional(),
});
const resultSchema = z.strictObject({
  name: z.string().min(1),
  input: inputSchema,
  outcome: z.enum(['ok', 'error', 'rejected', 'cancelled', 'unknown']),
  text: z.string(),
});

/** @internal */
export const recordedTurnSchema = z.strictObject({
  turn: z.string().regex(/^turn_\d{4,15}$/),
  newSession: z.literal(true).optional(),
  message: z.string().min(1),
  answers: z.array(answerSchema),
  results: z.array(resultSchema),
});

/** How a tool answered a call. */
export interface RecordedResult {
  /** Of the tool. */
  readonly name: string;
  readonly input: { readonly [name: string]: JsonValue };
  readonly outcome: 'ok' | 'error' | 'rejected' | 'cancelled' | 'unknown';
  /** As the model read it. */
  readonly text: string;
}

/** One answer of the model. */
export interface RecordedAnswer {
  readonly text?: string | undefined;
  readonly calls?: readonly { readonly name: string; readonly input: { readonly [name: string]: JsonValue } }[] | undefined;
}

/** A turn as it was recorded. */
export interface RecordedTurn {
  /** `turn_0003`, as the conversation had it. */
  readonly turn: string;
  /** Before it the session was cleared. */
  readonly newSession?: true | undefined;
  /** Of the person. */
  readonly message: string;
  /** Of the model, oldest first. */
  readonly answers: readonly RecordedAnswer[];
  /** Of its tools, in the order of the calls. */
  readonly results: readonly RecordedResult[];
}

/** What is taken out of texts, and why turns are not among the recorded ones. */
export interface Taking {
  readonly entries: readonly Entry[];
  readonly ends: readonly TurnEnd[];
  /** Takes secrets and what was forgotten out of a text. */
  readonly redact: (text: string) => string;
  /** Keeps what tools have read of long-term memory. */
  readonly withMemory: boolean;
}

export interface Taken {
  readonly turns: readonly RecordedTurn[];
  /** What is not as it was, a sentence each. */
  readonly gaps: readonly string[];
}

/** They read what other conversations of the scope have left. */
const MEMORY_TOOLS: ReadonlySet<string> = new Set(['search_memory', 'open_memory', 'search_history']);
export const MEMORY_LEFT_OUT = '[left out: long-term memory]';

/** Oldest first. A turn without a whole answer is left out, and named. */
export function takeTurns({ entries, ends, redact, withMemory }: Taking): Taken {
  const gaps: string[] = [];
  const turns: RecordedTurn[] = [];
  const unfinished = new Map(ends.map((end) => [end.turn, end.stopReason]));
  const byTurn = new Map<string, Entry[]>();
  for (const entry of entries) byTurn.set(entry.turn, [...(byTurn.get(entry.turn) ?? []), entry]);
  let session = entries[0]?.session;
  for (const [turn, inTurn] of [...byTurn].sort(([a], [b]) => turnNumber(a) - turnNumber(b))) {
    const messages = inTurn.map(({ message }) => message);
    const spoken = messages.filter(isFromPerson);
    const end = unfinished.get(turn);
    const why =
      spoken.length === 0
        ? 'no person began it'
        : messages.at(-1)?.role !== 'assistant'
          ? 'it has no answer'
          : end !== undefined && end !== 'end'
            ? `it ended with ${end}`
            : undefined;
    if (why !== undefined) {
      gaps.push(`${turn} is left out: ${why}`);
      continue;
    }
    const files = spoken.flatMap((message) => sourcesIn(message)).length;
    if (files > 0) gaps.push(`${turn}: the files of its message are left out`);
    if (spoken.length > 1) gaps.push(`${turn}: what was added while it ran is sent with its first message`);
    const begins = inTurn[0]?.session;
    turns.push({
      turn,
      ...(turns.length > 0 && begins !== session && { newSession: true as const }),
      message: redact(spoken.map(({ text }) => shownText(text)).join('\n\n')) || '(no words)',
      ...takeAnswers(messages, redact, withMemory),
    });
    session = begins;
  }
  return { turns, gaps };
}

function takeAnswers(
  messages: readonly ConversationMessage[],
  redact: (text: string) => string,
  withMemory: boolean,
): Pick<RecordedTurn, 'answers' | 'results'> {
  const redactIn = (value: JsonValue): JsonValue => redactJson(value, redact);
  const results = new Map(messages.flatMap((message) => (message.role === 'tool' ? [[message.callId, message] as const] : [])));
  const answers = messages.flatMap((message) => (message.role === 'assistant' ? [message.blocks] : []));
  const callsIn = (blocks: (typeof answers)[number]) => blocks.flatMap((block) => (block.kind === 'tool-call' ? [block] : []));
  return {
    answers: answers.map((blocks) => {
      const text = answerIn(blocks)?.text;
      const calls = callsIn(blocks).map(({ name, input }) => ({ name, input: redactIn(toInput(input)) as RecordedResult['input'] }));
      return { ...(text !== undefined && { text: redact(text) }), ...(calls.length > 0 && { calls }) };
    }),
    results: answers.flatMap(callsIn).flatMap(({ callId, name, input }) => {
      const result = results.get(callId);
      if (!result) return [];
      const text = !withMemory && MEMORY_TOOLS.has(name) ? MEMORY_LEFT_OUT : redact(shownText(result.text));
      return [{ name, input: redactIn(toInput(input)) as RecordedResult['input'], outcome: result.outcome, text }];
    }),
  };
}

/** Arguments that a model has sent may be anything. */
function toInput(input: JsonValue): JsonValue {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : { value: input };
}

function redactJson(value: JsonValue, redact: (text: string) => string): JsonValue {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map((one: JsonValue) => redactJson(one, redact));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [redact(name), redactJson(field as JsonValue, redact)]));
}

/** What a call is known by, whatever the order of its arguments. */
export function callKey(name: string, input: unknown): string {
  return `${name} ${JSON.stringify(withSortedKeys(input))}`;
}

/** What a person decided about a call, as its result tells. */
export function decisionIn({ name, outcome, text }: RecordedResult): Decided {
  if (outcome === 'rejected') {
    const [, note] = / They say: ([\s\S]*)$/.exec(text) ?? [];
    return { kind: 'deny', ...(note !== undefined && { note }) };
  }
  return name === 'ask_user' ? { kind: 'answer', text } : { kind: 'approve' };
}

export type Decided =
  { readonly kind: 'approve' } | { readonly kind: 'deny'; readonly note?: string } | { readonly kind: 'answer'; readonly text: string };
