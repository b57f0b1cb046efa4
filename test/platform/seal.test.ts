import { createSeal, deriveKey, type KeyPurpose } from '../../src/platform/seal.js';

const [OLD, NEW, OTHER] = ['o'.repeat(32), 'n'.repeat(32), 'x'.repeat(32)];
const PURPOSES: readonly KeyPurpose[] = ['state', 'tenant-ids', 'gateway-code', 'gateway-session', 'gateway-sign-in'];
const CONTENT = { some: 'thing', ümlaut: '…' };

test('a key is the same in every process, and another for each purpose and secret', () => {
  const keys = [OLD, NEW].flatMap((secret) => PURPOSES.map((purpose) => deriveKey(secret, purpose).toString('hex')));
  expect(new Set(keys).size).toBe(keys.length);
  // RFC 5869 with SHA-256, no salt, and this as its information: what openssl's HKDF makes of it.
  expect(deriveKey(OLD, 'state').toString('hex')).toBe('6c9207acda0bb6c3003fee7655abeedafc13e6ba1377279399b82faa85b4e041');
});

test('while a secret is changed in three steps, whatever one program has sealed opens in each that is a step away', () => {
  const steps = [[OLD], [OLD, NEW], [NEW, OLD], [NEW]] as const;
  const seals = steps.map((secrets) => createSeal(secrets, 'gateway-session'));
  for (const [at, one] of seals.entries()) {
    for (const other of seals.slice(Math.max(0, at - 1), at + 2)) expect(one.open(other.close(CONTENT, 60))?.content).toEqual(CONTENT);
  }
  expect(createSeal([NEW], 'gateway-session').open(createSeal([OLD], 'gateway-session').close(CONTENT, 60))).toBeUndefined();
});

test('what was changed, cut, made for something else or has ended does not open, and throws nothing', () => {
  const seal = createSeal([NEW, OLD], 'gateway-code');
  const sealed = seal.close(CONTENT, 60);
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`;
    // The last letter has bits that no byte takes.
    if (at < sealed.length - 1) expect(seal.open(changed)).toBeUndefined();
    expect(seal.open(sealed.slice(0, at))).toBeUndefined();
  }
  expect(seal.open(seal.close(CONTENT, 0))).toBeUndefined();
  expect(seal.open(createSeal([NEW], 'gateway-session').close(CONTENT, 60))).toBeUndefined();
  expect(seal.open(createSeal([OTHER], 'gateway-code').close(CONTENT, 60))).toBeUndefined();
  for (const garbage of ['', '.', 'ä', 'A'.repeat(4_001), '{}', '\0']) expect(seal.open(garbage)).toBeUndefined();
});
