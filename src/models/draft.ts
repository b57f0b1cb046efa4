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
  /** All of it, once nothing more comes. Throws ModelFailure `broken-stream` where a call's input is not whole. */
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
}

type Item =
  | { readonly kind: 'text' | 'thinking'; text: string }
  | { readonly kind: 'whole'; readonly block: AssistantBlock }
  | {
      readonly kind: 'call';
      readonly callId: string;
      readonly name: string;
      readonly input: JsonValue;
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
      const wellNamed = toWellFormed(name);
      const item = begin({ kind: 'call', callId, name: wellNamed, input, json: '', ...(before && { before }) });
      onDelta({ kind: 'tool-call', name: wellNamed });
      return {
        grow: (json) => {
          item.json += json;
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

/**
 * An unknown stop reason ends an answer that has content, and breaks an empty one.
 * A stop for tools without one is an end.
 */
export function settledStop(known: ModelStop | undefined, word: string, blocks: readonly AssistantBlock[]): ModelStop {
  const stop = known ?? (hasText(blocks) ? 'end' : undefined);
  if (stop === undefined) throw brokenStream(`an unknown stop reason, ${JSON.stringify(toWellFormed(word))}, and no text`);
  return stop === 'tool-calls' && !blocks.some((block) => block.kind === 'tool-call') ? 'end' : stop;
}

export function hasText(blocks: readonly AssistantBlock[]): boolean {
  return blocks.some((block) => block.kind === 'text' && block.text !== '');
}
