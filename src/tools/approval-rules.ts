/**
 * Which calls run, which ask a person first, and which never run. Rules of the agent come first, in their order; then the tool's own
 * policy. Patterns know one sign, `*`, and are matched in linear time: they come from people, what they look at from a model.
 */
import type { JsonValue } from '../records/message.js';
import type { Tool, ApprovalPolicy } from './tool.js';

export interface ApprovalRule {
  /** Name of a tool, `*` for any characters: `mcp__github__*`. */
  readonly tool: string;
  /** Every named argument must match. A list is matched element by element; `**` as its last matches all that follow. */
  readonly where?: Readonly<Record<string, string | readonly string[]>>;
  readonly policy: ApprovalPolicy;
  /** For whoever is asked, or the model that is refused. */
  readonly why?: string;
}

export function approvalFor(
  rules: readonly ApprovalRule[],
  { name, policy }: Pick<Tool, 'name' | 'policy'>,
  input: JsonValue,
  agent: string,
): { readonly policy: ApprovalPolicy; readonly why?: string } {
  const rule = rules.find(
    (one) => matches(one.tool, name) && Object.entries(one.where ?? {}).every(([field, wanted]) => fits(wanted, fieldOf(input, field))),
  );
  if (!rule) return { policy: policy.approval ?? 'allow' };
  const why = rule.why ?? (rule.policy === 'deny' ? `the rules of agent "${agent}" do not allow ${name} with these arguments.` : undefined);
  return { policy: rule.policy, ...(why === undefined ? {} : { why }) };
}

/** `*` stands for any characters, none included; everything else for itself. */
export function matches(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return pattern === text;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  let at = first.length;
  const end = text.length - last.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** An argument that is not there matches nothing. */
function fits(wanted: string | readonly string[], value: JsonValue | undefined): boolean {
  if (value === undefined) return false;
  if (typeof wanted === 'string') return matches(wanted, wordOf(value));
  if (!Array.isArray(value)) return false;
  const parts = value as readonly JsonValue[];
  const open = wanted[wanted.length - 1] === '**';
  const fixed = open ? wanted.slice(0, -1) : wanted;
  if (open ? parts.length < fixed.length : parts.length !== fixed.length) return false;
  return fixed.every((pattern, at) => matches(pattern, wordOf(parts[at] ?? null)));
}

function wordOf(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function fieldOf(input: JsonValue, field: string): JsonValue | undefined {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return undefined;
  return Object.hasOwn(input, field) ? (input as Readonly<Record<string, JsonValue>>)[field] : undefined;
}
