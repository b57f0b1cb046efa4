/**
 * What is done to a text before it is remembered (seed 000, 10.1A): processors in ascending order. Memory's processor has order 900 and
 * stores what has become of the text, so that memory has what the model sees.
 *
 * A processor is a function of the text and its context alone: no clock, no chance, no state. When the store has lost
 * a message it is rebuilt from history, and the processors run again: what they removed must be removed again.
 */
import type { MessageToRecord } from '../conversation/outbox/writes.js';
import type { ConversationKey } from '../stores/store.js';
import { errorMessage } from '../platform/errors.js';

/** Where the text of a processor comes from. */
export interface ProcessorContext {
  readonly conversation: string;
  readonly scope: string;
  readonly session: number;
  readonly turn: string;
}

/** Where the result of a tool comes from. */
export interface ToolResultContext extends ProcessorContext {
  readonly callId: string;
  readonly tool: string;
  readonly outcome: string;
}

/** Changes a text before it is stored. One that throws keeps the message in the queue, or the tool's result from being taken. */
export interface Processor<Context> {
  /** Unique, for errors and logs. */
  readonly name: string;
  /** Lower runs first; of the same order the name decides. */
  readonly order: number;
  /** The text as it goes on. */
  readonly process: (text: string, context: Context) => string | Promise<string>;
}

/** Of what a person says. */
export type InputProcessor = Processor<ProcessorContext>;

/** Of what a tool answers, errors included. */
export type ToolResultProcessor = Processor<ToolResultContext>;

/** Custom processors, for both pipelines. */
export interface Processors {
  readonly input?: readonly InputProcessor[];
  readonly toolResult?: readonly ToolResultProcessor[];
}

/** Seed 000: "runs after all user input processors". */
export const MEMORY_INGEST_ORDER = 900;

/** A processor threw, or handed back what is no text. The text must not go on unprocessed: a redactor may have failed. */
export class ProcessorFailed extends Error {
  override readonly name = 'ProcessorFailed';
  constructor(
    readonly processor: string,
    reason: string,
    cause?: unknown,
  ) {
    super(`the processor ${processor} failed: ${reason}; the text was not taken in, correct the processor`, { cause });
  }
}

/** Memory's processor: `ingest` stores the final text. Its name says which pipeline it closes. */
export function memoryIngest<Context>(
  name: 'MemoryIngestInputProcessor' | 'MemoryIngestToolResultProcessor',
  ingest: (text: string, context: Context) => Promise<void>,
): Processor<Context> {
  return {
    name,
    order: MEMORY_INGEST_ORDER,
    async process(text, context) {
      await ingest(text, context);
      return text;
    },
  };
}

/** Throws, at the worker's start, for what could not work in a conversation. */
export function checkProcessors(processors: readonly Processor<never>[]): void {
  const names = new Set<string>();
  for (const { name, order } of processors) {
    if (name.trim() === '') throw new Error('cannot use a processor without a name');
    if (names.has(name)) throw new Error(`cannot use two processors with the name ${name}: rename one`);
    if (!Number.isFinite(order) || order >= MEMORY_INGEST_ORDER) {
      throw new Error(
        `cannot use the processor ${name}: its order is ${order}, and it must be a number below ${MEMORY_INGEST_ORDER}, where the text is stored`,
      );
    }
    names.add(name);
  }
}

/** What became of the text. Rejects with ProcessorFailed; what memory's processor throws (a store that is away) goes through as it is. */
export async function runProcessors<Context>(processors: readonly Processor<Context>[], text: string, context: Context): Promise<string> {
  let current = text;
  for (const processor of processors.toSorted(byOrder)) current = await runOne(processor, current, context);
  return current;
}

async function runOne<Context>({ name, order, process }: Processor<Context>, text: string, context: Context): Promise<string> {
  if (order === MEMORY_INGEST_ORDER) return process(text, context);
  let result: unknown;
  try {
    result = await process(text, context);
  } catch (error) {
    throw new ProcessorFailed(name, errorMessage(error), error);
  }
  if (typeof result !== 'string') throw new ProcessorFailed(name, `it handed back ${result === null ? 'null' : typeof result}, no text`);
  return result;
}

function byOrder(a: Processor<never>, b: Processor<never>): number {
  return a.order - b.order || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

/** A person's text as it is remembered; the same again when it is rebuilt from history. Throws ProcessorFailed. */
export async function processInput(
  processors: readonly InputProcessor[] = [],
  { conversation, scope }: ConversationKey,
  { text, session, turn }: Pick<MessageToRecord, 'text' | 'session' | 'turn'>,
): Promise<string> {
  if (processors.length === 0) return text;
  return (await runProcessors(processors, text, { conversation, scope, session, turn })).toWellFormed();
}
