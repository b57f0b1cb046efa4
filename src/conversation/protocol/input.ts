/**
 * What comes in, checked without a library, because it is checked inside the workflow. Refusals name the field and the limit.
 * Nothing here throws: signals cannot be refused, so their problems become `input-rejected` events.
 */
import { ID_PATTERN, LIFE_PATTERN, LIMITS, type Delivery, type StartOptions } from './contract.js';
import { isShortText, nameOf, readFields, refuse, type Checked } from './fields.js';
import {
  type ClientTool,
  type JsonObject,
  type Media,
  type MediaSource,
  MEDIA_KINDS,
  mediaBytes,
  type MediaKind,
} from '../../records/message.js';
import { readClientTools } from './client-tools.js';
import { readMode } from './control-input.js';
import { isTenant, TENANT_PATTERN } from './tenant.js';
import { qualifiedScope } from '../../records/scope.js';
import { readBudget, readDelegation, readObject } from './human-input.js';
import { truncate, utf8Length } from '../../records/text.js';
import type { Origin } from './lineage.js';

/** A message whose text is the reset command, or a message. */
export type ParsedMessage =
  | { readonly kind: 'reset'; readonly id?: string }
  | {
      readonly kind: 'message';
      readonly id?: string;
      readonly text: string;
      readonly media: Media;
      readonly output?: JsonObject;
      readonly context?: JsonObject;
      readonly tools?: readonly ClientTool[];
      readonly delivery: Delivery;
    };

export interface ReadStart
  extends Required<Pick<StartOptions, 'agent' | 'scope'>>, Pick<StartOptions, 'mode' | 'budget' | 'context' | 'delegation'> {
  /** `scope` has it too, in its whole name. */
  readonly tenant: string | null;
  readonly publicId: string | null;
  readonly title: string | null;
  readonly autoTitle: boolean;
  readonly model: string | null;
  readonly origin: Origin | null;
}

const DELIVERIES: readonly string[] = ['queue', 'steer', 'interrupt'];
const MESSAGE_FIELDS: readonly string[] = ['id', 'text', ...MEDIA_KINDS, 'delivery', 'payload', 'output', 'context', 'tools'];
const IMAGE_TYPES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Text files are text (records/file-type.ts). */
const DOCUMENT_TYPE = 'application/pdf';
/** `%PDF-` */
const PDF_IN_BASE64 = 'JVBERi';

/** `limitBytes` is for senders that can be refused; a signal was accepted before anyone could look at it. */
export function readMessage(payload: unknown, limitBytes: number = LIMITS.messageBytes): Checked<ParsedMessage> {
  const fields = readFields(typeof payload === 'string' ? { text: payload } : payload, 'message', MESSAGE_FIELDS);
  if (!fields.ok) return fields;
  const { id, text, delivery } = fields.value;
  const checkedId = readId(id);
  if (!checkedId.ok) return checkedId;
  if (typeof text !== 'string') return refuse(`message.text must be a string, got ${nameOf(text)}`);
  if (delivery !== undefined && !DELIVERIES.includes(delivery as string)) {
    return refuse(`message.delivery must be one of ${DELIVERIES.join(', ')}`);
  }
  const media = readMedia(fields.value);
  if (!media.ok) return media;
  const { payload: data, output, context, tools: given } = fields.value;
  const schema = output === undefined ? undefined : readObject(output, 'message.output', LIMITS.outputBytes);
  if (schema?.ok === false) return schema;
  const values = context === undefined ? undefined : readObject(context, 'message.context', LIMITS.contextBytes);
  if (values?.ok === false) return values;
  const tools = given === undefined ? undefined : readClientTools(given);
  if (tools?.ok === false) return tools;
  const textAlone = Object.keys(media.value).length === 0 && data === undefined;
  const clean = withSchema(withPayload(text.toWellFormed(), data), schema?.value);
  if (clean.trim() === '/new' && textAlone) {
    return { ok: true, value: { kind: 'reset', ...(checkedId.value === undefined ? {} : { id: checkedId.value }) } };
  }
  if (clean.trim() === '' && textAlone) return refuse('message.text is empty; say something');
  const bytes = utf8Length(clean) + mediaBytes(media.value);
  if (bytes > limitBytes)
    return refuse(
      `message is ${bytes} bytes, the limit is ${limitBytes}; send it in parts, or put it into a file of the agent's workspace and name that`,
    );
  return {
    ok: true,
    value: {
      kind: 'message',
      ...(checkedId.value === undefined ? {} : { id: checkedId.value }),
      text: clean,
      media: media.value,
      ...(schema && { output: schema.value }),
      ...(values && { context: values.value }),
      ...(tools && tools.value.length > 0 && { tools: tools.value }),
      delivery: (delivery as Delivery | undefined) ?? 'queue',
    },
  };
}

const SCHEMA_WORDS = '\n\n[When you are done, answer with JSON alone, an object that fits this schema: ';

/** Said with the message, where it stays: not every provider holds its model to a schema. */
function withSchema(text: string, schema: JsonObject | undefined): string {
  return schema === undefined ? text : `${text}${SCHEMA_WORDS}${JSON.stringify(schema).toWellFormed()}]`;
}

/** What `withSchema` has put together, taken apart: what was said, and the schema that its answer had to fit. */
export function partSchema(text: string): { readonly text: string; readonly output?: JsonObject } {
  const at = text.lastIndexOf(SCHEMA_WORDS);
  if (at < 0 || !text.endsWith(']')) return { text };
  try {
    const schema = readObject(JSON.parse(text.slice(at + SCHEMA_WORDS.length, -1)), 'message.output', LIMITS.outputBytes);
    return schema.ok ? { text: text.slice(0, at), output: schema.value } : { text };
  } catch {
    return { text };
  }
}

/** Seed 003, Payload: what the model is shown of it. */
function withPayload(text: string, payload: unknown): string {
  if (payload === undefined) return text;
  const data = `Payload:\n\`\`\`json\n${JSON.stringify(payload, null, 2).toWellFormed()}\n\`\`\``;
  return text.trim() === '' ? data : `${text}\n\n${data}`;
}

/** `{ id? }` of `new`, `reset`; `{ reason? }` of `interrupt`: one optional text, or nothing at all. */
export function readOptionalText(payload: unknown, name: string, field: string): Checked<string | undefined> {
  if (payload === undefined || payload === null) return { ok: true, value: undefined };
  const fields = readFields(payload, name, [field]);
  if (!fields.ok) return fields;
  const value = fields.value[field];
  if (value === undefined) return { ok: true, value: undefined };
  if (typeof value !== 'string') return refuse(`${name}.${field} must be a string, got ${nameOf(value)}`);
  if (field === 'id') return readId(value);
  return { ok: true, value: truncate(value.toWellFormed(), 500) };
}

/** Of the signal `close`. */
export function readClose(payload: unknown): Checked<{ readonly memory?: false }> {
  if (payload === undefined || payload === null) return { ok: true, value: {} };
  const fields = readFields(payload, 'close', ['memory']);
  if (!fields.ok) return fields;
  const { memory } = fields.value;
  if (memory !== undefined && typeof memory !== 'boolean') return refuse(`close.memory must be true or false, got ${nameOf(memory)}`);
  return { ok: true, value: memory === false ? { memory } : {} };
}

export function readTitle(payload: unknown): Checked<string> {
  const fields = readFields(payload, 'rename', ['title']);
  if (!fields.ok) return fields;
  const { title } = fields.value;
  if (typeof title !== 'string' || title.trim() === '') return refuse('rename.title must be a text that is not empty');
  return { ok: true, value: truncate(title.toWellFormed().trim(), 200) };
}

/** `{ model }` of `setModel`; null: the agent's own again. */
export function readModelChoice(payload: unknown): Checked<string | null> {
  const fields = readFields(payload, 'setModel', ['model']);
  if (!fields.ok) return fields;
  const { model } = fields.value;
  if (model === null || isModelName(model)) return { ok: true, value: model };
  return refuse('setModel.model must look like "provider/model", or be null for the agent\'s own');
}

/** Visible ASCII, since it is shown and sent in addresses; for the same reason no part of it is `..`. */
function isModelName(value: unknown): value is string {
  return typeof value === 'string' && /^[!-.0-~]{1,64}\/[!-~]{1,128}$/.test(value) && !/\/\.{1,2}(\/|$)/.test(value);
}

export function readTurnRequest(payload: unknown): Checked<string> {
  const fields = readFields(payload, 'turn', ['turnId']);
  if (!fields.ok) return fields;
  const { turnId } = fields.value;
  if (typeof turnId !== 'string' || !/^turn_\d{4,15}$/.test(turnId)) return refuse('turn.turnId must look like "turn_0001"');
  return { ok: true, value: turnId };
}

/** Unknown fields are let through here: later versions add some, and a start cannot be asked again. */
export function readStart(payload: unknown): Checked<ReadStart> {
  const fields = readFields(payload ?? {}, 'start', null);
  if (!fields.ok) return fields;
  const { agent = 'default', scope = agent, title = null, autoTitle = true, model = null, tenant = null } = fields.value;
  const { publicId = null } = fields.value;
  if (typeof agent !== 'string' || !ID_PATTERN.test(agent)) return refuse(`start.agent must match ${ID_PATTERN.source}`);
  if (typeof scope !== 'string' || !ID_PATTERN.test(scope)) return refuse(`start.scope must match ${ID_PATTERN.source}`);
  if (tenant !== null && !isTenant(tenant)) return refuse(`start.tenant must match ${TENANT_PATTERN.source}`);
  if (publicId !== null && (typeof publicId !== 'string' || !ID_PATTERN.test(publicId))) {
    return refuse(`start.publicId must match ${ID_PATTERN.source}`);
  }
  if (title !== null && typeof title !== 'string') return refuse(`start.title must be a string, got ${nameOf(title)}`);
  if (typeof autoTitle !== 'boolean') return refuse(`start.autoTitle must be true or false, got ${nameOf(autoTitle)}`);
  if (model !== null && !isModelName(model)) {
    return refuse('start.model must look like "provider/model"');
  }
  const mode = fields.value['mode'] === undefined ? undefined : readMode(fields.value['mode']);
  if (mode?.ok === false) return refuse('start.mode must be "auto" or "stepping"');
  const budget = fields.value['budget'] === undefined ? undefined : readBudget(fields.value['budget'], 'start.budget');
  if (budget?.ok === false) return budget;
  const given = fields.value['context'];
  const context = given === undefined ? undefined : readObject(given, 'start.context', LIMITS.contextBytes);
  if (context?.ok === false) return context;
  const delegation = fields.value['delegation'] === undefined ? undefined : readDelegation(fields.value['delegation']);
  if (delegation?.ok === false) return delegation;
  const origin = readOrigin(fields.value['origin']);
  if (!origin.ok) return origin;
  return {
    ok: true,
    value: {
      agent,
      origin: origin.value,
      scope: qualifiedScope(tenant ?? undefined, scope),
      tenant,
      publicId,
      title: title === null ? null : truncate(title.toWellFormed(), 200),
      autoTitle,
      model,
      ...(mode && { mode: mode.value }),
      ...(budget && { budget: budget.value }),
      ...(context && { context: context.value }),
      ...(delegation && { delegation: delegation.value }),
    },
  };
}

/** `turn_0007`, at most as long as a number stays exact. */
const TURN_PATTERN = /^turn_\d{4,15}$/;
function readOrigin(payload: unknown): Checked<Origin | null> {
  if (payload === undefined || payload === null) return { ok: true, value: null };
  const fields = readFields(payload, 'start.origin', ['kind', 'conversation', 'life', 'run', 'turn']);
  if (!fields.ok) return fields;
  const { kind, conversation, life, run, turn } = fields.value;
  if (kind !== 'fork' && kind !== 'resume') return refuse('start.origin.kind must be "fork" or "resume"');
  if (typeof conversation !== 'string' || !ID_PATTERN.test(conversation)) {
    return refuse(`start.origin.conversation must match ${ID_PATTERN.source}`);
  }
  if (typeof life !== 'string' || !LIFE_PATTERN.test(life)) return refuse('start.origin.life must be the id of a run');
  if (run !== undefined && (typeof run !== 'string' || !LIFE_PATTERN.test(run))) return refuse('start.origin.run must be the id of a run');
  if (turn !== undefined && (typeof turn !== 'string' || !TURN_PATTERN.test(turn))) {
    return refuse('start.origin.turn must look like "turn_0007"');
  }
  return {
    ok: true,
    value: { kind, conversation, life, ...(run === undefined ? {} : { run }), ...(turn === undefined ? {} : { turn }) },
  };
}

export interface ReadRewind {
  readonly to: string;
  /** True: this turn goes too. */
  readonly before?: true;
  readonly id?: string;
  readonly message?: Extract<ParsedMessage, { kind: 'message' }>;
}

/** `{ to | before, id?, message? }` of `rewind`. */
export function readRewind(payload: unknown): Checked<ReadRewind> {
  const fields = readFields(payload, 'rewind', ['to', 'before', 'id', 'message']);
  if (!fields.ok) return fields;
  const { to, before, message: said } = fields.value;
  if (to !== undefined && before !== undefined) return refuse('rewind takes either "to" or "before"');
  const name = before === undefined ? 'to' : 'before';
  const turn = to ?? before;
  if (typeof turn !== 'string' || !TURN_PATTERN.test(turn)) return refuse(`rewind.${name} must look like "turn_0007"`);
  const id = readId(fields.value['id']);
  if (!id.ok) return id;
  const message = said === undefined ? undefined : readMessage(said);
  if (message?.ok === false) return refuse(`rewind.message: ${message.reason}`);
  if (message?.value.kind === 'reset') return refuse('rewind.message is the reset: rewind first, then reset');
  return {
    ok: true,
    value: {
      to: turn,
      ...(before !== undefined && { before: true }),
      ...(id.value !== undefined && { id: id.value }),
      ...(message?.value.kind === 'message' && { message: message.value }),
    },
  };
}

function readId(id: unknown): Checked<string | undefined> {
  if (id === undefined) return { ok: true, value: undefined };
  if (!isShortText(id, LIMITS.idLength)) {
    return refuse(`id must be a string of 1 to ${LIMITS.idLength} characters`);
  }
  return { ok: true, value: id };
}

function readMedia(fields: Record<string, unknown>): Checked<Media> {
  const lists: [MediaKind, readonly MediaSource[]][] = [];
  for (const kind of MEDIA_KINDS) {
    const list = readSources(kind, fields[kind]);
    if (!list.ok) return list;
    if (list.value.length > 0) lists.push([kind, list.value]);
  }
  const count = lists.reduce((sum, [, list]) => sum + list.length, 0);
  if (count > LIMITS.mediaPerMessage) {
    return refuse(`message has ${count} images, audio, video and documents, the limit is ${LIMITS.mediaPerMessage} together`);
  }
  return { ok: true, value: Object.fromEntries(lists) };
}

function readSources(kind: MediaKind, list: unknown): Checked<readonly MediaSource[]> {
  if (list === undefined) return { ok: true, value: [] };
  if (!Array.isArray(list) || list.length > LIMITS.mediaPerMessage) {
    return refuse(`message.${kind} must be a list of at most ${LIMITS.mediaPerMessage}`);
  }
  const read: MediaSource[] = [];
  for (const [i, item] of (list as unknown[]).entries()) {
    const where = `message.${kind}[${i}]`;
    if (typeof item !== 'object' || item === null) return refuse(`${where} must be an object`);
    const { mediaType, url, base64, ref } = item as Record<string, unknown>;
    if (typeof mediaType !== 'string' || !isOfKind(kind, mediaType)) return refuse(`${where}.mediaType must be ${EXPECTED[kind]}`);
    const sources = [url, base64, ref].filter((source) => source !== undefined);
    if (sources.length !== 1 || typeof sources[0] !== 'string' || sources[0] === '') {
      return refuse(`${where} must have one of url, base64, ref`);
    }
    if (typeof base64 === 'string') {
      if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return refuse(`${where}.base64 is not base64`);
      if (kind === 'documents' && !base64.startsWith(PDF_IN_BASE64)) return refuse(`${where}.base64 is no PDF: it does not begin as one`);
      read.push({ mediaType, base64 });
    } else if (typeof url === 'string') {
      if (!isShortText(url, LIMITS.mediaUrl) || !/^https?:\/\/\S+$/.test(url)) {
        return refuse(`${where}.url must be an http(s) address of at most ${LIMITS.mediaUrl} characters`);
      }
      read.push({ mediaType, url });
    } else if (isShortText(ref, LIMITS.mediaUrl)) read.push({ mediaType, ref });
    else return refuse(`${where}.ref must be a reference of at most ${LIMITS.mediaUrl} characters`);
  }
  return { ok: true, value: read };
}

const EXPECTED: Readonly<Record<MediaKind, string>> = {
  images: `one of ${IMAGE_TYPES.join(', ')}`,
  audio: 'a type like audio/mpeg',
  video: 'a type like video/mp4',
  documents: DOCUMENT_TYPE,
};

/** Every provider takes the same few pictures; of sound and video each takes others, and its renderer knows which. */
function isOfKind(kind: MediaKind, mediaType: string): boolean {
  if (kind === 'images') return IMAGE_TYPES.includes(mediaType);
  if (kind === 'documents') return mediaType === DOCUMENT_TYPE;
  return mediaType.startsWith(`${kind}/`) && /^[a-z]+\/[a-z0-9][a-z0-9.+-]{0,63}$/.test(mediaType);
}
