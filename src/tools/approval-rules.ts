/**
 * Which calls run, which ask a person first, and which never run. Rules of the agent come first, in their order; then what the tool says
 * of these arguments, then the tool's policy. Patterns know one sign, `*`, and are matched in linear time: they come from people, what they
 * look at from a model.
 *
 * @rule tools/spellings-are-one: Other spellings of one thing make no difference (call-identity.ts). A rule that allows must fit each
 *   spelling that counts; a rule that asks or denies need fit only one. (test: test/tools/approval-rules.test.ts)
 * @rule tools/allow-only-what-is-named: A rule that allows some arguments does not allow others that would make another call of it: another
 *   `cwd` than the workspace, or a `stdin`. Nor does it fit a word that carries more than it names (`isPlain`): a control character, an
 *   invisible one, a blank at an end, the user name or the fragment of an address. (test: test/tools/approval-rules.test.ts)
 */
import type { JsonObject, JsonValue } from '../records/message.js';
import { canonicalCall, canonicalForms, canonicalPattern, isPlain } from './call-identity.js';
import type { Examined, Tool, ApprovalPolicy } from './tool.js';
import { isRecord } from '../platform/json.js';

export interface ApprovalRule {
  /** Name of a tool, `*` for any characters: `mcp__github__*`. */
  readonly tool: string;
  /** Every named argument must match. A list is matched element by element; `**` as its last matches all that follow. */
  readonly where?: Readonly<Record<string, string | readonly string[]>>;
  /** In place of `where`: all arguments of one call. It fits that call and no other (call-identity.ts). */
  readonly exactly?: JsonObject;
  readonly policy: ApprovalPolicy;
  /** For the person who decides, or the model that is refused. */
  readonly why?: string;
}

export interface Approval {
  readonly policy: ApprovalPolicy;
  readonly why?: string;
}

/** `examined`: what the tool says of this call. */
export function approvalFor(
  rules: readonly ApprovalRule[],
  { name, policy }: Pick<Tool, 'name' | 'policy'>,
  input: JsonValue,
  agent: string,
  { asks, real, refused }: Examined = {},
): Approval {
  if (refused !== undefined) return { policy: 'deny', why: refused };
  const rule = rules.find((one) => fitsRule(one, name, input, real));
  const given = rule?.policy ?? policy.approval ?? 'allow';
  if (given === 'allow' && asks && (rule === undefined || asks.overRules === true)) return { policy: 'ask', why: asks.why };
  const why =
    rule?.why ??
    (rule?.policy === 'deny'
      ? `the rules of agent "${agent}" do not allow ${name} with these arguments.`
      : given === 'ask'
        ? asks?.why
        : undefined);
  return { policy: given, ...(why === undefined ? {} : { why }) };
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

function fitsRule(rule: ApprovalRule, name: string, input: JsonValue, real: Examined['real']): boolean {
  if (rule.exactly !== undefined) return rule.tool === name && canonicalCall(name, rule.exactly) === canonicalCall(name, input, real);
  return matches(rule.tool, name) && fitsCall(rule, input, real);
}

function fitsCall({ where = {}, policy }: ApprovalRule, input: JsonValue, real: Examined['real']): boolean {
  const wanted = Object.entries(where);
  // (tools/allow-only-what-is-named)
  if (policy === 'allow' && wanted.length > 0) {
    const { cwd = '.', stdin = '' } = toFields(input);
    const here = real?.['cwd'] ?? (typeof cwd === 'string' ? canonicalForms('cwd', cwd).strict[0] : undefined);
    if (!('cwd' in where) && here !== '.') return false;
    if (!('stdin' in where) && stdin !== '') return false;
  }
  return wanted.every(([field, pattern]) => fits({ field, policy, real: real?.[field] }, pattern, readField(input, field)));
}

interface Compared {
  readonly field: string;
  readonly policy: ApprovalPolicy;
  /** Where the argument's path leads, as the tool has found. */
  readonly real?: string;
}

/** An argument that is not there matches nothing. */
function fits(how: Compared, wanted: string | readonly string[], value: JsonValue | undefined): boolean {
  if (value === undefined) return false;
  if (typeof wanted === 'string') return fitsWord(how, wanted, value);
  if (!Array.isArray(value)) return false;
  const parts = value as readonly JsonValue[];
  const open = wanted[wanted.length - 1] === '**';
  const fixed = open ? wanted.slice(0, -1) : wanted;
  if (open ? parts.length < fixed.length : parts.length !== fixed.length) return false;
  const rest = how.policy === 'allow' ? parts.slice(fixed.length) : [];
  return rest.every((part) => isPlain(toWord(part))) && fixed.every((pattern, at) => fitsWord(how, pattern, parts[at] ?? null));
}

/** (tools/spellings-are-one) */
function fitsWord({ field, policy, real }: Compared, wanted: string, value: JsonValue): boolean {
  const word = toWord(value);
  const forms = canonicalForms(field, word);
  const pattern = canonicalPattern(wanted);
  // (tools/allow-only-what-is-named)
  if (policy === 'allow' && field !== 'stdin' && !isPlain(word)) return false;
  if (policy === 'allow') return (real === undefined ? forms.strict : [real]).every((form) => matches(pattern, form));
  return [word, ...forms.strict, ...forms.loose, real ?? word].some((form) => matches(pattern, form) || matches(wanted, form));
}

function toWord(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function readField(input: JsonValue, field: string): JsonValue | undefined {
  const fields = toFields(input);
  return Object.hasOwn(fields, field) ? fields[field] : undefined;
}

function toFields(input: JsonValue): Readonly<Record<string, JsonValue | undefined>> {
  if (!isRecord(input)) return {};
  return input as Readonly<Record<string, JsonValue>>;
}
