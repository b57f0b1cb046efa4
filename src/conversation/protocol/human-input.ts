/**
 * What waits for a person, what the person decides, and what a sub-agent reports to its parent; checked as messages are (input.ts).
 * Nothing here throws.
 */
import { LIFE_PATTERN, LIMITS, STOP_REASONS, type Delegation, type StopReason, type TurnError, type WaitKind } from './contract.js';
import type { Budget, SharedMemory } from '../../records/identity.js';
import {
  isAmount,
  isCapability,
  isConversation,
  isCount,
  isShortText,
  isTime,
  readFields,
  readUsage,
  refuse,
  type Checked,
} from './fields.js';
import type { Amount, SharedBudget } from '../../records/shared-budget.js';
import { readChildControl, readControlOrder } from './child-control.js';
import type { ChildControl } from './stepping.js';
import type { AppContextRef, ValuesRef } from '../activity-io/tool-effects.js';
import type { JsonObject, JsonValue, Usage } from '../../records/message.js';
import { truncate, utf8Length } from '../../records/text.js';
import { isRecord } from '../../platform/json.js';

/** How a sub-agent's turn ended, for the call that waits for it. */
export interface ChildReport {
  readonly text: string;
  readonly stopReason: StopReason;
  readonly usage: Usage;
  readonly error?: TurnError;
}

/** Payload of the signal `child`, from a sub-agent to its parent. */
export type ChildNews = { /** As it was given at the start. */ readonly capability?: string } & (
  | { readonly callId: string; readonly kind: 'asks'; readonly asks: readonly Approval[] }
  | { readonly callId: string; readonly kind: 'ended'; readonly report: ChildReport }
  | { readonly callId: string; readonly kind: 'control'; readonly control: ChildControl }
);

/** Something that waits for a person: whether a tool may run, or an answer. The arguments stand in the store, in entry `askedIn`. */
export interface Approval {
  /** The conversation itself, or a sub-agent of it. */
  readonly conversation: string;
  readonly callId: string;
  readonly turnId: string;
  readonly kind: WaitKind;
  readonly tool: string;
  /** What it is about, in a few words. */
  readonly target: string;
  /** Of tool and arguments: a decision that names it counts for these alone. */
  readonly hash: string;
  readonly askedIn: number;
  readonly why?: string;
  /** A decision may say `always`. */
  readonly mayAlways?: true;
  /** Epoch milliseconds. */
  readonly askedAt: number;
  readonly expiresAt: number;
}

/** What a person says to one of them. For a question, `note` is the answer. */
export interface Decision {
  readonly callId: string;
  readonly decision: 'approve' | 'deny';
  /** Of a sub-agent's call: its conversation. */
  readonly conversation?: string;
  /** The model reads it. */
  readonly note?: string;
  /** In place of the model's arguments. */
  readonly input?: JsonValue;
  readonly hash?: string;
  /** With `approve`, of a tool of the client: what it has answered, and whether that is an error. */
  readonly output?: JsonValue;
  readonly isError?: true;
  /** With `approve`: this very call runs without asking from now on, in this conversation until its session is cleared. */
  readonly always?: true;
}

/** A receipt for a decision. */
export interface Decided {
  readonly callId: string;
  readonly decision: 'approve' | 'deny';
}

const CALL_PATTERN = /^turn_\d{4,15}\/c\d{1,6}$/;

const MAX_ASKS = 100;
/** UTF-16 units of what stands in a list for people, and of an error's words. */
const MAX_TEXT = 500;
const MAX_ERROR = 4_000;
/** Levels of sub-agents, far more than `delegation.maxDepth` lets there be; changes of the shared values in one turn. */
const MAX_DEPTH = 100;
const MAX_CHANGES = 10_000;
const DECISION_FIELDS = ['callId', 'decision', 'conversation', 'note', 'input', 'hash', 'always', 'output', 'isError'];

export function readDecision(payload: unknown): Checked<Decision> {
  const fields = readFields(payload, 'decide', DECISION_FIELDS);
  if (!fields.ok) return fields;
  const { callId, decision, conversation, note, input, hash, always, output, isError } = fields.value;
  if (!isCallId(callId)) return refuse('decide.callId must look like "turn_0001/c1"');
  if (decision !== 'approve' && decision !== 'deny') return refuse('decide.decision must be "approve" or "deny"');
  if (conversation !== undefined && !isConversation(conversation)) return refuse('decide.conversation must be the id of a conversation');
  if (note !== undefined && (typeof note !== 'string' || utf8Length(note) > LIMITS.noteBytes)) {
    return refuse(`decide.note must be a text of at most ${LIMITS.noteBytes} bytes`);
  }
  if (hash !== undefined && !isShortText(hash, 100)) return refuse('decide.hash must be the one that was asked with');
  if (input !== undefined && !isRecord(input)) return refuse('decide.input must be an object: the arguments to run with');
  if (always !== undefined && always !== true) return refuse('decide.always must be true, or left out');
  if (always === true && (decision !== 'approve' || input !== undefined)) {
    return refuse('decide.always goes with "approve" alone, for the arguments as they were asked');
  }
  if (isError !== undefined && isError !== true) return refuse('decide.isError must be true, or left out');
  if (output !== undefined && decision !== 'approve') return refuse('decide.output goes with "approve" alone');
  const answered = output === undefined ? 0 : bytesOf(output);
  if (answered > LIMITS.clientResultBytes) {
    return refuse(`decide.output is ${answered} bytes, the limit is ${LIMITS.clientResultBytes}; answer with what matters of it`);
  }
  const edited = input === undefined ? 0 : bytesOf(input);
  if (edited > LIMITS.editedBytes) return refuse(`decide.input is ${edited} bytes, the limit is ${LIMITS.editedBytes}`);
  return {
    ok: true,
    value: {
      callId,
      decision,
      ...(conversation === undefined ? {} : { conversation }),
      ...(note === undefined ? {} : { note: note.toWellFormed() }),
      ...(input === undefined ? {} : { input: input as JsonValue }),
      ...(hash === undefined ? {} : { hash }),
      ...(output === undefined ? {} : { output: output as JsonValue }),
      ...(isError === true && { isError }),
      ...(always === true && { always }),
    },
  };
}

export function readWithdrawal(payload: unknown): Checked<string> {
  const fields = readFields(payload, 'withdraw', ['messageId']);
  if (!fields.ok) return fields;
  const { messageId } = fields.value;
  if (!isShortText(messageId, LIMITS.idLength)) {
    return refuse(`withdraw.messageId must be a string of 1 to ${LIMITS.idLength} characters`);
  }
  return { ok: true, value: messageId };
}

/** `{}` takes every limit away. */
export function readBudget(payload: unknown, name: string): Checked<Budget> {
  const fields = readFields(payload, name, ['maxCostUsd', 'maxTokens']);
  if (!fields.ok) return fields;
  const { maxCostUsd, maxTokens } = fields.value;
  const most = Number.MAX_SAFE_INTEGER;
  if (maxCostUsd !== undefined && !isAmount(maxCostUsd, most)) return refuse(`${name}.maxCostUsd must be a number of dollars, 0 or more`);
  if (maxTokens !== undefined && !isAmount(maxTokens, most)) return refuse(`${name}.maxTokens must be a number of tokens, 0 or more`);
  return { ok: true, value: { ...(maxCostUsd === undefined ? {} : { maxCostUsd }), ...(maxTokens === undefined ? {} : { maxTokens }) } };
}

/** An object of at most `mostBytes` of JSON: a schema, or values for tools. */
export function readObject(value: unknown, name: string, mostBytes: number): Checked<JsonObject> {
  const fields = readFields(value, name, null);
  if (!fields.ok) return fields;
  const bytes = bytesOf(fields.value);
  if (bytes > mostBytes) return refuse(`${name} is ${bytes} bytes, the limit is ${mostBytes}`);
  return { ok: true, value: fields.value as JsonObject };
}

export function readDelegation(value: unknown): Checked<Delegation> {
  const fields = readFields(value, 'start.delegation', ['parent', 'task', 'appContext', 'capability', 'control']);
  if (!fields.ok) return fields;
  const { parent, task, appContext, capability, control } = fields.value;
  if (typeof task !== 'string' || task.trim() === '' || utf8Length(task) > 2 * LIMITS.taskBytes) {
    return refuse(`start.delegation.task must say what to do, in at most ${LIMITS.taskBytes} bytes`);
  }
  const link = readParent(parent);
  if (!link) return refuse('start.delegation.parent must have conversation, life, callId and depth');
  if (capability !== undefined && !isCapability(capability)) return refuse('start.delegation.capability must be what the parent has made');
  const order = control === undefined ? undefined : readControlOrder(control, 'start.delegation.control');
  if (order?.ok === false) return order;
  const given = {
    parent: link,
    task,
    ...(capability === undefined ? {} : { capability }),
    ...(order && { control: order.value }),
  };
  if (appContext === undefined || appContext === null) return { ok: true, value: given };
  const values = readAppContext(appContext);
  return values ? { ok: true, value: { ...given, appContext: values } } : refuse('start.delegation.appContext must have a ref');
}

function readParent(value: unknown): Delegation['parent'] | undefined {
  if (!isRecord(value)) return undefined;
  const { conversation, life, callId, depth, share, memory, budgets } = value as Record<string, unknown>;
  if (!isConversation(conversation) || !isLife(life) || !isCallId(callId) || !isCount(depth, MAX_DEPTH)) return undefined;
  if (share !== undefined && !isCount(share)) return undefined;
  const shared = budgets === undefined ? undefined : readSharedBudgets(budgets);
  if (budgets !== undefined && !shared) return undefined;
  const link = { conversation, life, callId, depth, ...(share === undefined ? {} : { share }), ...(shared && { budgets: shared }) };
  if (memory === undefined || memory === null) return link;
  if (!isRecord(memory)) return undefined;
  const items = readSharedMemory(memory as Record<string, unknown>);
  return items && { ...link, memory: items };
}

/** One for each conversation that it works for, at most. */
function readSharedBudgets(value: unknown): SharedBudget[] | undefined {
  if (!Array.isArray(value) || value.length > MAX_DEPTH) return undefined;
  const all = value.map((one: unknown): SharedBudget | undefined => {
    const { conversation, life, limit, at, own, all } = isRecord(one) ? one : {};
    const budget = readBudget(limit, 'budget');
    if (!isConversation(conversation) || !isLife(life) || !budget.ok || !isTime(at) || !isUsed(own) || !isUsed(all)) return undefined;
    return { conversation, life, limit: budget.value, at, own, all };
  });
  return all.every((one) => one !== undefined) ? all : undefined;
}

function isUsed(value: unknown): value is Amount {
  const { tokens, nanoUsd } = isRecord(value) ? value : {};
  return isCount(tokens, Number.MAX_SAFE_INTEGER) && isCount(nanoUsd, Number.MAX_SAFE_INTEGER);
}

function readSharedMemory({ of, session, until, before, at }: Record<string, unknown>): SharedMemory | undefined {
  if (!isCount(session) || !(until === null || isTime(until))) return undefined;
  if (!(before === undefined || isCount(before)) || !(at === undefined || isCount(at))) return undefined;
  const own = { session, until, ...(before === undefined ? {} : { before }), ...(at === undefined ? {} : { at }) };
  if (of === undefined) return own;
  if (!isRecord(of)) return undefined;
  const { conversation, life } = of as Record<string, unknown>;
  return isConversation(conversation) && isLife(life) ? { of: { conversation, life }, ...own } : undefined;
}

function readAppContext(value: unknown): AppContextRef | undefined {
  if (!isRecord(value)) return undefined;
  const { changes, ...base } = value as Record<string, unknown>;
  const first = readValuesRef(base);
  if (!first || changes === undefined) return first;
  const all = Array.isArray(changes) && changes.length <= MAX_CHANGES ? changes.map(readValuesRef) : [undefined];
  return all.every((one) => one !== undefined) ? { ...first, changes: all } : undefined;
}

function readValuesRef(value: unknown): ValuesRef | undefined {
  if (!isRecord(value)) return undefined;
  const { ref, origin } = value as Record<string, unknown>;
  if (!isShortText(ref, MAX_TEXT)) return undefined;
  if (origin === undefined) return { ref };
  const { conversation, life } = isRecord(origin) ? origin : {};
  return isConversation(conversation) && isLife(life) ? { origin: { conversation, life }, ref } : undefined;
}

/** From a sub-agent, which is a conversation too; still anyone may send a signal. */
export function readChildNews(payload: unknown): Checked<ChildNews> {
  const fields = readFields(payload, 'child', ['callId', 'kind', 'asks', 'report', 'control', 'capability']);
  if (!fields.ok) return fields;
  const { callId, kind, asks, report, control, capability } = fields.value;
  if (!isCallId(callId)) return refuse('child.callId must look like "turn_0001/c1"');
  if (capability !== undefined && !isCapability(capability)) return refuse('child.capability must be the one of its start');
  const shown = capability === undefined ? {} : { capability };
  if (kind === 'asks' && Array.isArray(asks)) {
    const read = asks.slice(0, MAX_ASKS).map(readApproval);
    if (read.every((ask) => ask !== undefined)) return { ok: true, value: { callId, kind, asks: read, ...shown } };
  }
  const ended = kind === 'ended' ? readReport(report) : undefined;
  if (ended) return { ok: true, value: { callId, kind: 'ended', report: ended, ...shown } };
  const stands = kind === 'control' ? readChildControl(control) : undefined;
  if (stands) return { ok: true, value: { callId, kind: 'control', control: stands, ...shown } };
  return refuse('child must be { callId, kind: "asks", asks }, { callId, kind: "ended", report } or { callId, kind: "control", control }');
}

function readApproval(value: unknown): Approval | undefined {
  if (!isRecord(value)) return undefined;
  const { conversation, callId, turnId, kind, tool, target, hash, why, mayAlways, askedIn, askedAt, expiresAt } = value as Record<
    string,
    unknown
  >;
  if (!isConversation(conversation) || !isCallId(callId) || (kind !== 'approval' && kind !== 'question')) return undefined;
  if (!isText(turnId) || !isText(tool) || !isText(target) || !isText(hash) || (why !== undefined && !isText(why))) return undefined;
  if (!isCount(askedIn) || !isTime(askedAt) || !isTime(expiresAt)) return undefined;
  return {
    conversation,
    callId,
    turnId,
    kind,
    tool,
    target,
    hash,
    askedIn,
    ...(why === undefined ? {} : { why }),
    ...(mayAlways === true && { mayAlways }),
    askedAt,
    expiresAt,
  };
}

function readReport(value: unknown): ChildReport | undefined {
  if (!isRecord(value)) return undefined;
  const { text, stopReason, usage, error } = value as Record<string, unknown>;
  const used = readUsage(usage);
  if (typeof text !== 'string' || utf8Length(text) > 2 * LIMITS.reportBytes || !isStopReason(stopReason) || !used) return undefined;
  const report = { text: text.toWellFormed(), stopReason, usage: used };
  if (error === undefined || error === null) return report;
  const { type, message } = error as Record<string, unknown>;
  if (typeof type !== 'string' || typeof message !== 'string') return undefined;
  return { ...report, error: { type: cleanBeginning(type, MAX_TEXT), message: cleanBeginning(message, MAX_ERROR) } };
}

function isStopReason(value: unknown): value is StopReason {
  return (STOP_REASONS as readonly unknown[]).includes(value);
}

function isLife(value: unknown): value is string {
  return typeof value === 'string' && LIFE_PATTERN.test(value);
}

function isCallId(value: unknown): value is string {
  return typeof value === 'string' && CALL_PATTERN.test(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TEXT;
}

function cleanBeginning(text: string, units: number): string {
  return truncate(text.toWellFormed(), units);
}

function bytesOf(value: unknown): number {
  return utf8Length(JSON.stringify(value));
}
