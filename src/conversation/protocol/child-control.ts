/** How a tree of sub-agents is stepped, as parent and sub-agent send it to each other; checked like everything that comes in. */
import { LIMITS } from './contract.js';
import { readBreakpoints } from './control-input.js';
import { isAmount, isCapability, isConversation, isCount, isShortText, readFields, refuse, type Checked } from './fields.js';
import type { ChildControl, ControlMode, ControlOrder, StepKind, StepOfChild, SubAgent } from './stepping.js';
import { truncate } from '../../records/text.js';
import { isRecord } from '../../platform/json.js';

/** Sub-agents that one reports with itself, and UTF-16 units of each text: a parent carries them in its state. */
export const MAX_REPORTED = 20;
export const MAX_REPORTED_TEXT = 200;

const ORDER_FIELDS = ['number', 'changes', 'mode', 'breakpoints', 'spentUsd', 'step', 'capability'];
const STEP_KINDS: readonly StepKind[] = ['event', 'truncation', 'compaction', 'model-call', 'tool-run', 'sub-agent', 'nothing'];

/** With what the sender shows to be the parent. */
export function readParentOrder(payload: unknown): Checked<{ readonly order: ControlOrder; readonly capability?: string }> {
  const order = readControlOrder(payload, 'parent');
  if (!order.ok) return order;
  const { capability } = payload as { capability?: unknown };
  if (capability !== undefined && !isCapability(capability)) return refuse('parent.capability must be the one of its start');
  return { ok: true, value: { order: order.value, ...(capability !== undefined && { capability }) } };
}

export function readControlOrder(payload: unknown, name: string): Checked<ControlOrder> {
  const fields = readFields(payload, name, ORDER_FIELDS);
  if (!fields.ok) return fields;
  const { number, changes, mode, breakpoints, spentUsd, step } = fields.value;
  if (!isCount(number) || !isCount(changes)) return refuse(`${name}.number and ${name}.changes must be whole numbers`);
  if (!isMode(mode)) return refuse(`${name}.mode must be "auto" or "stepping"`);
  if (!isAmount(spentUsd, LIMITS.usd)) return refuse(`${name}.spentUsd must be a number of dollars`);
  if (step !== undefined && !isShortText(step, LIMITS.idLength)) return refuse(`${name}.step must be the id of a step`);
  const checked = readBreakpoints(breakpoints);
  if (!checked.ok) return checked;
  const order = { number, changes, mode, breakpoints: checked.value, spentUsd };
  return { ok: true, value: step === undefined ? order : { ...order, step } };
}

/** Undefined when it is none. What is more than a parent carries is left out. */
export function readChildControl(value: unknown): ChildControl | undefined {
  const own = readStanding(value);
  if (!own) return undefined;
  const { number, changes, pausedIn, reachedCost, step, subAgents } = value as Record<string, unknown>;
  if (!isCount(number) || !isCount(changes) || !Array.isArray(subAgents)) return undefined;
  if (pausedIn !== undefined && !isConversation(pausedIn)) return undefined;
  const below = (subAgents as unknown[]).slice(0, MAX_REPORTED).map(readSubAgent);
  const taken = step === undefined ? undefined : readStep(step);
  if ((step !== undefined && !taken) || !below.every((one) => one !== undefined)) return undefined;
  return {
    number,
    changes,
    ...own,
    ...(pausedIn !== undefined && { pausedIn }),
    ...(reachedCost === true && { reachedCost }),
    ...(taken && { step: taken }),
    subAgents: below,
  };
}

function readSubAgent(value: unknown): SubAgent | undefined {
  const own = readStanding(value);
  const { conversation } = (own ? value : {}) as { conversation?: unknown };
  return own && isConversation(conversation) ? { conversation, ...own } : undefined;
}

function readStanding(value: unknown): Omit<SubAgent, 'conversation'> | undefined {
  if (!isRecord(value)) return undefined;
  const { mode, next, pausedBy } = value as Record<string, unknown>;
  if (!isMode(mode) || !isTextOrNull(next) || !isTextOrNull(pausedBy)) return undefined;
  return { mode, next: next && shortened(next), pausedBy: pausedBy && shortened(pausedBy) };
}

function readStep(value: unknown): (StepOfChild & { readonly stepId: string }) | undefined {
  if (!isRecord(value)) return undefined;
  const { stepId, conversation, did, words } = value as Record<string, unknown>;
  if (!isShortText(stepId, LIMITS.idLength) || !isConversation(conversation) || typeof words !== 'string') return undefined;
  const kind = STEP_KINDS.find((one) => one === did);
  return kind && { stepId, conversation, did: kind, words: shortened(words) };
}

function isMode(value: unknown): value is ControlMode {
  return value === 'auto' || value === 'stepping';
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}

export function shortened(text: string): string {
  return truncate(text.toWellFormed(), MAX_REPORTED_TEXT);
}
