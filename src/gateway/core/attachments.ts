/**
 * Files of a message, sent with it or named by a reference (`att_…`): before it is handed over pictures and documents are the
 * conversation's, and texts are part of its text.
 *
 * An unknown reference refuses the message before a conversation begins for it; another tenant's reference is unknown (client/uploads.ts).
 * The content decides what a file is, not its sender.
 */
import type { PerduraClient } from '../../client.js';
import { ClientError } from '../../client/errors.js';
import { UPLOAD_ID } from '../../client/uploads.js';
import { LIMITS } from '../../conversation/protocol/limits.js';
import { detectBinaryType, detectFileType, TAKEN_FILES, TEXT_TYPE, withTextFile } from '../../records/file-type.js';
import { mapMedia, MEDIA_KINDS, sourcesIn, type Media, type MediaKind, type MediaSource } from '../../records/message.js';
import { GatewayError, invalid } from './errors.js';

/** A type that means "look at the content": a protocol that names a file only by its id states no type. */
export const UNTOLD = 'application/octet-stream';
/** As clients come by it: the reference itself, or its address, which a page can show. */
const NAMED = /^(?:(?:https?:\/\/[^/?#\s]+)?(?:\/[^/?#\s]+)*\/v1\/attachments\/)?(att_[0-9a-f]{32})(?:\/content)?$/;

/** The source that a text names by the reference or the address of an attachment. */
export function attachmentIn(text: string): MediaSource | undefined {
  const ref = text.length <= MAX_ADDRESS ? NAMED.exec(text)?.[1] : undefined;
  return ref === undefined ? undefined : { mediaType: UNTOLD, ref };
}

const MAX_ADDRESS = 2_048;
/** Takes no more than the words of a message do. */
const TINY_CHARACTERS = 4 * 1024;
/** In a message itself only what is small: it would stay in Temporal's history. */
const INLINE_CHARACTERS = 64 * 1024;

/** For fields that can hold nothing but a reference. */
export function attachmentNamed(text: string, param: string): MediaSource {
  const source = attachmentIn(text);
  if (source !== undefined) return source;
  throw invalid(
    `${param} must be a reference of POST /v1/attachments, such as att_0123…: ${JSON.stringify(text.slice(0, 80))} is none`,
    param,
  );
}

const DATA_URL = /^data:(image\/[a-z]+)(?:;[^,]{0,100})?;base64,/;
const TYPES: Readonly<Record<string, string>> = { png: 'image/png', gif: 'image/gif', webp: 'image/webp' };

/** As clients name pictures: a data URL, a web address or an attachment. What it is says its content, where there is one. */
export function pictureAt(url: string, param: string): MediaSource {
  const attachment = attachmentIn(url);
  if (attachment !== undefined) return attachment;
  const stated = DATA_URL.exec(url.slice(0, MAX_ADDRESS))?.[1];
  if (stated !== undefined) return picture(url.slice(url.indexOf(',') + 1), stated);
  // Who fetches it looks at what comes.
  if (/^https?:\/\/\S+$/.test(url) && url.length <= LIMITS.mediaUrl)
    return { mediaType: TYPES[/\.([a-z]+)(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase() ?? ''] ?? 'image/jpeg', url };
  throw invalid('a picture must be a data: URL with base64, an address of the web, or the reference of an attachment', param);
}

export function picture(base64: string, stated: string): MediaSource {
  const found = detectBinaryType(Buffer.from(base64.slice(0, 64), 'base64'));
  return { mediaType: found?.startsWith('image/') === true ? found : stated.replace(/jpg$/, 'jpeg'), base64 };
}

/** A file whose name the client has given. */
export type NamedSource = MediaSource & { readonly name?: string | undefined };

type Client = Pick<PerduraClient, 'uploaded' | 'uploadedBytes' | 'attachUploaded' | 'attach' | 'countFile' | 'checkRoomForFiles'>;
type WithFiles = Media & { readonly text: string };

/** The same message with each file under what it is. */
export async function checkAttachments<M extends WithFiles>(client: Client, message: M): Promise<M> {
  const files = sourcesIn(message);
  const bytes = files.reduce((sum, { source }) => sum + ('base64' in source ? source.base64.length : 0), 0);
  if (!files.some(({ kind, source }) => kind === 'documents' || isUpload(source))) {
    if (bytes > 0) await client.checkRoomForFiles(bytes);
    return message;
  }
  if (files.length > LIMITS.mediaPerMessage)
    throw invalid(`a message may have ${LIMITS.mediaPerMessage} files, this one has ${files.length}`);
  const media: Partial<Record<MediaKind, MediaSource[]>> = {};
  let { text } = message;
  let uploaded = 0;
  for (const { kind, source } of files) {
    const found = await look(client, kind, source);
    uploaded += 'size' in found ? (found.size ?? 0) : 0;
    if ('bytes' in found) text = withTextFile(text, { name: (source as NamedSource).name, bytes: found.bytes });
    else (media[found.kind] ??= []).push(found.source);
  }
  if (bytes + uploaded > 0) await client.checkRoomForFiles(bytes + uploaded);
  const rest = Object.fromEntries(Object.entries(message).filter(([name]) => !MEDIA_KINDS.includes(name as MediaKind)));
  return { ...rest, text, ...media } as unknown as M;
}

/** `size`: of what was sent before, as a conversation stores it. */
type Found = { readonly kind: MediaKind; readonly source: MediaSource; readonly size?: number } | { readonly bytes: Uint8Array };

async function look(client: Client, kind: MediaKind, source: MediaSource): Promise<Found> {
  if (isUpload(source)) {
    const { mediaType, bytes } = await client.uploaded(source.ref).catch(refuse);
    if (mediaType === TEXT_TYPE) return { bytes: await client.uploadedBytes(source.ref).catch(refuse) };
    return { kind: toKind(mediaType), source: { mediaType, ref: source.ref }, size: Math.ceil(bytes / 3) * 4 };
  }
  if (kind !== 'documents') return { kind, source };
  if (!('base64' in source)) return { kind, source: 'url' in source ? { mediaType: source.mediaType, url: source.url } : source };
  const { base64 } = source;
  const bytes = Buffer.from(base64, 'base64');
  const mediaType = detectFileType(bytes);
  if (mediaType === undefined) throw notTaken(`by its content the file ${quoteName(source)} is no ${TAKEN_FILES}`);
  return mediaType === TEXT_TYPE ? { bytes } : { kind: toKind(mediaType), source: { mediaType, base64 } };
}

function toKind(mediaType: string): MediaKind {
  return mediaType.startsWith('image/') ? 'images' : 'documents';
}

function quoteName({ name, mediaType }: NamedSource): string {
  return JSON.stringify((name ?? mediaType).slice(0, 80));
}

export function notTaken(message: string, param?: string): GatewayError {
  return new GatewayError({ status: 415, type: 'media-type', message, ...(param !== undefined && { param }) });
}

/** Not a 404: that would be about the conversation. */
function refuse(error: unknown): never {
  throw error instanceof ClientError && error.kind === 'not-found' ? invalid(error.message) : error;
}

/** The message as the conversation takes it. */
export async function placeAttachments<M extends Media>(client: Client, id: string, message: M): Promise<M> {
  const placed = new Map<MediaSource, MediaSource>();
  for (const { source } of sourcesIn(message)) {
    if (isUpload(source)) placed.set(source, await client.attachUploaded(id, source.ref));
    else if (!('base64' in source)) continue;
    else if (isLong(source)) placed.set(source, await client.attach(id, Buffer.from(source.base64, 'base64')));
    else if (source.base64.length > TINY_CHARACTERS) await client.countFile(id, source.base64);
  }
  if (placed.size === 0) return message;
  return { ...message, ...mapMedia(message, (list) => list.map((one) => placed.get(one) ?? one)) };
}

/** Both, for a conversation that there is. */
export async function withAttachments<M extends WithFiles>(client: Client, id: string, message: M): Promise<M> {
  return placeAttachments(client, id, await checkAttachments(client, message));
}

function isUpload(source: MediaSource): source is MediaSource & { readonly ref: string } {
  return 'ref' in source && UPLOAD_ID.test(source.ref);
}

/** Sound, video and files that only claim to be pictures stay unchanged: the conversation checks them. */
function isLong({ base64, mediaType }: { readonly base64: string; readonly mediaType: string }): boolean {
  if (base64.length <= INLINE_CHARACTERS) return false;
  return detectBinaryType(Buffer.from(base64.slice(0, 16), 'base64')) === mediaType;
}

/** Files that clients send beside a message, where they are of a kind that models take. */
const KIND_OF_TYPE: Readonly<Record<string, MediaKind>> = { image: 'images', audio: 'audio', video: 'video' };

export interface SuppliedFile {
  /** As the client states it; empty: it states none. */
  readonly mediaType: string;
  /** An address, a data URL, or the reference of an attachment. */
  readonly url: string;
  readonly name?: string | undefined;
}

export function toMedia(files: readonly SuppliedFile[]): Partial<Record<MediaKind, MediaSource[]>> {
  const media: Partial<Record<MediaKind, MediaSource[]>> = {};
  for (const file of files) {
    const { kind, source } = toFile(file);
    (media[kind] ??= []).push(source);
  }
  return media;
}

/** Every file that its sender does not call a picture, sound or video counts as a document; its content decides. */
export function toFile({ mediaType, url, name }: SuppliedFile, param?: string): { readonly kind: MediaKind; readonly source: NamedSource } {
  const named = name === undefined ? {} : { name };
  const attachment = attachmentIn(url);
  if (attachment !== undefined) return { kind: 'documents', source: { ...attachment, ...named } };
  const kind = KIND_OF_TYPE[mediaType.split('/')[0] ?? ''] ?? 'documents';
  if (!url.startsWith('data:')) {
    if (kind === 'documents' && mediaType !== PDF) {
      throw notTaken(
        `a file of the type ${JSON.stringify(mediaType.slice(0, 80))} is not taken by its address: send it itself, or a picture or PDF`,
        param,
      );
    }
    return { kind, source: { mediaType, url } };
  }
  const comma = url.indexOf(',');
  if (comma < 0 || !url.slice(0, comma).endsWith(';base64')) throw invalid('a data URL must be base64', param);
  const base64 = url.slice(comma + 1);
  if (base64 === '') throw invalid('a file is empty', param);
  return { kind, source: { mediaType: mediaType === '' ? UNTOLD : mediaType, base64, ...(kind === 'documents' && named) } };
}

const PDF = 'application/pdf';
