/** A message to a conversation: the record as it comes in, and as it is read. */
import * as v from 'valibot';
import { LIMITS } from './limits.js';
import {
  bytes,
  count,
  is,
  json,
  like,
  list,
  messageId,
  object,
  oneOf,
  part,
  read,
  refuse,
  shortText,
  strict,
  text,
  type Checked,
  flag,
  reader,
  wellFormed,
} from './schema.js';
import {
  type ClientTool,
  type JsonObject,
  type JsonValue,
  type Media,
  type MediaKind,
  type MediaSource,
  type MessageContent,
  type Stop,
  mediaBytes,
  pickMedia,
  sourcesIn,
} from '../../records/message.js';
import { PAYLOAD_MARK, SCHEMA_MARK } from '../../records/message-parts.js';
import { utf8Length } from '../../records/text.js';
import { isRecord } from '../../platform/json.js';

// Tools that a message brings: the program that sent it runs them. The model is offered them in that message's turn, and a call of one
// waits for its sender as a question waits for a person.

/**
 * The model knows a client's tool by this and its name. No tool of an agent begins so (tools/tool.ts), so that none is ever shadowed, and
 * the answer of such a tool is never taken for the answer of a trusted one.
 */
const PREFIX = 'client__';

/** Providers take 64 characters, and the prefix is among them. */
const NAME = /^[a-zA-Z0-9_-]{1,56}$/;

export function toPrefixed(name: string): string {
  return `${PREFIX}${name}`;
}

export function isClientTool(name: string): boolean {
  return name.startsWith(PREFIX);
}

/** As the client calls it. */
export function withoutPrefix(name: string): string {
  return isClientTool(name) ? name.slice(PREFIX.length) : name;
}

const inputSchema = v.pipe(
  is<JsonObject>('a JSON Schema of an object', isRecord),
  v.transform((schema): JsonObject => ({ ...schema, type: schema['type'] ?? 'object' })),
  v.check(({ type }) => type === 'object', 'must have the type "object"'),
);

const clientToolsSchema = v.pipe(
  list(strict({ name: like(NAME), description: v.optional(wellFormed), inputSchema, mustCall: flag, single: flag }), LIMITS.tools),
  v.check((tools) => new Set(tools.map(({ name }) => name)).size === tools.length, 'has two tools of one name'),
  bytes(LIMITS.toolsBytes),
);

const stopSchema = part({
  at: v.optional(list(shortText(LIMITS.stopLength), LIMITS.stops)),
  tokens: v.optional(count(LIMITS.tokens, 1)),
});

export const readClientTools = reader(clientToolsSchema, 'message.tools');

/** What the model reads of an answer. */
export function resultText(output: JsonValue): string {
  const text = (typeof output === 'string' ? output : JSON.stringify(output)).toWellFormed();
  return text === '' ? '(The tool answered without a word.)' : text;
}

const IMAGE_TYPES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Text files are text (records/file-type.ts). */
const DOCUMENT_TYPE = 'application/pdf';
/** `%PDF-` */
const PDF_IN_BASE64 = 'JVBERi';
/** Every provider takes the same few pictures; of sound and video each takes others, and its renderer knows which. */
const MEDIA_TYPES = {
  images: is<string>(`one of ${IMAGE_TYPES.join(', ')}`, (type) => (IMAGE_TYPES as readonly unknown[]).includes(type)),
  audio: like(/^audio\/[a-z0-9][a-z0-9.+-]{0,63}$/, 'be a type like audio/mpeg'),
  video: like(/^video\/[a-z0-9][a-z0-9.+-]{0,63}$/, 'be a type like video/mp4'),
  documents: is<string>(DOCUMENT_TYPE, (type) => type === DOCUMENT_TYPE),
};

const reference = shortText(LIMITS.mediaUrl);
const webAddress = is<string>(
  `an http(s) address of at most ${LIMITS.mediaUrl} characters`,
  (value) => v.is(reference, value) && /^https?:\/\/\S+$/.test(value),
);
const base64 = like(/^[A-Za-z0-9+/]+={0,2}$/, 'be base64');
const pdf = v.pipe(
  base64,
  v.check((data) => data.startsWith(PDF_IN_BASE64), 'is no PDF: it does not begin as one'),
);

function sources(kind: MediaKind) {
  const source = v.pipe(
    part({
      mediaType: MEDIA_TYPES[kind],
      url: v.optional(webAddress),
      base64: v.optional(kind === 'documents' ? pdf : base64),
      ref: v.optional(reference),
    }),
    v.check(
      ({ url, base64: data, ref }) => [url, data, ref].filter((one) => one !== undefined).length === 1,
      'must have one of url, base64, ref',
    ),
    v.transform((one) => one as MediaSource),
  );
  return v.optional(list(source, LIMITS.mediaPerMessage));
}

export const outputSchema = v.pipe(object, bytes(LIMITS.outputBytes));
const echoSchema = v.pipe(object, bytes(LIMITS.echoBytes));
export const contextSchema = v.pipe(object, bytes(LIMITS.contextBytes));

/** W3C Trace Context, of any version. */
export const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]{1,200})?$/;

const messageSchema: v.GenericSchema<unknown, Message> = v.pipe(
  strict({
    id: v.optional(messageId),
    text,
    images: sources('images'),
    audio: sources('audio'),
    video: sources('video'),
    documents: sources('documents'),
    delivery: v.optional(oneOf('queue', 'steer', 'interrupt')),
    payload: v.optional(json),
    output: v.optional(outputSchema),
    context: v.optional(contextSchema),
    tools: v.optional(clientToolsSchema),
    stop: v.optional(stopSchema),
    echo: v.optional(echoSchema),
    traceparent: v.optional(like(TRACEPARENT)),
  }),
  v.check(
    (message) => sourcesIn(message).length <= LIMITS.mediaPerMessage,
    ({ input }) => `has ${sourcesIn(input).length} images, audio, video and documents, the limit is ${LIMITS.mediaPerMessage} together`,
  ),
);

/**
 * One message to a conversation. The same `id` twice is one message. Written out: what the schema infers is too deep for the compiler of a
 * program that reads our declarations.
 */
export interface Message extends Media {
  readonly id?: string;
  readonly text: string;
  readonly delivery?: Delivery;
  /** Data for the model, shown to it after the text (seed 003, Payload). */
  readonly payload?: JsonValue;
  /** JSON Schema of an object that the turn's answer must be: then the result has a `payload`. */
  readonly output?: JsonObject;
  /** Values that tools see and the model never does (seed 003, Context); from this turn on, in place of those before. */
  readonly context?: JsonObject;
  /** Tools that its sender runs; the model has them in this message's turn. Of one that joins a running turn they are not taken. */
  readonly tools?: readonly ClientTool[];
  readonly stop?: Stop;
  /** What its sender wants to read of it later, in its entry: neither the model nor tools see it. */
  readonly echo?: JsonObject;
  /** Of the request that brings it (W3C Trace Context): the trace of its turn links to it. */
  readonly traceparent?: string;
}

/** When a message is taken: in its turn, into the running turn, or in place of it. */
export type Delivery = 'queue' | 'steer' | 'interrupt';

/** A message that was read. */
export interface ReadMessage extends MessageContent {
  readonly kind: 'message';
  readonly id?: string;
  readonly delivery: Delivery;
  readonly traceparent?: string;
}

/** A message whose text is the reset command, or a message. */
export type ParsedMessage = { readonly kind: 'reset'; readonly id?: string } | ReadMessage;

/** `limitBytes` is for senders that can be refused; a signal was accepted before anyone could look at it. */
export function readMessage(payload: unknown, limitBytes: number = LIMITS.messageBytes): Checked<ParsedMessage> {
  const message = read(messageSchema, typeof payload === 'string' ? { text: payload } : payload, 'message');
  if (!message.ok) return message;
  const { id, text: sentText, delivery = 'queue', payload: data, output, context, tools = [], stop, echo, traceparent } = message.value;
  const media = pickMedia(message.value);
  const clean = withSchema(withPayload(sentText.toWellFormed(), data), output);
  const isTextAlone = Object.keys(media).length === 0 && data === undefined;
  const named = id === undefined ? {} : { id };
  if (clean.trim() === '/new' && isTextAlone) return { ok: true, value: { kind: 'reset', ...named } };
  if (clean.trim() === '' && isTextAlone) return refuse('message.text is empty; say something');
  const size = utf8Length(clean) + mediaBytes(media);
  if (size > limitBytes) {
    return refuse(
      `message is ${size} bytes, the limit is ${limitBytes}; send it in parts, or put it into a file of the agent's workspace and name that`,
    );
  }
  const given = {
    ...(output && { output }),
    ...(context && { context }),
    ...(tools.length > 0 && { tools }),
    ...(stop && { stop }),
    ...(echo && { echo }),
    ...(traceparent !== undefined && { traceparent }),
  };
  return { ok: true, value: { kind: 'message', ...named, text: clean, ...media, ...given, delivery } };
}

/** Part of the message, and it stays there: not every provider holds its model to a schema. */
function withSchema(sentText: string, schema: JsonObject | undefined): string {
  return schema === undefined ? sentText : `${sentText}${SCHEMA_MARK}${JSON.stringify(schema).toWellFormed()}]`;
}

/** Undoes `withSchema`: the text of the message, and the schema that its answer had to fit. */
export function partSchema(sentText: string): { readonly text: string; readonly output?: JsonObject } {
  const at = sentText.lastIndexOf(SCHEMA_MARK);
  if (at < 0 || !sentText.endsWith(']')) return { text: sentText };
  try {
    const schema = read(outputSchema, JSON.parse(sentText.slice(at + SCHEMA_MARK.length, -1)), 'message.output');
    return schema.ok ? { text: sentText.slice(0, at), output: schema.value } : { text: sentText };
  } catch {
    return { text: sentText };
  }
}

/** Seed 003, Payload: what the model is shown of it. */
function withPayload(sentText: string, payload: unknown): string {
  if (payload === undefined) return sentText;
  const data = `${PAYLOAD_MARK}${JSON.stringify(payload, null, 2).toWellFormed()}\n\`\`\``;
  return sentText.trim() === '' ? data : `${sentText}\n\n${data}`;
}
