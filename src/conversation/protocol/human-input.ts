/**
 * What waits for a person, what the person decides, and what a sub-agent reports to its parent; checked as messages are (input.ts).
 * Nothing here throws.
 */
import { ID_PATTERN, LIMITS, type Delegation, type StopReason, type TurnError } from './contract.js';
import type { Budget } from '../../records/identity.js';
import { readFields, refuse, type Checked } from './fields.js';
import type { JsonObject, JsonValue, Usage } from '../../records/message.js';
import { utf8Length } from '../../records/text.js';

/** How a sub-agent's turn ended, for the call that waits for it. */
export interface ChildReport {
  readonly text: string;
  readonly stopReason: StopReason;
  readonly usage: Usage;
  readonly error?: TurnError;
}

/** Payload of the signal `child`, from a sub-agent to its parent. */
export type ChildNews =
  | { readonly callId: string; readonly kind: 'asks'; readonly asks: readonly Approval[] }
  | { readonly callId: string; readonly kind: 'ended'; readonly report: ChildReport };

/** Something that waits for a person: whether a tool may run, or an answer. The arguments stand in the store, in entry `askedIn`. */
export interface Approval {
  /** The conversation itself, or a sub-agent of it. */
  readonly conversation: string;
  readonly callId: string;
  readonly turnId: string;
  readonly kind: 'approval' | 'question';
  readonly tool: string;
  /** What it is about, in a few words. */
  readonly target: string;
  /** Of tool and arguments: a decision that names it counts for these alone. */
  readonly hash: string;
  readonly askedIn: number;
  readonly why?: string;
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
}

export interface Decided {
  readonly callId: string;
  readonly decision: 'approve' | 'deny';
}

/** Ours: a sub-agent's id is its parent's, the turn and the number of the call. */
export const CHILD_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?::turn_\d{4,15}:\d{1,6}){1,8}$/;

const MAX_ASKS = 100;
const DECISION_FIELDS = ['callId', 'decision', 'conversation', 'note', 'input', 'hash'];

export function readDecision(payload: unknown): Checked<Decision> {
  const fields = readFields(payload, 'decide', DECISION_FIELDS);
  if (!fields.ok) return fields;
  const { callId, decision, conversation, note, input, hash } = fields.value;
  if (typeof callId !== 'string' || !/^turn_\d{4,15}\/c\d{1,6}$/.test(callId)) return refuse('decide.callId must look like "turn_0001/c1"');
  if (decision !== 'approve' && decision !== 'deny') return refuse('decide.decision must be "approve" or "deny"');
  if (conversation !== undefined && !isConversation(conversation)) return refuse('decide.conversation must be the id of a conversation');
  if (note !== undefined && (typeof note !== 'string' || utf8Length(note) > LIMITS.noteBytes)) {
    return refuse(`decide.note must be a text of at most ${LIMITS.noteBytes} bytes`);
  }
  if (hash !== undefined && (typeof hash !== 'string' || hash.length > 100))
    return refuse('decide.hash must be the one that was asked with');
  if (input !== undefined && !isObject(input)) return refuse('decide.input must be an object: the arguments to run with');
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
    },
  };
}

export function readWithdrawal(payload: unknown): Checked<string> {
  const fields = readFields(payload, 'withdraw', ['messageId']);
  if (!fields.ok) return fields;
  const { messageId } = fields.value;
  if (typeof messageId !== 'string' || messageId === '' || messageId.length > LIMITS.idLength) {
    return refuse(`withdraw.messageId must be a string of 1 to ${LIMITS.idLength} characters`);
  }
  return { ok: true, value: messageId };
}

/** `{}` takes every limit away. */
export function readBudget(payload: unknown, name: string): Checked<Budget> {
  const fields = readFields(payload, name, ['maxCostUsd', 'maxTokens']);
  if (!fields.ok) return fields;
  const { maxCostUsd, maxTokens } = fields.value;
  if (maxCostUsd !== undefined && !isPositive(maxCostUsd)) return refuse(`${name}.maxCostUsd must be a number of dollars, 0 or more`);
  if (maxTokens !== undefined && !isPositive(maxTokens)) return refuse(`${name}.maxTokens must be a number of tokens, 0 or more`);
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
  const fields = readFields(value, 'start.delegation', ['parent', 'task', 'appContext']);
  if (!fields.ok) return fields;
  const { parent, task, appContext } = fields.value;
  if (typeof task !== 'string' || task.trim() === '') return refuse('start.delegation.task must say what to do');
  if (!isObject(parent)) return refuse('start.delegation.parent must name the conversation that asks');
  const { conversation, life, callId, depth, share, memory } = parent as Record<string, unknown>;
  if (!isConversation(conversation) || typeof life !== 'string' || typeof callId !== 'string' || !Number.isInteger(depth)) {
    return refuse('start.delegation.parent must have conversation, life, callId and depth');
  }
  const link = {
    conversation,
    life,
    callId,
    depth: depth as number,
    ...(Number.isSafeInteger(share) && { share: share as number }),
    ...(isObject(memory) && { memory: memory as NonNullable<Delegation['parent']['memory']> }),
  };
  return {
    ok: true,
    value: {
      parent: link,
      task,
      ...(isObject(appContext) && { appContext: appContext as unknown as NonNullable<Delegation['appContext']> }),
    },
  };
}

/** From a sub-agent, which is a conversation of ours; still anybody may send a signal. */
export function readChildNews(payload: unknown): Checked<ChildNews> {
  const fields = readFields(payload, 'child', ['callId', 'kind', 'asks', 'report']);
  if (!fields.ok) return fields;
  const { callId, kind, asks, report } = fields.value;
  if (typeof callId !== 'string') return refuse('child.callId must be a string');
  if (kind === 'asks' && Array.isArray(asks) && asks.every(isApproval))
    return { ok: true, value: { callId, kind, asks: asks.slice(0, MAX_ASKS) } };
  if (kind === 'ended' && isReport(report)) return { ok: true, value: { callId, kind, report } };
  return refuse('child must be { callId, kind: "asks", asks } or { callId, kind: "ended", report }');
}

function isApproval(value: unknown): value is Approval {
  if (!isObject(value)) return false;
  const {
    conversation,
    callId,
    turnId,
    tool,
    target,
    hash,
    why = '',
    kind,
    askedIn,
    askedAt,
    expiresAt,
  } = value as Record<string, unknown>;
  const texts = [callId, turnId, tool, target, hash, why].every((text) => typeof text === 'string' && text.length <= 500);
  const numbers = [askedIn, askedAt, expiresAt].every(isPositive);
  return texts && numbers && isConversation(conversation) && (kind === 'approval' || kind === 'question');
}

function isReport(value: unknown): value is ChildReport {
  if (!isObject(value)) return false;
  const { text, stopReason, usage } = value as Record<string, unknown>;
  return typeof text === 'string' && utf8Length(text) <= 2 * LIMITS.reportBytes && typeof stopReason === 'string' && isUsage(usage);
}

function isUsage(value: unknown): value is Usage {
  if (!isObject(value)) return false;
  const { inputTokens, cachedTokens, outputTokens, costUsd } = value as Record<string, unknown>;
  return [inputTokens, cachedTokens, outputTokens].every(isPositive) && (costUsd === null || isPositive(costUsd));
}

function isConversation(value: unknown): value is string {
  return typeof value === 'string' && (ID_PATTERN.test(value) || CHILD_PATTERN.test(value));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isPositive(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function bytesOf(value: unknown): number {
  return utf8Length(JSON.stringify(value));
}
