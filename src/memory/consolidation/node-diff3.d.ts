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
