/** Keeps secrets out of what is logged: by their values, wherever they stand, in messages, stacks and causes too. */

export const REDACTED = '[redacted]';

/** Shorter ones would take whole words out of every line. */
const MIN_SECRET_LENGTH = 4;
const DEEPEST = 8;

export interface Redactor {
  /** Values that nothing shows from now on. */
  add(secrets: readonly string[]): void;
  text(text: string): string;
  /** A copy that is plain data: errors become objects, what is deep or goes round is left out. */
  plain(value: unknown): unknown;
}

export function createRedactor(secrets: readonly string[] = []): Redactor {
  // Longest first: one may be the beginning of another.
  let known: readonly string[] = [];
  const add = (more: readonly string[]): void => {
    const all = [...known, ...more.flatMap(spellings)].filter((secret) => secret.length >= MIN_SECRET_LENGTH);
    known = [...new Set(all)].sort((a, b) => b.length - a.length);
  };
  const text = (said: string): string => known.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), said);
  const plain = (value: unknown, depth = 0): unknown => {
    if (typeof value === 'string') return text(value);
    if (typeof value === 'bigint') return String(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth === DEEPEST) return '…';
    if (value instanceof Date) return value;
    if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
    if (Array.isArray(value)) return value.map((item) => plain(item, depth + 1));
    const own = Object.entries(value).map(([name, field]) => [text(name), plain(field, depth + 1)] as const);
    return Object.fromEntries(value instanceof Error ? [...errorFields(value, depth), ...own] : own);
  };
  const errorFields = ({ name, message, stack, cause }: Error, depth: number): (readonly [string, unknown])[] => [
    ['name', name],
    ['message', text(message)],
    ...(stack ? [['stack', text(stack)] as const] : []),
    ...(cause === undefined ? [] : [['cause', plain(cause, depth + 1)] as const]),
  ];
  add(secrets);
  return { add, text, plain: (value) => plain(value) };
}

/** As it is, as it stands in a URL, and as it stands in JSON. */
function spellings(secret: string): string[] {
  return [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)];
}
