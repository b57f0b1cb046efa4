/** The messages of a conversation as lines: for people, and as the raw traces of the seed. */
import { isBodyRef, shownText, sourcesIn, type Entry, type JsonValue, type MediaKind } from '../../records/message.js';
import type { TurnEnd } from '../../records/turn-end.js';
import { explainEnd } from '../../insight/turns.js';
import { type ToolInteraction, toTraces } from '../../memory/traces.js';
import type { TimeFormat } from '../args/global-options.js';
import { toTerminalJson, toTerminalLine, type StyledLine, toTerminalText } from '../terminal/terminal-text.js';
import { formatTime } from './quantities.js';

/** One trace a line. */
export function renderTraces(entries: readonly Entry[], conversation: string): string[] {
  return entries.flatMap((entry) => toTraces(entry, conversation).map((trace) => toTerminalJson(trace)));
}

const SHOWN = 200;
const NOUNS: Readonly<Record<MediaKind, string>> = { images: 'image', audio: 'audio', video: 'video', documents: 'document' };
const STYLES = { PENDING: 'yellow', SUCCESS: 'green', ERROR: 'red' } as const;

/** A call and what came of it, two lines each. */
export function renderInteractions(interactions: readonly ToolInteraction[]): StyledLine[] {
  return interactions.flatMap(({ turn_id, tool_name, arguments: input, result, error, status }, at) => {
    const came = error ?? (typeof result === 'string' ? result : JSON.stringify(result));
    return [
      ...(turn_id === interactions[at - 1]?.turn_id ? [] : [[], [{ text: turn_id, style: 'dim' as const }]]),
      [{ text: `→ ${tool_name} ${toTerminalLine(JSON.stringify(input), SHOWN)}` }],
      [
        { text: `← ${status.toLowerCase()}`, style: STYLES[status] },
        { text: status === 'PENDING' ? '' : `  ${toTerminalLine(came, SHOWN)}`, style: 'dim' },
      ],
    ];
  });
}

/** The messages, each turn with how it ended behind it where it has no whole answer. */
export function withTurnEnds(entries: readonly Entry[], ends: readonly TurnEnd[]): (Entry | TurnEnd)[] {
  const last = new Map(entries.map(({ turn }, at) => [turn, at]));
  return entries.flatMap((entry, at) =>
    last.get(entry.turn) === at ? [entry, ...ends.filter(({ turn }) => turn === entry.turn)] : [entry],
  );
}

/** `before` is the turn of what was drawn last: its heading is not repeated. */
export function renderTranscript(
  entries: readonly (Entry | TurnEnd)[],
  { timeFormat, now, before }: { readonly timeFormat: TimeFormat; readonly now: number; readonly before?: string },
): StyledLine[] {
  return entries.flatMap((entry, at) => {
    if ('stopReason' in entry) return [drawEnd(entry)];
    const isNew = entry.turn !== (entries[at - 1]?.turn ?? before);
    const heading: StyledLine[] = isNew
      ? [[], [{ text: `${entry.turn}  ${formatTime(Math.round(entry.ts * 1000), timeFormat, now)}`, style: 'dim' }]]
      : [];
    return [...heading, ...renderMessage(entry)];
  });
}

function drawEnd(end: TurnEnd): StyledLine {
  const isStopped = end.stopReason === 'interrupted' || end.stopReason === 'end';
  return [{ text: `  ${isStopped ? '' : '✘ '}${toTerminalLine(explainEnd(end) ?? '', 2_000)}`, style: isStopped ? 'yellow' : 'red' }];
}

function renderMessage({ message }: Entry): StyledLine[] {
  switch (message.role) {
    case 'user':
      return [
        [
          { text: '› ', style: 'cyan' },
          { text: shownText(message.text), style: 'bold' },
        ],
        ...sourcesIn(message).map(({ kind, source }): StyledLine => [{ text: `  [${NOUNS[kind]}, ${source.mediaType}]`, style: 'dim' }]),
      ];
    case 'tool': {
      const shown = toTerminalLine(shownText(message.text), 200);
      return [[{ text: `  ← ${message.name} ${message.outcome}: ${shown}`, style: message.outcome === 'ok' ? 'dim' : 'yellow' }]];
    }
    case 'assistant':
      return message.blocks.flatMap((block): StyledLine[] => {
        if (block.kind === 'text') return [[{ text: shownText(block.text) }]];
        if (block.kind !== 'tool-call') return [];
        return [[{ text: `  → ${block.name} ${toTerminalLine(shownInput(block.input), 200)}`, style: 'dim' }]];
      });
  }
}

export function shownInput(input: JsonValue | { readonly preview: string }): string {
  return isBodyRef(input) ? input.preview : JSON.stringify(input);
}

/** A conversation as a Markdown file, for `/export`. */
export function toMarkdown(title: string, entries: readonly Entry[]): string {
  const parts = [`# ${toTerminalLine(title, 200)}`];
  for (const [at, entry] of entries.entries()) {
    if (entry.turn !== entries[at - 1]?.turn) parts.push(`## ${entry.turn} · ${new Date(entry.ts * 1000).toISOString()}`);
    parts.push(...toMarkdownParts(entry));
  }
  return `${parts.join('\n\n')}\n`;
}

function toMarkdownParts({ message }: Entry): string[] {
  switch (message.role) {
    case 'user':
      return [
        blockquote(shownText(message.text)),
        ...sourcesIn(message).map(({ kind, source }) => `*[${NOUNS[kind]}, ${source.mediaType}]*`),
      ];
    case 'tool':
      return [`**← ${message.name}**, ${message.outcome}`, fenced(shownText(message.text))];
    case 'assistant':
      return message.blocks.flatMap((block) => {
        if (block.kind === 'text') return [toTerminalText(shownText(block.text)).trim()];
        if (block.kind === 'tool-call') return [`**→ ${block.name}**`, fenced(indentedInput(block.input))];
        return [];
      });
  }
}

function blockquote(text: string): string {
  return toTerminalText(text)
    .split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n');
}

/** The fence is longer than any inside. */
function fenced(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${toTerminalText(text).trimEnd()}\n${fence}`;
}

function indentedInput(input: JsonValue | { readonly preview: string }): string {
  return isBodyRef(input) ? input.preview : JSON.stringify(input, null, 2);
}
