/** The messages to the workflow `memory:<scope>` (design section 3), and its answers to queries. */
import * as v from 'valibot';
import { ID_PATTERN, LIMITS } from './limits.js';
import {
  conversation,
  count,
  id,
  is,
  life,
  like,
  list,
  oneOf,
  part,
  read,
  reader,
  shortText,
  strict,
  usage,
  type Checked,
} from './schema.js';
import { isScope } from './limits.js';
import type { Usage } from '../../records/message.js';
import { countSlots, type SlotRange } from '../../records/slots.js';

const MAX_RANGES = 10_000;
const MAX_MODELS = 8;
/** UTF-16 units. */
const MAX_TEXT = 2_000;
const MAX_ID = 300;
/** More than the tool that pins it takes (tools/define-tool.ts): what is to be forgotten may have become longer. */
const MAX_TASKS = 20;
/** Of one notice. */
export const MAX_LIVES = 1_000;
/** Of a run; the server's limit is 51,200. */
const [MIN_EVENTS, MAX_EVENTS] = [20, 50_000];

const startSchema = part({
  scope: is<string>(`a name that matches ${ID_PATTERN.source}, a tenant's with the tenant and a full stop before it`, isScope),
  /** Events after which a run hands over to the next, earlier than by itself. */
  handOver: v.optional(count(MAX_EVENTS, MIN_EVENTS)),
});

/** Argument at its start. */
export interface MemoryStart extends v.InferOutput<typeof startSchema> {}

export const readMemoryStart = reader(startSchema, 'start');

const slot = count();
const slots = v.pipe(
  is<readonly SlotRange[]>(
    `at most ${MAX_RANGES} pairs of slots, none beyond ${LIMITS.number}`,
    (value) => Array.isArray(value) && value.length <= MAX_RANGES && value.every(isRange),
  ),
  v.check(
    (ranges) => countSlots(ranges) <= LIMITS.slots,
    ({ input }) => `are ${countSlots(input)} entries, the limit is ${LIMITS.slots}`,
  ),
);
const requestId = like(/^[ -~]{1,300}$/);
const taskText = is<string>(`a text of at most ${MAX_TEXT} characters`, (value) => typeof value === 'string' && value.length <= MAX_TEXT);

const requestSchema = part({
  id: requestId,
  /** The conversation's name for it. */
  requestId,
  conversation,
  life,
  session: count(),
  slots,
  /** How many messages these are, for people. */
  messages: count(),
  agent: id,
  /** The conversation's model, for agents that name no other for this. */
  model: is<string>(`a text of at most ${MAX_ID} characters`, (value) => value === '' || v.is(shortText(MAX_ID), value)),
  /** The models of the agent's list after it. Absent: only this model is called. */
  fallback: v.optional(list(shortText(MAX_ID), MAX_MODELS)),
  why: oneOf('reset', 'window', 'close'),
  /** What is pinned in the session: for its entry in HISTORY once it ends. Absent: nothing is. */
  task: v.optional(
    part({
      goal: taskText,
      openTasks: list(taskText, MAX_TASKS),
      goalFrom: v.optional(oneOf('beginning', 'summary')),
      tasksFrom: v.optional(oneOf('summary')),
    }),
  ),
  /**
   * Where the asker's worker takes work is where its store is. The server refuses `/_sys/`, and with it the workflow task that names it,
   * for ever.
   */
  taskQueue: like(/^(?!\/_sys\/)\P{C}{1,300}$/u, 'be the name of a task queue'),
});

/** A request as it arrives. */
export interface AskedConsolidation extends v.InferOutput<typeof requestSchema> {}

/** Perdura's activity sends it; other senders may too. */
export const readConsolidationRequest = reader(requestSchema, 'consolidate');

const forgetSchema = strict({
  text: v.pipe(
    is<string>(
      `a text of 1 to ${MAX_TEXT} characters`,
      (value) => typeof value === 'string' && value.trim() !== '' && value.length <= MAX_TEXT,
    ),
    v.transform((value) => value.toWellFormed().trim()),
  ),
});

/** What is forgotten: every line of memory, fact, proposal and line of HISTORY that says it. */
export interface ForgetRequest extends v.InferOutput<typeof forgetSchema> {}

export const readForget = reader(forgetSchema, 'forget');

const deletedSchema = strict({ conversation, lives: list(life, MAX_LIVES) });

/** These lives of a conversation were deleted: their requests are dropped. */
export interface DeletedNotice extends v.InferOutput<typeof deletedSchema> {}

export const readDeletedNotice = reader(deletedSchema, 'deleted');

const reviewSchema = strict({ id: like(/^prop_\d{4,15}$/, 'look like "prop_0001"'), decision: oneOf('accept', 'reject') });

/** Decides on a line that only a tool's word stands behind. */
export interface ReviewRequest extends v.InferOutput<typeof reviewSchema> {}

export const readReview = reader(reviewSchema, 'review');

const careSchema = strict({ agent: v.optional(id) });

/** Merges duplicates and prunes, now. `agent` says by whose model and limits. */
export interface CareRequest extends v.InferOutput<typeof careSchema> {}

export function readCare(payload: unknown): Checked<CareRequest> {
  return read(careSchema, payload ?? {}, 'care');
}

const newsSchema = part({
  requestId: shortText(MAX_ID),
  life: shortText(MAX_ID),
  consolidation: oneOf('model', 'raw-fallback', 'nothing-to-do'),
  /** What cannot be read of it is not known. */
  usage: v.fallback(v.nullable(usage), null),
  /** Reference to what it hands over to the conversation. Absent: nothing. */
  handover: v.optional(shortText(MAX_ID)),
});

/** Signal of the memory workflow to the conversation that sent the request. */
export interface ConsolidationNews extends v.InferOutput<typeof newsSchema> {}

export const readConsolidationNews = reader(newsSchema, 'consolidated');

export const MEMORY_WORKFLOW_TYPE = 'memory';

export function memoryWorkflowId(scope: string): string {
  return `memory:${scope}`;
}

/** What was forgotten. */
export interface Forgotten {
  /** Lines of MEMORY.md that are gone. */
  readonly lines: readonly string[];
  /** Facts that are gone, by id. */
  readonly facts: readonly string[];
  /** Proposals that are no longer open, by id. */
  readonly proposals: readonly string[];
}

/** What became of a proposal. */
export interface Reviewed {
  readonly id: string;
  readonly line: string;
  /** What was decided: the first decision stays. */
  readonly state: 'accepted' | 'rejected';
}

/** What was done for a memory. */
export interface Cared {
  readonly kind: 'cared' | 'nothing-to-do';
  /** UTF-8 bytes of MEMORY.md. */
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Facts that another one says too, by id. */
  readonly facts: readonly string[];
  /** Absent where no model was called. */
  readonly usage?: Usage;
}

/** How the writer of a scope's memory stands. */
export interface MemoryStatus {
  readonly scope: string;
  readonly phase: 'idle' | 'consolidating' | 'waiting-to-retry';
  /** In words, with a time where there is one. */
  readonly waitingFor?: string;
  readonly queued: readonly { readonly conversation: string; readonly messages: number; readonly why: string; readonly attempts: number }[];
  readonly consolidated: number;
  /** Of which the model was no help: HISTORY has their last messages as they were. */
  readonly fallbacks: number;
  readonly usage: Usage;
  /** Latest last. `at` is epoch milliseconds. */
  readonly last: readonly { readonly at: number; readonly what: string }[];
  readonly historyEvents: number;
}

function isRange(value: unknown): boolean {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [first, last] = value as unknown[];
  return v.is(slot, first) && v.is(slot, last) && first <= last;
}
