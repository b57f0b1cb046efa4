/** What is said to the step engine (seed 004), checked like messages. */
import { LIMITS, type QueueEdit } from './contract.js';
import { isAmount, isShortText, nameOf, readFields, refuse, type Checked } from './fields.js';
import type { JsonValue } from '../../records/message.js';
import { utf8Length } from '../../records/text.js';
import type { Breakpoints, ControlMode, StepScope } from './stepping.js';

const MAX_NAMES = 100;
const CHUNK_ID = /^chunk_[1-9]\d{0,8}$/;
const CHUNK_PREFIX = 'chunk_'.length;
const EVENT_TYPE = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

export interface ReadAppEvent {
  readonly id?: string;
  readonly type: string;
  readonly payload: JsonValue;
  readonly wait?: true;
}

export function readAppEvent(payload: unknown): Checked<ReadAppEvent> {
  const fields = readFields(payload, 'event', ['id', 'type', 'payload', 'wait']);
  if (!fields.ok) return fields;
  const { id, type, payload: data = null, wait } = fields.value;
  if (id !== undefined && !isShortText(id, LIMITS.idLength))
    return refuse(`event.id must be a string of 1 to ${LIMITS.idLength} characters`);
  if (typeof type !== 'string' || !EVENT_TYPE.test(type)) return refuse(`event.type must match ${EVENT_TYPE.source}`);
  if (type === 'message' || type === 'reset') return refuse(`event.type ${type} has a signal of its own`);
  const bytes = utf8Length(JSON.stringify(data) ?? '');
  if (bytes > LIMITS.contextBytes) return refuse(`event.payload is ${bytes} bytes, the limit is ${LIMITS.contextBytes}`);
  if (wait !== undefined && typeof wait !== 'boolean') return refuse('event.wait must be true or false');
  return {
    ok: true,
    value: { ...(id === undefined ? {} : { id }), type, payload: data as JsonValue, ...(wait === true && { wait }) },
  };
}

/** Of `executeTruncation` and `triggerCompaction`: ids of chunks as the query `checkTokenUsage` has them. */
export function readChosenChunks(payload: unknown, name: string): Checked<{ readonly id?: string; readonly slots: readonly number[] }> {
  const fields = readFields(payload, name, ['id', 'chunks']);
  if (!fields.ok) return fields;
  const { id, chunks } = fields.value;
  if (id !== undefined && !isShortText(id, LIMITS.idLength))
    return refuse(`${name}.id must be a string of 1 to ${LIMITS.idLength} characters`);
  if (!Array.isArray(chunks) || chunks.length === 0 || chunks.length > LIMITS.chosenChunks)
    return refuse(`${name}.chunks must be a list of 1 to ${LIMITS.chosenChunks} ids`);
  if (!chunks.every((chunk) => typeof chunk === 'string' && CHUNK_ID.test(chunk)))
    return refuse(`${name}.chunks must have ids that look like "chunk_12"`);
  const slots = [...new Set(chunks.map((chunk: string) => Number(chunk.slice(CHUNK_PREFIX))))].sort((a, b) => a - b);
  return { ok: true, value: { ...(id !== undefined && { id }), slots } };
}

export function readMode(payload: unknown): Checked<ControlMode> {
  const value = typeof payload === 'string' ? payload : readField(payload, 'setMode', 'mode');
  return value === 'auto' || value === 'stepping' ? { ok: true, value } : refuse('setMode takes { mode: "auto" } or { mode: "stepping" }');
}

export function readStepRequest(payload: unknown): Checked<{ readonly id?: string; readonly scope?: StepScope }> {
  const fields = readFields(payload ?? {}, 'step', ['id', 'scope']);
  if (!fields.ok) return fields;
  const { id, scope } = fields.value;
  if (id !== undefined && !isShortText(id, LIMITS.idLength))
    return refuse(`step.id must be a string of 1 to ${LIMITS.idLength} characters`);
  if (scope !== undefined && scope !== 'into' && scope !== 'over') return refuse('step.scope must be "into" or "over"');
  return { ok: true, value: { ...(id !== undefined && { id }), ...(scope !== undefined && { scope }) } };
}

/** Every field may be left out; `{}` takes all breakpoints away. */
export function readBreakpoints(payload: unknown): Checked<Breakpoints> {
  const fields = readFields(payload ?? {}, 'setBreakpoints', ['tools', 'events', 'onError', 'costUsd']);
  if (!fields.ok) return fields;
  const { tools, events, onError, costUsd } = fields.value;
  for (const [name, list] of [
    ['tools', tools],
    ['events', events],
  ] as const) {
    if (list !== undefined && !isNames(list)) return refuse(`setBreakpoints.${name} must be a list of at most ${MAX_NAMES} names`);
  }
  if (onError !== undefined && typeof onError !== 'boolean')
    return refuse(`setBreakpoints.onError must be true or false, got ${nameOf(onError)}`);
  if (costUsd !== undefined && !isAmount(costUsd, LIMITS.usd))
    return refuse(`setBreakpoints.costUsd must be a number of dollars, at most ${LIMITS.usd}`);
  const { value } = fields;
  return { ok: true, value: JSON.parse(JSON.stringify(value)) as Breakpoints };
}

export function readQueueEdit(payload: unknown): Checked<QueueEdit> {
  const fields = readFields(payload, 'editQueue', ['op', 'id', 'before']);
  if (!fields.ok) return fields;
  const { op, id, before = null } = fields.value;
  if (op === 'clear') return { ok: true, value: { op } };
  if (op !== 'drop' && op !== 'move') return refuse('editQueue.op must be "drop", "move" or "clear"');
  if (typeof id !== 'string' || !/^qevt_\d{1,15}$/.test(id)) return refuse('editQueue.id must look like "qevt_000001"');
  if (op === 'drop') return { ok: true, value: { op, id } };
  if (before !== null && (typeof before !== 'string' || !/^qevt_\d{1,15}$/.test(before)))
    return refuse('editQueue.before must look like "qevt_000001", or be null for the end');
  return { ok: true, value: { op, id, before } };
}

function readField(payload: unknown, name: string, field: string): unknown {
  const fields = readFields(payload, name, [field]);
  return fields.ok ? fields.value[field] : undefined;
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= MAX_NAMES && value.every((name) => isShortText(name, 100));
}
