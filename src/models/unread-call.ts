/** A tool call whose input waits for the stop reason before it is read: cut off, its JSON may look whole and mean something else. */
import type { AssistantBlock, JsonValue } from '../records/message.js';
import { ModelFailure } from './model.js';
import { parseToolInput, toToolInput } from './tool-input.js';

export interface UnreadCall {
  readonly kind: 'unread-call';
  readonly callId: string;
  readonly name: string;
  readonly json: string;
  /** Where the input came as a value and not as JSON text. */
  readonly input: JsonValue;
}

export function readCall({ callId, name, json, input }: UnreadCall): AssistantBlock {
  try {
    return { kind: 'tool-call', callId, name, input: json.trim() === '' ? toToolInput(input) : parseToolInput(json) };
  } catch (error) {
    throw brokenStream(`the input of ${name} is not whole JSON`, error);
  }
}

export function brokenStream(what: string, cause?: unknown): ModelFailure {
  return new ModelFailure('broken-stream', what, { cause });
}
