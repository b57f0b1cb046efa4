/** What the scripted model answers, in the words a test would use. `to-events.ts` turns it into the API's events. */
import type { Fault } from './faults.js';

export type StopReason =
  'end_turn' | 'max_tokens' | 'stop_sequence' | 'tool_use' | 'pause_turn' | 'refusal' | 'model_context_window_exceeded';

export interface ToolCall {
  /** Default: a fresh id in the API's shape. */
  readonly id?: string;
  readonly name: string;
  readonly input?: unknown;
  /** The input's JSON as it streams, where it is not the whole of `input`: a call that was cut off. */
  readonly inputJson?: string;
}

export interface ReplyUsage {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly output_tokens: number;
}

/** The stream stops after so many events, or so many characters of content, until `until` settles. */
export interface Hold {
  readonly events?: number;
  readonly chars?: number;
  readonly until: Promise<unknown>;
  /** Called when the stream stands there. */
  readonly onReached?: () => void;
}

/** A gate that a test opens: `hold: gate()`, `await it.reached`, look around, `it.release()`. */
export interface Gate extends Hold {
  readonly reached: Promise<void>;
  readonly release: () => void;
}

export interface Reply {
  /** Several texts are several blocks. */
  readonly text?: string | readonly string[];
  readonly thinking?: { readonly text: string; readonly signature: string };
  readonly toolCalls?: readonly ToolCall[];
  /** Default: `tool_use` with tool calls, else `end_turn`. A word the API does not know is passed on. */
  readonly stopReason?: StopReason | (string & {});
  /** Why it refused, for `refusal`. */
  readonly stopDetails?: { readonly type: 'refusal'; readonly category: string | null; readonly explanation: string | null };
  /** Default: an estimate, four characters to a token. */
  readonly usage?: Partial<ReplyUsage>;
  /** How many pieces each block comes in, or the characters of a piece and the pause before it. Default: pieces of 12, no pause. */
  readonly chunks?: number | { readonly size: number; readonly delayMs: number };
  readonly holdAfter?: Hold;
  /** Stops after the first piece of content: `holdAfter` with `chars: 1`. */
  readonly hold?: Gate | Promise<unknown>;
  readonly fault?: Fault;
}

export function text(...blocks: readonly string[]): Reply {
  return { text: blocks };
}

export function callTool(name: string, input: unknown = {}, id?: string): Reply {
  return callTools({ name, input, id });
}

export function callTools(...toolCalls: readonly ToolCall[]): Reply {
  return { toolCalls };
}

/** `gate()` holds after the first piece of content; `gate({ events: 3 })` after the third event. */
export function gate(where: { events?: number; chars?: number } = { chars: 1 }): Gate {
  let release = (): void => {};
  let onReached = (): void => {};
  const until = new Promise<void>((resolve) => (release = resolve));
  const reached = new Promise<void>((resolve) => (onReached = resolve));
  return { ...where, until, release, reached, onReached };
}
