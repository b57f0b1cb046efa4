/** A JSON object: neither null nor a list. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The same value, with the keys of its objects in one order. */
export function withSortedKeys<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((inner: unknown) => withSortedKeys(inner)) as T;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]: [string, unknown]) => [key, withSortedKeys(inner)])) as T;
}
