/** Typed arrays that grow: what an index of a million turns is made of. */

export type Numbers = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array;

/** The same, with room for `length`; a half more than needed, so that growing is rare. */
export function grown<T extends Numbers>(numbers: T, length: number): T {
  if (length <= numbers.length) return numbers;
  const larger = new (numbers.constructor as new (length: number) => T)(Math.max(16, Math.ceil(length * 1.5)));
  larger.set(numbers as never);
  return larger;
}

/** 32 bits of a word, by FNV-1a with a last stir; two seeds make 64. */
export function hashText(text: string, seed: number): number {
  let hash = seed ^ 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
