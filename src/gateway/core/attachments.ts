/**
 * Files that a message names by a reference (`att_…`): before it is handed over they become bodies of its conversation.
 *
 * R1  An unknown reference refuses the message before a conversation is begun for it. Another tenant's is unknown (client/uploads.ts).
 * R2  What the file is says its content, not who names it.
 */
import type { PerduraClient } from '../../client.js';
import { ClientError } from '../../client/errors.js';
import { UPLOAD_ID } from '../../client/uploads.js';
import { LIMITS } from '../../conversation/protocol/limits.js';
import { mapMedia, sourcesIn, type Media, type MediaSource } from '../../records/message.js';
import { GatewayError } from './errors.js';

/** A type that stands for "see what it is": a protocol that names a file by its id alone has none to say. */
const UNTOLD = 'application/octet-stream';
/** As clients come by it: the reference itself, or its address, which a page can show. */
const NAMED = /^(?:(?:https?:\/\/[^/?#\s]+)?(?:\/[^/?#\s]+)*\/v1\/attachments\/)?(att_[0-9a-f]{32})(?:\/content)?$/;

/** Of a text that is the reference or the address of an attachment. */
export function attachmentIn(text: string): MediaSource | undefined {
  const ref = text.length <= MAX_ADDRESS ? NAMED.exec(text)?.[1] : undefined;
  return ref === undefined ? undefined : { mediaType: UNTOLD, ref };
}

const MAX_ADDRESS = 2_048;

/** For fields that can hold nothing but a reference. */
export function attachmentNamed(text: string, param: string): MediaSource {
  const source = attachmentIn(text);
  if (source !== undefined) return source;
  throw invalid(
    `${param} must be a reference of POST /v1/attachments, such as att_0123…: ${JSON.stringify(text.slice(0, 80))} is none`,
    param,
  );
}

type Client = Pick<PerduraClient, 'uploaded' | 'attachUploaded'>;

/** R1, R2: the same message with each reference under its type. */
export async function checkAttachments<M extends Media>(client: Client, message: M): Promise<M> {
  if (!namesAny(message)) return message;
  const types = new Map<string, string>();
  const named = referencesIn(message);
  if (named.size > LIMITS.mediaPerMessage)
    throw invalid(`a message may name ${LIMITS.mediaPerMessage} attachments, this one names ${named.size}`);
  for (const ref of named) {
    const { mediaType } = await client.uploaded(ref).catch(refuse);
    types.set(ref, mediaType);
  }
  return { ...message, ...mapMedia(message, (list) => list.map((one) => typed(one, types))) };
}

function invalid(message: string, param?: string): GatewayError {
  return new GatewayError({ status: 400, type: 'invalid', message, ...(param !== undefined && { param }) });
}

/** Not a 404: that would be about the conversation. */
function refuse(error: unknown): never {
  throw error instanceof ClientError && error.kind === 'not-found' ? invalid(error.message) : error;
}

/** The message as the conversation takes it. */
export async function placeAttachments<M extends Media>(client: Client, id: string, message: M): Promise<M> {
  if (!namesAny(message)) return message;
  const placed = new Map<string, MediaSource>();
  for (const ref of referencesIn(message)) placed.set(ref, await client.attachUploaded(id, ref));
  return { ...message, ...mapMedia(message, (list) => list.map((one) => ('ref' in one ? (placed.get(one.ref) ?? one) : one))) };
}

/** Both, for a conversation that there is. */
export async function withAttachments<M extends Media>(client: Client, id: string, message: M): Promise<M> {
  return placeAttachments(client, id, await checkAttachments(client, message));
}

function typed(source: MediaSource, types: ReadonlyMap<string, string>): MediaSource {
  const mediaType = 'ref' in source ? types.get(source.ref) : undefined;
  return mediaType === undefined ? source : { ...source, mediaType };
}

function referencesIn(message: Media): ReadonlySet<string> {
  return new Set(sourcesIn(message).flatMap(({ source }) => ('ref' in source && UPLOAD_ID.test(source.ref) ? [source.ref] : [])));
}

function namesAny(message: Media): boolean {
  return referencesIn(message).size > 0;
}
