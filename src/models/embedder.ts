/** Texts as vectors, for a search by meaning beside that by words. Off unless a setting turns it on. */
import { ModelFailure } from './model.js';

/** A model that makes vectors of texts: `embedder` of perdura.config, `createWorker` and `createClient`. */
export interface Embedder {
  /** `provider/model`. Vectors of another one are never compared with these. */
  readonly name: string;
  /** US dollars per million tokens; absent: not known. */
  readonly price?: number;
  /**
   * One vector for each text, in their order. At most 64, none of them empty; a text that is longer than the model takes is cut.
   * Throws ModelFailure.
   */
  embed(texts: readonly string[], options: { readonly signal: AbortSignal; readonly totalMs?: number }): Promise<Embedded>;
}

/** What an embedder answers. */
export interface Embedded {
  /** Of length 1, all of the same number of dimensions. */
  readonly vectors: readonly Float32Array[];
  /** Of the request, as the provider counted them. */
  readonly tokens: number;
}

/** `ollama/<model>` or `openai/<model>`, as `embedder` names a built-in one. */
export const EMBEDDER_PATTERN = /^(ollama|openai)\/[\w.:/-]{1,100}$/;

/** Characters of one text that are looked at: what any of today's models takes, of any language. */
export const MAX_TEXT_CHARS = 8_000;
export const MAX_DIMENSIONS = 8_192;
/** As it takes to embed 64 texts on a computer without a graphics card. */
export const EMBED_MS = 120_000;

/** What came is the provider's word: as many vectors as texts, of one size, of numbers; made to length 1. Throws ModelFailure. */
export function readVectors(name: string, came: unknown, count: number): readonly Float32Array[] {
  const refuse = (what: string): never => {
    throw new ModelFailure('broken-stream', `cannot use what ${name} answered: ${what}`);
  };
  if (!Array.isArray(came) || came.length !== count) return refuse(`${count} vectors were requested`);
  const vectors = came.map((one: unknown) => {
    if (!Array.isArray(one) || one.length === 0 || one.length > MAX_DIMENSIONS || !one.every((value) => Number.isFinite(value))) {
      return refuse(`a vector must have 1 to ${MAX_DIMENSIONS} numbers`);
    }
    return toUnit(Float32Array.from(one as number[]));
  });
  if (vectors.some(({ length }) => length !== vectors[0]?.length)) refuse('its vectors differ in length');
  return vectors;
}

/** A vector of zeros stays one: it is like nothing. */
function toUnit(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector);
  return length > 0 && Number.isFinite(length) ? vector.map((value) => value / length) : vector.fill(0);
}

/** Half a surrogate pair at the end would be no text. */
export function cutText(text: string): string {
  return text.length <= MAX_TEXT_CHARS ? text : text.slice(0, MAX_TEXT_CHARS).replace(/[\uD800-\uDBFF]$/, '');
}
