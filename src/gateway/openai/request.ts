/** What requests of OpenAI's clients bring: texts, pictures and files, tools, and what the answer has to be. */
import { z } from 'zod';
import type { JsonValue, Media, MediaKind, MediaSource, ClientTool, JsonObject, Stop } from '../../records/message.js';
import { attachmentNamed, pictureAt, type NamedSource, toFile } from '../core/attachments.js';
import { optional } from '../core/read-body.js';
import { invalid, unsupported } from '../core/errors.js';
import { LIMITS } from '../../conversation/protocol/limits.js';
import { type ToolAnswer, checkTools, toAnswer, type ToolChoice } from '../core/client-calls.js';
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
  text: optional(z.string()),
  refusal: optional(z.string()),
  image_url: optional(z.union([z.string(), imageUrl])),
  input_audio: optional(z.looseObject({ data: z.string(), format: z.string().max(40) })),
  /** The fields of the Responses API; Chat Completions has them within `file`. */
  ...file,
  file: optional(z.looseObject(file)),
});
export const content = z.union([z.string(), z.array(part).max(200)]);
type Content = z.output<typeof content>;
type Part = z.output<typeof part>;

export interface Message {
  readonly role: string;
  readonly content: Content;
  /** Who of several speaks. */
  readonly name?: string | undefined;
  /** Calls of the assistant. */
  readonly calls?: readonly SuppliedCall[];
  /** In a message of a tool: the call that it answers. */
  readonly callId?: string;
}

/** Instructions are apart, at whatever place among the messages. */
export function readMessages(messages: readonly Message[], param: string): Supplied {
  const instructions: string[] = [];
  const spoken: Spoken[] = [];
  for (const [at, message] of messages.entries()) {
    const where = `${param}.${at}`;
    const text = readText(message.content, where);
    const media = toMedia(message.content, where);
    if (message.role === 'system' || message.role === 'developer') instructions.push(text);
    else if (message.role === 'user') spoken.push({ role: message.role, text: withName(message, text), media });
    else if (message.role === 'assistant')
      spoken.push({ role: message.role, text, media, ...(message.calls?.length && { calls: message.calls }) });
    else if (message.role === 'tool') spoken.push({ role: 'tool', answers: [readAnswer(message, { text, media }, where)] });
    else throw unsupported(`a message of the role ${JSON.stringify(message.role.slice(0, 40))}`, `${where}.role`);
  }
  const turns = inTurns(spoken);
  if (!turns.answers && turns.messages.at(-1)?.role !== 'user') throw invalid('the last message must be of the user, or of a tool', param);
  const joined = instructions.join('\n\n');
  return { ...turns, ...(joined !== '' && { instructions: joined }) };
}

/** Where several users speak, the model reads who; many clients name each message by its role. */
function withName({ name = '' }: Message, text: string): string {
  return name === '' || name.toLowerCase() === 'user' ? text : `${name}: ${text}`;
}

function readAnswer({ callId }: Message, { text, media }: { readonly text: string; readonly media: Media }, where: string): ToolAnswer {
  if (callId === undefined) throw invalid('a message of a tool needs the id of the call that it answers', where);
  return toAnswer({ id: callId, output: text, isError: false, media });
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
      if (one.image_url !== undefined || one.input_audio !== undefined || isFile(one)) return [];
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
    } else if (one.image_url !== undefined) {
      const { image_url: image } = one;
      (media.images ??= []).push(pictureAt(typeof image === 'string' ? image : image.url, param));
    } else if (one.input_audio !== undefined) {
      const { data, format } = one.input_audio;
      (media.audio ??= []).push({ mediaType: `audio/${format === 'mp3' ? 'mpeg' : format}`, base64: data });
    }
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

// What goes along with the messages.

const schema = optional(z.record(z.string(), z.unknown()));
/** Chat Completions has the schema in a field beside it, Responses in the format itself. */
export const answerFormat = optional(z.looseObject({ type: z.string(), schema, json_schema: optional(z.looseObject({ schema })) }));

export function readOutput(format: z.output<typeof answerFormat>, param: string): JsonObject | undefined {
  if (format === undefined || format.type === 'text') return undefined;
  if (format.type === 'json_object') return { type: 'object' };
  const given = format.schema ?? format.json_schema?.schema;
  if (format.type === 'json_schema' && given !== undefined) return given as JsonObject;
  throw unsupported(`the format ${JSON.stringify(format.type.slice(0, 40))} without a schema`, param);
}

const tokens = optional(z.number().int().min(1).max(LIMITS.tokens));
const stopText = z.string().min(1).max(LIMITS.stopLength);
export const stopFields = {
  stop: optional(z.union([stopText, z.array(stopText).max(LIMITS.stops)])),
  max_tokens: tokens,
  max_completion_tokens: tokens,
  max_output_tokens: tokens,
};

export function readStop(given: z.output<z.ZodObject<typeof stopFields>>): Stop | undefined {
  const at = typeof given.stop === 'string' ? [given.stop] : (given.stop ?? []);
  const most = given.max_completion_tokens ?? given.max_output_tokens ?? given.max_tokens;
  if (at.length === 0 && most === undefined) return undefined;
  return { ...(at.length > 0 && { at }), ...(most !== undefined && { tokens: most }) };
}

const described = { name: z.string(), description: optional(z.string()), parameters: optional(z.record(z.string(), z.unknown())) };

/** Chat Completions has the function in a separate field, Responses in the tool itself. */
const tool = z.looseObject({
  type: z.string(),
  function: z.looseObject(described).optional(),
  ...described,
  name: z.string().optional(),
});

const named = z.looseObject({ name: z.string().max(200) });
const allowed = {
  mode: optional(z.string()),
  tools: optional(z.array(z.looseObject({ name: z.string().optional(), function: named.optional() }))),
};
const choice = z.looseObject({
  type: z.string(),
  name: z.string().optional(),
  function: named.optional(),
  /** Of `allowed_tools`; Chat Completions has them in a field of that name. */
  ...allowed,
  allowed_tools: optional(z.looseObject(allowed)),
});
export const toolFields = {
  tools: optional(z.array(tool)),
  tool_choice: optional(z.union([z.string(), choice])),
  parallel_tool_calls: optional(z.boolean()),
};

type Wanted = z.output<z.ZodObject<typeof toolFields>>;

/** Undefined: the request says nothing of tools. */
export function readTools({ tools, tool_choice: wanted = 'auto', parallel_tool_calls: parallel = true }: Wanted) {
  if (wanted === 'none') return [];
  const chosen = readChoice(wanted);
  if (tools === undefined && !chosen.mustCall && !chosen.names) return undefined;
  const read = (tools ?? []).map(({ type, function: nested, ...flat }, at): ClientTool => {
    if (type !== 'function') throw unsupported(`a tool of the type ${JSON.stringify(type.slice(0, 40))}`, `tools.${at}.type`);
    const { name = '', description, parameters } = nested ?? flat;
    return { name, ...(description !== undefined && { description }), inputSchema: (parameters ?? {}) as JsonObject };
  });
  return checkTools(read, { ...chosen, single: !parallel });
}

function readChoice(given: NonNullable<Wanted['tool_choice']>): ToolChoice {
  if (given === 'auto') return {};
  if (given === 'required' || given === 'any') return { mustCall: true };
  const one: Partial<z.output<typeof choice>> = typeof given === 'string' ? {} : given;
  const { type } = one;
  const name = one.function?.name ?? one.name;
  if (type === 'function' && name !== undefined) return { mustCall: true, names: [name] };
  if (type === 'allowed_tools') {
    const { mode, tools: list = [] } = one.allowed_tools ?? one;
    const names = list.map((tool) => tool.function?.name ?? tool.name ?? '');
    return { mustCall: mode === 'required', names };
  }
  throw unsupported('a tool_choice other than "auto", "none", "required", a function by its name and allowed_tools', 'tool_choice');
}
