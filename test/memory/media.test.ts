import { createHash } from 'node:crypto';
import type { Entry, UserMessage } from '../../src/records/message.js';
import { hasBodies, mediaToRefs, withBodies } from '../../src/memory/bodies.js';
import { estimateMessageTokens } from '../../src/memory/tokens.js';
import type { Store } from '../../src/stores/store.js';

const KEY = { namespace: 'default', conversation: 'c1', scope: 'default', life: 'l1' };
const LONG = 'QUJD'.repeat(5_000);

function entryOf(message: UserMessage): Entry {
  return { v: 1, slot: 1, session: 1, turn: 'turn_0001', seq: 1, ts: 1, message };
}

function createBodies(): Store & { readonly kept: Map<string, string> } {
  const kept = new Map<string, string>();
  const bodies = {
    put: (_: unknown, text: string) => {
      const sha256 = createHash('sha256').update(text).digest('hex');
      kept.set(sha256, text);
      return Promise.resolve({ ref: sha256, sha256, bytes: text.length, preview: '' });
    },
    get: (_: unknown, ref: string) => Promise.resolve(kept.get(ref)),
  };
  return { bodies, kept } as unknown as Store & { readonly kept: Map<string, string> };
}

test('what is long lies in the store by reference, whatever it is, and is whole for the model', async () => {
  const store = createBodies();
  const message: UserMessage = {
    role: 'user',
    text: 'listen',
    images: [{ mediaType: 'image/png', base64: 'aGk=' }],
    audio: [{ mediaType: 'audio/mpeg', base64: LONG }],
    video: [
      { mediaType: 'video/mp4', url: 'https://example.org/a.mp4' },
      { mediaType: 'video/mp4', base64: `${LONG}QUJD` },
    ],
  };
  const stored: UserMessage = { role: 'user', text: 'listen', ...(await mediaToRefs(store, KEY, message)) };
  expect(JSON.stringify(stored)).not.toContain(LONG);
  expect([stored.images, stored.video?.[0]]).toEqual([message.images, message.video?.[0]]);
  expect(store.kept.size).toBe(2);
  expect(hasBodies(entryOf(stored).message)).toBe(true);
  expect(await withBodies(store, KEY, entryOf(stored))).toEqual(message);
  expect(await mediaToRefs(store, KEY, { images: [] })).toEqual({});
});

test('sound and video count as about a minute of them', () => {
  const source = { mediaType: 'audio/mpeg', ref: 'a' };
  expect(estimateMessageTokens({ role: 'user', text: '', audio: [source, source], video: [source] })).toBe(20_000);
});
