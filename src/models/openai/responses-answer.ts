/**
 * Puts an answer together from the events of the Responses API.
 *
 * - Only `response.completed` and `response.incomplete` end an answer: a stream that ends without has failed.
 * - Tool calls count only in an answer that was completed.
 * - Items are taken when they are done; earlier pieces are only passed on. Unknown events do no harm.
 */
import type { AssistantBlock, JsonObject, JsonValue } from '../../records/message.js';
import { type Answer, NO_USAGE, readStop, settleStop, createDeltaEmitter } from '../draft.js';
import type { ModelDelta, ModelUsage } from '../model.js';
import {
  asCount,
  asList,
  asObject,
  asText,
  toWellFormed,
  isDeeperThan,
  MAX_DEPTH,
  brokenStream,
  readCall,
  type UnparsedCall,
} from '../wire.js';
import { toRefusal } from '../refusal.js';

type WholeBlock = AssistantBlock | UnparsedCall;

export function createResponsesAnswer(provider: string, onDelta: (delta: ModelDelta) => void): Answer<unknown> {
  const items = new Map<number, JsonObject>();
  const emit = createDeltaEmitter(onDelta);
  let last: JsonObject | undefined;

  const wholeBlocks = (): WholeBlock[] => [...items.entries()].sort(([a], [b]) => a - b).flatMap(([, item]) => toBlocks(item, provider));

  return {
    take(event) {
      const received = asObject(event);
      switch (asText(received.type)) {
        case 'response.output_item.added': {
          const item = asObject(received.item);
          if (item.type === 'function_call') onDelta({ kind: 'tool-call', name: toWellFormed(asText(item.name)) });
          return;
        }
        case 'response.output_text.delta':
        case 'response.refusal.delta':
          return emit('text', asText(received.delta));
        case 'response.reasoning_summary_part.added':
          if (asCount(received.summary_index) > 0) emit('thinking', '\n\n');
          return;
        case 'response.reasoning_summary_text.delta':
        case 'response.reasoning_text.delta':
          return emit('thinking', asText(received.delta));
        case 'response.output_item.done':
          items.set(asCount(received.output_index, items.size), asObject(received.item));
          return emit.flush();
        case 'response.completed':
        case 'response.incomplete':
          last = asObject(received.response);
          if (items.size === 0) asList(last.output).forEach((item, at) => items.set(at, asObject(item)));
          return;
        case 'response.failed':
          throw toRefusal({ error: asObject(received.response).error });
        case 'error':
          throw toRefusal(received);
      }
    },
    end() {},
    isWhole: () => last !== undefined,
    response() {
      if (!last) throw brokenStream('the stream ended before response.completed');
      const word = last.status === 'incomplete' ? asText(asObject(last.incomplete_details).reason) : 'completed';
      const whole = wholeBlocks();
      const hasCalls = word === 'completed' && whole.some((block) => block.kind === 'unparsed-call');
      const blocks = whole.flatMap((block) => (block.kind !== 'unparsed-call' ? [block] : hasCalls ? [readCall(block)] : []));
      const refused = [...items.values()].some((item) => asList(item.content).some((part) => asObject(part).type === 'refusal'));
      const known = refused ? 'refusal' : hasCalls ? 'tool-calls' : readStop(word);
      return { ...settleStop(known, word, blocks), usage: toUsage(last.usage) };
    },
    soFar: () => ({ blocks: wholeBlocks().filter((block) => block.kind !== 'unparsed-call'), usage: toUsage(last?.usage) }),
  };
}

function toBlocks(item: JsonObject, provider: string): WholeBlock[] {
  switch (item.type) {
    case 'message': {
      const text = joinParts(item.content, ['output_text', 'refusal'], '');
      const phase = typeof item.phase === 'string' ? [opaque(provider, { type: 'message_phase', phase: item.phase })] : [];
      return text === '' ? [] : [...phase, { kind: 'text', text }];
    }
    case 'reasoning': {
      const text = joinParts(item.summary, ['summary_text'], '\n\n') || joinParts(item.content, ['reasoning_text'], '\n\n');
      return [
        ...(text === '' ? [] : [{ kind: 'thinking' as const, text, provider }]),
        // Without its encrypted text it is the name of something that is stored nowhere.
        ...(asText(item.encrypted_content) === '' || isDeeperThan(item, MAX_DEPTH) ? [] : [opaque(provider, item)]),
      ];
    }
    case 'function_call':
      return [
        {
          kind: 'unparsed-call',
          callId: asText(item.call_id),
          name: toWellFormed(asText(item.name)),
          json: asText(item.arguments),
          input: {},
        },
      ];
    default:
      return [];
  }
}

function opaque(provider: string, value: JsonValue): AssistantBlock {
  return { kind: 'opaque', provider, value };
}

/** The text of parts of these types: a refusal has it in a separate field. */
function joinParts(parts: unknown, types: readonly string[], between: string): string {
  const words = asList(parts)
    .map(asObject)
    .filter(({ type }) => types.includes(asText(type)))
    .map((part) => asText(part.text) || asText(part.refusal));
  return toWellFormed(words.join(between));
}

function toUsage(wire: unknown): ModelUsage {
  const { input_tokens: input, output_tokens: output, input_tokens_details: details, output_tokens_details: made } = asObject(wire);
  const thought = asCount(asObject(made).reasoning_tokens);
  const written = asCount(asObject(details).cache_write_tokens);
  return {
    ...NO_USAGE,
    inputTokens: asCount(input),
    cachedTokens: asCount(asObject(details).cached_tokens),
    outputTokens: asCount(output),
    ...(written > 0 && { cacheWriteTokens: written }),
    ...(thought > 0 && { reasoningTokens: thought }),
  };
}
