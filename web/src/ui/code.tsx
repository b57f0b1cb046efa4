import type { JSX } from 'preact';
import { plainCode, bytes } from './words.js';

const MAX_SHOWN = 60_000;

/** Text of a program, as it is; of a very long one its beginning. */
export function Code({ text }: { readonly text: string }): JSX.Element {
  const isCut = text.length > MAX_SHOWN;
  return (
    <>
      <pre class="code" tabIndex={0} dir="ltr">
        {plainCode(isCut ? text.slice(0, MAX_SHOWN) : text)}
      </pre>
      {isCut && (
        <p class="small faint">
          The first {bytes(MAX_SHOWN)} of {bytes(text.length)}.
        </p>
      )}
    </>
  );
}

const WIDTH = 84;
const MAX_DEPTH = 40;

/** JSON for people: a short value is on one line. */
export function prettyJson(value: unknown, indent = '', depth = 0): string {
  const line = JSON.stringify(value) ?? 'null';
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return line;
  const spaced = oneLine(value);
  if (spaced.length + indent.length <= WIDTH) return spaced;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    return `[\n${value.map((one) => `${inner}${prettyJson(one, inner, depth + 1)}`).join(',\n')}\n${indent}]`;
  }
  const fields = Object.entries(value).map(([name, one]) => `${inner}${JSON.stringify(name)}: ${prettyJson(one, inner, depth + 1)}`);
  return `{\n${fields.join(',\n')}\n${indent}}`;
}

/** Undefined where it is no JSON. */
export function parsedJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** The first words that it has, one after the other: a command, a path, a question. */
export function gatherWords(value: unknown, depth = 0): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  if (typeof value !== 'object' || value === null || depth > 3) return '';
  return Object.values(value)
    .slice(0, 30)
    .map((one) => gatherWords(one, depth + 1))
    .filter((words) => words !== '')
    .join(' ');
}

function oneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const fields = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${oneLine(one)}`);
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}
