/** Keeps secrets out of what is logged: by their values, wherever they stand, in messages, stacks and causes too. */

import { createKnownSecrets, type KnownSecrets } from '../platform/known-secrets.js';

const DEEPEST = 8;

export interface Redactor extends KnownSecrets {
  /** A copy that is plain data: errors become objects, what is deep or goes round is left out. */
  plain(value: unknown): unknown;
}

export function createRedactor(secrets: readonly string[] = []): Redactor {
  const known = createKnownSecrets(secrets);
  const { text } = known;
  const plain = (value: unknown, depth = 0): unknown => {
    if (typeof value === 'string') return text(value);
    if (typeof value === 'bigint') return String(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth === DEEPEST) return '…';
    if (value instanceof Date) return value;
    if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
    if (Array.isArray(value)) return value.map((item) => plain(item, depth + 1));
    const plainFields = Object.entries(value).map(([name, field]) => [text(name), plain(field, depth + 1)] as const);
    return Object.fromEntries(value instanceof Error ? [...errorFields(value, depth), ...plainFields] : plainFields);
  };
  const errorFields = ({ name, message, stack, cause }: Error, depth: number): (readonly [string, unknown])[] => [
    ['name', name],
    ['message', text(message)],
    ...(stack ? [['stack', text(stack)] as const] : []),
    ...(cause === undefined ? [] : [['cause', plain(cause, depth + 1)] as const]),
  ];
  return { ...known, plain: (value) => plain(value) };
}
