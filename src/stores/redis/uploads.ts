/** Files that wait to be used: Redis itself removes what has expired. Which keys there are is in keys.ts. */
import { createHash, randomUUID } from 'node:crypto';
import { withUse, type Upload, type UploadUse } from '../../records/uploads.js';
import { decodeUpload, decodeUse, encodeUpload, encodeUse } from '../codecs/upload-codec.js';
import type { UploadOwner, Uploads } from '../store.js';
import { uploadKeyOf } from './keys.js';
import type { RedisLink } from './link.js';

/** Of a file that arrives, after its latest part. */
const DRAFT_LIFE_MS = 10 * 60 * 1000;
/** What the fields begin with that say who has used it. */
const USE = 'use:';

export function createRedisUploads(link: RedisLink): Uploads {
  const find = async (owner: UploadOwner, id: string): Promise<Upload | undefined> => {
    const fields = await link.askUnlessForeign(`look up the upload ${id}`, (redis) => redis.hgetall(uploadKeyOf(owner, 'known', id)));
    const { upload, expires, ...uses } = fields ?? {};
    const known = decodeUpload(upload);
    if (known?.id !== id) return undefined;
    const expiresAt = Math.max(known.expiresAt, Number(expires) || 0);
    return expiresAt > Date.now() ? { ...known, expiresAt, uses: newestFirst(uses) } : undefined;
  };

  return {
    find,

    async begin(owner) {
      const draft = uploadKeyOf(owner, 'arriving', randomUUID());
      return {
        append: (bytes) =>
          link.ask('write an upload', async (redis) => {
            await redis.append(draft, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
            await redis.pexpire(draft, DRAFT_LIFE_MS);
          }),

        // The record comes last: until it is there nobody finds the bytes, and they expire by themselves.
        keep: (upload) =>
          link.ask(`keep the upload ${upload.id}`, async (redis) => {
            const [waiting, known] = [uploadKeyOf(owner, 'waiting', upload.id), uploadKeyOf(owner, 'known', upload.id)];
            if ((await redis.strlen(draft)) !== upload.size) throw new Error('a part of it was written twice or not at all: send it again');
            const expiresAt = Math.max(upload.expiresAt, (await find(owner, upload.id))?.expiresAt ?? 0);
            await redis.rename(draft, waiting);
            await redis.pexpireat(waiting, upload.expiresAt);
            await redis.hset(uploadKeyOf(owner, 'sizes'), upload.id, `${upload.size} ${upload.expiresAt}`);
            await redis.pexpireat(uploadKeyOf(owner, 'sizes'), upload.expiresAt);
            await redis.hset(known, { upload: encodeUpload({ ...upload, uses: [] }), expires: String(expiresAt) });
            await redis.pexpireat(known, expiresAt);
          }),

        discard: () =>
          link.ask('discard an upload', async (redis) => {
            await redis.del(draft);
          }),
      };
    },

    async bytes(owner, id) {
      const known = await find(owner, id);
      if (known === undefined) return undefined;
      const bytes = await link.askUnlessForeign(`read the upload ${id}`, (redis) => redis.getBuffer(uploadKeyOf(owner, 'waiting', id)));
      if (bytes === null || bytes === undefined) return undefined;
      return createHash('sha256').update(bytes).digest('hex') === known.sha256 ? bytes : undefined;
    },

    async use(owner, id, use, expiresAt) {
      const known = await find(owner, id);
      if (known === undefined) return;
      const until = Math.max(known.expiresAt, expiresAt);
      const kept = withUse(known.uses, use);
      const gone = known.uses.filter((one) => !kept.some((other) => nameOf(other) === nameOf(one)));
      await link.ask(`write who has used the upload ${id}`, async (redis) => {
        const key = uploadKeyOf(owner, 'known', id);
        await redis.hset(key, { [nameOf(use)]: encodeUse({ ...use, at: Date.now() }), expires: String(until) });
        await redis.pexpireat(key, until);
        if (gone.length > 0) await redis.hdel(key, ...gone.map(nameOf));
        await redis.del(uploadKeyOf(owner, 'waiting', id));
        await redis.hdel(uploadKeyOf(owner, 'sizes'), id);
      });
    },

    async waiting(owner) {
      const sizes = uploadKeyOf(owner, 'sizes');
      const fields = (await link.askUnlessForeign('count the uploads that wait', (redis) => redis.hgetall(sizes))) ?? {};
      const all = Object.entries(fields).map(([id, text]) => [id, ...text.split(' ').map(Number)] as const);
      const past = all.filter(([, , expiresAt = 0]) => expiresAt <= Date.now()).map(([id]) => id);
      if (past.length > 0) await link.ask('forget uploads that have expired', (redis) => redis.hdel(sizes, ...past));
      const there = all.filter(([id]) => !past.includes(id));
      return { count: there.length, bytes: there.reduce((sum, [, size = 0]) => sum + size, 0) };
    },

    sweep: () => Promise.resolve(0),
  };
}

function nameOf({ conversation, life }: UploadUse): string {
  return `${USE}${JSON.stringify([conversation, life])}`;
}

/** What cannot be read is left out. */
function newestFirst(fields: Readonly<Record<string, string>>): UploadUse[] {
  const uses = Object.entries(fields).flatMap(([name, text]) => {
    const use = name.startsWith(USE) ? decodeUse(text) : undefined;
    return use === undefined ? [] : [use];
  });
  return uses.sort((a, b) => b.at - a.at).map(({ at: _, ...use }) => use);
}
