/** What waits for a person, what the person decides; what makes a sub-agent, and what it reports to its parent. */
import * as v from 'valibot';
import { childControlSchema, controlOrderSchema } from './stepping.js';
import { LIMITS } from './limits.js';
import {
  beginning,
  budget,
  bytes,
  callId,
  capability,
  conversation,
  count,
  fieldReader,
  firstOf,
  flag,
  is,
  json,
  life,
  list,
  messageId,
  oneOf,
  optionalOrNull,
  part,
  place,
  reader,
  shortText,
  strict,
  text,
  time,
  usage,
  wellFormed,
} from './schema.js';
import { STOP_REASONS, type WaitKind } from '../../records/feed-event.js';
import type { JsonValue } from '../../records/message.js';
import { isRecord } from '../../platform/json.js';

const MAX_ASKS = 100;
/** UTF-16 units of what stands in a list for people, and of an error's words. */
const MAX_TEXT = 500;
const MAX_ERROR = 4_000;
/** Levels of sub-agents, far more than `delegation.maxDepth` lets there be; changes of the shared values in one turn. */
const MAX_DEPTH = 100;
const MAX_CHANGES = 10_000;

const label = is<string>(`a text of at most ${MAX_TEXT} characters`, (value) => typeof value === 'string' && value.length <= MAX_TEXT);

const approvalSchema = part({
  /** The conversation itself, or a sub-agent of it. */
  conversation,
  callId,
  turnId: label,
  kind: is<WaitKind>('approval or question', (value) => value === 'approval' || value === 'question'),
  tool: label,
  /** What it is about, in a few words. */
  target: label,
  /** Of tool and arguments: a decision that names it counts for these alone. */
  hash: label,
  askedIn: count(),
  why: v.optional(label),
  /** A decision may say `always`. */
  mayAlways: flag,
  /** Epoch milliseconds. */
  askedAt: time,
  expiresAt: time,
});

/** Something that waits for a person: whether a tool may run, or an answer. The arguments stand in the store, in entry `askedIn`. */
export interface Approval extends v.InferOutput<typeof approvalSchema> {}

const reference = v.optional(shortText(MAX_TEXT));

const decisionSchema: v.GenericSchema<unknown, Decision> = v.pipe(
  strict({
    callId,
    decision: oneOf('approve', 'deny'),
    conversation: v.optional(conversation),
    note: v.optional(v.pipe(text, bytes(LIMITS.noteBytes), wellFormed)),
    input: v.optional(v.pipe(is<JsonValue>('an object: the arguments to run with', isRecord), bytes(LIMITS.editedBytes))),
    hash: v.optional(shortText(100)),
    always: flag,
    output: v.optional(v.pipe(json, bytes<JsonValue>(LIMITS.clientResultBytes, '; answer with what matters of it'))),
    isError: flag,
    wishes: v.optional(part({ toolsRef: reference, outputRef: reference })),
  }),
  v.check(
    ({ always, decision, input }) => !always || (decision === 'approve' && input === undefined),
    'takes always with "approve" alone, for the arguments as they were asked',
  ),
  v.check(({ output, decision }) => output === undefined || decision === 'approve', 'takes output with "approve" alone'),
);

/** What a person says to one of them. For a question, `note` is the answer. */
export interface Decision {
  readonly callId: string;
  readonly decision: 'approve' | 'deny';
  /** Of a sub-agent's call: its conversation. */
  readonly conversation?: string;
  /** The model reads it. For a question, it is the answer. */
  readonly note?: string;
  /** In place of the model's arguments. */
  readonly input?: JsonValue;
  readonly hash?: string;
  /** With `approve`: this very call runs without asking from now on, in this conversation until its session is cleared. */
  readonly always?: true;
  /** With `approve`, of a tool of the client: what it has answered, and whether that is an error. */
  readonly output?: JsonValue;
  readonly isError?: true;
  /** With `output`: where that lies which the rest of the turn has in place of what its message has brought. */
  readonly wishes?: { readonly toolsRef?: string | undefined; readonly outputRef?: string | undefined };
}

/** A receipt for a decision. */
export type Decided = Pick<Decision, 'callId' | 'decision'>;

export const readDecision = reader(decisionSchema, 'decide');
export const readWithdrawal = fieldReader('withdraw', 'messageId', messageId);
export const readBudget = reader(budget, 'raiseBudget');

const amounts = part({ tokens: count(Number.MAX_SAFE_INTEGER), nanoUsd: count(Number.MAX_SAFE_INTEGER) });
const valuesRef = { ref: shortText(MAX_TEXT), origin: v.optional(place) };

const calls = v.optional(list(part({ life, slot: count() }), MAX_DEPTH));
const besides = list(part({ of: place, session: count(), until: time, before: v.optional(count()), calls }), 2 * MAX_DEPTH);
const sharedMemory = { of: v.optional(place), session: count(), until: v.nullable(time), before: v.optional(count()) };

const parentSchema = part({
  conversation,
  life,
  callId,
  depth: count(MAX_DEPTH),
  share: v.optional(count()),
  /** One for each conversation that it works for, at most. */
  budgets: v.optional(list(part({ conversation, life, limit: budget, at: time, own: amounts, all: amounts }), MAX_DEPTH)),
  memory: optionalOrNull(part({ ...sharedMemory, at: v.optional(count()), calls, besides: v.optional(besides) })),
});

export const delegationSchema = strict({
  parent: parentSchema,
  task: v.pipe(
    is<string>('a text that says what to do', (value) => typeof value === 'string' && value.trim() !== ''),
    bytes(2 * LIMITS.taskBytes),
  ),
  appContext: optionalOrNull(part({ ...valuesRef, changes: v.optional(list(part(valuesRef), MAX_CHANGES)) })),
  /** Only its parent and itself know it, and who reads their histories: its reports show it. */
  capability: v.optional(capability),
  /** Mode and breakpoints of its parent; absent: that one was never stepped through. */
  control: v.optional(controlOrderSchema),
});

/** What makes a conversation a sub-agent; only its parent gives it. */
export interface Delegation extends v.InferOutput<typeof delegationSchema> {}

const reportSchema = part({
  text: v.pipe(text, bytes(2 * LIMITS.reportBytes), wellFormed),
  stopReason: oneOf(...STOP_REASONS),
  usage,
  error: optionalOrNull(part({ type: beginning(MAX_TEXT), message: beginning(MAX_ERROR) })),
  /** Values for tools, in the parent's store: all, and those that it has changed. */
  context: optionalOrNull(part({ ref: shortText(MAX_TEXT), change: shortText(MAX_TEXT) })),
});

/** How a sub-agent's turn ended, for the call that waits for it. */
export interface ChildReport extends v.InferOutput<typeof reportSchema> {}

/** `capability` is as it was given at the start. */
const from = { callId, capability: v.optional(capability) };
const newsSchema = v.variant(
  'kind',
  [
    strict({ ...from, kind: v.literal('asks'), asks: firstOf(approvalSchema, MAX_ASKS) }),
    strict({ ...from, kind: v.literal('ended'), report: reportSchema }),
    strict({ ...from, kind: v.literal('control'), control: childControlSchema }),
  ],
  'must be asks, ended or control',
);

/** Payload of the signal `child`, from a sub-agent to its parent. */
export type ChildNews = v.InferOutput<typeof newsSchema>;

/** From a sub-agent, which is a conversation too; still anyone may send a signal. */
export const readChildNews = reader(newsSchema, 'child');
