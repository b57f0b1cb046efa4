/** Bytes of files that wait to be used (collections/uploads.ts): Redis itself removes what has expired. Keys: keys.ts. */
import { randomUUID } from 'node:crypto';
import type { UploadBytes } from '../collections/uploads.js';
import { uploadKey } from './keys.js';
import type { RedisLink } from './link.js';

/** Life of an unfinished file after its latest part. */
const DRAFT_LIFE_MS = 10 * 60 * 1000;

/** The rest is for messages, and what becomes of them: a Redis that takes no writes stops every conversation. */
const FULL_AT = 0.75;

export function createRedisUploadBytes(link: RedisLink): UploadBytes {
  return {
    async begin(owner) {
      const draft = uploadKey(owner, 'arriving', randomUUID());
      return {
        append: (bytes) =>
          link.ask('write an upload', async (redis) => {
            await redis.append(draft, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
            await redis.pexpire(draft, DRAFT_LIFE_MS);
          }),

        finish: ({ id, size, expiresAt }) =>
          link.ask(`keep the upload ${id}`, async (redis) => {
            if ((await redis.strlen(draft)) !== size) throw new Error('a part of it was written twice or not at all: send it again');
            await redis.rename(draft, uploadKey(owner, 'waiting', id));
            await redis.pexpireat(uploadKey(owner, 'waiting', id), expiresAt);
          }),

        discard: () =>
          link.ask('discard an upload', async (redis) => {
            await redis.del(draft);
          }),
      };
    },

    async read(owner, id) {
      const bytes = await link.askUnlessForeign(`read the upload ${id}`, (redis) => redis.getBuffer(uploadKey(owner, 'waiting', id)));
      return bytes ?? undefined;
    },

    remove: (owner, id) => link.ask(`remove the upload ${id}`, async (redis) => (await redis.del(uploadKey(owner, 'waiting', id))) === 1),

    async *list() {},

    async room() {
      const memory = await link.ask('read how full it is', (redis) => redis.info('memory'));
      const read = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1] ?? 0);
      const most = read('maxmemory');
      return most === 0 ? Infinity : Math.max(0, Math.floor(most * FULL_AT) - read('used_memory'));
    },
  };
}
