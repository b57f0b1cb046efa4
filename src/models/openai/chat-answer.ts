/**
 * Puts an answer together from the chunks of Chat Completions.
 *
 * - An answer is whole once it has a finish reason and its usage; if no usage comes, once the stream has ended well after the finish
 *   reason. Not every server with this protocol counts tokens.
 * - Tool calls count unless the answer was cut off: a forced call finishes with `stop`.
 * - Unknown fields do no harm.
 */
import type { ModelStop } from '../../records/message.js';
import { type Answer, NO_USAGE, settledStop } from '../answer.js';
import { createDraft, type GrowingCall } from '../draft.js';
import type { ModelDelta, ModelUsage } from '../model.js';
import { asCount, asList, asObject, asText } from '../read-json.js';
import { brokenStream } from '../tool-input.js';

const STOPS: ReadonlyMap<string, ModelStop> = new Map([
  ['stop', 'end'],
  ['tool_calls', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['length', 'max-tokens'],
  ['content_filter', 'refusal'],
]);

export function createChatAnswer(provider: string, onDelta: (delta: ModelDelta) => void): Answer<unknown> {
  const draft = createDraft(provider, onDelta);
  const calls = new Map<number, GrowingCall>();
  let usage: ModelUsage | undefined;
  let finish: string | undefined;
  let ended = false;
  let refused = false;

  const takeCall = (value: unknown): void => {
    const { index, id, function: called } = asObject(value);
    const { name, arguments: json } = asObject(called);
    const at = asCount(index, calls.size);
    const call = calls.get(at) ?? draft.call({ callId: asText(id), name: asText(name) });
    calls.set(at, call);
    call.grow(asText(json));
  };

  const isWhole = (): boolean => finish !== undefined && (ended || usage !== undefined);

  return {
    take(chunk) {
      const { choices, usage: counted } = asObject(chunk);
      const choice = asObject(asList(choices)[0]);
      const delta = asObject(choice.delta);
      // Not OpenAI's own, but those of servers with reasoning models.
      draft.say('thinking', asText(delta.reasoning_content) || asText(delta.reasoning));
      draft.say('text', asText(delta.content));
      draft.say('text', asText(delta.refusal));
      refused ||= asText(delta.refusal) !== '';
      asList(delta.tool_calls).forEach(takeCall);
      finish = asText(choice.finish_reason) || finish;
      if (typeof counted === 'object' && counted !== null) usage = toUsage(counted);
    },
    end() {
      ended = true;
    },
    isWhole,
    response() {
      if (finish === undefined || !isWhole()) throw brokenStream('the stream ended before its finish reason');
      const known = refused ? 'refusal' : finish === 'stop' && draft.hasCalls() ? 'tool-calls' : STOPS.get(finish);
      const blocks = draft.blocks({ withCalls: known === 'tool-calls' });
      return { blocks, stop: settledStop(known, finish, blocks), usage: usage ?? NO_USAGE };
    },
    soFar: () => ({ blocks: draft.ended(), usage: usage ?? NO_USAGE }),
  };
}

function toUsage(wire: unknown): ModelUsage {
  const { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: details } = asObject(wire);
  const written = asCount(asObject(details).cache_write_tokens);
  return {
    inputTokens: asCount(input),
    cachedTokens: asCount(asObject(details).cached_tokens),
    outputTokens: asCount(output),
    ...(written > 0 && { cacheWriteTokens: written }),
  };
}
