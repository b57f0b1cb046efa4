/** What clients of Anthropic's API say: texts, and pictures in the newest message. */
import { z } from 'zod';
import type { ClientTool, JsonObject, JsonValue, MediaSource } from '../../records/message.js';
import { attachmentNamed } from '../core/attachments.js';
import { invalid, unsupported } from '../core/read-body.js';
import type { ToolAnswer } from '../core/client-calls.js';
import { checkedTools, type MustCall } from '../core/client-tools.js';
import { inTurns, type Spoken, type Supplied, type SuppliedCall } from '../core/supplied-history.js';

const source = z.looseObject({
  type: z.string(),
  media_type: z.string().max(100).optional(),
  data: z.string().optional(),
  file_id: z.string().max(500).optional(),
});
const textBlock = z.looseObject({ type: z.string(), text: z.string().optional() });
const block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  source: source.optional(),
  /** Of a call, and of what it was answered. */
  id: z.string().max(500).optional(),
  name: z.string().max(500).optional(),
  input: z.unknown().optional(),
  tool_use_id: z.string().max(500).optional(),
  content: z.union([z.string(), z.array(textBlock).max(1_000)]).optional(),
  is_error: z.boolean().nullish(),
});
const content = z.union([z.string(), z.array(block).max(1_000)]);
type Content = z.output<typeof content>;

const tool = z.looseObject({
  type: z.string().nullish(),
  name: z.string(),
  description: z.string().optional(),
  input_schema: z.record(z.string(), z.unknown()).optional(),
});

/** What `/v1/messages` and its `/count_tokens` have in common. */
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
  readonly images: readonly MediaSource[];
  readonly tools: readonly ClientTool[];
}

export function readPrompt({ messages, system, tools = [], tool_choice: choice }: z.output<z.ZodObject<typeof prompt>>): Conversed {
  const turns = inTurns(messages.flatMap(({ role, content: given }, at) => spokenIn(role, given, `messages.${at}`)));
  if (messages.at(-1)?.role !== 'user') throw invalid('messages: the last one must be of the user', 'messages');
  const instructions = system === undefined ? '' : textOf(system, 'system');
  return {
    ...turns,
    tools: readTools(tools, choice),
    images: imagesOf(messages.at(-1)?.content ?? '', `messages.${messages.length - 1}`),
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
  return checkedTools(
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
  const text = textOf(given, where);
  const blocks = typeof given === 'string' ? [] : given;
  if (role === 'assistant') {
    const calls = blocks.flatMap(({ type, id = '', name = '', input = {} }): SuppliedCall[] =>
      type === 'tool_use' ? [{ id, name, arguments: input as JsonValue }] : [],
    );
    return [{ role, text, ...(calls.length > 0 && { calls }) }];
  }
  const answers = blocks.flatMap(({ type, tool_use_id: id = '', content: said = '', is_error: isError }): ToolAnswer[] =>
    type === 'tool_result' ? [{ id, output: textOf(said, where), isError: isError === true }] : [],
  );
  if (answers.length === 0) return [{ role, text }];
  return [{ role: 'tool', answers }, ...(text === '' ? [] : [{ role, text }])];
}

function textOf(given: Content, where: string): string {
  if (typeof given === 'string') return given;
  return given
    .flatMap(({ type, text }, at) => {
      if (type === 'text' && text !== undefined) return [text];
      if (SILENT.has(type)) return [];
      throw unsupported(`content of the type ${JSON.stringify(type.slice(0, 40))}`, `${where}.content.${at}`);
    })
    .join('\n\n');
}

/** They are no text, or stand elsewhere. */
const SILENT: ReadonlySet<string> = new Set(['image', 'thinking', 'redacted_thinking', 'tool_use', 'tool_result']);

function imagesOf(given: Content, where: string): readonly MediaSource[] {
  if (typeof given === 'string') return [];
  return given.flatMap(({ type, source: from }, at) => {
    if (type !== 'image') return [];
    if (from?.type === 'base64' && from.media_type !== undefined && from.data !== undefined) {
      return [{ mediaType: from.media_type, base64: from.data }];
    }
    if (from?.type === 'file' && from.file_id !== undefined)
      return [attachmentNamed(from.file_id, `${where}.content.${at}.source.file_id`)];
    throw invalid(
      `${where}.content.${at}: a picture must be sent as base64, with its media_type, or as a file, with its file_id`,
      `${where}.content.${at}`,
    );
  });
}
