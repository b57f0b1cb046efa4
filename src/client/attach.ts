/** Pictures beside a message: they lie in the store, and the message says where, so that Temporal's history stays small. */
import type { MediaSource } from '../records/message.js';
import { imageTypeOf } from '../records/image-type.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { ClientError } from './errors.js';

/** What the largest of the providers takes, as base64. */
export const MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024;

export interface AttachClient {
  /**
   * Keeps a picture (PNG, JPEG, GIF, WebP, by its content) with a conversation, for the `images` of a message to it. The same picture again is
   * the same one. Fails with `invalid` for anything else, and beyond 10 MiB.
   */
  attach(id: string, picture: Uint8Array): Promise<MediaSource & { readonly ref: string }>;
}

export interface AttachAccess {
  readonly store: () => Promise<Store>;
  readonly keyOf: (id: string) => Promise<ConversationKey>;
}

export function createAttach({ store, keyOf }: AttachAccess): AttachClient {
  return {
    async attach(id, picture) {
      const attempt = `cannot attach ${picture.byteLength} bytes to ${id}`;
      if (picture.byteLength > MAX_ATTACHMENT_BYTES)
        throw new ClientError('invalid', `${attempt}: at most ${MAX_ATTACHMENT_BYTES} are kept`);
      const mediaType = imageTypeOf(picture);
      if (mediaType === undefined) throw new ClientError('invalid', `${attempt}: they are no PNG, JPEG, GIF or WebP picture`);
      const key = await keyOf(id);
      const { ref } = await (await store()).bodies.put(key, Buffer.from(picture).toString('base64'));
      return { mediaType, ref };
    },
  };
}
