/** The content of requests of Anthropic's clients: texts, and pictures and documents in the newest message. */
import { z } from 'zod';
import { invalid, unsupported } from '../core/errors.js';
import type { ClientTool, JsonObject, JsonValue, Media, MediaKind, MediaSource } from '../../records/message.js';
import { attachmentNamed, type NamedSource, toFile } from '../core/attachments.js';
import { type ToolAnswer, checkTools, type MustCall } from '../core/client-calls.js';
import { inTurns, type Spoken, type Supplied, type SuppliedCall } from '../core/supplied-history.js';

const source = z.looseObject({
  type: z.string(),
  media_type: z.string().max(100).optional(),
  data: z.string().optional(),
  file_id: z.string().max(500).optional(),
  url: z.string().max(8_192).optional(),
});
const textBlock = z.looseObject({ type: z.string(), text: z.string().optional() });
const block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  source: source.optional(),
  title: z.string().max(500).nullish(),
  /** Id of a call, and of its answer. */
  id: z.string().max(500).optional(),
  name: z.string().max(500).optional(),
  input: z.unknown().optional(),
  tool_use_id: z.string().max(500).optional(),
  content: z.union([z.string(), z.array(textBlock).max(1_000)]).optional(),
  is_error: z.boolean().nullish(),
});
const content = z.union([z.string(), z.array(block).max(1_000)]);
type Content = z.output<typeof content>;
type Block = z.output<typeof block>;

const tool = z.looseObject({
  type: z.string().nullish(),
  name: z.string(),
  description: z.string().optional(),
  input_schema: z.record(z.string(), z.unknown()).optional(),
});

/** The fields that `/v1/messages` and its `/count_tokens` have in common. */
export const prompt = {
  model: z.string().min(1).max(128),
  messages: z
    .array(z.looseObject({ role: z.enum(['user', 'assistant']), content }))
    .min(1)
    .max(10_000),
  system: content.optional(),
  tools: z.array(tool).optional(),
  tool_choice: z
    .looseObject({ type: z.string(), name: z.string().optional(), disable_parallel_tool_use: z.boolean().optional() })
    .optional(),
};

export interface Conversed extends Supplied {
  readonly media: Media;
  readonly tools: readonly ClientTool[];
}

export function readPrompt({ messages, system, tools = [], tool_choice: choice }: z.output<z.ZodObject<typeof prompt>>): Conversed {
  const turns = inTurns(messages.flatMap(({ role, content: given }, at) => spokenIn(role, given, `messages.${at}`)));
  if (messages.at(-1)?.role !== 'user') throw invalid('messages: the last one must be of the user', 'messages');
  const instructions = system === undefined ? '' : readText(system, 'system');
  return {
    ...turns,
    tools: readTools(tools, choice),
    media: toMedia(messages.at(-1)?.content ?? '', `messages.${messages.length - 1}`),
    ...(instructions !== '' && { instructions }),
  };
}

function readTools(
  tools: readonly z.output<typeof tool>[],
  {
    type: choice = 'auto',
    name: chosen,
    disable_parallel_tool_use: isSingle = false,
  }: { readonly type?: string; readonly name?: string | undefined; readonly disable_parallel_tool_use?: boolean | undefined } = {},
): readonly ClientTool[] {
  if (choice === 'none') return [];
  const mustCall: MustCall = choice === 'any' ? 'any' : choice === 'tool' && chosen !== undefined ? { name: chosen } : undefined;
  if (choice !== 'auto' && !mustCall) throw unsupported(`a tool_choice of the type ${JSON.stringify(choice.slice(0, 40))}`, 'tool_choice');
  if (tools.length === 0 && !mustCall) return [];
  if (isSingle) throw unsupported('a model that calls one tool at a time', 'tool_choice.disable_parallel_tool_use');
  return checkTools(
    tools.map(({ type, name, description, input_schema: schema = {} }, at) => {
      if (type !== undefined && type !== null && type !== 'custom')
        throw unsupported(`a tool of the type ${JSON.stringify(type.slice(0, 40))}`, `tools.${at}.type`);
      return { name, ...(description !== undefined && { description }), inputSchema: schema as JsonObject };
    }),
    mustCall,
  );
}

/** Answers of tools come before the words beside them. */
function spokenIn(role: 'user' | 'assistant', given: Content, where: string): readonly Spoken[] {
  const text = readText(given, where);
  const blocks = typeof given === 'string' ? [] : given;
  if (role === 'assistant') {
    const calls = blocks.flatMap(({ type, id = '', name = '', input = {} }): SuppliedCall[] =>
      type === 'tool_use' ? [{ id, name, arguments: input as JsonValue }] : [],
    );
    return [{ role, text, ...(calls.length > 0 && { calls }) }];
  }
  const answers = blocks.flatMap(({ type, tool_use_id: id = '', content: result = '', is_error: isError }): ToolAnswer[] =>
    type === 'tool_result' ? [{ id, output: readText(result, where), isError: isError === true }] : [],
  );
  if (answers.length === 0) return [{ role, text }];
  return [{ role: 'tool', answers }, ...(text === '' ? [] : [{ role, text }])];
}

function readText(given: Content, where: string): string {
  if (typeof given === 'string') return given;
  return given
    .flatMap(({ type, text }, at) => {
      if (type === 'text' && text !== undefined) return [text];
      if (SILENT.has(type)) return [];
      throw unsupported(`content of the type ${JSON.stringify(type.slice(0, 40))}`, `${where}.content.${at}`);
    })
    .join('\n\n');
}

/** They are no text, or are read elsewhere. */
const SILENT: ReadonlySet<string> = new Set(['image', 'document', 'thinking', 'redacted_thinking', 'tool_use', 'tool_result']);

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

function readPicture({ source: from }: Block, param: string): MediaSource {
  if (from?.type === 'base64' && from.media_type !== undefined && from.data !== undefined)
    return { mediaType: from.media_type, base64: from.data };
  if (from?.type === 'file' && from.file_id !== undefined) return attachmentNamed(from.file_id, `${param}.source.file_id`);
  throw invalid(`${param}: a picture must be sent as base64, with its media_type, or as a file, with its file_id`, param);
}

function readDocument({ source: from, title }: Block, param: string): NamedSource {
  const name = title ?? undefined;
  const { type, media_type: mediaType = 'application/pdf', data, url, file_id: id } = from ?? { type: '' };
  if (type === 'base64' && data !== undefined) return { ...toFile({ mediaType, url: `data:;base64,${data}` }, param).source, name };
  if (type === 'text' && data !== undefined && data !== '') {
    return { mediaType: 'text/plain', base64: Buffer.from(data, 'utf8').toString('base64'), name };
  }
  if (type === 'url' && url !== undefined) return { mediaType: 'application/pdf', url };
  if (type === 'file' && id !== undefined) return { ...attachmentNamed(id, `${param}.source.file_id`), name };
  throw unsupported(`a document whose source is of the type ${JSON.stringify(type.slice(0, 40))}, or empty,`, `${param}.source`);
}
