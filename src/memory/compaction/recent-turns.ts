/**
 * Turns as text (seed 000, section 19), where they cannot be messages: for a summarizer, another provider, a person; and what their tools
 * did.
 */
import {
  shownText,
  type AssistantMessage,
  type Entry,
  type ToolResultMessage,
  pickMedia,
  type MediaKind,
  type JsonValue,
  type ToolOutcome,
} from '../../records/message.js';
import { turnNumber } from '../../records/identity.js';
import { cut, indented, oneLine } from '../../records/text.js';

/** Characters of one text; of a longer one its beginning is shown. */
const TEXT_CHARACTERS = 2_000;

/** A turn as text. */
export interface FlatTurn {
  readonly turnId: string;
  /** `Turn 12:` and its lines; further lines of one text are indented, so that no text passes for another. */
  readonly text: string;
}

/** `[RECENT TURNS]`, then each turn; '' when there are none. */
export function recentTurns(entries: readonly Entry[], { textCharacters }: { readonly textCharacters?: number } = {}): string {
  const turns = flattenTurns(entries, textCharacters);
  return turns.length === 0 ? '' : ['[RECENT TURNS]', ...turns.map(({ text }) => text)].join('\n');
}

/** In the order in which they began; what came late is in the turn that it belongs to. */
export function flattenTurns(entries: readonly Entry[], textCharacters = TEXT_CHARACTERS): FlatTurn[] {
  return [...linesByTurn(entries, textCharacters)].map(([turnId, lines]) => ({ turnId, text: [turnHeading(turnId), ...lines].join('\n') }));
}

/** The same message by message, whole: the first of a turn under the turn's heading. */
export function messagesByTurn(entries: readonly Entry[]): string[] {
  return [...linesByTurn(entries, Infinity)].flatMap(([turnId, [first, ...others]]) => [
    first === undefined ? turnHeading(turnId) : `${turnHeading(turnId)}\n${first}`,
    ...others,
  ]);
}

function linesByTurn(entries: readonly Entry[], characters: number): ReadonlyMap<string, readonly string[]> {
  const lines = new Map<string, string[]>();
  for (const entry of entries) {
    const ofTurn = lines.get(entry.turn) ?? [];
    ofTurn.push(...describeEntry(entry, characters));
    lines.set(entry.turn, ofTurn);
  }
  return lines;
}

function turnHeading(turnId: string): string {
  return `Turn ${turnNumber(turnId)}:`;
}

const NOUNS: Readonly<Record<MediaKind, readonly [one: string, several: string]>> = {
  images: ['image', 'images'],
  audio: ['audio', 'audio'],
  video: ['video', 'videos'],
  documents: ['document', 'documents'],
};

function describeEntry({ message }: Entry, characters: number): string[] {
  const line = (label: string, text: string): string => `  ${label}: ${indented(cut(text, characters), '    ')}`;
  switch (message.role) {
    case 'user': {
      const media = Object.entries(pickMedia(message)).map(
        ([kind, list]) => `${list.length} ${NOUNS[kind as MediaKind][list.length === 1 ? 0 : 1]}`,
      );
      return [line('User', `${shownText(message.text)}${media.length > 0 ? ` [${media.join(', ')}]` : ''}`)];
    }
    case 'assistant':
      return [
        ...spokenText(message).map((text) => line('Assistant', text)),
        ...callsIn(message).map(({ name, input }) => line('Tool call', `${name} ${input}`)),
      ];
    case 'tool':
      return [line('Tool result', resultText(message))];
    default:
      return message satisfies never;
  }
}

/** None or one. Thinking goes back only to the model that made it. */
function spokenText({ blocks, stop }: AssistantMessage): string[] {
  const text = blocks.flatMap((block) => (block.kind === 'text' ? [shownText(block.text)] : [])).join('');
  if (text.trim() === '' && stop !== 'interrupted') return [];
  return [stop === 'interrupted' ? `${text} [interrupted]`.trimStart() : text];
}

function callsIn({ blocks }: AssistantMessage): { readonly name: string; readonly input: string }[] {
  return blocks.flatMap((block) =>
    block.kind === 'tool-call'
      ? [{ name: block.name, input: block.inputRef ? shownText(block.inputRef) : JSON.stringify(block.input) }]
      : [],
  );
}

function resultText({ name, outcome, text }: ToolResultMessage): string {
  return `${name}${outcome === 'ok' ? '' : ` (${outcome})`}: ${shownText(text)}`;
}

// What was done to files, and what tools failed at: facts that a summary must not lose (seed 002, "Compaction" and gap 4).

/** Paths as the tools had them, each once, sorted. */
export interface FileOperations {
  readonly read: readonly string[];
  readonly edited: readonly string[];
  readonly written: readonly string[];
}

interface ToolFailure {
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
