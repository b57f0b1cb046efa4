/** What requests of Anthropic's clients bring: texts, pictures, documents, tools, and what the answer has to be. */
import { z } from 'zod';
import { LIMITS } from '../../conversation/protocol/limits.js';
import { invalid, unsupported } from '../core/errors.js';
import {
  sourcesIn,
  type ClientTool,
  type JsonObject,
  type JsonValue,
  type Media,
  type MediaKind,
  type MediaSource,
} from '../../records/message.js';
import { attachmentNamed, picture, pictureAt, type NamedSource, toFile } from '../core/attachments.js';
import { checkTools, toAnswer, type ToolAnswer } from '../core/client-calls.js';
import { optional } from '../core/read-body.js';
import { inTurns, type Beside, type Spoken, type Supplied, type SuppliedCall } from '../core/supplied-history.js';

const source = z.looseObject({
  type: z.string(),
  media_type: optional(z.string().max(100)),
  data: optional(z.string()),
  file_id: optional(z.string().max(500)),
  url: optional(z.string().max(8_192)),
  content: z.unknown().optional(),
});
const text = { type: z.string(), text: optional(z.string()) };
/** What results of tools, documents and search results are made of. */
const innerBlock = z.looseObject({
  ...text,
  /** Of a search result it is an address. */
  source: optional(z.union([z.string(), source])),
  title: optional(z.string().max(2_000)),
  content: optional(z.union([z.string(), z.array(z.looseObject(text)).max(1_000)])),
});
const block = innerBlock.extend({
  /** Id of a call, and of its answer. */
  id: optional(z.string().max(500)),
  name: optional(z.string().max(500)),
  input: z.unknown().optional(),
  tool_use_id: optional(z.string().max(500)),
  content: optional(z.union([z.string(), z.array(innerBlock).max(1_000)])),
  is_error: z.boolean().nullish(),
});
const content = z.union([z.string(), z.array(block).max(1_000)]);
type Block = z.output<typeof innerBlock>;
type Content = string | readonly Block[];

const tool = z.looseObject({
  type: z.string().nullish(),
  name: optional(z.string()),
  description: optional(z.string()),
  input_schema: optional(z.record(z.string(), z.unknown())),
});
const format = optional(z.looseObject({ type: z.string(), schema: optional(z.record(z.string(), z.unknown())) }));
const stopText = z.string().min(1).max(LIMITS.stopLength);

/** The fields that `/v1/messages` and its `/count_tokens` have in common. */
export const prompt = {
  model: z.string().min(1).max(128),
  messages: z
    .array(z.looseObject({ role: z.enum(['user', 'assistant', 'system']), content }))
    .min(1)
    .max(10_000),
  system: optional(content),
  tools: optional(z.array(tool)),
  tool_choice: optional(z.looseObject({ type: z.string(), name: optional(z.string()), disable_parallel_tool_use: optional(z.boolean()) })),
  output_config: optional(z.looseObject({ format })),
  /** As betas had it. */
  output_format: format,
  stop_sequences: optional(z.array(stopText).max(LIMITS.stops)),
  mcp_servers: optional(z.array(z.unknown())),
};

export interface Conversed extends Supplied {
  readonly wishes: Beside;
}

export function readPrompt(given: z.output<z.ZodObject<typeof prompt>>): Conversed {
  const { messages, system, tools, tool_choice: choice, output_config: config, stop_sequences: at = [], mcp_servers: servers = [] } = given;
  if (servers.length > 0) throw unsupported('MCP servers of a request (those of an agent stand in mcp.json)', 'mcp_servers');
  const instructions = [
    ...(system === undefined ? [] : [readText(system, 'system')]),
    ...messages.flatMap(({ role, content: words }, i) => (role === 'system' ? [readText(words, `messages.${i}`)] : [])),
  ].filter((words) => words !== '');
  const spoken = messages.filter(({ role }) => role !== 'system');
  if (spoken.at(-1)?.role !== 'user') throw invalid('messages: the last one must be of the user', 'messages');
  const turns = inTurns(
    messages.flatMap(({ role, content: words }, i) => (role === 'system' ? [] : spokenIn(role, words, `messages.${i}`))),
  );
  const read = readTools(tools, choice);
  const output = readOutput(config?.format ?? given.output_format);
  return {
    ...turns,
    ...(instructions.length > 0 && { instructions: instructions.join('\n\n') }),
    wishes: { ...(read && { tools: read }), ...(output && { output }), ...(at.length > 0 && { stop: { at } }) },
  };
}

function readOutput(given: z.output<typeof format>): JsonObject | undefined {
  if (given === undefined) return undefined;
  if (given.type === 'json_schema' && given.schema !== undefined) return given.schema as JsonObject;
  throw unsupported(`the format ${JSON.stringify(given.type.slice(0, 40))} without a schema`, 'output_config.format');
}

type Tools = z.output<typeof prompt.tools>;

/** Undefined: the request says nothing of tools. */
function readTools(tools: Tools, choice: z.output<typeof prompt.tool_choice>): readonly ClientTool[] | undefined {
  const { type = 'auto', name, disable_parallel_tool_use: single = false } = choice ?? {};
  if (type === 'none') return [];
  const isOne = type === 'tool' && name !== undefined;
  if (type !== 'auto' && type !== 'any' && !isOne)
    throw unsupported(`a tool_choice of the type ${JSON.stringify(type.slice(0, 40))}`, 'tool_choice.type');
  if (tools === undefined && type === 'auto') return undefined;
  const read = (tools ?? []).map(({ type: kind, name: named = '', description, input_schema: schema = {} }, at): ClientTool => {
    if (kind !== undefined && kind !== null && kind !== 'custom')
      throw unsupported(`a tool of the type ${JSON.stringify(kind.slice(0, 40))}`, `tools.${at}.type`);
    return { name: named, ...(description !== undefined && { description }), inputSchema: schema as JsonObject };
  });
  return checkTools(read, { mustCall: type !== 'auto', single, ...(isOne && { names: [name] }) });
}

/** Answers of tools come before the words beside them. */
function spokenIn(role: 'user' | 'assistant', given: z.output<typeof content>, where: string): readonly Spoken[] {
  const words = readText(given, where);
  const media = toMedia(given, where);
  const blocks = typeof given === 'string' ? [] : given;
  if (role === 'assistant') {
    const calls = blocks.flatMap(({ type, id = '', name = '', input = {} }): SuppliedCall[] =>
      type === 'tool_use' ? [{ id, name, arguments: input as JsonValue }] : [],
    );
    return [{ role, text: words, ...(calls.length > 0 && { calls }) }];
  }
  const answers = blocks.flatMap(({ type, tool_use_id: id = '', content: result = '', is_error: isError }, at): ToolAnswer[] => {
    if (type !== 'tool_result') return [];
    const param = `${where}.content.${at}`;
    return [toAnswer({ id, output: readText(result, param), isError: isError === true, media: toMedia(result, param) })];
  });
  if (answers.length === 0) return [{ role, text: words, media }];
  const hasMore = words !== '' || sourcesIn(media).length > 0;
  return [{ role: 'tool', answers }, ...(hasMore ? [{ role, text: words, media }] : [])];
}

function readText(given: Content, where: string): string {
  if (typeof given === 'string') return given;
  return given
    .flatMap((one, at) => {
      if (one.type === 'text' && one.text !== undefined) return [one.text];
      if (one.type === 'search_result') return [readSearchResult(one)];
      if (SILENT.has(one.type)) return [];
      throw unsupported(`content of the type ${JSON.stringify(one.type.slice(0, 40))}`, `${where}.content.${at}`);
    })
    .join('\n\n');
}

/** They are no text, or are read elsewhere. */
const SILENT: ReadonlySet<string> = new Set(['image', 'document', 'thinking', 'redacted_thinking', 'tool_use', 'tool_result']);

function readSearchResult({ title = '', source: from, content: found = '' }: Block): string {
  const words = typeof found === 'string' ? found : found.map(({ text: one = '' }) => one).join('\n');
  return `[Search result: ${[title, ...(typeof from === 'string' ? [from] : [])].join(', ')}]\n${words}`;
}

function toMedia(given: Content, where: string): Media {
  const media: Partial<Record<MediaKind, MediaSource[]>> = {};
  if (typeof given === 'string') return media;
  for (const [at, one] of given.entries()) {
    const param = `${where}.content.${at}`;
    if (one.type === 'image') (media.images ??= []).push(readPicture(one, param));
    if (one.type === 'document') (media.documents ??= []).push(readDocument(one, param));
  }
  return media;
}

function readSource({ source: from }: Block): Partial<z.output<typeof source>> & { readonly type: string } {
  return typeof from === 'object' ? from : { type: '' };
}

function readPicture(given: Block, param: string): MediaSource {
  const { type, media_type: mediaType = '', data, file_id: id, url } = readSource(given);
  if (type === 'base64' && data !== undefined) return picture(data, mediaType);
  if (type === 'file' && id !== undefined) return attachmentNamed(id, `${param}.source.file_id`);
  if (type === 'url' && url !== undefined) return pictureAt(url, `${param}.source.url`);
  throw invalid(`${param}: a picture must be sent as base64, with its media_type, by its url, or as a file, with its file_id`, param);
}

function readDocument(given: Block, param: string): NamedSource {
  const { title: name } = given;
  const { type, media_type: mediaType = 'application/pdf', data, url, file_id: id, content: inner } = readSource(given);
  if (type === 'base64' && data !== undefined) return { ...toFile({ mediaType, url: `data:;base64,${data}` }, param).source, name };
  if (type === 'text' && data !== undefined && data !== '') return textFile(data, name);
  if (type === 'url' && url !== undefined) return { mediaType: 'application/pdf', url };
  if (type === 'file' && id !== undefined) return { ...attachmentNamed(id, `${param}.source.file_id`), name };
  const parts = type === 'content' ? z.union([z.string(), z.array(z.object(text))]).safeParse(inner).data : undefined;
  const words = typeof parts === 'string' ? parts : parts?.map(({ text: one }) => one ?? '').join('\n\n');
  if (words !== undefined && words !== '') return textFile(words, name);
  throw unsupported(`a document whose source is of the type ${JSON.stringify(type.slice(0, 40))}, or empty,`, `${param}.source`);
}

function textFile(words: string, name: string | undefined): NamedSource {
  return { mediaType: 'text/plain', base64: Buffer.from(words, 'utf8').toString('base64'), name };
}
