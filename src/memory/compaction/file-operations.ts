/** What was done to files, and what tools failed at: facts that a summary must not lose (seed 002, "Compaction" and gap 4). */
import { shownText, type Entry, type JsonValue, type ToolOutcome } from '../../records/message.js';
import { turnNumber } from '../../records/identity.js';
import { cut, oneLine } from '../../records/text.js';

/** Paths as the tools had them, each once, sorted. */
export interface FileOperations {
  readonly read: readonly string[];
  readonly edited: readonly string[];
  readonly written: readonly string[];
}

export interface ToolFailure {
  /** Number of the turn. */
  readonly turn: number;
  readonly callId: string;
  readonly name: string;
  readonly outcome: Exclude<ToolOutcome, 'ok' | 'cancelled'>;
  /** Its beginning, in one line. */
  readonly text: string;
}

type Operation = keyof FileOperations;

/** Built-in tools that do one thing to the file in their argument `path`. */
const BUILTIN_OPERATIONS: ReadonlyMap<string, Operation> = new Map([['read_file', 'read']]);

const FAILURE_CHARACTERS = 160;
const PATH_CHARACTERS = 200;
const SHOWN_PATHS = 30;
const SHOWN_FAILURES = 10;

/** What tools report of themselves; for built-in ones that worked, what their arguments say. */
export function fileOperations(entries: readonly Entry[]): FileOperations {
  const found = { read: new Set<string>(), edited: new Set<string>(), written: new Set<string>() };
  // A path is named again and again, and may be long: each is made one line once.
  const lines = new Map<string, string>();
  const toLine = (path: string): string => {
    const line = lines.get(path) ?? oneLine(path);
    lines.set(path, line);
    return line;
  };
  const add = (operation: Operation, paths: readonly string[] = []): void => {
    for (const path of paths) if (toLine(path) !== '') found[operation].add(toLine(path));
  };
  const inputs = inputsByCall(entries);
  for (const { message } of entries) {
    if (message.role !== 'tool') continue;
    for (const operation of ['read', 'edited', 'written'] as const) add(operation, message.files?.[operation]);
    const builtin = message.outcome === 'ok' && message.files === undefined ? BUILTIN_OPERATIONS.get(message.name) : undefined;
    const path = builtin && pathIn(inputs.get(message.callId));
    if (builtin && path !== undefined) add(builtin, [path]);
  }
  return { read: [...found.read].sort(), edited: [...found.edited].sort(), written: [...found.written].sort() };
}

/** Calls that did not work, in their order; those that a person stopped before they began are none. */
export function toolFailures(entries: readonly Entry[]): ToolFailure[] {
  return entries.flatMap(({ turn, message }) => {
    if (message.role !== 'tool' || message.outcome === 'ok' || message.outcome === 'cancelled') return [];
    const { callId, name, outcome } = message;
    return [{ turn: turnNumber(turn), callId, name, outcome, text: cut(oneLine(shownText(message.text)), FAILURE_CHARACTERS) }];
  });
}

/** Both as lines of a summary, bounded; '' when there was neither. */
export function workNotes(entries: readonly Entry[]): string {
  const { read, edited, written } = fileOperations(entries);
  const failures = toolFailures(entries);
  const shown = failures.slice(-SHOWN_FAILURES).map(({ turn, name, outcome, text }) => `- turn ${turn}: ${name} (${outcome}): ${text}`);
  const earlier = failures.length - shown.length;
  return [
    ...pathLine('Files read', read),
    ...pathLine('Files edited', edited),
    ...pathLine('Files written', written),
    ...(shown.length > 0 ? [`Tool failures:${earlier > 0 ? ` (and ${earlier} earlier)` : ''}`, ...shown] : []),
  ].join('\n');
}

function pathLine(title: string, paths: readonly string[]): string[] {
  if (paths.length === 0) return [];
  const shown = paths.slice(0, SHOWN_PATHS).map((path) => cut(path, PATH_CHARACTERS));
  return [`${title}: ${shown.join(', ')}${paths.length > shown.length ? ` and ${paths.length - shown.length} more` : ''}`];
}

function inputsByCall(entries: readonly Entry[]): ReadonlyMap<string, JsonValue> {
  return new Map(
    entries.flatMap(({ message }) =>
      message.role === 'assistant'
        ? message.blocks.flatMap((block) => (block.kind === 'tool-call' ? [[block.callId, block.input] as const] : []))
        : [],
    ),
  );
}

function pathIn(input: JsonValue | undefined): string | undefined {
  if (typeof input !== 'object' || input === null || !('path' in input)) return undefined;
  return typeof input.path === 'string' ? input.path : undefined;
}
