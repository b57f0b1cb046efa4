/** The shape of a value, checked without a library because it is checked inside workflows. Total: whatever is looked at, nothing throws. */
import { isTime, nameOf, readUsage } from './fields.js';
import { isRecord } from '../../platform/json.js';

/** Undefined when it is as it should be; otherwise what it must be, after the place where it is not. */
export type Check = (value: unknown) => string | undefined;

export const is =
  (what: string, test: (value: unknown) => boolean): Check =>
  (value) =>
    test(value) ? undefined : ` must be ${what}, not ${nameOf(value)}`;

export const text = is('a text', (value) => typeof value === 'string');
export const bool = is('true or false', (value) => typeof value === 'boolean');
/** A status that is to be said again soon stands as one of some turns ago, which may be before the first. */
export const number = is('a number', (value) => typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER);
export const time = is('a time', isTime);
export const object = is('an object', isRecord);
export const usage = is('a usage', (value) => readUsage(value) !== undefined);
export const oneOf = (...of: readonly unknown[]): Check => is(`one of ${of.join(', ')}`, (value) => of.includes(value));
export const orNull =
  (check: Check): Check =>
  (value) =>
    value === null ? undefined : check(value);
export const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined ? undefined : check(value);

export function list(check: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return ` must be a list, not ${nameOf(value)}`;
    for (const [i, item] of (value as unknown[]).entries()) {
      const problem = check(item);
      if (problem !== undefined) return `[${i}]${problem}`;
    }
    return undefined;
  };
}

/** With at least these; others may be there. */
export function fields(of: Readonly<Record<string, Check>>): Check {
  return (value) => {
    if (!isRecord(value)) return ` must be an object, not ${nameOf(value)}`;
    for (const [name, check] of Object.entries(of)) {
      const problem = check(Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined);
      if (problem !== undefined) return `.${name}${problem}`;
    }
    return undefined;
  };
}

export function values(check: Check): Check {
  return (value) => {
    if (!isRecord(value)) return ` must be an object, not ${nameOf(value)}`;
    return list(check)(Object.values(value));
  };
}

export function pair(first: Check, second: Check): Check {
  return (value) => {
    if (!Array.isArray(value) || value.length !== 2) return ' must be a pair';
    return first(value[0]) ?? second(value[1]);
  };
}

/** By the text in field `kind`. */
export function kinds(of: Readonly<Record<string, Check>>): Check {
  return (value) => {
    const kind = isRecord(value) ? (value as { kind?: unknown }).kind : undefined;
    if (typeof kind !== 'string' || !Object.hasOwn(of, kind)) return `.kind must be one of ${Object.keys(of).join(', ')}`;
    return of[kind]?.(value);
  };
}
