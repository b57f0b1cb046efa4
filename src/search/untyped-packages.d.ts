/** Two packages that bring no types. */

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
