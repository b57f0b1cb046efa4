/** The turns of a conversation as a report shows them, from its events: of one that was recorded and of one that is played alike. */
import type { ConversationEvent } from '../conversation/event.js';
import type { ConversationState } from '../conversation/state.js';
import type { ModelAnswer } from '../conversation/turn/model-step-effects.js';
import type { Writes } from '../conversation/outbox/writes.js';
import { turnId } from '../records/identity.js';
import { shownText, type AssistantBlock, type Body, type Entry, type JsonValue, type ToolOutcome, type Usage } from '../records/message.js';
import { MAX_REPORT_TEXT, type PlayedSum, type ReportedCall, type TurnSide } from './report.js';

export const NO_SUM: PlayedSum = {
  ...{ modelCalls: 0, inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0, modelMs: 0 },
};

/** What the log cannot know from events. */
export interface TurnLogOptions {
  /** Milliseconds of the model, of a call by its id; default: of its step. */
  readonly modelMs?: (call: string) => number | undefined;
  readonly findSource?: (call: string) => ReportedCall['source'] | undefined;
}

export interface TurnLog {
  add(event: ConversationEvent, after: ConversationState): void;
  /** By their numbers. */
  readonly turns: ReadonlyMap<string, LoggedTurn>;
  /** Of model calls, by their ids, in their order. */
  readonly answers: ReadonlyMap<string, ModelAnswer>;
  sum(): PlayedSum;
}

export interface LoggedTurn {
  readonly message: string;
  readonly side: TurnSide;
}

interface Logged {
  message: string;
  text: Body | string;
  stopReason: string;
  readonly calls: { readonly callId: string; readonly name: string; readonly input: string }[];
  sum: PlayedSum;
}

interface Result {
  readonly outcome: ToolOutcome;
  readonly text: Body;
}

const MAX_CALL_TEXT = 1_024;

export function createTurnLog({ modelMs, findSource }: TurnLogOptions = {}): TurnLog {
  const turns = new Map<string, Logged>();
  const results = new Map<string, Result>();
  const answers = new Map<string, ModelAnswer>();
  const started = new Map<string, number>();
  const isEnded = new Set<number>();

  const turnAt = (id: string): Logged => {
    const known = turns.get(id);
    if (known) return known;
    const made: Logged = { message: '', text: '', stopReason: 'continues', calls: [], sum: NO_SUM };
    turns.set(id, made);
    return made;
  };
  const noteWrites = ({ messages, settle, entries }: Writes): void => {
    for (const { turn, text } of messages) {
      const logged = turnAt(turn);
      logged.message = shorten(logged.message === '' ? text : `${logged.message}\n${text}`);
    }
    for (const entry of [...settle.map((one) => one.entry), ...entries]) if (entry) noteEntry(entry);
  };
  const noteResult = ({ callId, outcome, text }: Result & { readonly callId: string }): void =>
    void results.set(callId, { outcome, text: shortBody(text, MAX_CALL_TEXT) });
  const noteEntry = ({ message }: Entry): void => {
    if (message.role === 'tool') noteResult(message);
  };
  const noteAnswer = (answer: ModelAnswer, ms: number): void => {
    answers.set(answer.call, withoutLongTexts(answer));
    const logged = turnAt(answer.turn);
    const text = textIn(answer.blocks);
    if (text !== '') logged.text = shorten(text);
    for (const { callId, name, input } of callsIn(answer.blocks)) logged.calls.push({ callId, name, input });
    logged.sum = add(logged.sum, { ...toSum(answer.usage), modelCalls: 1, modelMs: modelMs?.(answer.call) ?? ms });
  };

  return {
    add(event, after) {
      if (event.kind === 'effect-started') {
        if (event.effect === 'model-step') started.set(event.id, event.at);
        if (event.effect === 'model-step' || event.effect === 'store-step') noteWrites(event.input.write);
      } else if (event.kind === 'effect-completed') {
        if (event.effect === 'run-tool') noteResult(event.output);
        if (event.effect === 'model-step') {
          event.output.tools.forEach(noteResult);
          if (event.output.kind === 'answered') noteAnswer(event.output.answer, event.at - (started.get(event.id) ?? event.at));
          started.delete(event.id);
        }
      }
      for (const { number, stopReason } of after.ended) {
        if (isEnded.has(number)) continue;
        isEnded.add(number);
        turnAt(turnId(number)).stopReason = stopReason;
      }
      // What is settled has not always an effect that carries it: it waits to be written.
      if (after.outbox.settle.length > 0) for (const { entry } of after.outbox.settle) if (entry) noteEntry(entry);
    },

    get turns() {
      return new Map(
        [...turns].map(([id, { message, text, stopReason, calls, sum }]) => {
          const side: TurnSide = {
            text: typeof text === 'string' ? text : shownText(text),
            stopReason,
            calls: calls.map(({ callId, name, input }) => {
              const result = results.get(callId);
              return {
                ...{ name, input },
                ...(result && { outcome: result.outcome }),
                result: result ? shorten(shownText(result.text), MAX_CALL_TEXT) : '',
                source: findSource?.(callId) ?? (result ? 'recording' : 'none'),
              };
            }),
            sum,
          };
          return [id, { message, side }] as const;
        }),
      );
    },
    answers,
    sum: () => [...turns.values()].reduce((sum, turn) => add(sum, turn.sum), NO_SUM),
  };
}

/** Shortened in the middle. */
export function shorten(text: string, most = MAX_REPORT_TEXT): string {
  if (text.length <= most) return text;
  const half = Math.floor((most - 3) / 2);
  return `${text.slice(0, half)} … ${text.slice(-half)}`.toWellFormed();
}

export function textIn(blocks: readonly AssistantBlock[]): string {
  return blocks.flatMap((block) => (block.kind === 'text' ? [shownText(block.text)] : [])).join('\n');
}

export function callsIn(blocks: readonly AssistantBlock[]): { readonly callId: string; readonly name: string; readonly input: string }[] {
  return blocks.flatMap((block) => {
    if (block.kind !== 'tool-call') return [];
    const input = block.inputRef ? `(${block.inputRef.bytes} bytes, ${block.inputRef.ref})` : JSON.stringify(sorted(block.input));
    return [{ callId: block.callId, name: block.name, input: shorten(input, MAX_CALL_TEXT) }];
  });
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, one]) => [name, sorted(one as JsonValue)]),
  );
}

/** A long conversation's answers are compared call by call; what is kept of them is short. */
function withoutLongTexts(answer: ModelAnswer): ModelAnswer {
  const blocks = answer.blocks.flatMap((block): AssistantBlock[] => {
    if (block.kind === 'text') return [{ ...block, text: shortBody(block.text) }];
    return block.kind === 'tool-call' ? [block] : [];
  });
  return { ...answer, blocks };
}

function shortBody(body: Body, most?: number): Body {
  return typeof body === 'string' ? shorten(body, most) : body;
}

function toSum({ inputTokens, cachedTokens, outputTokens, costUsd }: Usage): PlayedSum {
  return { ...NO_SUM, inputTokens, cachedTokens, outputTokens, costUsd };
}

function add(a: PlayedSum, b: PlayedSum): PlayedSum {
  return {
    modelCalls: a.modelCalls + b.modelCalls,
    inputTokens: a.inputTokens + b.inputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    costUsd: a.costUsd === null || b.costUsd === null ? null : a.costUsd + b.costUsd,
    modelMs: a.modelMs + b.modelMs,
  };
}

/** `turn_0003/m2`: the second call of that turn. */
export function describeTurn(call: string): { readonly turn: string; readonly call: number } {
  const [turn = '', number = ''] = call.split('/m');
  return { turn, call: Number(number) || 1 };
}
