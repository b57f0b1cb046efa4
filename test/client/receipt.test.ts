/** The receipt of an erasure: who can check it, and what is seen when one letter of it is another. */
import { randomBytes, verify, createPublicKey } from 'node:crypto';
import { keyFingerprint, receiptPublicKey, signReceipt, verifyReceipt, type Receipt } from '../../src/client/erasure/receipt.js';
import { parseRetention, retentionDays } from '../../src/records/time-in-words.js';

const SECRET = 'a-secret-that-only-tests-have-0123456789';
const receipt: Receipt = {
  ...{ v: 1, kind: 'perdura erasure receipt', id: 'r1', perdura: '0.1.0', of: { kind: 'scope', name: 'ada' }, namespace: 'default' },
  ...{ store: { kind: 'file', id: 'abc123' }, begun: '2026-11-28T22:00:00.000Z', finished: '2026-11-28T22:00:09.000Z', calls: 1 },
  removed: [{ place: 'store: facts', what: 'facts', count: 3 }],
  stays: [{ place: 'disk', what: 'blocks', why: 'they are used again', until: 'then — später' }],
};
const signed = signReceipt(receipt, SECRET);
const ours = [receiptPublicKey(SECRET)];

test('who has signed it is known, also from another secret of the installation, in whatever order and spaces its fields are', () => {
  expect(verifyReceipt(JSON.stringify(signed), ours)).toEqual({ kind: 'intact', isOurs: true, signed });
  const { receipt: given, signature } = signed;
  const turned = Object.fromEntries(Object.entries(given).reverse());
  expect(verifyReceipt(JSON.stringify({ signature, receipt: turned }, null, 4), ['x', ...ours])).toMatchObject({
    kind: 'intact',
    isOurs: true,
  });
  const others = [receiptPublicKey(randomBytes(32).toString('hex'))];
  expect(verifyReceipt(JSON.stringify(signed), others)).toMatchObject({ kind: 'intact', isOurs: false });
  expect(keyFingerprint(signed.signature.publicKey)).toMatch(/^([0-9a-f]{4}-){3}[0-9a-f]{4}$/);
});

test('no letter of it can be another', () => {
  const text = JSON.stringify(signed);
  const at = (words: string, by: string): string => {
    expect(text).toContain(words);
    return text.replace(words, by);
  };
  const changed = [
    at('"count":3', '"count":4'),
    at('"name":"ada"', '"name":"bob"'),
    at('"removed":[', '"removed":[{"place":"store: HISTORY","what":"entries","count":7},'),
    at('"calls":1', '"calls":1,"more":true'),
    at('später', 'spater'),
    at(signed.signature.value.slice(0, 6), 'AAAAAA'),
    at(signed.signature.publicKey, ours[0] === undefined ? '' : receiptPublicKey('another-secret-that-only-tests-have-0123')),
    at(signed.signature.publicKey, ''),
    'no JSON',
    '{}',
    'null',
    '[]',
  ];
  for (const one of changed) expect(verifyReceipt(one, ours)).toMatchObject({ kind: 'changed' });
});

test('another program checks it by what the documents say: Ed25519 over the receipt as JSON with sorted keys', () => {
  const sorted = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(sorted)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .sort(([a], [b]) => (a < b ? -1 : 1))
              .map(([name, field]) => [name, sorted(field)]),
          )
        : value;
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: signed.signature.publicKey };
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  const value = Buffer.from(signed.signature.value, 'base64url');
  expect(verify(null, Buffer.from(JSON.stringify(sorted(signed.receipt))), key, value)).toBe(true);
  expect(verify(null, Buffer.from(JSON.stringify(sorted({ ...signed.receipt, calls: 2 }))), key, value)).toBe(false);
});

test.each([
  ['90d', { none: 90, acme: 90, globex: 90 }],
  ['90d,acme=30d,globex=off', { none: 90, acme: 30, globex: null }],
  ['acme=1d', { none: null, acme: 1, globex: null }],
  ['off, acme=7d', { none: null, acme: 7, globex: null }],
])('of the rules %j each tenant has its days', (text, days) => {
  const rules = parseRetention(text);
  const of = (tenant?: string): number | null | undefined => rules && retentionDays(rules, tenant);
  expect({ none: of(), acme: of('acme'), globex: of('globex') }).toEqual(days);
  expect(of('constructor')).toBe(days.none);
});

test.each(['', '90', '0d', '-1d', '99999d', '90d,', 'Acme=3d', 'acme=', '90days', 'acme=1d;2d'])('%j are no rules', (text) => {
  expect(parseRetention(text)).toBeUndefined();
});
