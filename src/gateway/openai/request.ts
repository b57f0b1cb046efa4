/** What requests of OpenAI's clients bring: texts, pictures and files in the newest message, and tools. */
import { z } from 'zod';
import type { JsonValue, Media, MediaKind, MediaSource, ClientTool, JsonObject } from '../../records/message.js';
import { attachmentIn, attachmentNamed, type NamedSource, toFile } from '../core/attachments.js';
import { optional } from '../core/read-body.js';
import { invalid, unsupported } from '../core/errors.js';
import { type ToolAnswer, checkTools, type MustCall } from '../core/client-calls.js';
import { inTurns, type Spoken, type Supplied, type SuppliedCall } from '../core/supplied-history.js';

const imageUrl = z.looseObject({ url: z.string() });
const file = {
  file_id: optional(z.string().max(500)),
  file_data: optional(z.string()),
  file_url: optional(z.string().max(8_192)),
  filename: optional(z.string().max(500)),
};
const part = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  refusal: z.string().optional(),
  image_url: optional(z.union([z.string(), imageUrl])),
  /** The fields of the Responses API; Chat Completions has them within `file`. */
  ...file,
  file: z.looseObject(file).optional(),
});
export const content = z.union([z.string(), z.array(part).max(200)]);
type Content = z.output<typeof content>;
type Part = z.output<typeof part>;

export const schemaFormat = z.looseObject({ type: z.string(), schema: z.record(z.string(), z.unknown()).optional() });

const DATA_URL = /^data:(image\/[a-z]+);base64,/;
const TYPES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
};

export interface Message {
  readonly role: string;
  readonly content: Content;
  /** Calls of the assistant. */
  readonly calls?: readonly SuppliedCall[];
  /** In a message of a tool: the call that it answers. */
  readonly callId?: string;
}

export interface Conversed extends Supplied {
  /** Media of the newest message. */
  readonly media: Media;
}

/** Instructions are apart, at whatever place among the messages. */
export function readMessages(messages: readonly Message[], param: string): Conversed {
  const instructions: string[] = [];
  const spoken: Spoken[] = [];
  let media: Media = {};
  for (const [at, message] of messages.entries()) {
    const where = `${param}.${at}`;
    const text = readText(message.content, where);
    if (message.role === 'system' || message.role === 'developer') instructions.push(text);
    else if (message.role === 'user') spoken.push({ role: message.role, text });
    else if (message.role === 'assistant')
      spoken.push({ role: message.role, text, ...(message.calls?.length && { calls: message.calls }) });
    else if (message.role === 'tool') spoken.push({ role: 'tool', answers: [readAnswer(message, text, where)] });
    else throw unsupported(`a message of the role ${JSON.stringify(message.role.slice(0, 40))}`, `${where}.role`);
    if (at === messages.length - 1) media = toMedia(message.content, where);
  }
  const turns = inTurns(spoken);
  if (!turns.answers && turns.messages.at(-1)?.role !== 'user') throw invalid('the last message must be of the user, or of a tool', param);
  const joined = instructions.join('\n\n');
  return { ...turns, media, ...(joined !== '' && { instructions: joined }) };
}

function readAnswer({ callId }: Message, output: string, where: string): ToolAnswer {
  if (callId === undefined) throw invalid('a message of a tool needs the id of the call that it answers', where);
  return { id: callId, output, isError: false };
}

/** Arguments as models write them: JSON, or else as they are. */
export function parseArguments(given: string): JsonValue {
  try {
    return JSON.parse(given) as JsonValue;
  } catch {
    return given;
  }
}

function readText(given: Content, where: string): string {
  if (typeof given === 'string') return given;
  return given
    .flatMap((one, at) => {
      if (one.image_url !== undefined || isFile(one)) return [];
      const text = one.text ?? one.refusal;
      if (text === undefined) throw unsupported(`content of the type ${JSON.stringify(one.type.slice(0, 40))}`, `${where}.content.${at}`);
      return [text];
    })
    .join('\n\n');
}

function isFile({ type, file: of, file_id: id }: Part): boolean {
  return type === 'input_file' || type === 'file' || (of?.file_id ?? id) !== undefined;
}

function toMedia(given: Content, where: string): Media {
  const media: Partial<Record<MediaKind, MediaSource[]>> = {};
  if (typeof given === 'string') return media;
  for (const [at, one] of given.entries()) {
    const param = `${where}.content.${at}`;
    if (isFile(one)) {
      const { kind, source } = suppliedFile(one, param);
      (media[kind] ??= []).push(source);
    } else if (one.image_url !== undefined) (media.images ??= []).push(readPicture(one.image_url, param));
  }
  return media;
}

function suppliedFile(given: Part, param: string): { readonly kind: MediaKind; readonly source: NamedSource } {
  const { file_id: id, file_data: data, file_url: url, filename: name } = given.file ?? given;
  if (id !== undefined) {
    const source = attachmentNamed(id, `${param}.${given.file === undefined ? 'file_id' : 'file.file_id'}`);
    return { kind: 'documents', source: { ...source, name } as NamedSource };
  }
  // Some clients leave the beginning of the data URL out.
  if (data !== undefined)
    return toFile({ mediaType: typeIn(data), url: data.startsWith('data:') ? data : `data:;base64,${data}`, name }, param);
  if (url !== undefined) return toFile({ mediaType: 'application/pdf', url, name }, param);
  throw invalid('a file needs one of file_id, file_data and file_url', param);
}

function typeIn(data: string): string {
  return /^data:([\w/.+-]{1,100})[;,]/.exec(data)?.[1] ?? '';
}

function readPicture(image: NonNullable<Part['image_url']>, param: string): MediaSource {
  const url = typeof image === 'string' ? image : image.url;
  const attachment = attachmentIn(url);
  if (attachment !== undefined) return attachment;
  const mediaType = DATA_URL.exec(url)?.[1];
  if (mediaType !== undefined) return { mediaType, base64: url.slice(url.indexOf(',') + 1) };
  const byName = TYPES[/\.([a-z]+)(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase() ?? ''];
  if (/^https:\/\//.test(url) && byName !== undefined) return { mediaType: byName, url };
  throw invalid(
    'a picture must be a data: URL, an https: one that ends with its type, such as .png, or the reference of an attachment',
    param,
  );
}

const described = { name: z.string(), description: optional(z.string()), parameters: optional(z.record(z.string(), z.unknown())) };

/** Chat Completions has the function in a separate field, Responses in the tool itself. */
const tool = z.looseObject({
  type: z.string(),
  function: z.looseObject(described).optional(),
  ...described,
  name: z.string().optional(),
});

export const toolFields = {
  tools: optional(z.array(tool)),
  tool_choice: optional(
    z.union([
      z.string(),
      z.looseObject({ type: z.string(), name: z.string().optional(), function: z.looseObject({ name: z.string() }).optional() }),
    ]),
  ),
  parallel_tool_calls: optional(z.boolean()),
};

type Wanted = z.output<z.ZodObject<typeof toolFields>>;

export function readTools({
  tools = [],
  tool_choice: choice = 'auto',
  parallel_tool_calls: parallel = true,
}: Wanted): readonly ClientTool[] {
  if (choice === 'none') return [];
  const mustCall = readMustCall(choice);
  if (tools.length === 0 && mustCall === undefined) return [];
  if (!parallel) throw unsupported('a model that calls one tool at a time', 'parallel_tool_calls');
  return checkTools(
    tools.map(({ type, function: nested, ...flat }, at) => {
      if (type !== 'function') throw unsupported(`a tool of the type ${JSON.stringify(type.slice(0, 40))}`, `tools.${at}.type`);
      const { name = '', description, parameters } = nested ?? flat;
      return { name, ...(description !== undefined && { description }), inputSchema: (parameters ?? {}) as JsonObject };
    }),
    mustCall,
  );
}

function readMustCall(choice: NonNullable<Wanted['tool_choice']>): MustCall {
  if (choice === 'auto') return undefined;
  if (choice === 'required') return 'any';
  const name = typeof choice === 'string' || choice.type !== 'function' ? undefined : (choice.function?.name ?? choice.name);
  if (name === undefined)
    throw unsupported('a tool_choice other than "auto", "none", "required" and a function by its name', 'tool_choice');
  return { name };
}
