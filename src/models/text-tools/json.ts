/** `{"tool": "read_file", "input": {…}}` at the beginning of a line. */
import { objectAt } from '../../records/balanced-json.js';
import { isObject, shown, TEXT_TOOL_LIMITS, unknownTool, type Offered, type Read } from './reading.js';

export function* jsonStarts(text: string): Iterable<number> {
  for (const { index } of text.matchAll(/\{\s*"tool"\s*:/g)) if (beginsLine(text, index)) yield index;
}

function beginsLine(text: string, at: number): boolean {
  let before = at - 1;
  while (text[before] === ' ' || text[before] === '\t') before--;
  return before < 0 || text[before] === '\n';
}

export function readJson(text: string, from: number, offered: Offered): Read {
  const search = objectAt(text, from, TEXT_TOOL_LIMITS.depth);
  if (search.kind !== 'found') return { broken: JSON_PROBLEMS[search.kind] };
  const { tool, input, ...more } = search.value;
  const { to } = search;
  const extra = Object.keys(more)[0];
  if (typeof tool !== 'string') return { to, refused: 'a tool call was not run: its "tool" is no text' };
  if (!offered.has(tool)) return { to, refused: unknownTool(tool, offered) };
  if (extra !== undefined) return { to, refused: `${tool}: not run, its object has a key ${shown(extra)} beside "tool" and "input"` };
  if (!isObject(input)) return { to, refused: `${tool}: not run, "input" must be an object` };
  return { from, to, call: { name: tool, input } };
}

const JSON_PROBLEMS = {
  unclosed: 'a tool call was not run: its JSON object is not closed',
  'too-deep': `a tool call was not run: it is nested deeper than ${TEXT_TOOL_LIMITS.depth} levels`,
  'no-json': 'a tool call was not run: it is no valid JSON',
} as const;
