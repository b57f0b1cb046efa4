/** Files that wait to be used, in every store. */
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { qualifiedScope } from '../../src/records/identity.js';
import type { ConversationKey, Upload, UploadUse } from '../../src/stores/store.js';
import type { Store, UploadOwner } from '../../src/stores/store.js';

const HOUR_MS = 3_600_000;
const PARTS = [Buffer.from([0x89, 0x50, 0x00, 0xff]), Buffer.alloc(70_000, 0xc3), Buffer.from('end')];
const WHOLE = Buffer.concat(PARTS);
const use = (conversation: string): UploadUse => ({ conversation, life: `life-of-${conversation}`, scope: 'default', ref: 'sha256:1' });

export function uploadsContract(open: () => Store): void {
  describe('uploads', () => {
    let owner: UploadOwner;
    beforeEach(() => {
      owner = { namespace: 'default', tenant: `t-${randomUUID()}` };
    });

    const upload = (over: Partial<Upload> = {}): Omit<Upload, 'uses'> => ({
      id: 'att_1',
      mediaType: 'image/png',
      size: WHOLE.byteLength,
      sha256: createHash('sha256').update(WHOLE).digest('hex'),
      at: Date.now(),
      expiresAt: Date.now() + HOUR_MS,
      ...over,
    });
    const send = async (given = upload()): Promise<void> => {
      const draft = await open().uploads.begin(owner);
      for (const part of PARTS) await draft.append(part);
      await draft.keep(given);
    };

    test('arrive in parts, and are there for every process once they are kept', async () => {
      const given = upload();
      const draft = await open().uploads.begin(owner);
      for (const part of PARTS) await draft.append(part);
      expect(await open().uploads.find(owner, 'att_1')).toBeUndefined();
      await draft.keep(given);
      expect(await open().uploads.find(owner, 'att_1')).toEqual({ ...given, uses: [] });
      expect((await open().uploads.bytes(owner, 'att_1'))?.equals(WHOLE)).toBe(true);
      expect(await open().uploads.waiting(owner)).toEqual({ count: 1, bytes: WHOLE.byteLength });
    });

    test('are their owner’s alone', async () => {
      await send();
      for (const other of [
        { ...owner, tenant: '' },
        { ...owner, tenant: 'other' },
        { ...owner, namespace: 'other' },
      ]) {
        expect(await open().uploads.find(other, 'att_1')).toBeUndefined();
        expect(await open().uploads.bytes(other, 'att_1')).toBeUndefined();
        await open().uploads.use(other, 'att_1', use('conv_1'), Date.now() + HOUR_MS);
      }
      expect(await open().uploads.find(owner, 'att_1')).toMatchObject({ uses: [] });
    });

    test('that are discarded leave nothing', async () => {
      const draft = await open().uploads.begin(owner);
      for (const part of PARTS) await draft.append(part);
      await draft.discard();
      await draft.discard();
      expect(await open().uploads.waiting(owner)).toEqual({ count: 0, bytes: 0 });
      await expect(draft.keep(upload())).rejects.toThrow('cannot keep the upload att_1');
      expect(await open().uploads.find(owner, 'att_1')).toBeUndefined();
    });

    test('have their bytes with the conversation that uses them, and are known as long as that says', async () => {
      await send();
      const later = Date.now() + 5 * HOUR_MS;
      await open().uploads.use(owner, 'att_1', use('conv_1'), later);
      await open().uploads.use(owner, 'att_1', use('conv_2'), Date.now() + HOUR_MS);
      await open().uploads.use(owner, 'att_1', use('conv_2'), Date.now() + HOUR_MS);
      expect(await open().uploads.find(owner, 'att_1')).toMatchObject({ uses: [use('conv_2'), use('conv_1')], expiresAt: later });
      expect(await open().uploads.bytes(owner, 'att_1')).toBeUndefined();
      expect(await open().uploads.waiting(owner)).toEqual({ count: 0, bytes: 0 });
    });

    test('that are sent again wait again, and keep who has used them', async () => {
      await send();
      await send();
      expect(await open().uploads.waiting(owner)).toEqual({ count: 1, bytes: WHOLE.byteLength });
      await open().uploads.use(owner, 'att_1', use('conv_1'), Date.now() + 5 * HOUR_MS);
      await send();
      expect((await open().uploads.bytes(owner, 'att_1'))?.equals(WHOLE)).toBe(true);
      expect(await open().uploads.find(owner, 'att_1')).toMatchObject({ uses: [use('conv_1')] });
    });

    test('that have expired are not there, and are removed, those alone, however often', async () => {
      const soon = Date.now() + HOUR_MS / 2;
      await send(upload({ id: 'att_old', expiresAt: soon }));
      await send(upload({ id: 'att_used', expiresAt: soon }));
      await send();
      await open().uploads.use(owner, 'att_used', use('conv_1'), Date.now() + HOUR_MS);
      const later = jest.spyOn(Date, 'now').mockReturnValue(soon + 1);
      expect(await open().uploads.find(owner, 'att_old')).toBeUndefined();
      expect(await open().uploads.bytes(owner, 'att_old')).toBeUndefined();
      await Promise.all([open().uploads.sweep(), open().uploads.sweep()]);
      expect(await open().uploads.sweep()).toBe(0);
      expect(await open().uploads.waiting(owner)).toEqual({ count: 1, bytes: WHOLE.byteLength });
      expect(await open().uploads.find(owner, 'att_1')).toMatchObject({ uses: [] });
      expect(await open().uploads.find(owner, 'att_used')).toMatchObject({ uses: [use('conv_1')] });
      later.mockRestore();
    });

    const keeping = (conversation: string): ConversationKey => ({
      namespace: 'default',
      scope: qualifiedScope(owner.tenant, 'default'),
      conversation,
      life: `life-${conversation}`,
    });

    test('that conversations keep count for their tenant, each once in a life, up to the limit, until the life is deleted', async () => {
      const [one, two] = [keeping(`one-${owner.tenant}`), keeping(`two-${owner.tenant}`)];
      const count = (key: ConversationKey, file: string, size: number) =>
        open().uploads.count(key, { file, size, limit: 100, maxFiles: 2 });
      expect(await open().uploads.kept(owner)).toBe(0);
      expect(await count(one, 'a', 60)).toMatchObject({ status: 'counted' });
      expect(await count(one, 'a', 60)).toMatchObject({ status: 'counted' });
      expect(await open().uploads.kept(owner)).toBe(60);
      expect(await count(two, 'a', 41)).toEqual({ status: 'full', kept: 60 });
      expect(await count(two, 'a', 40)).toMatchObject({ status: 'counted' });
      expect(await count(one, 'b', 1)).toEqual({ status: 'full', kept: 100 });
      expect(await open().uploads.kept({ ...owner, tenant: 'other' })).toBe(0);
      // As a deletion knows it, which may not have its scope.
      await open().uploads.release(one);
      await open().uploads.release(one);
      expect(await open().uploads.kept(owner)).toBe(40);
      expect(await count(two, 'b', 59)).toMatchObject({ status: 'counted' });
      expect(await count(two, 'c', 1)).toEqual({ status: 'many', kept: 99 });
      expect(await count(two, 'b', 59)).toMatchObject({ status: 'counted' });
    });

    test('that conversations keep at once, by several processes, are never more than the limit', async () => {
      const keys = Array.from({ length: 12 }, (_, i) => keeping(`c${i}-${owner.tenant}`));
      const answers = await Promise.all(keys.map((key) => open().uploads.count(key, { file: 'a', size: 30, limit: 100, maxFiles: 2 })));
      expect(answers.filter(({ status }) => status === 'counted')).toHaveLength(3);
      expect(await open().uploads.kept(owner)).toBe(90);
    });

    test('are used and swept and sent again at once, and what was answered is true', async () => {
      for (let i = 0; i < 5; i += 1) {
        await send(upload({ expiresAt: Date.now() + 30 }));
        await sleep(25);
        await Promise.all([open().uploads.sweep(), send(), open().uploads.sweep(), open().uploads.waiting(owner)]);
        expect((await open().uploads.bytes(owner, 'att_1'))?.equals(WHOLE)).toBe(true);
      }
    });
  });
}
