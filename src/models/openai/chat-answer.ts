/**
 * Puts an answer together from the chunks of Chat Completions, of OpenAI and of the many servers that speak nearly as it does.
 *
 * - An answer is whole once it has a finish reason and its usage; if no usage comes, once the stream has ended well after the finish
 *   reason. Not every server with this protocol counts tokens.
 * - Tool calls count unless the answer was cut off: a forced call finishes with `stop`.
 * - To which call a piece belongs, its id, its index and its place say together: servers give all calls the index 0, or leave out either.
 * - Unknown fields do no harm; a part of a kind that is not known is named in its place.
 */
import { isRecord } from '../../platform/json.js';
import { createDraft, NO_USAGE, readStop, settleStop, type Answer, type Draft, type GrowingCall } from '../draft.js';
import type { ModelDelta, ModelUsage } from '../model.js';
import { toRefusal } from '../refusal.js';
import { asCount, asList, asObject, asText, brokenStream, toWellFormed } from '../wire.js';

export function createChatAnswer(provider: string, onDelta: (delta: ModelDelta) => void): Answer<unknown> {
  const draft = createDraft(provider, onDelta);
  const takeCall = createCallReader(draft);
  let usage: ModelUsage | undefined;
  let finish: string | undefined;
  let stoppedAt = '';
  let ended = false;
  let refused = false;
  let hasBegun = false;

  const isWhole = (): boolean => finish !== undefined && (ended || usage !== undefined);

  return {
    take(chunk) {
      const { choices, usage: counted, base_resp: outcome } = asObject(chunk);
      if (asCount(asObject(outcome).status_code) > 0) throw toRefusal(chunk);
      const choice = asObject(asList(choices)[0]);
      // Some send one chunk with all of it, some repeat all of it at the end.
      const delta = asObject(isRecord(choice.delta) || hasBegun ? choice.delta : choice.message);
      hasBegun ||= isRecord(choice.delta) || isRecord(choice.message);
      // Not OpenAI's fields, but those of servers with reasoning models.
      draft.say('thinking', asText(delta.reasoning_content) || asText(delta.reasoning));
      sayContent(draft, delta.content);
      draft.say('text', asText(delta.refusal));
      refused ||= asText(delta.refusal) !== '';
      asList(delta.tool_calls).forEach(takeCall);
      // The form of before there were several calls.
      if (isRecord(delta.function_call)) takeCall({ index: 0, function: delta.function_call });
      finish = asText(choice.finish_reason) || finish;
      // vLLM names the text; for its other reasons it has a number there.
      stoppedAt = asText(choice.stop_reason) || stoppedAt;
      if (isRecord(counted)) usage = toUsage(counted);
    },
    end() {
      ended = true;
    },
    isWhole,
    response() {
      if (finish === undefined || !isWhole()) throw brokenStream('the stream ended before its finish reason');
      const meaning = readStop(finish);
      const known = refused ? 'refusal' : meaning === 'end' && draft.hasCalls() ? 'tool-calls' : meaning;
      const settled = settleStop(known, finish, draft.blocks({ withCalls: known === 'tool-calls' }));
      return { ...settled, ...(stoppedAt && { stoppedAt }), usage: usage ?? NO_USAGE };
    },
    soFar: () => ({ blocks: draft.ended(), usage: usage ?? NO_USAGE }),
  };
}

/** Text; or a list of parts, in which Mistral's reasoning models have their thoughts. */
function sayContent(draft: Draft, content: unknown): void {
  if (typeof content === 'string') return draft.say('text', content);
  for (const value of asList(content)) {
    const part = asObject(value);
    const type = asText(part.type);
    if (typeof value === 'string') draft.say('text', value);
    else if (type === 'thinking' || type === 'reasoning') {
      const inner = part.thinking ?? part.reasoning ?? part.text;
      draft.say(
        'thinking',
        asText(inner) ||
          asList(inner)
            .map((one) => asText(asObject(one).text))
            .join(''),
      );
    } else if (typeof part.text === 'string') draft.say('text', part.text);
    else draft.say('text', `[a part of type ${JSON.stringify(toWellFormed(type).slice(0, 40))}, which cannot be shown]`);
  }
}

interface CallSoFar {
  readonly index: number | undefined;
  id: string;
  name: string;
  json: string;
  readonly isClosed: (more: string) => boolean;
  readonly growing: GrowingCall;
}

function createCallReader(draft: Draft): (piece: unknown) => void {
  const calls: CallSoFar[] = [];

  const begin = (index: number | undefined, id: string): CallSoFar => {
    const call = { index, id, name: '', json: '', isClosed: createClosedCheck(), growing: draft.call({ callId: id, name: '' }) };
    calls.push(call);
    return call;
  };

  return (value) => {
    const piece = asObject(value);
    const called = asObject(piece.function);
    const [id, name, given] = [asText(piece.id), asText(called.name), called.arguments];
    const index = Number.isSafeInteger(piece.index) ? (piece.index as number) : undefined;
    const found = findCall(calls, { id, index, name, given });
    const call = found ?? begin(index, id);
    if (call.id === '' && id !== '') {
      call.id = id;
      call.growing.add({ callId: id });
    }
    // Some repeat the name with every piece.
    if (name !== '' && name !== call.name) {
      call.name += name;
      call.growing.add({ name });
    }
    if (given === undefined || given === null) return;
    const json = typeof given === 'string' ? given : JSON.stringify(given);
    // Some send a call once more when it is whole.
    if (call.isClosed('') && json === call.json) return;
    call.json += json;
    call.isClosed(json);
    call.growing.grow(json);
  };
}

interface PieceNames {
  readonly id: string;
  readonly index: number | undefined;
  readonly name: string;
  readonly given: unknown;
}

/** The call that a piece continues; undefined: it begins another. */
function findCall(calls: readonly CallSoFar[], { id, index, name, given }: PieceNames): CallSoFar | undefined {
  const isAt = (call: CallSoFar): boolean => index === undefined || call.index === undefined || call.index === index;
  const known = id === '' ? undefined : calls.findLast((call) => call.id === id && isAt(call));
  if (known) return known;
  const last = index === undefined ? calls.at(-1) : calls.findLast((call) => call.index === index);
  if (last === undefined) return undefined;
  // Another id is another call; one that comes late belongs to the call that has none, unless that one is complete.
  if (id !== '' && last.id !== '') return undefined;
  if (name === '' || last.name === '') return last;
  const isRepeated = name === last.name && (!last.isClosed('') || (given === '' && (index !== undefined || last.id !== '')));
  const isMoreOfName = name !== last.name && last.json === '' && given === undefined;
  return isRepeated || isMoreOfName ? last : undefined;
}

/** Whether an object of JSON has come to its end, looked at piece by piece. */
function createClosedCheck(): (more: string) => boolean {
  let [depth, hasBegun, inText, isEscaped] = [0, false, false, false];
  return (more) => {
    for (const char of more) {
      if (isEscaped) isEscaped = false;
      else if (inText) [inText, isEscaped] = [char !== '"', char === '\\'];
      else if (char === '"') inText = true;
      else if (char === '{' || char === '[') [depth, hasBegun] = [depth + 1, true];
      else if (char === '}' || char === ']') depth -= 1;
    }
    return hasBegun && depth <= 0 && !inText;
  };
}

function toUsage(wire: unknown): ModelUsage {
  const {
    prompt_tokens: input,
    completion_tokens: output,
    prompt_tokens_details: details,
    completion_tokens_details: made,
  } = asObject(wire);
  const thought = asCount(asObject(made).reasoning_tokens);
  const written = asCount(asObject(details).cache_write_tokens);
  return {
    inputTokens: asCount(input),
    cachedTokens: asCount(asObject(details).cached_tokens),
    outputTokens: asCount(output),
    ...(written > 0 && { cacheWriteTokens: written }),
    ...(thought > 0 && { reasoningTokens: thought }),
  };
}
