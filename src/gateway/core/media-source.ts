/** Files that clients send beside a message, where they are of a kind that models take. */
import type { MediaKind, MediaSource } from '../../records/message.js';
import { attachmentIn, notTaken, UNTOLD, type NamedSource } from './attachments.js';
import { invalid } from './read-body.js';

const KIND_OF_TYPE: Readonly<Record<string, MediaKind>> = { image: 'images', audio: 'audio', video: 'video' };

export interface SuppliedFile {
  /** As the client says; empty: it does not say. */
  readonly mediaType: string;
  /** An address, a data URL, or the reference of an attachment. */
  readonly url: string;
  readonly name?: string | undefined;
}

export function mediaOf(files: readonly SuppliedFile[]): Partial<Record<MediaKind, MediaSource[]>> {
  const media: Partial<Record<MediaKind, MediaSource[]>> = {};
  for (const file of files) {
    const { kind, source } = fileOf(file);
    (media[kind] ??= []).push(source);
  }
  return media;
}

/** A document is whatever is no picture, sound or video by what its sender says; its content decides (attachments.ts). */
export function fileOf({ mediaType, url, name }: SuppliedFile, param?: string): { readonly kind: MediaKind; readonly source: NamedSource } {
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
