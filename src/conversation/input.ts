/**
 * What comes in, checked without a library, because it is checked inside the workflow. Refusals name the field and the limit.
 * Nothing here throws: signals cannot be refused, so their problems become `input-rejected` events.
 */
import { ID_PATTERN, LIMITS, type Delivery, type Message, type Origin, type StartOptions } from './contract.js';
import { MEDIA_KINDS, mediaBytes, type MediaKind } from './media.js';
import type { Media, MediaSource } from './message.js';
import { utf8Length } from './text.js';

export type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

/** A message whose text is the reset command, or a message. */
export type Said =
  | { readonly kind: 'reset'; readonly id?: string }
  | {
      readonly kind: 'message';
      readonly id?: string;
      readonly text: string;
      readonly media: Media;
      readonly delivery: Delivery;
    };

/** What the payload converter puts in the place of an argument that it could not read. */
export const UNREADABLE = 'perdura/unreadable';

const DELIVERIES: readonly string[] = ['queue', 'steer', 'interrupt'];
const MESSAGE_FIELDS: readonly string[] = ['id', 'text', ...MEDIA_KINDS, 'delivery'];
const IMAGE_TYPES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** `limitBytes` is for senders that can be refused; a signal was accepted before anyone could look at it. */
export function readMessage(payload: unknown, limitBytes: number = LIMITS.messageBytes): Checked<Said> {
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
  const textAlone = Object.keys(media.value).length === 0;
  const clean = text.toWellFormed();
  if (clean.trim() === '/new' && textAlone) {
    return { ok: true, value: { kind: 'reset', ...(checkedId.value === undefined ? {} : { id: checkedId.value }) } };
  }
  if (clean.trim() === '' && textAlone) return refuse('message.text is empty; say something');
  const bytes = utf8Length(clean) + mediaBytes(media.value);
  if (bytes > limitBytes) return refuse(`message is ${bytes} bytes, the limit is ${limitBytes}; attach long content by reference`);
  return {
    ok: true,
    value: {
      kind: 'message',
      ...(checkedId.value === undefined ? {} : { id: checkedId.value }),
      text: clean,
      media: media.value,
      delivery: (delivery as Delivery | undefined) ?? 'queue',
    },
  };
}

export function messageSize(message: Message): number {
  return utf8Length(message.text) + mediaBytes(message);
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
  return { ok: true, value: value.toWellFormed().slice(0, 500) };
}

export function readTitle(payload: unknown): Checked<string> {
  const fields = readFields(payload, 'rename', ['title']);
  if (!fields.ok) return fields;
  const { title } = fields.value;
  if (typeof title !== 'string' || title.trim() === '') return refuse('rename.title must be a text that is not empty');
  return { ok: true, value: title.toWellFormed().trim().slice(0, 200) };
}

export function readTurnRequest(payload: unknown): Checked<string> {
  const fields = readFields(payload, 'turn', ['turnId']);
  if (!fields.ok) return fields;
  const { turnId } = fields.value;
  if (typeof turnId !== 'string' || !/^turn_\d{4,15}$/.test(turnId)) return refuse('turn.turnId must look like "turn_0001"');
  return { ok: true, value: turnId };
}

/** Unknown fields are let through here: later versions add some, and a start cannot be asked again. */
export function readStart(
  payload: unknown,
): Checked<Required<Pick<StartOptions, 'agent' | 'scope'>> & { title: string | null; model: string | null; origin: Origin | null }> {
  const fields = readFields(payload ?? {}, 'start', null);
  if (!fields.ok) return fields;
  const { agent = 'default', scope = agent, title = null, model = null } = fields.value;
  if (typeof agent !== 'string' || !ID_PATTERN.test(agent)) return refuse(`start.agent must match ${ID_PATTERN.source}`);
  if (typeof scope !== 'string' || !ID_PATTERN.test(scope)) return refuse(`start.scope must match ${ID_PATTERN.source}`);
  if (title !== null && typeof title !== 'string') return refuse(`start.title must be a string, got ${nameOf(title)}`);
  if (model !== null && (typeof model !== 'string' || !/^[^/\s]{1,64}\/\S{1,128}$/.test(model))) {
    return refuse('start.model must look like "provider/model"');
  }
  const origin = readOrigin(fields.value['origin']);
  if (!origin.ok) return origin;
  return {
    ok: true,
    value: { agent, scope, title: title === null ? null : title.toWellFormed().slice(0, 200), model, origin: origin.value },
  };
}

/** `turn_0007`, at most as long as a number stays exact. */
const TURN_PATTERN = /^turn_\d{4,15}$/;
const LIFE_PATTERN = /^[\w.:-]{1,200}$/;

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

/** `{ to, id? }` of `rewind`. */
export function readRewind(payload: unknown): Checked<{ readonly to: string; readonly id?: string }> {
  const fields = readFields(payload, 'rewind', ['to', 'id']);
  if (!fields.ok) return fields;
  const { to } = fields.value;
  if (typeof to !== 'string' || !TURN_PATTERN.test(to)) return refuse('rewind.to must look like "turn_0007"');
  const id = readId(fields.value['id']);
  if (!id.ok) return id;
  return { ok: true, value: { to, ...(id.value === undefined ? {} : { id: id.value }) } };
}

export function readFields(payload: unknown, name: string, known: readonly string[] | null): Checked<Record<string, unknown>> {
  if (isUnreadable(payload)) return refuse(`${name} could not be decoded: ${payload[UNREADABLE]}`);
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) {
    return refuse(`${name} must be an object${name === 'message' ? ' or a string' : ''}, got ${nameOf(payload)}`);
  }
  if (isDeeperThan(payload, LIMITS.depth)) return refuse(`${name} is nested deeper than ${LIMITS.depth} levels`);
  const unknown = known ? Object.keys(payload).find((key) => !known.includes(key)) : undefined;
  if (unknown !== undefined) return refuse(`${name}.${unknown.slice(0, 64)} is not a field; known are ${known?.join(', ')}`);
  return { ok: true, value: payload as Record<string, unknown> };
}

function readId(id: unknown): Checked<string | undefined> {
  if (id === undefined) return { ok: true, value: undefined };
  if (typeof id !== 'string' || id === '' || id.length > LIMITS.idLength || !id.isWellFormed()) {
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
    return refuse(`message has ${count} images, audio and video, the limit is ${LIMITS.mediaPerMessage} together`);
  }
  return { ok: true, value: Object.fromEntries(lists) };
}

function readSources(kind: MediaKind, list: unknown): Checked<readonly MediaSource[]> {
  if (list === undefined) return { ok: true, value: [] };
  if (!Array.isArray(list) || list.length > LIMITS.mediaPerMessage) {
    return refuse(`message.${kind} must be a list of at most ${LIMITS.mediaPerMessage}`);
  }
  for (const [i, item] of (list as unknown[]).entries()) {
    const where = `message.${kind}[${i}]`;
    if (typeof item !== 'object' || item === null) return refuse(`${where} must be an object`);
    const { mediaType, url, base64, ref } = item as Record<string, unknown>;
    if (typeof mediaType !== 'string' || !isOfKind(kind, mediaType)) return refuse(`${where}.mediaType must be ${EXPECTED[kind]}`);
    const sources = [url, base64, ref].filter((source) => source !== undefined);
    if (sources.length !== 1 || typeof sources[0] !== 'string' || sources[0] === '') {
      return refuse(`${where} must have one of url, base64, ref`);
    }
    if (typeof url === 'string' && !/^https?:\/\/\S+$/.test(url)) return refuse(`${where}.url must be an http(s) address`);
    if (typeof base64 === 'string' && !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return refuse(`${where}.base64 is not base64`);
  }
  return { ok: true, value: list as MediaSource[] };
}

const EXPECTED: Readonly<Record<MediaKind, string>> = {
  images: `one of ${IMAGE_TYPES.join(', ')}`,
  audio: 'a type like audio/mpeg',
  video: 'a type like video/mp4',
};

/** Every provider takes the same few pictures; of sound and video each takes others, and its renderer knows which. */
function isOfKind(kind: MediaKind, mediaType: string): boolean {
  if (kind === 'images') return IMAGE_TYPES.includes(mediaType);
  return mediaType.startsWith(`${kind}/`) && /^[a-z]+\/[a-z0-9][a-z0-9.+-]{0,63}$/.test(mediaType);
}

/** Level by level, so that what is too deep cannot overflow the stack either. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > levels) return true;
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? (Object.values(item) as unknown[]) : []));
  }
  return false;
}

function isUnreadable(payload: unknown): payload is { [UNREADABLE]: string } {
  return typeof payload === 'object' && payload !== null && UNREADABLE in payload;
}

function nameOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : typeof value;
}

export function refuse(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}
