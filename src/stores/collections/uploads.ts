/**
 * Files that were sent before a message names them: a record of each, a list of those that wait to be used, and their bytes, which are a
 * matter of each store. Bytes come and go inside the change of their record. And how much conversations keep of files, whichever way those
 * came: counted for their tenant before they are written, so that a crash in between counts too much and never too little.
 */
import { createHash, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { recordCodec, type OpenCollection, type RecordCodec } from './collection.js';
import { readTenant } from '../../records/identity.js';
import type { ConversationKey, Upload, UploadOwner, Uploads, UploadUse } from '../store.js';

/** Bytes that are arriving: no id names them until they are finished, and what is left of a dead writer goes by itself. */
export interface ArrivingBytes {
  append(bytes: Uint8Array): Promise<void>;
  finish(upload: WaitingUpload): Promise<void>;
  discard(): Promise<void>;
}

export interface UploadBytes {
  begin(owner: UploadOwner): Promise<ArrivingBytes>;
  read(owner: UploadOwner, id: string): Promise<Buffer | undefined>;
  /** Whether there were some. */
  remove(owner: UploadOwner, id: string): Promise<boolean>;
  room(): Promise<number>;
  /** All that have bytes or a record, where the store does not remove by itself what has expired. */
  list(): AsyncIterable<{ readonly owner: UploadOwner; readonly id: string }>;
  /** Ids of those of an owner that have a record. */
  known(owner: UploadOwner): AsyncIterable<string>;
  /** Bytes, records, lists and counts of an owner. */
  clear(owner: UploadOwner): Promise<void>;
}

type WaitingUpload = Pick<Upload, 'id' | 'size' | 'expiresAt'>;

const useSchema = z.object({ conversation: z.string(), life: z.string(), scope: z.string(), ref: z.string() });
const waitingSchema = z.object({ id: z.string(), size: z.int().positive(), expiresAt: z.number() });
const uploadSchema = waitingSchema.extend({ mediaType: z.string(), sha256: z.string(), at: z.number(), uses: z.array(useSchema) });

const UPLOAD = expiring(recordCodec<Upload>(uploadSchema, ({ id }) => id));
const WAITING = expiring(recordCodec<WaitingUpload>(waitingSchema, ({ id }) => id));

const keptSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('sum'), id: z.literal(''), bytes: z.int(), change: z.string() }),
  z.object({ kind: z.literal('life'), id: z.string(), files: z.record(z.string(), z.int()) }),
]);
type KeptRecord = z.output<typeof keptSchema>;
export const KEPT_FILES = recordCodec<KeptRecord>(keptSchema, ({ kind, id }) => `${kind}:${id}`);
const COUNTED_BY = recordCodec<{ readonly id: string; readonly tenant: string }>(
  z.object({ id: z.string(), tenant: z.string() }),
  ({ id }) => id,
);

function expiring<Item extends WaitingUpload>(codec: RecordCodec<Item>): RecordCodec<Item> {
  return { ...codec, expiresAt: ({ expiresAt }) => expiresAt };
}

export function createUploads(open: OpenCollection, bytes: UploadBytes): Uploads {
  const openUpload = (owner: UploadOwner, id: string) => open({ name: 'upload', key: { ...owner, id } }, UPLOAD);
  const openWaiting = (owner: UploadOwner) => open({ name: 'waiting-uploads', key: owner }, WAITING);
  const find = async (owner: UploadOwner, id: string): Promise<Upload | undefined> =>
    (await openUpload(owner, id).read(`look up the upload ${id}`)).items.find(isThere);

  /** Whose lists of waiting uploads this process has written: a sweep takes out what has expired. */
  const owners = new Map<string, UploadOwner>();
  const sweepWaiting = (owner: UploadOwner): Promise<unknown> =>
    openWaiting(owner).change('remove uploads that have expired', (all) => (all.every(isThere) ? undefined : all.filter(isThere)));

  const openKept = (owner: UploadOwner) => open({ name: 'kept-files', key: owner }, KEPT_FILES);
  const openCountedBy = (key: ConversationKey) => open({ name: 'counted-by', key }, COUNTED_BY);
  /** The sum and one life, changed together: of two at once one decides again by what the other has made of the sum. */
  const changeKept = (
    owner: UploadOwner,
    { attempt, life }: { readonly attempt: string; readonly life: string },
    decide: (bytes: number, files: Readonly<Record<string, number>>) => Readonly<Record<string, number>> | undefined,
  ): Promise<void> =>
    openKept(owner).change(
      attempt,
      (records) => {
        const bytes = records.reduce((sum, one) => (one.kind === 'sum' ? one.bytes : sum), 0);
        const files = records.find((one) => one.kind === 'life')?.files ?? {};
        const after = decide(bytes, files);
        if (after === undefined) return undefined;
        const more = addSizes(after) - addSizes(files);
        const sum: KeptRecord = { kind: 'sum', id: '', bytes: bytes + more, change: randomUUID() };
        return Object.keys(after).length === 0 ? [sum] : [sum, { kind: 'life', id: life, files: after }];
      },
      ['sum:', `life:${life}`],
    );

  return {
    find,

    async count(key, { file, size, limit, maxFiles }) {
      const attempt = `count a file of ${key.conversation}`;
      const tenant = readTenant(key.scope) ?? '';
      // A deletion may know the life alone.
      await openCountedBy(key).change(attempt, (known) => (known.length > 0 ? undefined : [{ id: 'tenant', tenant }]));
      let answer: Awaited<ReturnType<Uploads['count']>> = { status: 'counted', kept: 0 };
      await changeKept({ namespace: key.namespace, tenant }, { attempt, life: key.life }, (bytes, files) => {
        const isKnown = Object.hasOwn(files, file);
        const hasRoom = Object.keys(files).length < maxFiles;
        answer = { status: isKnown ? 'counted' : !hasRoom ? 'many' : bytes + size <= limit ? 'counted' : 'full', kept: bytes };
        return isKnown || answer.status !== 'counted' ? undefined : { ...files, [file]: size };
      });
      return answer;
    },

    async kept(owner) {
      const { items } = await openKept(owner).read('count the files that conversations keep', 'skip', ['sum:']);
      return items.reduce((sum, one) => (one.kind === 'sum' ? one.bytes : sum), 0);
    },

    async release(key) {
      const attempt = `count no more the files of ${key.conversation}`;
      // The mark may be gone with the life; then the scope is known.
      const [mark = { tenant: readTenant(key.scope) ?? '' }] = (await openCountedBy(key).read(attempt)).items;
      const owner = { namespace: key.namespace, tenant: mark.tenant };
      const { items } = await openKept(owner).read(attempt, 'skip', [`life:${key.life}`]);
      if (items.length === 0) return;
      await changeKept(owner, { attempt, life: key.life }, (_bytes, files) => (Object.keys(files).length === 0 ? undefined : {}));
    },

    room: () => bytes.room(),

    async begin(owner) {
      owners.set(JSON.stringify(owner), owner);
      const arriving = await bytes.begin(owner);
      return {
        append: (part) => arriving.append(part),
        discard: () => arriving.discard(),

        async keep(upload) {
          const attempt = `keep the upload ${upload.id}`;
          const { id, size, expiresAt } = upload;
          let finished: Promise<void> | undefined;
          await openUpload(owner, id).change(attempt, async (known) => {
            await (finished ??= arriving.finish(upload));
            const before = known.find(isThere);
            return [{ ...upload, expiresAt: Math.max(expiresAt, before?.expiresAt ?? 0), uses: before?.uses ?? [] }];
          });
          await openWaiting(owner).change(attempt, (all) => [
            ...all.filter((one) => one.id !== id && isThere(one)),
            { id, size, expiresAt },
          ]);
        },
      };
    },

    async bytes(owner, id) {
      const [known, read] = await Promise.all([find(owner, id), bytes.read(owner, id)]);
      return known && read && createHash('sha256').update(read).digest('hex') === known.sha256 ? read : undefined;
    },

    async use(owner, id, use, expiresAt) {
      if ((await find(owner, id)) === undefined) return;
      const attempt = `write who has used the upload ${id}`;
      await openUpload(owner, id).change(attempt, async (all) => {
        const known = all.find(isThere);
        if (known === undefined) return undefined;
        await bytes.remove(owner, id);
        return [{ ...known, uses: withUse(known.uses, use), expiresAt: Math.max(known.expiresAt, expiresAt) }];
      });
      await openWaiting(owner).change(attempt, (all) =>
        all.some((one) => one.id === id) ? all.filter((one) => one.id !== id) : undefined,
      );
    },

    async waiting(owner) {
      const there = (await openWaiting(owner).read('count the uploads that wait')).items.filter(isThere);
      return { count: there.length, bytes: there.reduce((sum, { size }) => sum + size, 0) };
    },

    async erase(owner, scope) {
      let removed = 0;
      for await (const id of bytes.known(owner)) {
        if (scope === undefined) {
          removed += 1;
          continue;
        }
        await openUpload(owner, id).change(`remove the record of the upload ${id}`, (known) => {
          const left = known.flatMap((one) => {
            const uses = one.uses.filter((use) => use.scope !== scope);
            return uses.length === one.uses.length ? [one] : uses.length === 0 ? [] : [{ ...one, uses }];
          });
          removed += known.length - left.length;
          return left.every((one, i) => one === known[i]) && left.length === known.length ? undefined : left;
        });
      }
      if (scope === undefined) await bytes.clear(owner);
      return removed;
    },

    async sweep() {
      let removed = 0;
      for await (const { owner, id } of bytes.list()) {
        owners.set(JSON.stringify(owner), owner);
        if ((await find(owner, id)) !== undefined) continue;
        // It may have been sent again meanwhile.
        await openUpload(owner, id).change('remove uploads that have expired', async (known) => {
          if (known.some(isThere)) return undefined;
          if ((await bytes.remove(owner, id)) || known.length > 0) removed += 1;
          return known.length === 0 ? undefined : [];
        });
      }
      for (const owner of owners.values()) await sweepWaiting(owner);
      owners.clear();
      return removed;
    },
  };
}

function addSizes(files: Readonly<Record<string, number>>): number {
  return Object.values(files).reduce((sum, size) => sum + size, 0);
}

function isThere({ expiresAt }: WaitingUpload): boolean {
  return expiresAt > Date.now();
}

const MAX_USES = 32;

/** Each life once. */
function withUse(uses: readonly UploadUse[], added: UploadUse): UploadUse[] {
  const others = uses.filter(({ conversation, life }) => conversation !== added.conversation || life !== added.life);
  return [added, ...others].slice(0, MAX_USES);
}
