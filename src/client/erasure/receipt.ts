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
import type { Erased } from './erase.js';
import type { Whose } from './find.js';

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

/** What store and Temporal had. */
export function listRemoved({ counts }: Erased): Removed[] {
  const store = (place: string, what: string, count: number): Removed => ({ place: `store: ${place}`, what, count });
  const temporal = (place: string, what: string, count: number): Removed => ({ place: `Temporal: ${place}`, what, count });
  return [
    store('conversations', 'conversations', counts.conversations),
    store('conversations', 'conversations of sub-agents', counts.subAgents),
    store(
      'conversations',
      'lives of these, each with its messages and traces, long texts and files, items, summaries, branches, ledger, costs, budgets, live events and vectors',
      counts.lives,
    ),
    store('MEMORY.md', 'versions', counts.memoryVersions),
    store('HISTORY', 'entries', counts.historyEntries),
    store('facts', 'facts', counts.facts),
    store('proposals', 'lines that waited, or were decided on', counts.proposals),
    store('forgotten texts', 'records of what was to be forgotten', counts.forgottenTexts),
    store('search index', 'parts', counts.indexParts),
    store('uploads', 'files that waited, and records of those that were used', counts.uploads),
    store('sign-ins', 'sign-ins at MCP servers', counts.signIns),
    temporal('conversations', 'runs with history, memo and search attributes', counts.runs),
    temporal('memory workflows', 'runs with history, memo and search attributes', counts.memoryRuns),
    temporal('webhook deliveries', 'runs with history and memo', counts.deliveries),
    temporal('all of these', 'runs that were stopped before', counts.stopped),
    temporal('schedules', 'schedules', counts.schedules),
  ];
}

/** What they, and others, still have; files that wait are known by tenant alone. */
export function listRemains({ notYetGone, retentionDays, isArchived }: Erased, store: 'redis' | 'file', { kind }: Whose): Stays[] {
  const days =
    retentionDays === null ? 'the retention of the namespace' : `${retentionDays} days at the latest, the retention of the namespace`;
  return [
    {
      place: 'store: tombstones',
      what: 'ids of the conversations, lives and runs that were erased, and when; no text',
      why: 'by them late writes are refused, and nothing of it is resumed, forked or healed',
      until: 'for good',
    },
    store === 'redis'
      ? {
          place: 'Redis: append-only file, snapshots, replicas',
          what: 'commands and values from before',
          why: 'Redis writes these files anew only now and then',
          until: 'its next rewrite and snapshot (BGREWRITEAOF, BGSAVE)',
        }
      : {
          place: 'disk of the store',
          what: 'blocks of removed files, and snapshots of the file system',
          why: 'a file system does not overwrite what is removed',
          until: 'the blocks are used again, and snapshots removed',
        },
    ...(notYetGone > 0
      ? [
          {
            place: 'Temporal: runs',
            what: `${notYetGone} runs`,
            why: 'the server was told, and deletes them in the background',
            until: days,
          },
        ]
      : []),
    {
      place: 'Temporal: database',
      what: 'pages and logs of its database from before',
      why: 'a database does not overwrite what is removed',
      until: 'its clean-up (VACUUM, compaction)',
    },
    ...(isArchived === false
      ? []
      : [
          {
            place: 'Temporal: archive',
            what: 'histories that were archived when they ended',
            why:
              isArchived === null
                ? 'the server does not say whether it archives'
                : 'the namespace archives, and that is deleted there alone',
            until: 'they are removed from the archive',
          },
        ]),
    {
      place: 'memory of running workers and gateways',
      what: 'indexes for search',
      why: 'they are brought up to date before each search, and let go when they are unused',
      until: 'the next search there, or their end',
    },
    ...(kind === 'scope'
      ? [
          {
            place: 'store: uploads',
            what: 'files that were sent and that no message has named',
            why: 'whose they are is known when a message names them',
            until: '24 hours after they were sent',
          },
        ]
      : []),
    {
      place: 'providers of models, and servers that tools have used',
      what: 'what was sent to them',
      why: 'they are others',
      until: 'their retention',
    },
  ];
}

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
