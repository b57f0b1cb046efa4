/**
 * Puts an answer together from Gemini's chunks.
 *
 * - An answer is whole once it has a finish reason, or once its prompt was blocked: a stream that ends without has failed.
 * - Tool calls count only if the model stopped for them.
 * - A thought signature is kept as a block of its own, next to the block that it signs: before a call, after text.
 */
import type { AssistantBlock, ModelStop } from '../../records/message.js';
import { type Answer, hasText, NO_USAGE, settledStop } from '../answer.js';
import { createDraft } from '../draft.js';
import type { ModelDelta, ModelUsage } from '../model.js';
import { asCount, asList, asObject, asText } from '../read-json.js';
import { brokenStream } from '../tool-input.js';
import { toWellFormed } from '../well-formed.js';
import { toFunctionName } from './render.js';
import { isRecord } from '../../platform/json.js';

const STOPS: ReadonlyMap<string, ModelStop> = new Map([
  ['STOP', 'end'],
  ['MAX_TOKENS', 'max-tokens'],
  ['SAFETY', 'refusal'],
  ['RECITATION', 'refusal'],
  ['LANGUAGE', 'refusal'],
  ['BLOCKLIST', 'refusal'],
  ['PROHIBITED_CONTENT', 'refusal'],
  ['SPII', 'refusal'],
  ['IMAGE_SAFETY', 'refusal'],
  ['IMAGE_PROHIBITED_CONTENT', 'refusal'],
  // One request has had its share; the SDK would ask again by itself.
  ['CONTINUATION', 'pause'],
]);

/** The model wrote a call that is none: asked again, it mostly writes one. */
const BROKEN_CALLS: readonly string[] = ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL'];

/** `toolNames`: of the tools that were offered. */
export function createAnswer(provider: string, onDelta: (delta: ModelDelta) => void, toolNames: readonly string[] = []): Answer<unknown> {
  const draft = createDraft(provider, onDelta);
  const ownNames = new Map(toolNames.map((name) => [toFunctionName(name), name]));
  let usage = NO_USAGE;
  let finish: string | undefined;
  let blocked = false;
  let explanation = '';
  let calls = 0;

  const takePart = (value: unknown): void => {
    const part = asObject(value);
    const signature = asText(part.thoughtSignature);
    const signed = (on: 'call' | 'text'): AssistantBlock | undefined =>
      signature === '' ? undefined : { kind: 'opaque', provider, value: { type: 'thought_signature', on, signature } };
    if (isRecord(part.functionCall)) {
      const { id, name, args } = asObject(part.functionCall);
      const called = ownNames.get(asText(name)) ?? asText(name);
      draft.call({ callId: asText(id) || `call_${calls++}`, name: called, input: args ?? {}, before: signed('call') });
      return;
    }
    draft.say(part.thought === true ? 'thinking' : 'text', asText(part.text));
    const after = signed('text');
    if (after) draft.add(after);
  };

  return {
    take(value) {
      const chunk = asObject(value);
      const candidate = asObject(asList(chunk.candidates)[0]);
      asList(asObject(candidate.content).parts).forEach(takePart);
      finish = asText(candidate.finishReason) || finish;
      if (isRecord(chunk.usageMetadata)) usage = toUsage(chunk.usageMetadata);
      const feedback = asObject(chunk.promptFeedback);
      if (asText(feedback.blockReason) === '') return;
      blocked = true;
      finish ??= asText(feedback.blockReason);
      explanation = asText(feedback.blockReasonMessage);
    },
    end() {},
    isWhole: () => finish !== undefined,
    response() {
      if (finish === undefined) throw brokenStream('the stream ended before its finish reason');
      if (BROKEN_CALLS.includes(finish)) throw brokenStream(`the model wrote a tool call that is none (${finish})`);
      const known = blocked ? 'refusal' : finish === 'STOP' && draft.hasCalls() ? 'tool-calls' : STOPS.get(finish);
      const blocks = draft.blocks({ withCalls: known === 'tool-calls' });
      if (known === 'refusal' && !hasText(blocks)) blocks.push({ kind: 'text', text: refusalOf(finish, explanation) });
      return { blocks, stop: settledStop(known, finish, blocks), usage };
    },
    soFar: () => ({ blocks: draft.ended(), usage }),
  };
}

/** The API mostly refuses with one word. */
function refusalOf(word: string, explanation: string): string {
  return toWellFormed(explanation || `Gemini gave no answer: ${word}.`);
}

/** Thoughts are paid for as output, and counted apart from it. */
function toUsage(wire: unknown): ModelUsage {
  const count = asObject(wire);
  return {
    inputTokens: asCount(count.promptTokenCount) + asCount(count.toolUsePromptTokenCount),
    cachedTokens: asCount(count.cachedContentTokenCount),
    outputTokens: asCount(count.candidatesTokenCount) + asCount(count.thoughtsTokenCount),
  };
}
