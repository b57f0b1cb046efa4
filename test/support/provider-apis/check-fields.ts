/** Small words that the checks of a request share. */

export type Fields = ReadonlySet<string>;

export const toolNamePattern = /^[a-zA-Z0-9_-]{1,64}$/;
export const toolIdPattern = /^[a-zA-Z0-9_-]+$/;

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The first field that does not belong there. */
export function extraField(value: Record<string, unknown>, known: Fields): string | undefined {
  return Object.keys(value).find((key) => !known.has(key));
}
