/** How an upload is stored: as JSON, with a version. */
import { z } from 'zod';
import type { Upload, UploadUse } from '../../records/uploads.js';

const use = z.object({ conversation: z.string(), life: z.string(), scope: z.string(), ref: z.string() });

const upload = z.object({
  v: z.literal(1),
  id: z.string(),
  mediaType: z.string(),
  size: z.int().positive(),
  sha256: z.string(),
  at: z.number(),
  expiresAt: z.number(),
  uses: z.array(use),
});

export function encodeUpload(given: Upload): string {
  return JSON.stringify({ v: 1, ...given });
}

/** Undefined for what is none, or damaged. */
export function decodeUpload(text: string | null | undefined): Upload | undefined {
  try {
    const { v: _, ...read } = upload.parse(JSON.parse(text ?? ''));
    return read;
  } catch {
    return undefined;
  }
}

/** A use by itself, and when it was. */
export function encodeUse(given: UploadUse & { readonly at: number }): string {
  return JSON.stringify(given);
}

export function decodeUse(text: string): (UploadUse & { readonly at: number }) | undefined {
  try {
    return use.extend({ at: z.number() }).parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
