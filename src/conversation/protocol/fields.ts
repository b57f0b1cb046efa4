/** An input of any shape, as fields that can be looked at: the first check of everything that comes in. */
import { LIMITS } from './contract.js';

export type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

/** What the payload converter puts in the place of an argument that it could not read. */
export const UNREADABLE = 'perdura/unreadable';

export function readFields(payload: unknown, name: string, known: readonly string[] | null): Checked<Record<string, unknown>> {
  if (isUnreadable(payload)) return refuse(`${name} could not be decoded: ${payload[UNREADABLE]}`);
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) {
    return refuse(`${name} must be an object${name === 'message' ? ' or a string' : ''}, got ${nameOf(payload)}`);
  }
  if (isDeeperThan(payload, LIMITS.depth)) return refuse(`${name} is nested deeper than ${LIMITS.depth} levels`);
  const unknown = known ? Object.keys(payload).find((key) => !known.includes(key)) : undefined;
  if (unknown !== undefined) return refuse(`${name}.${unknown.slice(0, 64)} is not a field; known are ${known?.join(', ')}`);
  return { ok: true, value: payload as Record<string, unknown> };
}

export function refuse(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}

export function nameOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : typeof value;
}

/** Level by level, so that what is too deep cannot overflow the stack either. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > levels) return true;
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? (Object.values(item) as unknown[]) : []));
  }
  return false;
}

function isUnreadable(payload: unknown): payload is { [UNREADABLE]: string } {
  return typeof payload === 'object' && payload !== null && UNREADABLE in payload;
}
