/**
 * Seed 004's step engine: its requests and answers, and the messages by which a parent and a sub-agent step a tree of sub-agents.
 */
import * as v from 'valibot';
import { LIMITS } from './limits.js';
import {
  amount,
  beginning,
  bool,
  bytes,
  capability,
  conversation,
  count,
  fieldReader,
  firstOf,
  flag,
  json,
  like,
  list,
  messageId,
  oneOf,
  part,
  read,
  reader,
  shortText,
  strict,
  type Checked,
} from './schema.js';
import type { JsonValue } from '../../records/message.js';
import { truncate } from '../../records/text.js';

const MAX_NAMES = 100;
const MAX_NAME = 100;
/** Sub-agents that one reports with itself, and UTF-16 units of each text: a parent carries them in its state. */
export const MAX_REPORTED = 20;
export const MAX_REPORTED_TEXT = 200;

export const mode = oneOf('auto', 'stepping');

/** Seed 004: `auto` goes on by itself, `stepping` does one thing for each `step`. */
export type ControlMode = v.InferOutput<typeof mode>;

const modeReader = fieldReader('setMode', 'mode', mode);

export function readMode(payload: unknown): Checked<ControlMode> {
  return modeReader(typeof payload === 'string' ? { mode: payload } : payload);
}

const names = v.optional(list(shortText(MAX_NAME), MAX_NAMES));
const dollars = amount('dollars', LIMITS.usd);

const breakpointsSchema = strict({ tools: names, events: names, onError: v.optional(bool), costUsd: v.optional(dollars) });

/** In `auto`: stop before a tool of these names, before an event of these types (`message`, `reset`, others), on an error, at a cost. */
export interface Breakpoints extends v.InferOutput<typeof breakpointsSchema> {}

/** Every field may be left out; `{}` takes all breakpoints away. */
export function readBreakpoints(payload: unknown): Checked<Breakpoints> {
  return read(breakpointsSchema, payload ?? {}, 'setBreakpoints');
}

const stepKind = oneOf('event', 'truncation', 'compaction', 'model-call', 'tool-run', 'sub-agent', 'nothing');

/** What a step has done: `event`, `truncation`, `compaction`, `model-call`, `tool-run`, `sub-agent` or `nothing`. */
export type StepKind = v.InferOutput<typeof stepKind>;

const scope = oneOf('into', 'over');

/**
 * Where a step goes when sub-agents are about: `into` takes the next step of one that holds; `over` lets them go on until they have
 * reported, wait for a person or stop at a breakpoint. Without it: what the conversation itself does next, then a sub-agent's next step.
 */
export type StepScope = v.InferOutput<typeof scope>;

const stepSchema = strict({ id: v.optional(messageId), scope: v.optional(scope) });

export function readStepRequest(payload: unknown): Checked<v.InferOutput<typeof stepSchema>> {
  return read(stepSchema, payload ?? {}, 'step');
}

const queuedId = like(/^qevt_\d{1,15}$/, 'look like "qevt_000001"');
const editSchema = v.variant(
  'op',
  [
    strict({ op: v.literal('drop'), id: queuedId }),
    strict({ op: v.literal('move'), id: queuedId, before: v.nullish(queuedId, null) }),
    strict({ op: v.literal('clear') }),
  ],
  'must be "drop", "move" or "clear"',
);

/** `{ op: 'drop', id }`, `{ op: 'move', id, before }`, where `before: null` moves to the end, or `{ op: 'clear' }`. */
export type QueueEdit = v.InferOutput<typeof editSchema>;

export const readQueueEdit = reader(editSchema, 'editQueue');

const CHUNK_ID = /^chunk_([1-9]\d{0,8})$/;
const chosenSchema = v.pipe(
  strict({ id: v.optional(messageId), chunks: list(like(CHUNK_ID, 'look like "chunk_12"'), LIMITS.chosenChunks, 1) }),
  v.transform(({ chunks, ...named }) => {
    const slots = new Set(chunks.map((chunk) => Number(CHUNK_ID.exec(chunk)?.[1])));
    return { ...named, slots: [...slots].sort((a, b) => a - b) };
  }),
);

/** Of `executeTruncation` and `triggerCompaction`: ids of chunks as the query `checkTokenUsage` has them. */
export function readChosenChunks(payload: unknown, name: string): Checked<v.InferOutput<typeof chosenSchema>> {
  return read(chosenSchema, payload, name);
}

const eventSchema: v.GenericSchema<unknown, ReadAppEvent> = v.pipe(
  strict({
    id: v.optional(messageId),
    type: v.pipe(
      like(/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/),
      v.check(
        (type) => type !== 'message' && type !== 'reset',
        ({ input }) => `${input} has a signal of its own`,
      ),
    ),
    payload: v.optional(v.pipe(json, bytes<JsonValue>(LIMITS.contextBytes))),
    wait: v.optional(bool),
  }),
  v.transform(({ payload = null, ...rest }) => ({ ...rest, payload })),
);

export interface ReadAppEvent {
  readonly id?: string;
  readonly type: string;
  readonly payload: JsonValue;
  readonly wait?: boolean;
}

export const readAppEvent = reader(eventSchema, 'event');

const reportedText = beginning(MAX_REPORTED_TEXT);
const stepOfChildSchema = part({ conversation, did: stepKind, words: reportedText });
const standing = { mode, next: v.nullable(reportedText), pausedBy: v.nullable(reportedText) };
const subAgentSchema = part({ conversation, ...standing });

/** A step that a sub-agent has made. */
export interface StepOfChild extends v.InferOutput<typeof stepOfChildSchema> {}

/** A sub-agent at work, as its parent knows it. It holds when `next` says what its step would do. */
export interface SubAgent extends v.InferOutput<typeof subAgentSchema> {}

const order = {
  number: count(),
  /** Of the parent's decisions about its mode: a sub-agent that was set by hand is set again only by the next of them. */
  changes: count(),
  mode,
  breakpoints: v.optional(breakpointsSchema, {}),
  /** What the others of the tree have cost so far, in US dollars: a breakpoint at a cost counts all of it. */
  spentUsd: dollars,
  /** Id of the step that it is to take. */
  step: v.optional(messageId),
};
export const controlOrderSchema = strict(order);
const parentSchema = v.pipe(
  strict({ ...order, capability: v.optional(capability) }),
  v.transform(({ capability: shown, ...rest }) => ({ order: rest, ...(shown !== undefined && { capability: shown }) })),
);

/**
 * Payload of the signal `parent`, and in a sub-agent's start: how it goes on. An order is whole, so the one with the highest number counts
 * in whatever order they arrive.
 */
export interface ControlOrder extends v.InferOutput<typeof controlOrderSchema> {}

/** With what the sender shows to be the parent. */
export const readParentOrder = reader(parentSchema, 'parent');

export const childControlSchema = part({
  ...standing,
  number: count(),
  /** Of the last order that it has heard. */
  changes: count(),
  /** The conversation below it that has the breakpoint; absent: this conversation has it. */
  pausedIn: v.optional(conversation),
  /** A breakpoint at a cost was reached: it counts once for the whole tree. */
  reachedCost: flag,
  /** While there is a breakpoint at a cost: what it and those below it have cost, in US dollars. */
  spentUsd: v.optional(dollars),
  /** The last step that its parent requested. */
  step: v.optional(part({ stepId: messageId, ...stepOfChildSchema.entries })),
  /** What is more than a parent carries is left out. */
  subAgents: firstOf(subAgentSchema, MAX_REPORTED),
});

/** How a sub-agent stands, with those below it. */
export interface ChildControl extends v.InferOutput<typeof childControlSchema> {}

export function shortened(text: string): string {
  return truncate(text.toWellFormed(), MAX_REPORTED_TEXT);
}

/** Seed 004, StepResult; and in words what was done, and what would be next. */
export interface StepResult {
  readonly stepId: string;
  readonly did: StepKind;
  readonly words: string;
  readonly dispatchResult: DispatchResult | null;
  readonly eventProcessed: boolean;
  readonly compactionPerformed: boolean;
  readonly truncationPerformed: boolean;
  readonly hasPendingOperations: boolean;
  readonly queuedEventCount: number;
  readonly next: string | null;
  /** Of a step into a sub-agent: which one took it, at any depth, and what it was. */
  readonly child?: StepOfChild;
}

/** Ids are those of the query `context`; at most 200 of each. */
export interface DispatchResult {
  readonly addedChunks: readonly string[];
  readonly removedChunkIds: readonly string[];
  readonly contextTokens: { readonly before: number; readonly after: number };
}

/** Answer of `setMode` and `setBreakpoints`. */
export interface ControlStatus {
  readonly mode: ControlMode;
  readonly stepLock: string | null;
  readonly breakpoints: Breakpoints;
  readonly pausedBy: string | null;
  readonly next: string | null;
}

/** Answer of the query `control`: what a debugger shows beside `status`, `queue` and `context`. */
export interface ControlView extends ControlStatus {
  /** What the running step does. */
  readonly running: string | null;
  /** Tokens; null until the first turn, and for settings of an earlier version. */
  readonly thresholds: {
    readonly soft: number;
    readonly hard: number;
    readonly truncation: number;
    readonly autoCompact: boolean;
  } | null;
  readonly turn: {
    readonly id: string;
    /** Of the model call that is next or under way; null while tools run. */
    readonly modelCall: { readonly id: string; readonly inFlight: boolean; readonly failures: number } | null;
    readonly calls: readonly { readonly id: string; readonly name: string; readonly target: string; readonly status: string }[];
  } | null;
  /** Entries that were left out of the prompt and wait for the next compaction. */
  readonly leftOut: number;
  /** Sub-agents at work, each before its sub-agents; absent where there are none. */
  readonly subAgents?: readonly SubAgent[];
}

/** What a reducer has made of an event. `not-known`: it was taken out of the queue, or that was too long ago. */
export type AppEventOutcome =
  | ({ readonly kind: 'reduced' } & DispatchResult)
  | { readonly kind: 'unreduced' }
  | { readonly kind: 'parked'; readonly error: string }
  | { readonly kind: 'not-known' };

/** Answer of `dispatch`; `result` for one that waits for it. */
export interface DispatchedEvent {
  readonly id: string;
  /** How many came before it. */
  readonly position: number;
  readonly result?: AppEventOutcome;
}
