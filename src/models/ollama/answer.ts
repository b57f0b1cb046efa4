/**
 * Puts an answer together from Ollama's lines.
 *
 * Only a line that says `done` ends an answer. Tool calls count only if the model stopped by itself: Ollama has no word for stopping to
 * call tools.
 */
import type { ModelStop } from '../../records/message.js';
import { type Answer, NO_USAGE, settledStop } from '../answer.js';
import { createDraft } from '../draft.js';
import type { ModelDelta } from '../model.js';
import { asCount, asList, asObject, asText } from '../read-json.js';
import { brokenStream } from '../tool-input.js';
import { toRefusal } from '../refusal.js';
import { isRecord } from '../../platform/json.js';

const STOPS: ReadonlyMap<string, ModelStop> = new Map([
  ['stop', 'end'],
  ['length', 'max-tokens'],
]);

export function createAnswer(provider: string, onDelta: (delta: ModelDelta) => void): Answer<unknown> {
  const draft = createDraft(provider, onDelta);
  let usage = NO_USAGE;
  let reason: string | undefined;
  let calls = 0;

  const takeCall = (value: unknown): void => {
    const { name, arguments: input } = asObject(asObject(value).function);
    const call = draft.call({ callId: `call_${calls++}`, name: asText(name), input: typeof input === 'string' ? {} : (input ?? {}) });
    // An object by the API; servers in its place may send text.
    call.grow(asText(input));
  };

  return {
    take(value) {
      const line = asObject(value);
      const message = asObject(line.message);
      draft.say('thinking', asText(message.thinking));
      draft.say('text', asText(message.content));
      asList(message.tool_calls).forEach(takeCall);
      if (line.done !== true) return;
      reason = asText(line.done_reason) || 'stop';
      usage = { ...NO_USAGE, inputTokens: asCount(line.prompt_eval_count), outputTokens: asCount(line.eval_count) };
    },
    end() {},
    isWhole: () => reason !== undefined,
    response() {
      if (reason === undefined) throw brokenStream('the stream ended before its last line');
      const known = reason === 'stop' && draft.hasCalls() ? 'tool-calls' : STOPS.get(reason);
      const blocks = draft.blocks({ withCalls: known === 'tool-calls' });
      return { blocks, stop: settledStop(known, reason, blocks), usage };
    },
    soFar: () => ({ blocks: draft.ended(), usage }),
  };
}

/**
 * Looks at the lines of a stream before the SDK does: that one prints a line it cannot read and goes on without it, and
 * makes of a refusal an error like any other.
 */

/** The same response; its body breaks at a line that is no JSON, or that says no. */
export function withCheckedLines(response: Response): Response {
  if (!response.body) return response;
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = '';
  const check = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.trim() !== '') controller.enqueue(encoder.encode(`${checked(line)}\n`));
    },
    flush(controller) {
      if (rest.trim() !== '') controller.enqueue(encoder.encode(`${checked(rest)}\n`));
    },
  });
  return new Response(response.body.pipeThrough(check), response);
}

function checked(line: string): string {
  const value = parsed(line);
  if (isRecord(value) && 'error' in value) throw toRefusal(value);
  return line;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw brokenStream('a line is no JSON', cause);
  }
}
