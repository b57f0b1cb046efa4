/**
 * How a provider assembles an answer from the events of a stream. In a draft, pieces arrive without borders: a block ends where one of
 * another kind begins.
 */
import type { AssistantBlock, JsonValue, ModelStop } from '../records/message.js';
import type { ModelDelta, ModelResponse, ModelUsage } from './model.js';
import { readCall, brokenStream, toWellFormed } from './wire.js';

/** An answer that grows by pieces, for those who write a provider. */
export interface Draft {
  /** More of a text, or of thinking. */
  say(kind: 'text' | 'thinking', piece: string): void;
  /** A call begins, or is there at once; its JSON may still grow. `before` goes where the call goes. */
  call(call: { readonly callId: string; readonly name: string; readonly input?: JsonValue; readonly before?: AssistantBlock }): GrowingCall;
  /** A block that came whole. */
  add(block: AssistantBlock): void;
  /** All of it, once nothing more comes. A call whose input cannot be read has the reason in its place, for the model to read. */
  blocks(options: { readonly withCalls: boolean }): AssistantBlock[];
  /** The blocks that have ended, without calls. */
  ended(): AssistantBlock[];
  /** Whether a tool call has begun. */
  hasCalls(): boolean;
}

/** A tool call whose arguments are still coming. */
export interface GrowingCall {
  /** More of the JSON of its arguments. */
  grow(json: string): void;
  /** What comes late, or in another form: its id, more of its name, its arguments as a value. */
  add(part: { readonly callId?: string; readonly name?: string; readonly input?: JsonValue }): void;
}

type Item =
  | { readonly kind: 'text' | 'thinking'; text: string }
  | { readonly kind: 'whole'; readonly block: AssistantBlock }
  | {
      readonly kind: 'call';
      callId: string;
      name: string;
      input: JsonValue;
      readonly before?: AssistantBlock;
      json: string;
    };

/** A draft for a provider's answer, whose pieces go to `onDelta` as they come. */
export function createDraft(provider: string, onDelta: (delta: ModelDelta) => void): Draft {
  const items: Item[] = [];
  const emit = createDeltaEmitter(onDelta);

  const begin = <New extends Item>(item: New): New => {
    emit.flush();
    items.push(item);
    return item;
  };

  const toBlocks = (item: Item, withCalls: boolean): AssistantBlock[] => {
    switch (item.kind) {
      case 'text':
        return [{ kind: 'text', text: toWellFormed(item.text) }];
      case 'thinking':
        return [{ kind: 'thinking', text: toWellFormed(item.text), provider }];
      case 'whole':
        return [item.block];
      case 'call':
        return withCalls ? [...(item.before ? [item.before] : []), readCall({ ...item, kind: 'unparsed-call' })] : [];
      default:
        return item satisfies never;
    }
  };

  return {
    say(kind, piece) {
      if (piece === '') return;
      const last = items.at(-1);
      const open = last?.kind === kind ? last : begin({ kind, text: '' });
      open.text += piece;
      emit(kind, piece);
    },
    call({ callId, name, input = {}, before }) {
      const item = begin({ kind: 'call', callId, name: '', input, json: '', ...(before && { before }) });
      const addName = (piece: string): void => {
        if (piece === '') return;
        if (item.name === '') onDelta({ kind: 'tool-call', name: toWellFormed(piece) });
        item.name = toWellFormed(item.name + piece);
      };
      addName(name);
      return {
        grow: (json) => {
          item.json += json;
        },
        add: (part) => {
          item.callId = part.callId ?? item.callId;
          item.input = part.input ?? item.input;
          addName(part.name ?? '');
        },
      };
    },
    add(block) {
      begin({ kind: 'whole', block });
    },
    blocks: ({ withCalls }) => items.flatMap((item) => toBlocks(item, withCalls)),
    ended: () => items.slice(0, -1).flatMap((item) => toBlocks(item, false)),
    hasCalls: () => items.some((item) => item.kind === 'call'),
  };
}

/** Passes pieces of an answer on. They may end between the halves of a surrogate pair: the first half waits for the second. */
interface DeltaEmitter {
  (kind: 'text' | 'thinking', piece: string): void;
  /** The block has ended: a half that still waits will never be whole. */
  flush(): void;
}

export function createDeltaEmitter(onDelta: (delta: ModelDelta) => void): DeltaEmitter {
  let held = '';
  const emit = (kind: 'text' | 'thinking', piece: string): void => {
    const text = held + piece;
    held = /[\uD800-\uDBFF]$/.exec(text)?.[0] ?? '';
    const ready = toWellFormed(text.slice(0, text.length - held.length));
    if (ready !== '') onDelta({ kind, text: ready });
  };
  return Object.assign(emit, {
    flush: () => {
      held = '';
    },
  });
}

export interface Answer<Event> {
  /** Takes the next event. Throws ModelFailure `broken-stream` on one that cannot follow, Refusal on one that says no. */
  take(event: Event): void;
  /** The stream has ended by itself, as it should. */
  end(): void;
  /** Whether the answer is complete. */
  isWhole(): boolean;
  /** Throws ModelFailure `broken-stream` unless it is whole. */
  response(): ModelResponse;
  /** What can be kept of an answer that was stopped: whole blocks, no tool calls. */
  soFar(): { readonly blocks: readonly AssistantBlock[]; readonly usage: ModelUsage };
}

export const NO_USAGE: ModelUsage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0 };

/** `failed`: the server gave up in the middle, and may do better at the next request. */
type Meaning = ModelStop | 'failed';

/**
 * What servers call the end of an answer, in lower case: no word means two things with two of them. Anthropic, OpenAI, Gemini and Ollama as
 * their references have it; `eos`: Together; `model_length`, `error`: Mistral; `sensitive`, `network_error`: Z.ai (GLM);
 * `insufficient_system_resource`: DeepSeek; `complete`, `error_toxic`, `error_limit`: Cohere; `guardrail_intervened`: Bedrock; `abort`: vLLM.
 */
const MEANINGS: ReadonlyMap<string, Meaning> = new Map(
  Object.entries({
    end: 'end_turn stop_sequence stop eos end complete completed',
    'tool-calls': 'tool_use tool_calls tool_call function_call',
    'max-tokens': 'max_tokens max_output_tokens length model_length',
    refusal:
      'refusal content_filter content_filtered safety recitation language blocklist prohibited_content spii image_safety image_prohibited_content ' +
      'image_recitation sensitive guardrail_intervened error_toxic',
    // One request has had its share: the next goes on.
    pause: 'pause_turn continuation',
    'context-full': 'model_context_window_exceeded context_length_exceeded error_limit',
    // Gemini's last three: the model wrote a call that is none; if the request is repeated, it mostly writes one.
    failed: 'error network_error insufficient_system_resource abort malformed_function_call unexpected_tool_call too_many_tool_calls',
  } satisfies Record<Exclude<Meaning, 'interrupted'>, string>).flatMap(([meaning, words]) =>
    words.split(' ').map((word) => [word, meaning as Meaning] as const),
  ),
);

/** Undefined: that word is not known. */
export function readStop(word: string): Meaning | undefined {
  return MEANINGS.get(word.toLowerCase());
}

/**
 * How an answer ended, and its blocks. Calls for tools without one are an end. An answer that ended with a word that is not known counts as
 * cut, and says so; without text it is none. Throws ModelFailure `broken-stream`.
 */
export function settleStop(
  meaning: Meaning | undefined,
  word: string,
  blocks: readonly AssistantBlock[],
): Pick<ModelResponse, 'stop' | 'blocks'> {
  const shown = JSON.stringify(toWellFormed(word).slice(0, 60));
  if (meaning === 'failed') throw brokenStream(`the server ended its answer with ${shown}`);
  if (meaning === undefined && !hasText(blocks)) throw brokenStream(`an unknown stop reason, ${shown}, and no text`);
  if (meaning === undefined) {
    const note = `[The server ended this answer with ${shown}, which is no end that is known: something may be missing.]`;
    return { stop: 'max-tokens', blocks: [...blocks, { kind: 'text', text: note }] };
  }
  const hasCalls = blocks.some((block) => block.kind === 'tool-call');
  return { stop: meaning === 'tool-calls' && !hasCalls ? 'end' : meaning, blocks };
}

export function hasText(blocks: readonly AssistantBlock[]): boolean {
  return blocks.some((block) => block.kind === 'text' && block.text !== '');
}
