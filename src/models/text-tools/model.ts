/**
 * A model without native tool calls, made to use tools (seed 000, "Streaming & Tool Parsing"): what it may call is in the
 * system prompt, its calls and their results go as text, and what it writes is read strictly (model.ts).
 *
 * @rule text-tools/whole-call-or-none: A call counts if it is wholly right, or not at all: a broken one becomes words for the model, and
 *   stays in the text. After a call without an end nothing is read, since an argument may look like a call. (test:
 *   test/models/text-tools/calls.test.ts)
 */
import {
  isBodyRef,
  shownText,
  type AssistantBlock,
  type ConversationMessage,
  type JsonValue,
  type JsonObject,
} from '../../records/message.js';
import type { Model, ModelRequest, ModelResponse, TextToolFormat, ToolDescription } from '../model.js';
import { toToolSchema } from '../tool-schema.js';
import { isRecord } from '../../platform/json.js';
import { oneLine, cut } from '../../records/text.js';
import { objectAt } from '../../records/balanced-json.js';

export function withTextTools(model: Model, format: TextToolFormat): Model {
  return {
    provider: model.provider,
    async stream(given, options) {
      const tools = given.tools.map((tool) => ({ ...tool, inputSchema: toToolSchema(tool.inputSchema, 'full') }));
      const request = { ...given, tools };
      return readCalls(await model.stream(describeTools(request, format), options), request, format);
    },
  };
}

function describeTools(request: ModelRequest, format: TextToolFormat): ModelRequest {
  const { answerSchema, ...rest } = request;
  const { system, tools, messages } = rest;
  const instructions = textToolInstructions(format, tools);
  return {
    ...rest,
    // A call in words would not be of it.
    ...(answerSchema && tools.length === 0 && { answerSchema }),
    system: [system, instructions].filter((text) => text !== '').join('\n\n'),
    tools: [],
    messages: messages.map((message) => toWords(message, format)),
  };
}

function toWords(message: ConversationMessage, format: TextToolFormat): ConversationMessage {
  if (message.role === 'tool') return { role: 'user', text: `Result of ${message.name} (${message.outcome}):\n${shownText(message.text)}` };
  if (message.role === 'user') return message;
  const blocks = message.blocks.map((block): AssistantBlock => {
    if (block.kind !== 'tool-call') return block;
    return { kind: 'text', text: writeCall(block.name, block.input, format) };
  });
  return { ...message, blocks };
}

function writeCall(name: string, input: JsonValue, format: TextToolFormat): string {
  if (format === 'json') return JSON.stringify({ tool: name, input });
  const args = isRecord(input) && !isBodyRef(input) ? Object.entries(input) : [];
  const lines = args.map(
    ([key, value]) => `<arg name="${escaped(key)}">${escaped(typeof value === 'string' ? value : JSON.stringify(value))}</arg>`,
  );
  return [`<tool name="${escaped(name)}">`, ...lines, '</tool>'].join('\n');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** A call that was cut off is none: only a whole answer is read. */
function readCalls(response: ModelResponse, { tools }: ModelRequest, format: TextToolFormat): ModelResponse {
  if (response.stop !== 'end') return response;
  const answer = response.blocks.flatMap((block) => (block.kind === 'text' ? [shownText(block.text)] : [])).join('');
  const { text, calls, problems } = parseTextToolCalls(answer, { format, tools });
  if (calls.length === 0 && problems.length === 0) return response;
  const notes = problems.map((problem) => `[${problem}]`);
  const rest = [text.trim(), ...notes].filter((line) => line !== '').join('\n');
  return {
    ...response,
    stop: calls.length > 0 ? 'tool-calls' : 'end',
    blocks: [
      ...response.blocks.filter((block) => block.kind !== 'text'),
      ...(rest === '' ? [] : [{ kind: 'text', text: rest } as const]),
      ...calls.map(({ name, input }, i) => ({ kind: 'tool-call', callId: `text_${i + 1}`, name, input }) as const),
    ],
  };
}

// Tool calls written in text, for models without native tool calls (seed 000, "Streaming & Tool Parsing"). Two formats:
//
//   xml     <tool name="read_file">
//             <arg name="path">notes/plan.md</arg>
//             <arg name="limit">10</arg>
//           </tool>
//           A value is text; where the tool's schema names another type it is read as JSON. Of entities the five of XML are known,
//           a value that holds this markup is written as CDATA.
//
//   json    {"tool": "read_file", "input": {"path": "notes/plan.md", "limit": 10}}
//           At the beginning of a line, "tool" first, no third key.
//
// Bounded: in the length of the text, the number of calls and problems, the depth of JSON. Linear in the text. The same call twice in one
// answer is made once.

// What the readers of both formats of text tool calls share.

interface TextToolCall {
  readonly name: string;
  readonly input: JsonObject;
}

/** Characters, levels, and how many. */
export const TEXT_TOOL_LIMITS = { text: 256 * 1024, calls: 32, args: 64, depth: 32, problems: 16 } as const;

/** Tools by name, with the schema of their arguments where it is known. */
type Offered = ReadonlyMap<string, JsonObject | undefined>;

/** A call and the characters that it takes. */
interface Piece {
  readonly from: number;
  readonly to: number;
  readonly call: TextToolCall;
}

/** One call as it was written; `broken` where its end cannot be found. */
type Read = Piece | { readonly refused: string; readonly to: number } | { readonly broken: string };

function unknownTool(name: string, offered: Offered): string {
  return `there is no tool ${shown(name)}; tools here: ${[...offered.keys()].join(', ') || 'none'}`;
}

/** A name of the model's, as words for the model. */
function shown(name: string): string {
  return JSON.stringify(cut(oneLine(name), 64));
}

/** By its name alone every XML argument is text. */
type OfferedTool = string | Pick<ToolDescription, 'name' | 'inputSchema'>;

interface ParsedToolCalls {
  /** The text beside the calls. */
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

// `<tool name="read_file"><arg name="path">…</arg></tool>`

function* xmlStarts(text: string): Iterable<number> {
  for (const { index } of text.matchAll(/<tool[\s>]/g)) yield index;
}

const CLOSE = '</tool>';
const TOOL_TAG = /<tool\s+name\s*=\s*(?:"([^"<>]{1,128})"|'([^'<>]{1,128})')\s*>/y;
const ARG_TAG = /<arg\s+name\s*=\s*(?:"([^"<>]{1,128})"|'([^'<>]{1,128})')\s*>/y;
const SPACE = /\s*/y;

function readXml(text: string, from: number, offered: Offered): Read {
  const tag = matchAt(TOOL_TAG, text, from);
  if (!tag) return { broken: 'a tool call was not run: it begins with <tool name="…">' };
  const name = tag[1] ?? tag[2] ?? '';
  const args: [argument: string, value: string][] = [];
  let at = from + tag[0].length;
  for (;;) {
    at = afterSpace(text, at);
    if (text.startsWith(CLOSE, at)) break;
    const arg = matchAt(ARG_TAG, text, at);
    if (!arg)
      return {
        broken: `${shown(name)} was not run: ${at >= text.length ? `${CLOSE} is missing` : 'only <arg name="…"> stands inside of it'}`,
      };
    const argument = arg[1] ?? arg[2] ?? '';
    const value = readValue(text, at + arg[0].length);
    if (!value)
      return {
        broken: `${shown(name)} was not run: its argument ${shown(argument)} is not closed, or has markup in it that belongs into CDATA`,
      };
    args.push([argument, value.text]);
    at = value.to;
  }
  const to = at + CLOSE.length;
  const input = offered.has(name) ? toInput(args, offered.get(name)) : unknownTool(name, offered);
  return typeof input === 'string'
    ? { to, refused: offered.has(name) ? `${name}: not run, ${input}` : input }
    : { from, to, call: { name, input } };
}

/** The arguments by their types, or what is wrong with them. */
function toInput(args: readonly (readonly [string, string])[], schema: JsonObject | undefined): JsonObject | string {
  if (args.length > TEXT_TOOL_LIMITS.args) return `it has more than ${TEXT_TOOL_LIMITS.args} arguments`;
  const input = new Map<string, JsonValue>();
  for (const [argument, text] of args) {
    if (input.has(argument)) return `it has two arguments ${shown(argument)}`;
    const value = typed(text, argumentType(schema, argument));
    if (value === undefined) return `the argument ${shown(argument)} is no valid JSON`;
    input.set(argument, value);
  }
  // By Object.hasOwn, whatever their names: nothing here is assigned to a prototype.
  return Object.fromEntries(input);
}

const ARG_END = '</arg>';
const CDATA = '<![CDATA[';

/** Up to `</arg>`; undefined when that is missing or other tags of this markup come before it. */
function readValue(text: string, from: number): { readonly text: string; readonly to: number } | undefined {
  const start = afterSpace(text, from);
  if (text.startsWith(CDATA, start)) {
    const end = text.indexOf(']]>', start);
    const close = end === -1 ? -1 : afterSpace(text, end + 3);
    return close !== -1 && text.startsWith(ARG_END, close)
      ? { text: text.slice(start + CDATA.length, end), to: close + ARG_END.length }
      : undefined;
  }
  const end = text.indexOf(ARG_END, from);
  if (end === -1) return undefined;
  const raw = text.slice(from, end);
  return /<\/?(?:tool|arg)[\s>]/.test(raw) ? undefined : { text: unescaped(raw), to: end + ARG_END.length };
}

/** The five entities of XML, each once; no other is known, so none can grow. */
function unescaped(raw: string): string {
  return raw.replace(/&(lt|gt|amp|quot|apos);/g, (_, name: keyof typeof ENTITIES) => ENTITIES[name]);
}

const ENTITIES = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" } as const;

/** Text unless the schema says otherwise; undefined for what should be JSON and is none. */
function typed(value: string, type: unknown): JsonValue | undefined {
  const types = Array.isArray(type) ? type : [type];
  if (type === undefined || types.includes('string')) return value;
  const text = value.trim();
  const plain = /^(?:-?\d[\d.eE+-]{0,40}|true|false|null)$/.test(text);
  if (!plain && !isShallow(text)) return undefined;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

/** Only lists and objects can be deep. */
function isShallow(text: string): boolean {
  const search = objectAt(text, 0, TEXT_TOOL_LIMITS.depth);
  return search.kind === 'found' && search.to === text.length;
}

function argumentType(schema: JsonObject | undefined, argument: string): unknown {
  const properties = schema?.['properties'];
  if (!isRecord(properties) || !Object.hasOwn(properties, argument)) return undefined;
  const property = properties[argument];
  return isRecord(property) ? property['type'] : undefined;
}

function afterSpace(text: string, at: number): number {
  return at + (matchAt(SPACE, text, at)?.[0].length ?? 0);
}

/** At this place and no other; a pattern is shared, its position is not. */
function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  const sticky = new RegExp(pattern.source, 'y');
  sticky.lastIndex = at;
  return sticky.exec(text);
}
