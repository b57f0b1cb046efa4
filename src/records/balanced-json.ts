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

/** Looked at at most; a text of braces alone must not take long. */
const TRIES = 8;
const TAG = /<([a-z][\w-]{0,40})(?:\s[^<>\n]{0,200})?>/iy;
const MAX_TAGS = 100;

export interface AnswerObjects {
  readonly found: readonly FoundObject[];
  /** Where the first begins that is not whole, or no valid JSON. */
  readonly broken?: number;
}

/**
 * The objects that a model's answer states itself, in their order: not inside of another one, of a `<tag>`, of quotation marks
 * or of a quoted line, and not one that stood in the `question` already, however it was spaced or fenced.
 */
export function objectsInAnswer(answer: string, question: string, maxDepth: number): AnswerObjects {
  const found: FoundObject[] = [];
  const squeezedQuestion = squeezed(question);
  let broken: number | undefined;
  let tags = 0;
  let tries = 0;
  for (let at = 0; at < answer.length && tries < TRIES; at++) {
    const character = answer[at];
    if (character === '<' && tags < MAX_TAGS) {
      TAG.lastIndex = at;
      const name = TAG.exec(answer)?.[1];
      if (name === undefined) continue;
      tags++;
      const end = answer.indexOf(`</${name}>`, at);
      // Not closed and at the margin: all that follows is in it.
      if (end === -1 && isAtMargin(answer, at)) return { found };
      if (end !== -1) at = end;
    } else if (character === '>' && isAtMargin(answer, at)) {
      const end = answer.indexOf('\n', at);
      if (end === -1) return { found };
      at = end;
    } else if (character === '{') {
      tries++;
      const search = objectAt(answer, at, maxDepth);
      if (search.kind !== 'found') {
        // A broken object: what stands inside of it may be quoted, and whole.
        if (!/^\{\s*["/]/.test(answer.slice(at, at + 100))) continue;
        if (search.kind !== 'no-json') return { found, broken: broken ?? at };
        broken ??= at;
        at = search.to - 1;
        continue;
      }
      const isQuoted = QUOTES.includes(answer[at - 1] ?? ' ') && QUOTES.includes(answer[search.to] ?? ' ');
      if (!isQuoted && !squeezedQuestion.includes(squeezed(answer.slice(at, search.to)))) found.push(search);
      at = search.to - 1;
    }
  }
  return { found, ...(broken !== undefined && { broken }) };
}

/** Each of one UTF-16 unit. */
const QUOTES = '"\'`“”„«»‘’';

function isAtMargin(text: string, at: number): boolean {
  return /(?:^|\n)[ \t]{0,20}$/.test(text.slice(Math.max(0, at - 21), at));
}

/** Without what a quotation may change: spaces, line ends, and the escapes of a string in a string. */
export function squeezed(text: string): string {
  return text.replace(/(?:\\[nrt]|[\s\\])+/g, '');
}
