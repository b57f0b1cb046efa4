import type { JsonValue } from '../../records/message.js';

/** What a tool of the page has answered, as the page has had it: the record has JSON of what is no text. */
export function toOutput(text: string): JsonValue {
  if (!/^[[{]/.test(text)) return text;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}
