/**
 * `perdura context`: what the next model call sees, as a bar in which each part has a sign of its own, so that it reads without
 * colour, and the numbers below it. Labels are ours alone: every character takes one cell.
 */
import type { CompactionOutcome, ContextIndex } from '../../conversation/protocol/contract.js';
import { countSlots } from '../../records/slots.js';
import { toTerminalLine, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { formatQuantity, formatCount } from './quantities.js';
import { renderTable, type Column, type Measure } from './table.js';

interface Part {
  readonly sign: string;
  readonly name: string;
  readonly tokens: number;
  readonly style: StyledSpan['style'];
}

/** Below this the numbers stand under the names. */
const NARROW = 44;
const WIDEST = 60;
const LINE = '┃';

export function renderMeter(index: ContextIndex, width = 80): StyledLine[] {
  const { budget, compactsAt, total } = index;
  if (budget === 0) return [[{ text: 'how much fits is known once the first turn has begun', style: 'dim' }], ...drawFacts(index, width)];
  const parts = partsOf(index);
  const names = Math.max(...parts.map(({ name }) => name.length));
  const row = ({ sign, name, tokens, style }: Part): StyledLine[] => {
    const numbers = [formatCount(tokens).padStart(formatCount(budget).length), `${share(tokens, budget)} %`.padStart(6)].join(' ');
    const head: StyledLine = [{ text: sign, style }, { text: ` ${name}` }];
    if (width < NARROW) return [head, [{ text: `  ${numbers}` }]];
    return [[...head, { text: ' '.repeat(names - name.length + 2) }, { text: numbers }]];
  };
  const line: Part = { sign: LINE, name: 'compacted from', tokens: compactsAt, style: lookOfLine(index) };
  return [
    drawBar(parts, index, Math.max(1, Math.min(width, WIDEST))),
    [],
    ...[...parts, line].flatMap(row),
    [],
    ...wrapped(`${formatCount(total)} of ${formatCount(budget)} tokens, ${share(total, budget)} %`, width).map((text): StyledLine => [
      { text },
    ]),
    ...drawFacts(index, width),
  ];
}

interface ShownChunk {
  readonly chunk: string;
  readonly turn: string;
  readonly role: string;
  readonly tokens: number;
  readonly words: string;
}

/** The messages that a model call sees, by the ids that `--compact` and `--truncate` take. */
export function renderChunks(chunks: readonly ShownChunk[], look: { readonly width?: number; readonly measure: Measure }): StyledLine[] {
  const columns: Column<ShownChunk>[] = [
    { title: 'CHUNK', cell: ({ chunk }) => chunk, look: () => 'cyan', rank: 0 },
    { title: 'TURN', cell: ({ turn }) => turn, rank: 3 },
    { title: 'FROM', cell: ({ role }) => role, rank: 4 },
    { title: 'TOKENS', cell: ({ tokens }) => formatCount(tokens), align: 'right', rank: 2 },
    { title: 'WORDS', cell: ({ words }) => toTerminalLine(words, 200), least: 8, rank: 1 },
  ];
  return renderTable(chunks, columns, look);
}

/** How a compaction or its undoing went, in words. */
export function outcomeInWords(outcome: CompactionOutcome): string {
  switch (outcome.kind) {
    case 'compacted': {
      const { turns, method, tokensBefore, tokensAfter } = outcome;
      const by = method === 'rules' ? 'by rules, since the model gave no usable summary' : 'by the model';
      const sizes = `${formatCount(tokensBefore)} tokens of messages are ${formatCount(tokensAfter)} now`;
      return `${turns} ${turns === 1 ? 'turn is' : 'turns are'} memory now, summarized ${by}: ${sizes}`;
    }
    case 'cited': {
      const { messages, tokensBefore, tokensAfter } = outcome;
      const what = messages === 1 ? 'one long message is' : `${messages} long messages are`;
      return `${what} shown by beginning and end now: ${formatCount(tokensBefore)} tokens of messages are ${formatCount(tokensAfter)} now`;
    }
    case 'truncated':
      return `${outcome.entries} of the oldest messages are left out of the prompt: ${formatCount(outcome.tokensBefore)} tokens are ${formatCount(outcome.tokensAfter)} now`;
    case 'nothing-to-truncate':
      return 'there is nothing to leave out: the context is below the hard threshold';
    case 'undone':
      return 'the last compaction is taken back: the next request is what it would have been';
    case 'nothing-to-compact':
      return 'there is nothing to compact: the latest turns stay as they are';
    case 'nothing-to-undo':
      return 'there is no compaction to take back';
    case 'failed':
      return `the conversation is as it was: ${outcome.message}`;
  }
}

function partsOf({ chunks, budget, total }: ContextIndex): Part[] {
  const tokensOf = (kind: ContextIndex['chunks'][number]['kind']): number =>
    chunks.filter((chunk) => chunk.kind === kind).reduce((sum, { tokens }) => sum + tokens, 0);
  return [
    { sign: '█', name: 'system and tools', tokens: tokensOf('SYSTEM'), style: 'cyan' },
    { sign: '▓', name: 'memory', tokens: tokensOf('MEMORY'), style: 'green' },
    { sign: '▒', name: 'messages', tokens: tokensOf('WORKING_FLOW'), style: 'yellow' },
    { sign: '·', name: 'free', tokens: Math.max(0, budget - total), style: 'dim' },
  ];
}

function drawBar(parts: readonly Part[], index: ContextIndex, width: number): StyledLine {
  const whole = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  const cells = cellsOf(
    parts.map(({ tokens }) => tokens),
    width,
  );
  const signs = parts.flatMap(({ sign, style: style }, at) =>
    Array.from({ length: cells[at] ?? 0 }, (): StyledSpan => ({ text: sign, style })),
  );
  const mark = Math.min(signs.length - 1, Math.round((index.compactsAt / Math.max(whole, 1)) * signs.length));
  const drawn = signs.map((piece, at): StyledSpan => (at === mark ? { text: LINE, style: lookOfLine(index) } : piece));
  return joined(drawn);
}

/** Cells for each part, all of `width`; what is something is never drawn as nothing. */
export function cellsOf(parts: readonly number[], width: number): number[] {
  const whole = parts.reduce((sum, part) => sum + part, 0);
  if (whole === 0) return parts.map((_, at) => (at === parts.length - 1 ? width : 0));
  const cells = parts.map((part) => (part > 0 ? Math.max(1, Math.round((part / whole) * width)) : 0));
  for (let over = cells.reduce((sum, count) => sum + count, 0) - width; over !== 0; over -= Math.sign(over)) {
    const widest = cells.indexOf(Math.max(...cells));
    cells[widest] = Math.max(0, (cells[widest] ?? 0) - Math.sign(over));
  }
  return cells;
}

/** Neighbours of one style are one piece. */
function joined(pieces: readonly StyledSpan[]): StyledLine {
  return pieces.reduce<StyledSpan[]>((line, piece) => {
    const last = line.at(-1);
    if (last === undefined || last.style !== piece.style) return [...line, piece];
    return [...line.slice(0, -1), { ...last, text: last.text + piece.text }];
  }, []);
}

function lookOfLine({ total, compactsAt }: ContextIndex): StyledSpan['style'] {
  return total >= compactsAt ? 'red' : 'bold';
}

function drawFacts(index: ContextIndex, width: number): StyledLine[] {
  const { epoch, compactions, canUndo, window, reported, tokenizer, chunks, budget, assumedBudget } = index;
  const messages = chunks.reduce((sum, { slots = [] }) => sum + countSlots(slots), 0);
  return [
    `${formatQuantity(messages, 'message')} in epoch ${epoch}`,
    ...(assumedBudget === undefined
      ? []
      : [
          `the model has refused a prompt as too long: ${formatCount(budget)} tokens are its size now, and not ${formatCount(assumedBudget)}; ` +
            'another context.maxTokens in agent.json is tried anew',
        ]),
    ...(compactions === 0
      ? []
      : [`compacted ${compactions === 1 ? 'once' : `${compactions} times`}${canUndo ? '; the last one can be taken back' : ''}`]),
    ...(window ? windowFacts(window) : []),
    ...(reported === null ? [] : [`the last prompt as its provider counted it: ${formatCount(reported)} tokens`]),
    `${reported === null ? '' : 'what came since is '}${tokenizer === undefined ? 'estimated: four characters are a token' : `counted by ${tokenizer}`}`,
  ].flatMap((fact) => wrapped(fact, width).map((text): StyledLine => [{ text, style: 'dim' }]));
}

/** What a trim left, and what is to leave. */
function windowFacts({ consolidated, trimsFrom, trims, messages, unsummarized }: NonNullable<ContextIndex['window']>): string[] {
  const summarized = messages - unsummarized;
  const left = [
    ...(summarized === 0 ? [] : [`long-term memory's summary of ${formatCount(summarized)}`]),
    ...(unsummarized === 0 ? [] : [`shortened lines of ${formatCount(unsummarized)} that no model had summarized`]),
  ].join(', ');
  return [
    ...(trims === 0
      ? []
      : [
          `trimmed ${trims === 1 ? 'once' : `${trims} times`}: ${formatQuantity(messages, 'message')} left the prompt; its memory has ${left}`,
        ]),
    ...(consolidated === 0
      ? []
      : [
          `long-term memory has ${formatCount(consolidated)} of these: they leave ${trimsFrom === null ? 'once that makes the prompt smaller' : `when the prompt passes ${formatCount(trimsFrom)} tokens`}`,
        ]),
  ];
}

function wrapped(text: string, width: number): string[] {
  return text.split(' ').reduce<string[]>((lines, word) => {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) return [...lines, word];
    return [...lines.slice(0, -1), `${last} ${word}`];
  }, []);
}

/** Something is never said to be nothing. */
function share(tokens: number, budget: number): string {
  const exact = (tokens / budget) * 100;
  return exact > 0 && exact < 1 ? '<1' : String(Math.round(exact));
}
