/** The time of the workflow task, which a replay sees again: the one place that asks for it. */
export function now(): number {
  return Date.now();
}
