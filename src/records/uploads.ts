/** Files that were sent before a message names them. */

/** A life of a conversation whose body `ref` the file is, as base64. */
export interface UploadUse {
  readonly conversation: string;
  readonly life: string;
  readonly scope: string;
  readonly ref: string;
}

export interface Upload {
  readonly id: string;
  /** By its content. */
  readonly mediaType: string;
  /** In bytes. */
  readonly size: number;
  readonly sha256: string;
  /** When it was sent last, and from when it is not there, in milliseconds since 1970. */
  readonly at: number;
  readonly expiresAt: number;
  /** Newest first; of very many the newest. */
  readonly uses: readonly UploadUse[];
}

const MAX_USES = 32;

/** Each life once. */
export function withUse(uses: readonly UploadUse[], added: UploadUse): UploadUse[] {
  const others = uses.filter(({ conversation, life }) => conversation !== added.conversation || life !== added.life);
  return [added, ...others].slice(0, MAX_USES);
}
