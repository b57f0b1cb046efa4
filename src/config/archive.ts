/** Settings of the archive: where what is old lies, apart from the store, and how a bucket is reached. Names of AWS_* are Amazon's. */
import { z } from 'zod';

/** A folder, absolute, or a bucket of S3 with what its names begin with. */
export type ArchiveSetting =
  { readonly kind: 'folder'; readonly path: string } | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string };

/** By Amazon's rules for names of buckets; what stands behind it is a path without empty parts. */
const BUCKET = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[A-Za-z0-9!_.*'()-]+)*)\/?$/;
const WRITE = 'a folder, or s3://bucket/prefix';

const archive = z.string().transform((text, context): ArchiveSetting => {
  if (!text.startsWith('s3:')) return { kind: 'folder', path: text };
  const [, bucket, prefix = ''] = BUCKET.exec(text) ?? [];
  if (bucket !== undefined) return { kind: 's3', bucket, prefix: prefix.slice(1) };
  context.addIssue({ code: 'custom', message: WRITE });
  return z.NEVER;
});

const MAX_DAYS = 36_500;
export const DAYS = /^([1-9]\d{0,4})d$/;

/** Undefined for what is none. */
export function parseDays(text: string): number | undefined {
  const days = Number(DAYS.exec(text)?.[1]);
  return days <= MAX_DAYS ? days : undefined;
}

const days = z.string().transform((text, context): number => {
  const parsed = parseDays(text);
  if (parsed === undefined) context.addIssue({ code: 'custom', message: 'days, such as 30d' });
  return parsed ?? z.NEVER;
});

const word = (meant: string) => z.string().regex(/^[\x21-\x7e]+$/, `${meant} alone, without blanks or quotes`);

export const ARCHIVE_SETTINGS = [
  {
    name: 'PERDURA_ARCHIVE',
    key: 'archive',
    schema: archive.optional(),
    isPath: true,
    meaning:
      'folder, or s3://bucket/prefix, to which old messages, long texts and results go, compressed: the same for all processes (docs/operations/long-life.md); without it all stays in the store',
  },
  {
    name: 'PERDURA_ARCHIVE_AFTER',
    key: 'archiveAfter',
    schema: days,
    default: '30d',
    meaning: 'after how many days of rest a conversation goes there; of one in use what was compacted so long ago',
    isHarmless: true,
  },
  {
    name: 'AWS_ACCESS_KEY_ID',
    key: 'awsAccessKeyId',
    schema: word('the id').optional(),
    meaning: 'who reads and writes the bucket of PERDURA_ARCHIVE',
    isHarmless: true,
  },
  {
    name: 'AWS_SECRET_ACCESS_KEY',
    key: 'awsSecretAccessKey',
    schema: word('the key').optional(),
    meaning: 'the secret key of that id',
    secret: true,
    isHarmless: true,
  },
  {
    name: 'AWS_SESSION_TOKEN',
    key: 'awsSessionToken',
    schema: word('the token').optional(),
    meaning: 'the token of credentials that end by themselves',
    secret: true,
    isHarmless: true,
  },
  {
    name: 'AWS_REGION',
    key: 'awsRegion',
    schema: z.string().regex(/^[a-z0-9-]{1,64}$/, 'the name of a region, such as eu-central-1'),
    default: 'us-east-1',
    meaning: 'region of that bucket',
    isHarmless: true,
  },
  {
    name: 'AWS_ENDPOINT_URL_S3',
    key: 'awsEndpoint',
    schema: z
      .string()
      .refine((url) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol), 'a URL that begins with http:// or https://')
      .optional(),
    meaning: "address of another server that speaks as S3 does, such as MinIO's",
  },
] as const;
