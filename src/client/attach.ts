/** Pictures and documents beside a message: they are kept in the store, and the message has a reference, so that Temporal's history stays small. */
import type { MediaSource } from '../records/message.js';
import { detectFileType, TEXT_TYPE } from '../records/file-type.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { ClientError } from './errors.js';

/** What the largest of the providers takes, as base64. */
export const MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024;

export interface AttachClient {
  /**
   * Keeps a picture (PNG, JPEG, GIF, WebP, by its content) or a PDF with a conversation, for the `images` or the `documents` of a message to it.
   * The same file again is the same one. Fails with `invalid` for anything else, and beyond 10 MiB; text belongs in the message itself.
   */
  attach(id: string, file: Uint8Array): Promise<MediaSource & { readonly ref: string }>;
}

export interface AttachAccess {
  readonly store: () => Promise<Store>;
  readonly keyOf: (id: string) => Promise<ConversationKey>;
}

export function createAttach({ store, keyOf }: AttachAccess): AttachClient {
  return {
    async attach(id, file) {
      const attempt = `cannot attach ${file.byteLength} bytes to ${id}`;
      if (file.byteLength > MAX_ATTACHMENT_BYTES) throw new ClientError('invalid', `${attempt}: at most ${MAX_ATTACHMENT_BYTES} are kept`);
      const mediaType = detectFileType(file);
      if (mediaType === undefined) throw new ClientError('invalid', `${attempt}: they are no PNG, JPEG, GIF or WebP picture and no PDF`);
      if (mediaType === TEXT_TYPE) throw new ClientError('invalid', `${attempt}: they are text, which belongs in the text of the message`);
      const key = await keyOf(id);
      const { ref } = await (await store()).bodies.put(key, Buffer.from(file).toString('base64'));
      return { mediaType, ref };
    },
  };
}
