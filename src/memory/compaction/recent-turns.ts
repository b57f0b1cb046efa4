/** Turns as text (seed 000, section 19), where messages cannot stand as messages: for a summarizer, another provider, a person. */
import { shownText, type AssistantMessage, type Entry, type ToolResultMessage, pickMedia, type MediaKind } from '../../records/message.js';
import { turnNumber } from '../../records/identity.js';
import { cut, indented } from '../../records/text.js';

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

/** In the order in which they began; what came late stands in the turn that it belongs to. */
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
