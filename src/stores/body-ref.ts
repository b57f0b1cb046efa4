/** References to long texts: content-addressed, so the same text put twice is one body. */
import { createHash } from 'node:crypto';
import type { BodyRef } from '../records/message.js';

const PREVIEW_CHARACTERS = 400;

export function toBodyRef(text: string): BodyRef {
  const sha256 = hash(text);
  return { ref: `sha256:${sha256}`, sha256, bytes: Buffer.byteLength(text), preview: beginning(text) };
}

/** The hash inside a ref; undefined for anything else, so that no ref becomes a path. */
export function hashInRef(ref: string): string | undefined {
  return /^sha256:([0-9a-f]{64})$/.exec(ref)?.[1];
}

/** The text, if it is the one that `sha256` names: a damaged body is no body. */
export function verified(text: string | null | undefined, sha256: string): string | undefined {
  return typeof text === 'string' && hash(text) === sha256 ? text : undefined;
}

function hash(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** Never ends in half of a surrogate pair. */
function beginning(text: string): string {
  const cut = text.slice(0, PREVIEW_CHARACTERS);
  return cut.length < text.length && /[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut;
}
