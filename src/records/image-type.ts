/** Which of the pictures that models take these bytes are, by how they begin. */
const STARTS: readonly (readonly [type: string, at: number, bytes: readonly number[]])[] = [
  ['image/png', 0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ['image/jpeg', 0, [0xff, 0xd8, 0xff]],
  ['image/gif', 0, [0x47, 0x49, 0x46, 0x38]],
  ['image/webp', 8, [0x57, 0x45, 0x42, 0x50]],
];

/** So many bytes tell; of a shorter file all that there are. */
export const START_BYTES = 12;

export function imageTypeOf(bytes: Uint8Array): string | undefined {
  return STARTS.find(([, at, start]) => start.every((byte, i) => bytes[at + i] === byte))?.[0];
}
