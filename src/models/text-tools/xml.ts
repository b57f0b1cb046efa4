/** `<tool name="read_file"><arg name="path">…</arg></tool>` */
import type { JsonObject, JsonValue } from '../../records/message.js';
import { objectAt } from '../../records/balanced-json.js';
import { shown, TEXT_TOOL_LIMITS, unknownTool, type Offered, type Read } from './reading.js';
import { isRecord } from '../../platform/json.js';

export function* xmlStarts(text: string): Iterable<number> {
  for (const { index } of text.matchAll(/<tool[\s>]/g)) yield index;
}

const CLOSE = '</tool>';
const TOOL_TAG = /<tool\s+name\s*=\s*(?:"([^"<>]{1,128})"|'([^'<>]{1,128})')\s*>/y;
const ARG_TAG = /<arg\s+name\s*=\s*(?:"([^"<>]{1,128})"|'([^'<>]{1,128})')\s*>/y;
const SPACE = /\s*/y;

export function readXml(text: string, from: number, offered: Offered): Read {
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
    const value = typed(text, typeOf(schema, argument));
    if (value === undefined) return `the argument ${shown(argument)} is no valid JSON`;
    input.set(argument, value);
  }
  // Own properties, whatever their names: nothing here is assigned to a prototype.
  return Object.fromEntries(input);
}

const ARG_END = '</arg>';
const CDATA = '<![CDATA[';

/** Up to `</arg>`; undefined when that is missing or other tags of this markup stand before it. */
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

function typeOf(schema: JsonObject | undefined, argument: string): unknown {
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
