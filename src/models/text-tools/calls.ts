/**
 * Tool calls written in text, for models that have no tools of their own (seed 000, "Streaming & Tool Parsing"). Two formats:
 *
 *   xml     <tool name="read_file">
 *             <arg name="path">notes/plan.md</arg>
 *             <arg name="limit">10</arg>
 *           </tool>
 *           A value is text; where the tool's schema names another type it is read as JSON. Of entities the five of XML are known,
 *           a value that holds this markup is written as CDATA.
 *
 *   json    {"tool": "read_file", "input": {"path": "notes/plan.md", "limit": 10}}
 *           At the beginning of a line, "tool" first, no third key.
 *
 * Bounded: in the length of the text, the number of calls and problems, the depth of JSON. Linear in the text. The same call twice in one
 * answer is made once.
 *
 * @rule text-tools/whole-call-or-none: A call counts if it is wholly right, or not at all: a broken one becomes words for the model, and
 *   stays in the text. After a call without an end nothing is read, since an argument may look like a call. (test:
 *   test/models/text-tools/calls.test.ts)
 */
import type { TextToolFormat, ToolDescription } from '../model.js';
import type { JsonObject } from '../../records/message.js';
import { oneLine } from '../../records/text.js';
import { TEXT_TOOL_LIMITS, type Piece, type Read, type TextToolCall, shown, unknownTool, type Offered } from './reading.js';
import { readXml, xmlStarts } from './xml.js';
import { objectAt } from '../../records/balanced-json.js';
import { isRecord } from '../../platform/json.js';

/** By its name alone every XML argument is text. */
export type OfferedTool = string | Pick<ToolDescription, 'name' | 'inputSchema'>;

export interface ParsedToolCalls {
  /** What was said beside the calls. */
  readonly text: string;
  readonly calls: readonly TextToolCall[];
  /** For the model: what was not run, and why. */
  readonly problems: readonly string[];
}

/** Never throws. */
export function parseTextToolCalls(
  text: string,
  { format, tools }: { readonly format: TextToolFormat; readonly tools: readonly OfferedTool[] },
): ParsedToolCalls {
  if (text.length > TEXT_TOOL_LIMITS.text) {
    return {
      text,
      calls: [],
      problems: [`no tool was run: the answer has ${text.length} characters, of which ${TEXT_TOOL_LIMITS.text} are read`],
    };
  }
  const offered = new Map(tools.map((tool) => (typeof tool === 'string' ? [tool, undefined] : [tool.name, tool.inputSchema])));
  const found =
    format === 'xml'
      ? findCalls(xmlStarts(text), (from) => readXml(text, from, offered))
      : findCalls(jsonStarts(text), (from) => readJson(text, from, offered));
  const calls: TextToolCall[] = [];
  const problems = [...found.problems];
  const taken: Piece[] = [];
  const seen = new Set<string>();
  for (const piece of found.pieces) {
    const key = JSON.stringify(piece.call);
    if (seen.has(key)) problems.push(`${piece.call.name}: the same call stands twice; it is made once`);
    else if (calls.length === TEXT_TOOL_LIMITS.calls) {
      problems.push(`${piece.call.name}: not run, an answer may have ${TEXT_TOOL_LIMITS.calls} calls`);
      continue;
    } else calls.push(piece.call);
    seen.add(key);
    taken.push(piece);
  }
  return { text: without(text, taken), calls, problems: problems.slice(0, TEXT_TOOL_LIMITS.problems) };
}

/** How to call, for the system prompt; the same tools give the same text. '' without tools. */
export function textToolInstructions(format: TextToolFormat, tools: readonly ToolDescription[]): string {
  if (tools.length === 0) return '';
  const listed = tools.map(
    ({ name, description, inputSchema }) =>
      `- ${name}: ${oneLine(description)}\n  Arguments, as JSON Schema: ${JSON.stringify(inputSchema)}`,
  );
  return [
    'You can use tools. To call one, write exactly this, beginning on a line of its own:',
    HOW_TO[format],
    'Then stop and wait: the results come in the next message. The tools:',
    ...listed,
  ].join('\n');
}

const HOW_TO: { readonly [format in TextToolFormat]: string } = {
  xml: [
    '<tool name="NAME">',
    '<arg name="ARGUMENT">VALUE</arg>',
    '</tool>',
    'One <arg> for each argument. Text is written as it is, with &lt; &gt; &amp; for < > &, or inside of <![CDATA[ and ]]>; numbers, true, false, lists and objects as JSON.',
  ].join('\n'),
  json: ['{"tool": "NAME", "input": {"ARGUMENT": VALUE}}', 'It is one JSON object with these two keys, in this order.'].join('\n'),
};

interface Found {
  readonly pieces: readonly Piece[];
  readonly problems: readonly string[];
}

/** After a broken call nothing is read, since what looks like a call there may be an argument (text-tools/whole-call-or-none). */
function findCalls(starts: Iterable<number>, read: (from: number) => Read): Found {
  const pieces: Piece[] = [];
  const problems: string[] = [];
  let end = 0;
  for (const from of starts) {
    if (from < end) continue;
    const found = read(from);
    if ('broken' in found) return { pieces, problems: [...problems, `${found.broken}; nothing after it was read`] };
    if ('refused' in found) problems.push(found.refused);
    else pieces.push(found);
    end = found.to;
  }
  return { pieces, problems };
}

/** The text without its calls, and without the code fences that then are empty. */
function without(text: string, pieces: readonly Piece[]): string {
  let rest = '';
  let at = 0;
  for (const { from, to } of pieces) {
    rest += text.slice(at, from);
    at = to;
  }
  rest += text.slice(at);
  return pieces.length === 0 ? text : rest.replace(/```[a-z]{0,10}[ \t]*\n\s*```[ \t]*/g, '').trim();
}

/** `{"tool": "read_file", "input": {…}}` at the beginning of a line. */
function* jsonStarts(text: string): Iterable<number> {
  for (const { index } of text.matchAll(/\{\s*"tool"\s*:/g)) if (beginsLine(text, index)) yield index;
}

function beginsLine(text: string, at: number): boolean {
  let before = at - 1;
  while (text[before] === ' ' || text[before] === '\t') before--;
  return before < 0 || text[before] === '\n';
}

function readJson(text: string, from: number, offered: Offered): Read {
  const search = objectAt(text, from, TEXT_TOOL_LIMITS.depth);
  if (search.kind !== 'found') return { broken: JSON_PROBLEMS[search.kind] };
  const { tool, input, ...more } = search.value;
  const { to } = search;
  const extra = Object.keys(more)[0];
  if (typeof tool !== 'string') return { to, refused: 'a tool call was not run: its "tool" is no text' };
  if (!offered.has(tool)) return { to, refused: unknownTool(tool, offered) };
  if (extra !== undefined) return { to, refused: `${tool}: not run, its object has a key ${shown(extra)} beside "tool" and "input"` };
  if (!isRecord(input)) return { to, refused: `${tool}: not run, "input" must be an object` };
  return { from, to, call: { name: tool, input: input as JsonObject } };
}

const JSON_PROBLEMS = {
  unclosed: 'a tool call was not run: its JSON object is not closed',
  'too-deep': `a tool call was not run: it is nested deeper than ${TEXT_TOOL_LIMITS.depth} levels`,
  'no-json': 'a tool call was not run: it is no valid JSON',
} as const;
