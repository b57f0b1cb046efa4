/**
 * JSON objects that stand in other text: from a brace to the brace that closes it. Bounded in depth and tries, so that no text
 * takes long: each try looks at each character once.
 */

export interface FoundObject {
  /** First character, and the one after the last. */
  readonly from: number;
  readonly to: number;
  readonly value: { readonly [key: string]: unknown };
}

export type ObjectSearch =
  | ({ readonly kind: 'found' } & FoundObject)
  /** `from` is where it begins. */
  | { readonly kind: 'unclosed' | 'too-deep' | 'no-json'; readonly from: number; readonly to: number };

/** The object (or list) that begins at `from`, where its `{` (or `[`) stands. `to` of what is none is after what was looked at. */
export function objectAt(text: string, from: number, maxDepth: number): ObjectSearch {
  let depth = 0;
  let inString = false;
  for (let at = from; at < text.length; at++) {
    const character = text[at];
    if (inString) {
      if (character === '\\') at++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{' || character === '[') {
      depth++;
      if (depth > maxDepth) return { kind: 'too-deep', from, to: at };
    } else if (character === '}' || character === ']') {
      depth--;
      if (depth === 0) return parsed(text, from, at + 1);
    }
  }
  return { kind: 'unclosed', from, to: text.length };
}

function parsed(text: string, from: number, to: number): ObjectSearch {
  try {
    return { kind: 'found', from, to, value: JSON.parse(text.slice(from, to)) as FoundObject['value'] };
  } catch {
    return { kind: 'no-json', from, to };
  }
}
