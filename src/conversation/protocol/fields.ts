/**
 * An input of any shape, as fields that can be looked at: the first check of everything that comes in, and the bounds of what the
 * fields may hold. Each number, text and list from outside passes one of these before anything is done with it.
 */
import { ID_PATTERN, LIMITS } from './contract.js';
import type { Usage } from '../../records/message.js';
import { truncate } from '../../records/text.js';
import { LAST_TIME } from '../../records/time.js';
import { isRecord } from '../../platform/json.js';

export type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

/** What the payload converter puts in the place of an argument that it could not read. */
export const UNREADABLE = 'perdura/unreadable';

const SHOWN_KEY = 64;
const SHOWN_REASON = 200;

export function readFields(payload: unknown, name: string, known: readonly string[] | null): Checked<Record<string, unknown>> {
  if (isUnreadable(payload)) return refuse(`${name} could not be decoded: ${truncate(payload[UNREADABLE], SHOWN_REASON)}`);
  if (!isRecord(payload) || ArrayBuffer.isView(payload)) {
    return refuse(`${name} must be an object${name === 'message' ? ' or a string' : ''}, got ${nameOf(payload)}`);
  }
  const excess = excessOf(payload, LIMITS.depth, LIMITS.values);
  if (excess !== undefined) return refuse(`${name} ${excess}`);
  const unknown = known ? Object.keys(payload).find((key) => !known.includes(key)) : undefined;
  if (unknown !== undefined) return refuse(`${name}.${truncate(unknown, SHOWN_KEY)} is not a field; known are ${known?.join(', ')}`);
  return { ok: true, value: payload as Record<string, unknown> };
}

export function refuse(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}

export function nameOf(value: unknown): string {
  if (value === null) return 'null';
  if (ArrayBuffer.isView(value)) return 'bytes';
  return Array.isArray(value) ? 'a list' : typeof value;
}

export function isDeeperThan(value: unknown, levels: number): boolean {
  return excessOf(value, levels, Infinity) !== undefined;
}

/** Level by level, so that what is too deep cannot overflow the stack either, and no further than to the first value too many. */
export function excessOf(value: unknown, levels: number, values: number): string | undefined {
  let level: unknown[] = [value];
  let seen = 0;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > levels) return `is nested deeper than ${levels} levels`;
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      const inner = Object.values(item) as unknown[];
      seen += inner.length;
      if (seen > values) return `has more than ${values} values`;
      for (const one of inner) next.push(one);
    }
    level = next;
  }
  return undefined;
}

/** Somebody may send a field of that name: only a text is ours. */
function isUnreadable(payload: unknown): payload is { [UNREADABLE]: string } {
  return isRecord(payload) && typeof (payload as { [UNREADABLE]?: unknown })[UNREADABLE] === 'string';
}

/** A whole number: of a slot, a session, messages. */
export function isCount(value: unknown, most: number = LIMITS.number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= most;
}

/** A number that may have a fraction. JSON has `1e999`, which is infinite. */
export function isAmount(value: unknown, most: number): value is number {
  return typeof value === 'number' && value >= 0 && value <= most;
}

/** Epoch milliseconds that a date can show. */
export function isTime(value: unknown): value is number {
  return isAmount(value, LAST_TIME);
}

/** Not empty; `most` in UTF-16 units. */
export function isShortText(value: unknown, most: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= most && value.isWellFormed();
}

/** Its four numbers and nothing else; undefined when one of them is none. */
export function readUsage(value: unknown): Usage | undefined {
  if (!isRecord(value)) return undefined;
  const { inputTokens, cachedTokens, outputTokens, costUsd } = value as Partial<Record<keyof Usage, unknown>>;
  const { tokens, usd } = LIMITS;
  if (!isAmount(inputTokens, tokens) || !isAmount(cachedTokens, tokens) || !isAmount(outputTokens, tokens)) return undefined;
  if (costUsd !== null && !isAmount(costUsd, usd)) return undefined;
  return { inputTokens, cachedTokens, outputTokens, costUsd };
}

/** Ours: a sub-agent's id is its parent's, the turn and the number of the call. */
export const CHILD_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?::turn_\d{4,15}:\d{1,6}){1,8}$/;

export function isConversation(value: unknown): value is string {
  return typeof value === 'string' && (ID_PATTERN.test(value) || CHILD_PATTERN.test(value));
}

/** What a sub-agent was given at its start, by which it is known. */
export function isCapability(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]{16,64}$/.test(value);
}
