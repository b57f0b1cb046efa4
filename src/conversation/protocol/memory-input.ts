/** What comes in to the workflow `memory:<scope>`, checked as input.ts checks a conversation's: nothing here throws. */
import { ID_PATTERN, LIFE_PATTERN, LIMITS } from './contract.js';
import { isCount, isShortText, readFields, readUsage, refuse, type Checked, CHILD_PATTERN } from './fields.js';
import { isScope } from './tenant.js';
import { fields as shapes, list, text } from './shape.js';
import type { CareRequest, ConsolidationNews, DeletedNotice, ForgetRequest, MemoryStart, ReviewRequest } from './memory-contract.js';
import type { AskedConsolidation } from '../memory-workflow/memory-queue.js';
import type { Task } from '../../records/episodes.js';
import { countSlots, type SlotRange } from '../../records/slots.js';

const MAX_RANGES = 10_000;
const WHYS: readonly string[] = ['reset', 'window', 'close'];
/** UTF-16 units. */
const MAX_TEXT = 2_000;
const MAX_ID = 300;
/** Of one notice. */
export const MAX_LIVES = 1_000;
const REQUEST_ID = /^[ -~]{1,300}$/;
/** Of a run; the server has its own limit, at 51,200. */
const [MIN_EVENTS, MAX_EVENTS] = [20, 50_000];
/** The server refuses `/_sys/`, and with it the workflow task that names it, for ever. */
const TASK_QUEUE = /^(?!\/_sys\/)\P{C}{1,300}$/u;

export function readMemoryStart(payload: unknown): Checked<MemoryStart> {
  const fields = readFields(payload, 'start', null);
  if (!fields.ok) return fields;
  const { scope, handOver } = fields.value;
  if (!isScope(scope)) return refuse(`start.scope must match ${ID_PATTERN.source}, a tenant's with the tenant and a full stop before it`);
  if (handOver === undefined) return { ok: true, value: { scope } };
  if (!isCount(handOver, MAX_EVENTS) || handOver < MIN_EVENTS) {
    return refuse(`start.handOver must be a whole number from ${MIN_EVENTS} to ${MAX_EVENTS}`);
  }
  return { ok: true, value: { scope, handOver } };
}

/** Our own activity sends it; others may too. */
export function readConsolidationRequest(payload: unknown): Checked<AskedConsolidation> {
  const fields = readFields(payload, 'consolidate', null);
  if (!fields.ok) return fields;
  const { id, requestId, conversation, life, agent, model, why, taskQueue, session, messages, slots, task, fallback } = fields.value;
  for (const [name, value] of Object.entries({ id, requestId })) {
    if (typeof value !== 'string' || !REQUEST_ID.test(value)) return refuse(`consolidate.${name} must match ${REQUEST_ID.source}`);
  }
  if (typeof conversation !== 'string' || !(ID_PATTERN.test(conversation) || CHILD_PATTERN.test(conversation))) {
    return refuse('consolidate.conversation must be the id of a conversation');
  }
  if (typeof life !== 'string' || !LIFE_PATTERN.test(life)) return refuse('consolidate.life must be the id of a run');
  if (typeof taskQueue !== 'string' || !TASK_QUEUE.test(taskQueue)) return refuse('consolidate.taskQueue must be the name of a task queue');
  if (typeof agent !== 'string' || !ID_PATTERN.test(agent)) return refuse(`consolidate.agent must match ${ID_PATTERN.source}`);
  if (model !== '' && !isShortText(model, MAX_ID)) return refuse('consolidate.model must be a text');
  if (
    fallback !== undefined &&
    !(Array.isArray(fallback) && fallback.length <= MAX_MODELS && fallback.every((name) => isShortText(name, MAX_ID)))
  )
    return refuse(`consolidate.fallback must be at most ${MAX_MODELS} names of models`);
  if (typeof why !== 'string' || !WHYS.includes(why)) return refuse(`consolidate.why must be one of ${WHYS.join(', ')}`);
  if (!isCount(session) || !isCount(messages)) return refuse('consolidate.session and consolidate.messages must be whole numbers');
  if (!Array.isArray(slots) || slots.length > MAX_RANGES || !slots.every(isRange)) {
    return refuse(`consolidate.slots must be at most ${MAX_RANGES} pairs of slots, none beyond ${LIMITS.number}`);
  }
  const count = countSlots(slots);
  if (count > LIMITS.slots) return refuse(`consolidate.slots are ${count} entries, the limit is ${LIMITS.slots}`);
  if (task !== undefined && !isTask(task)) return refuse('consolidate.task must be a short goal and at most 20 short tasks');
  const request = {
    id,
    requestId,
    conversation,
    life,
    session,
    slots,
    messages,
    agent,
    model,
    why,
    taskQueue,
    ...(task && { task }),
    ...(fallback !== undefined && { fallback: fallback as string[] }),
  };
  return { ok: true, value: request as AskedConsolidation };
}

const MAX_MODELS = 8;

/** More than the tool that pins it takes (tools/define-tool.ts): what is to be forgotten may have become longer. */
const MAX_TASK = { tasks: 20, characters: 2_000 };
const taskShape = shapes({ goal: text, openTasks: list(text) });

function isTask(value: unknown): value is Task {
  if (taskShape(value) !== undefined) return false;
  const { goal, openTasks } = value as Task;
  return openTasks.length <= MAX_TASK.tasks && [goal, ...openTasks].every(({ length }) => length <= MAX_TASK.characters);
}

export function readForget(payload: unknown): Checked<ForgetRequest> {
  const fields = readFields(payload, 'forget', ['text']);
  if (!fields.ok) return fields;
  const { text } = fields.value;
  if (typeof text !== 'string' || text.trim() === '' || text.length > MAX_TEXT) {
    return refuse(`forget.text must be a text of 1 to ${MAX_TEXT} characters`);
  }
  return { ok: true, value: { text: text.toWellFormed().trim() } };
}

export function readDeletedNotice(payload: unknown): Checked<DeletedNotice> {
  const fields = readFields(payload, 'deleted', ['conversation', 'lives']);
  if (!fields.ok) return fields;
  const { conversation, lives } = fields.value;
  if (typeof conversation !== 'string' || !(ID_PATTERN.test(conversation) || CHILD_PATTERN.test(conversation))) {
    return refuse('deleted.conversation must be the id of a conversation');
  }
  if (!Array.isArray(lives) || lives.length > MAX_LIVES || !lives.every(isLife)) {
    return refuse(`deleted.lives must be at most ${MAX_LIVES} ids of first runs`);
  }
  return { ok: true, value: { conversation, lives } };
}

function isLife(value: unknown): value is string {
  return typeof value === 'string' && LIFE_PATTERN.test(value);
}

export function readReview(payload: unknown): Checked<ReviewRequest> {
  const fields = readFields(payload, 'review', ['id', 'decision']);
  if (!fields.ok) return fields;
  const { id, decision } = fields.value;
  if (typeof id !== 'string' || !/^prop_\d{4,15}$/.test(id)) return refuse('review.id must look like "prop_0001"');
  if (decision !== 'accept' && decision !== 'reject') return refuse('review.decision must be "accept" or "reject"');
  return { ok: true, value: { id, decision } };
}

export function readCare(payload: unknown): Checked<CareRequest> {
  if (payload === undefined || payload === null) return { ok: true, value: {} };
  const fields = readFields(payload, 'care', ['agent']);
  if (!fields.ok) return fields;
  const { agent } = fields.value;
  if (agent === undefined) return { ok: true, value: {} };
  if (typeof agent !== 'string' || !ID_PATTERN.test(agent)) return refuse(`care.agent must match ${ID_PATTERN.source}`);
  return { ok: true, value: { agent } };
}

/** What the memory workflow reports to a conversation. */
export function readConsolidationNews(payload: unknown): Checked<ConsolidationNews> {
  const fields = readFields(payload, 'consolidated', null);
  if (!fields.ok) return fields;
  const { requestId, life, consolidation, usage } = fields.value;
  if (!isShortText(requestId, MAX_ID) || !isShortText(life, MAX_ID)) {
    return refuse('consolidated.requestId and consolidated.life must be short texts');
  }
  if (consolidation !== 'model' && consolidation !== 'raw-fallback' && consolidation !== 'nothing-to-do') {
    return refuse('consolidated.consolidation is none of the three');
  }
  return { ok: true, value: { requestId, life, consolidation, usage: readUsage(usage) ?? null } };
}

function isRange(value: unknown): value is SlotRange {
  return Array.isArray(value) && value.length === 2 && isCount(value[0]) && isCount(value[1]) && value[0] <= value[1];
}
