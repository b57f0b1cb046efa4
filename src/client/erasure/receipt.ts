/**
 * What a person, or a court, is given after an erasure: each place, what was removed there, what stays and until when; and no word of what
 * was removed. Signed with Ed25519: all who have the public key can check it, and only the installation can make it.
 *
 * - The key comes from PERDURA_SECRET, as all keys of an installation do. After the secret was changed, old receipts are checked with the
 *   secrets that it had before (they may stand behind the new one), or with the public key that was kept.
 * - What is signed is the receipt as JSON whose keys are sorted at every level, without spaces, in UTF-8: as RFC 8785 has it for texts and
 *   whole numbers, and there is nothing else in it.
 */
import { createHash, createPrivateKey, createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { deriveKey } from '../../platform/seal.js';

const placed = { place: z.string(), what: z.string() };
const receiptSchema = z.strictObject({
  v: z.literal(1),
  kind: z.literal('perdura erasure receipt'),
  id: z.string(),
  perdura: z.string(),
  of: z.strictObject({ kind: z.enum(['scope', 'tenant']), name: z.string() }),
  namespace: z.string(),
  store: z.strictObject({ kind: z.enum(['redis', 'file']), id: z.string() }),
  /** ISO 8601. */
  begun: z.string(),
  finished: z.string(),
  /** How often it was begun: what a call removed that was cut short is not counted. */
  calls: z.int().positive(),
  removed: z.array(z.strictObject({ ...placed, count: z.int().nonnegative() })),
  stays: z.array(z.strictObject({ ...placed, why: z.string(), until: z.string() })),
});
const signedSchema = z.strictObject({
  receipt: receiptSchema,
  signature: z.strictObject({ algorithm: z.literal('Ed25519'), publicKey: z.string().max(100), value: z.string().max(200) }),
});

export type Receipt = z.output<typeof receiptSchema>;
export type Removed = Receipt['removed'][number];
export type Stays = Receipt['stays'][number];
export type SignedReceipt = z.output<typeof signedSchema>;

/** DER of PKCS #8 and of SPKI, before the 32 bytes of an Ed25519 key (RFC 8410). */
const PRIVATE = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC = Buffer.from('302a300506032b6570032100', 'hex');
const KEY_BYTES = 32;

function privateKey(secret: string): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PRIVATE, deriveKey(secret, 'receipt')]), format: 'der', type: 'pkcs8' });
}

/** The 32 bytes of the key that checks receipts of this secret, as base64url. */
export function receiptPublicKey(secret: string): string {
  const der = createPublicKey(privateKey(secret)).export({ format: 'der', type: 'spki' });
  return der.subarray(PUBLIC.length).toString('base64url');
}

/** What a person can read out and compare. */
export function keyFingerprint(publicKey: string): string {
  const hash = createHash('sha256').update(Buffer.from(publicKey, 'base64url')).digest('hex').slice(0, 16);
  return hash.replace(/.{4}(?=.)/g, '$&-');
}

export function signReceipt(receipt: Receipt, secret: string): SignedReceipt {
  const value = sign(null, Buffer.from(canonicalJson(receipt)), privateKey(secret)).toString('base64url');
  return { receipt, signature: { algorithm: 'Ed25519', publicKey: receiptPublicKey(secret), value } };
}

export type Verdict =
  /** `isOurs`: by one of the keys that were given. Else by the key that it names itself, which proves only that nothing was changed since. */
  | { readonly kind: 'intact'; readonly isOurs: boolean; readonly signed: SignedReceipt }
  | { readonly kind: 'changed'; readonly why: string };

/** `text` may come from anywhere. `publicKeys`: those that are trusted. */
export function verifyReceipt(text: string, publicKeys: readonly string[]): Verdict {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'changed', why: 'it is no JSON' };
  }
  const read = signedSchema.safeParse(value);
  if (!read.success) return { kind: 'changed', why: 'it does not have the fields of a receipt, or has others' };
  const { receipt, signature } = read.data;
  const key = Buffer.from(signature.publicKey, 'base64url');
  if (key.length !== KEY_BYTES) return { kind: 'changed', why: 'its public key is none of Ed25519' };
  const publicKey = createPublicKey({ key: Buffer.concat([PUBLIC, key]), format: 'der', type: 'spki' });
  const isIntact = verify(null, Buffer.from(canonicalJson(receipt)), publicKey, Buffer.from(signature.value, 'base64url'));
  if (!isIntact) return { kind: 'changed', why: 'its content is not what was signed' };
  const isOurs = publicKeys.some((one) => Buffer.from(one, 'base64url').equals(key));
  return { kind: 'intact', isOurs, signed: read.data };
}

/** Of texts, whole numbers, lists and objects of these. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`).join(',')}}`;
}
