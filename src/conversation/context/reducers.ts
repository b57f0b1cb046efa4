/**
 * Reducers of application events (seed 004): pure functions from an event to operations on chunks. They run inside the
 * workflow, so they must be deterministic: no clock, no randomness, no I/O.
 */
import { CHUNK_TYPE, type JsonValue } from '../../records/message.js';

/** Where a workflow of `createConversation` has its reducers, for what plays conversations without Temporal (whatif/). */
export const REDUCERS = Symbol.for('perdura.reducers');

/** Where code that counts its steps (extensions/counted-loops.ts) finds them, on its global object. */
export const STEPS = Symbol.for('perdura.steps');

export interface Steps {
  left: number;
  /** Called when none is left: gives more, or throws. */
  spent(): void;
}

/** Of one call of a reducer. */
export const MAX_STEPS = 10_000_000;

/** A piece of context that a reducer has added; `id` is `chunk_<slot>`. */
export interface AppChunk {
  readonly id: string;
  /** `WORKING_FLOW`, `NOTICE`, or a type of the application. */
  readonly type: string;
  readonly slot: number;
  /** Estimated tokens in the context; its removal frees exactly as many. */
  readonly tokens: number;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** The reducer's text; absent if it is longer than 4 KiB, or all texts together are longer than 64 KiB. */
  readonly text?: string;
}

/** What is in the context beside chunks of the application. */
export interface BuiltInChunk {
  readonly type: 'SYSTEM' | 'SUMMARY' | 'TASK' | 'WORKING_FLOW';
  /** Estimated tokens. */
  readonly tokens: number;
  /** For the working flow: ids as in the query `context`, oldest first. */
  readonly ids?: readonly string[];
  /** For the task: its goal and its open tasks. */
  readonly text?: string;
}

/** A chunk that a reducer adds. */
export interface NewChunk {
  readonly type: string;
  /** What the model reads. */
  readonly text: string;
}

/** Seed 004. A chunk that is updated keeps its place and gets a new id; `BATCH_REPLACE` begins a new epoch. */
export type ChunkOperation =
  | { readonly kind: 'ADD'; readonly chunk: NewChunk }
  | { readonly kind: 'UPDATE'; readonly id: string; readonly text: string }
  | { readonly kind: 'DELETE'; readonly id: string }
  | { readonly kind: 'BATCH_REPLACE'; readonly ids: readonly string[]; readonly chunks: readonly NewChunk[] };

/** An application event to reduce. */
export interface AppEvent {
  readonly id: string;
  readonly type: string;
  readonly payload: JsonValue;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** The state that a reducer can read. */
export interface ReducerView {
  readonly chunks: readonly AppChunk[];
  readonly builtIn: readonly BuiltInChunk[];
  readonly session: number;
  readonly turn: number;
  readonly contextTokens: number;
}

/** Returns operations on chunks, or none. If it throws, the event is parked with the error, and the conversation goes on. */
export type Reducer = (event: AppEvent, view: ReducerView) => readonly ChunkOperation[] | void;

/** Reducers by event type. */
export type Reducers = Readonly<Record<string, Reducer>>;

/** The result of reducing an event. */
export type Reduced =
  | { readonly kind: 'reduced'; readonly operations: readonly ChunkOperation[] }
  /** There is no reducer for this type. */
  | { readonly kind: 'unreduced' }
  | { readonly kind: 'parked'; readonly error: string };

const MAX_OPERATIONS = 1_000;
const ERROR_CHARACTERS = 500;

export function createReducerRegistry(reducers: Reducers): (event: AppEvent, view: ReducerView) => Reduced {
  const byType = new Map(Object.entries(reducers));
  return (event, view) => {
    const reducer = byType.get(event.type);
    if (!reducer) return { kind: 'unreduced' };
    try {
      const answer: unknown = reducer(event, view);
      if (answer === undefined || answer === null) return { kind: 'reduced', operations: [] };
      if (!Array.isArray(answer)) return { kind: 'parked', error: describeWrong(answer) };
      // A round trip through JSON leaves plain data, which can be checked, and may go into the state.
      const operations = JSON.parse(JSON.stringify(answer)) as ChunkOperation[];
      const problem = findProblem(operations, view);
      return problem === undefined ? { kind: 'reduced', operations } : { kind: 'parked', error: problem };
    } catch (error) {
      return {
        kind: 'parked',
        error: (error instanceof Error ? `${error.name}: ${error.message}` : 'the reducer threw').slice(0, ERROR_CHARACTERS),
      };
    }
  };
}

function describeWrong(answer: unknown): string {
  const { then } = Object(answer) as { readonly then?: unknown };
  if (typeof then !== 'function') return 'a reducer answers with a list of operations, or nothing: this was no list';
  // A rejection that is handled nowhere would fail the workflow task.
  Promise.resolve(answer).catch(() => undefined);
  return 'a reducer answers at once, with a list of operations; this one answered with a promise';
}

function findProblem(operations: readonly ChunkOperation[], view: ReducerView): string | undefined {
  if (operations.length > MAX_OPERATIONS) return `more than ${MAX_OPERATIONS} operations`;
  const wrong = operations.map((one) => problemIn(one, view)).find(Boolean);
  if (wrong !== undefined) return wrong;
  const added = operations.reduce((sum, one) => sum + (one.kind === 'BATCH_REPLACE' ? one.chunks.length : 1), 0);
  if (added > MAX_OPERATIONS) return `more than ${MAX_OPERATIONS} new chunks`;
  const named = operations.flatMap((one) => (one.kind === 'BATCH_REPLACE' ? one.ids : one.kind === 'ADD' ? [] : [one.id]));
  const twice = named.find((id, at) => named.indexOf(id) !== at);
  return twice === undefined ? undefined : `two operations on ${twice}: an answer may name a chunk once`;
}

/** A reducer in plain JavaScript may return anything. */
function problemIn(operation: ChunkOperation, { chunks }: ReducerView): string | undefined {
  const isText = (text: unknown): boolean => typeof text === 'string' && text !== '' && text.length <= 256 * 1024;
  const isNew = (chunk: NewChunk | undefined): boolean => CHUNK_TYPE.test(chunk?.type ?? '') && isText(chunk?.text);
  const isKnown = (id: string): boolean => chunks.some((chunk) => chunk.id === id);
  switch (operation?.kind) {
    case 'ADD':
      return isNew(operation.chunk) ? undefined : 'ADD needs a chunk with a type and a text of at most 256 Ki characters';
    case 'UPDATE':
      return isKnown(operation.id) && isText(operation.text)
        ? undefined
        : `UPDATE needs the id of a chunk that is there and a text; there is no ${String(operation.id)}`;
    case 'DELETE':
      return isKnown(operation.id) ? undefined : `DELETE: there is no chunk ${String(operation.id)}`;
    case 'BATCH_REPLACE':
      return Array.isArray(operation.ids) &&
        operation.ids.every(isKnown) &&
        Array.isArray(operation.chunks) &&
        operation.chunks.every(isNew)
        ? undefined
        : 'BATCH_REPLACE needs ids of chunks that are there, and new chunks';
    default:
      return 'an operation must be ADD, UPDATE, DELETE or BATCH_REPLACE';
  }
}

export interface AppEvents {
  readonly chunks: readonly AppChunk[];
  /** Count of events without a reducer, and the types of the last ones. */
  readonly unreduced: { readonly count: number; readonly types: readonly string[] };
  /** The last events whose reducer failed. */
  readonly parked: readonly { readonly id: string; readonly type: string; readonly error: string; readonly at: number }[];
  readonly parkedCount: number;
}

/** Id of the chunk that is the entry in this slot. */
export function chunkId(slot: number): string {
  return `chunk_${slot}`;
}
