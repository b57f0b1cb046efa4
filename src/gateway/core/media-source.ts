/** Files that clients send beside a message, where they are of a kind that models take. */
import { MEDIA_KINDS, type MediaKind, type MediaSource } from '../../records/message.js';
import { attachmentIn } from './attachments.js';
import { invalid } from './read-body.js';

const KIND_OF_TYPE: Readonly<Record<string, MediaKind>> = { image: 'images', audio: 'audio', video: 'video' };

export interface SuppliedFile {
  readonly mediaType: string;
  /** An address, a data URL, or the reference of an attachment. */
  readonly url: string;
}

export function mediaOf(files: readonly SuppliedFile[]): Partial<Record<MediaKind, MediaSource[]>> {
  const media: Partial<Record<MediaKind, MediaSource[]>> = {};
  for (const file of files) {
    const attachment = attachmentIn(file.url);
    if (attachment !== undefined) {
      (media.images ??= []).push(attachment);
      continue;
    }
    const kind = KIND_OF_TYPE[file.mediaType.split('/')[0] ?? ''];
    if (kind === undefined) throw invalid(`a file of ${JSON.stringify(file.mediaType)} is not taken: send ${MEDIA_KINDS.join(', ')}`);
    (media[kind] ??= []).push(sourceOf(file));
  }
  return media;
}

function sourceOf({ mediaType, url }: SuppliedFile): MediaSource {
  if (!url.startsWith('data:')) return { mediaType, url };
  const comma = url.indexOf(',');
  if (comma < 0 || !url.slice(0, comma).endsWith(';base64')) throw invalid('a data URL must be base64');
  return { mediaType, base64: url.slice(comma + 1) };
}
