/**
 * Which calls are one and the same, for a person who has allowed one of them for good. Every argument counts, and each in the form that
 * rules compare (canonical-forms.ts): another spelling of one path or address is the same call, another `cwd`, another `stdin` or an
 * argument more is another one. Nothing here is a pattern: `*` is a star.
 */
import { createHash } from 'node:crypto';
import type { JsonValue } from '../records/message.js';
import { canonicalForms } from './canonical-forms.js';
import type { Examined } from './tool.js';
import { isRecord } from '../platform/json.js';

/** The default where a call names none. */
const DEFAULTS: Readonly<Record<string, string>> = { cwd: '.', stdin: '' };

/** `real`: where paths lead, as the tool has found. */
export function canonicalCall(tool: string, input: JsonValue, real: Examined['real'] = {}): string {
  if (!isRecord(input)) return JSON.stringify([tool, input]);
  const given = input as Readonly<Record<string, JsonValue>>;
  const fields = [...new Set([...Object.keys(given), ...Object.keys(DEFAULTS)])].sort();
  return JSON.stringify([
    tool,
    fields.map((field) => [field, canonical(field, Object.hasOwn(given, field) ? given[field] : DEFAULTS[field], real)]),
  ]);
}

/** The same in 32 characters, for state and history. */
export function callIdentity(...of: Parameters<typeof canonicalCall>): string {
  return createHash('sha256')
    .update(canonicalCall(...of))
    .digest('hex')
    .slice(0, 32);
}

function canonical(field: string, value: JsonValue | undefined, real: Readonly<Record<string, string>>): JsonValue {
  if (typeof value === 'string') {
    return Object.hasOwn(real, field) ? [real[field] ?? value] : canonicalForms(field, value).strict;
  }
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map((one) => [canonical(field, one, {})]);
  if (typeof value !== 'object' || value === null) return value ?? null;
  const fields = value as Readonly<Record<string, JsonValue>>;
  // Beneath the first level a field's name says nothing to rules.
  return {
    of: Object.keys(fields)
      .sort()
      .map((name) => [name, canonical('', fields[name], {})]),
  };
}
