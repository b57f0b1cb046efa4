/** Folders full of what nobody asked for; they are gone into only when named. */
const PASSED_OVER = new Set(['node_modules', '.git']);

export function isPassedOver(folder: string): boolean {
  return PASSED_OVER.has(folder);
}
