/** The package brings no types; of its 62 lists those that are used. */
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
