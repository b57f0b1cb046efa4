/** Packages that bring no types, or none that fit. */

declare module 'snowball-stemmers' {
  export interface Stemmer {
    stem(word: string): string;
  }
  /** Throws for a name that it does not know. */
  export function newStemmer(algorithm: string): Stemmer;
}

/** Of its 62 lists those that are used. */
declare module 'stopword' {
  export const deu: readonly string[];
  export const eng: readonly string[];
  export const fra: readonly string[];
  export const ita: readonly string[];
  export const nld: readonly string[];
  export const por: readonly string[];
  export const rus: readonly string[];
  export const spa: readonly string[];
  export const swe: readonly string[];
}

/** The package's types are those of an ES module and say `any`; this is what of it we use, as `require` gives it. */
declare module 'node-diff3' {
  export type MergeRegion<T> =
    { readonly ok: readonly T[]; readonly conflict?: undefined } | { readonly ok?: undefined; readonly conflict: Conflict<T> };

  interface Conflict<T> {
    readonly a: readonly T[];
    readonly o: readonly T[];
    readonly b: readonly T[];
  }

  export function diff3Merge<T>(
    a: readonly T[],
    o: readonly T[],
    b: readonly T[],
    options?: { readonly excludeFalseConflicts?: boolean },
  ): MergeRegion<T>[];
}
