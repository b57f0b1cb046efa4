/** Counts and spans of time in words. */

/** Two digits are enough to compare by. */
export function formatDuration(ms: number): string {
  if (ms < 100) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  const minutes = seconds / 60;
  if (minutes < 99.5) return `${Math.round(minutes)} min`;
  const hours = minutes / 60;
  return hours < 47.5 ? `${Math.round(hours)} h` : `${Math.round(hours / 24)} d`;
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 turn`, `2 turns`; a noun with an irregular plural names it. */
export function formatQuantity(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
