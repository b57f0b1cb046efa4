/** What the scripted model answers, in the words a test would use. `to-events.ts` turns it into the API's events. */

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
  /** Which of the request's, for `stop_sequence`. */
  readonly stopSequence?: string;
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

/**
 * Where in the stream it happens: after so many events (0 = headers only), or at a landmark.
 * `in-event` is in the middle of the bytes of an event of the first content block, `after-message-stop` when all is said.
 */
export type Cut =
  number | 'before-headers' | 'in-event' | 'before-block-stop' | 'before-message-delta' | 'before-message-stop' | 'after-message-stop';

export type Fault =
  /** An error instead of an answer. `body` replaces the API's own error body. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly type?: string;
      readonly message?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
      readonly contentType?: string;
    }
  /** An `error` event in the middle of the stream, after which it ends. */
  | {
      readonly kind: 'error-event';
      readonly at: Cut;
      readonly type?: 'overloaded_error' | 'api_error' | (string & {});
      readonly message?: string;
    }
  /** The response ends as if all had been said. */
  | { readonly kind: 'half-close'; readonly at: Cut }
  /** The connection is closed (FIN) with the body unfinished. */
  | { readonly kind: 'fin'; readonly at: Cut }
  /** The connection is reset (RST). */
  | { readonly kind: 'reset'; readonly at: Cut }
  /** Nothing more comes, and the connection stays open until the client or the server leaves. */
  | { readonly kind: 'silence'; readonly at: Cut }
  /** For ever one `ping` event, or one byte of an event that never ends, every so often. */
  | { readonly kind: 'drip'; readonly at: Cut; readonly what: 'ping' | 'byte'; readonly everyMs: number }
  /** An event whose data is no JSON; then the stream goes on. */
  | { readonly kind: 'malformed-json'; readonly at: Cut }
  /** An event of a type that nobody knows; harmless, the stream goes on. */
  | { readonly kind: 'unknown-event'; readonly at: Cut }
  /** Status 200 and a web page (a captive portal). */
  | { readonly kind: 'html' };
