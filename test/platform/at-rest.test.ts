/** What is sealed comes back as it was, by its key alone; what is plain stays what it is, whatever it looks like. */
import { randomBytes, webcrypto } from 'node:crypto';
import fc from 'fast-check';
import {
  atRestKeyId,
  createAtRest,
  decrypt,
  deriveAtRestKeys,
  encrypt,
  isSealed,
  KeyMissing,
  SealBroken,
} from '../../src/platform/at-rest.js';

const [A, B] = [randomBytes(32), randomBytes(32)];
const by = (...roots: readonly Buffer[]) => createAtRest(deriveAtRestKeys(roots, 'store'));
const OFF = by();

/** Texts, and such as try to pass for something else. */
const texts = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string().map((text) => `pe1:${text}`),
  fc.string().map((text) => `pe0:${text}`),
  fc.constantFrom(
    '',
    by(A).seal('inside'),
    `pe1:${atRestKeyId(A)}:${'A'.repeat(60)}`,
    `a\n${by(B).seal('inside')}\nb`,
    'pe1:',
    '\r\n\r\npe0:x',
    'a\rpe1:b',
    'a\u2028pe0:b',
    'a\npe1:\npe0:',
  ),
);
/** As UTF-8 keeps it. */
const kept = (text: string): string => Buffer.from(text).toString('utf8');

test('a text comes back, from any store that has its key, and in one line', () => {
  fc.assert(
    fc.property(texts, fc.string({ unit: 'binary' }), (text, label) => {
      const sealed = by(A).seal(text, label.replaceAll('\n', ''));
      expect(by(A).open(sealed)).toBe(kept(text));
      expect(by(B, A).openRecord(sealed)).toBe(kept(text));
      expect(sealed.split(':')[2]).toMatch(/^[\w-]+$/);
      expect(OFF.open(OFF.seal(text))).toBe(kept(text));
      expect(by(A).open(OFF.seal(text))).toBe(kept(text));
    }),
  );
});

test('two of the same text are not the same, and a key of another purpose opens neither', () => {
  expect(by(A).seal('same')).not.toBe(by(A).seal('same'));
  const [ofStore] = deriveAtRestKeys([A], 'store');
  const [ofTemporal] = deriveAtRestKeys([A], 'temporal');
  if (!ofStore || !ofTemporal) throw new Error('no key');
  expect(ofStore.id).toBe(ofTemporal.id);
  expect(() => decrypt(ofTemporal, encrypt(ofStore, Buffer.from('x')))).toThrow(SealBroken);
});

test('another implementation opens what Temporal keeps: HKDF and AES-GCM as Web Crypto has them, by what the page about it says', async () => {
  const [key] = deriveAtRestKeys([A], 'temporal');
  if (!key) throw new Error('no key');
  const { subtle } = webcrypto;
  const root = await subtle.importKey('raw', A, 'HKDF', false, ['deriveKey']);
  const how = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: Buffer.from('perdura/at-rest/temporal/v1') };
  const theirs = await subtle.deriveKey(how, root, { name: 'AES-GCM', length: 256 }, false, ['decrypt', 'encrypt']);
  const sealed = encrypt(key, Buffer.from('words'));
  const opened = await subtle.decrypt({ name: 'AES-GCM', iv: sealed.subarray(0, 12) }, theirs, sealed.subarray(12));
  expect(Buffer.from(opened).toString()).toBe('words');
  const iv = randomBytes(12);
  const made = await subtle.encrypt({ name: 'AES-GCM', iv }, theirs, Buffer.from('back'));
  expect(decrypt(key, Buffer.concat([iv, Buffer.from(made)])).toString()).toBe('back');
});

test('any change of any character is noticed, of the label too', () => {
  const sealed = by(A).seal('pay 10 to Ada', 'm1');
  fc.assert(
    fc.property(fc.nat(sealed.length - 1), fc.constantFrom('A', 'b', '0', ':', '-'), (at, character) => {
      const changed = sealed.slice(0, at) + character + sealed.slice(at + 1);
      fc.pre(changed !== sealed && isSealed(changed));
      // The last character of base64 has bits that no byte has.
      fc.pre(
        !Buffer.from(changed.split(':')[2] ?? '', 'base64url').equals(Buffer.from(sealed.split(':')[2] ?? '', 'base64url')) ||
          at > sealed.length - 3,
      );
      let opened: unknown;
      try {
        opened = by(A).open(changed);
      } catch (error) {
        opened = error;
      }
      expect(opened instanceof SealBroken || opened instanceof KeyMissing).toBe(true);
      expect(typeof opened).not.toBe('string');
    }),
  );
});

test('a document comes back, with lines that people added, whatever they look like', () => {
  fc.assert(
    fc.property(
      texts,
      fc.array(
        fc.string().map((line) => line.replace(/[\r\n]/g, '')),
        { maxLength: 4 },
      ),
      fc.boolean(),
      (text, lines, isBytes) => {
        fc.pre(!lines.some((line) => /^pe[01]:/.test(line)));
        for (const atRest of [OFF, by(A)]) {
          const written = isBytes ? atRest.sealLines(Buffer.from(text)) : atRest.sealLines(text);
          const stored = Buffer.concat([Buffer.from(written), Buffer.from(lines.map((line) => `${line}\n`).join(''))]);
          expect(atRest.openLines(stored).toString()).toBe(kept(text) + lines.map((line) => `${line}\n`).join(''));
        }
      },
    ),
  );
});

test('bytes come back, in pieces of any size', async () => {
  const pieces = fc.array(
    fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 40 }),
      fc.constantFrom(Buffer.from('PE1\0'), Buffer.from('PE0\0x'), Buffer.from('P')),
    ),
    {
      minLength: 1,
      maxLength: 5,
    },
  );
  await fc.assert(
    fc.asyncProperty(pieces, async (all) => {
      for (const atRest of [OFF, by(A)]) {
        const stored: Buffer[] = [];
        for (const piece of all) stored.push(await atRest.sealBytes(piece, stored.length > 0));
        const whole = Buffer.concat(stored);
        expect((await atRest.openBytes(whole)).equals(Buffer.concat(all))).toBe(true);
        expect(atRest.isOn ? atRest.areStale(whole) : false).toBe(false);
        expect(by(B, A).areStale(whole)).toBe(true);
      }
    }),
  );
});

test('large bytes are sealed in frames, and one that is cut is noticed', async () => {
  const bytes = randomBytes(3 * 1024 * 1024 + 5);
  const sealed = await by(A).sealBytes(bytes);
  expect((await by(A).openBytes(sealed)).equals(bytes)).toBe(true);
  await expect(by(A).openBytes(sealed.subarray(0, sealed.length - 1))).rejects.toThrow(SealBroken);
  await expect(by(B).openBytes(sealed)).rejects.toThrow(KeyMissing);
});
