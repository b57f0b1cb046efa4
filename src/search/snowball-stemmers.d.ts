/** The package brings no types. */
declare module 'snowball-stemmers' {
  export interface Stemmer {
    stem(word: string): string;
  }
  /** Throws for a name that it does not know. */
  export function newStemmer(algorithm: string): Stemmer;
}
