/** Vectors of texts as JSON. An unreadable one is undefined, never an exception (stores/foreign-is-skipped). */
import { z } from 'zod';
import type { StoredVector } from '../store.js';
import { decodeJson } from './entry-codec.js';

const MAX_BASE64 = 16_384;

const schema = z.object({
  v: z.literal(1),
  model: z.string().min(1).max(200),
  text: z.int().min(0).max(0xffffffff),
  values: z.base64().min(4).max(MAX_BASE64),
});

export function encodeVector({ model, text, values }: StoredVector): string {
  return JSON.stringify({ v: 1, model, text, values: Buffer.from(values.buffer, values.byteOffset, values.length).toString('base64') });
}

export function decodeVector(line: string | null | undefined): StoredVector | undefined {
  const read = schema.safeParse(decodeJson(line)).data;
  if (read === undefined) return undefined;
  const bytes = Buffer.from(read.values, 'base64');
  return { model: read.model, text: read.text, values: new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length).slice() };
}

/** One of a model, a size and a text is enough. */
export function vectorId({ model, text, values }: StoredVector): string {
  return JSON.stringify([model, values.length, text]);
}
