/** What the readers of both formats of text tool calls share. */
import type { JsonObject } from '../../records/message.js';
import { cut, oneLine } from '../../records/text.js';

export interface TextToolCall {
  readonly name: string;
  readonly input: JsonObject;
}

/** Characters, levels, and how many. */
export const TEXT_TOOL_LIMITS = { text: 256 * 1024, calls: 32, args: 64, depth: 32, problems: 16 } as const;

/** Tools by name, with the schema of their arguments where it is known. */
export type Offered = ReadonlyMap<string, JsonObject | undefined>;

/** A call and the characters that it takes. */
export interface Piece {
  readonly from: number;
  readonly to: number;
  readonly call: TextToolCall;
}

/** One call as it was written; `broken` where its end cannot be found. */
export type Read = Piece | { readonly refused: string; readonly to: number } | { readonly broken: string };

export function unknownTool(name: string, offered: Offered): string {
  return `there is no tool ${shown(name)}; tools here: ${[...offered.keys()].join(', ') || 'none'}`;
}

/** A name of the model's, as words for the model. */
export function shown(name: string): string {
  return JSON.stringify(cut(oneLine(name), 64));
}
