/** Pictures, sound and documents in a tool's result: checked, since what a provider refuses would cost a call of its own. */
import { LIMITS } from '../conversation/protocol/limits.js';
import { detectBinaryType } from '../records/file-type.js';
import type { Media, MediaKind, MediaSource } from '../records/message.js';

/** Characters of base64 of one file, and of all of one result. */
const MAX_FILE = 10 * 1024 * 1024;
const MAX_TOGETHER = 14 * 1024 * 1024;
const TOO_MANY = `a result may have ${LIMITS.mediaPerMessage} files`;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** Enough to tell the type by, whatever stands behind it. */
const START = 16;

export interface MediaReader {
  /** Why it is left out, in words; undefined: it is among `media`. Its bytes decide what a picture or a document is. */
  add(base64: string, mediaType: string): string | undefined;
  addAddress(kind: MediaKind, source: Extract<MediaSource, { url: string }>): string | undefined;
  media(): Media;
}

export function createMediaReader(): MediaReader {
  const media: Partial<Record<MediaKind, MediaSource[]>> = {};
  let [count, together] = [0, 0];
  return {
    add(base64, mediaType) {
      if (count >= LIMITS.mediaPerMessage) return TOO_MANY;
      if (base64.length > MAX_FILE || together + base64.length > MAX_TOGETHER) return 'it is too large';
      if (!BASE64.test(base64)) return 'it is no base64';
      const found = detectBinaryType(Buffer.from(base64.slice(0, START), 'base64'));
      const kind = found === undefined ? kindOfSound(mediaType) : found.startsWith('image/') ? 'images' : 'documents';
      if (kind === undefined) return 'it is no PNG, JPEG, GIF or WebP picture, sound or PDF';
      count += 1;
      together += base64.length;
      (media[kind] ??= []).push({ mediaType: found ?? mediaType, base64 });
      return undefined;
    },
    addAddress(kind, source) {
      if (count >= LIMITS.mediaPerMessage) return TOO_MANY;
      count += 1;
      (media[kind] ??= []).push(source);
      return undefined;
    },
    media: () => media,
  };
}

/** Sound has too many forms to tell by its bytes. */
function kindOfSound(mediaType: string): MediaKind | undefined {
  return /^audio\/[a-z0-9.+-]{1,60}$/.test(mediaType) ? 'audio' : undefined;
}
