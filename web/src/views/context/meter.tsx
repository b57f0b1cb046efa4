/**
 * What the next call takes, as one bar against the lines soft, hard and truncation. All that fits is drawn where it is not far beyond them:
 * on the scale of a window of a million, what a prompt takes is a sliver.
 */
import type { JSX } from 'preact';
import { turnNumber } from '../../../../src/records/identity.js';
import type { Schema } from '../../api/request.js';
import { useWidth } from '../../ui/hooks.js';
import { count } from '../../ui/words.js';

type Chunk = Schema<'Chunk'>;
type Earlier = NonNullable<Schema<'ContextView'>['earlier']>[number];

/** Times the last line. */
const FAR = 1.25;
const BAR_TOP = 34;
const BAR = 38;

interface Part {
  readonly key: string;
  readonly kind: 'system' | 'memory' | 'user' | 'assistant' | 'tool' | 'mixed';
  readonly tokens: number;
  readonly words: string;
  readonly chunk: string;
  readonly drops: boolean;
}

/** More segments than can be told apart are drawn turn by turn. */
const MAX_SEGMENTS = 160;
/** And of turns, several together. */
const MAX_PARTS = 400;

interface MeterProps {
  readonly view: Schema<'ContextView'>;
  readonly selected: string | undefined;
  readonly onSelect: (chunk: string) => void;
}

export function Meter({ view, selected, onSelect }: MeterProps): JSX.Element {
  const [frame, width] = useWidth<HTMLDivElement>();
  const { chunks, earlier = [], index, thresholds } = view;
  const parts = toParts(chunks, earlier);
  const total = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  const lines = [
    ...(thresholds === null
      ? []
      : ([
          ['soft', thresholds.soft],
          ['hard', thresholds.hard],
          ['truncation', thresholds.truncation],
        ] as const)),
    ...(index.budget > 0 && index.budget <= Math.max(total, thresholds?.truncation ?? index.budget) * FAR
      ? ([['window', index.budget]] as const)
      : []),
  ];
  const most = Math.max(total, 1, ...lines.map(([, tokens]) => tokens)) * 1.02;
  const x = (tokens: number): number => (tokens / most) * width;
  const labels = placeLabels(
    lines.map(([name, tokens]) => ({ name, tokens, x: x(tokens) })),
    width,
  );
  let at = 0;
  return (
    <div ref={frame} class="meter">
      {width > 0 && (
        <svg
          width={width}
          height={BAR_TOP + BAR + below(Math.max(0, ...labels.map(({ row }) => row))) + 8}
          role="img"
          aria-label={`${count(total)} tokens in the next call; the list below has each part`}
        >
          <rect x={0} y={BAR_TOP} width={width} height={BAR} rx={4} class="meter-ground" />
          {parts.map((part) => {
            const from = x(at);
            at += part.tokens;
            const wide = Math.max(1, x(at) - from - (width > 500 ? 0.75 : 0.4));
            return (
              <g
                key={part.key}
                class={`segment ${part.kind}${part.drops ? ' drops' : ''}${part.chunk === selected ? ' is-selected' : ''}`}
                onClick={() => onSelect(part.chunk)}
              >
                <title>{`${part.words} · ${count(part.tokens)} tokens`}</title>
                <rect x={from} y={BAR_TOP} width={wide} height={BAR} />
              </g>
            );
          })}
          {labels.map(({ name, tokens, x: line, anchor, row, text }) => (
            <g key={name} class={`threshold ${total >= tokens ? 'is-passed' : ''}`}>
              <line x1={line} x2={line} y1={row === 0 ? 18 : BAR_TOP - 4} y2={BAR_TOP + BAR + (row === 0 ? 4 : below(row) - 12)} />
              <text x={text} y={row === 0 ? 13 : BAR_TOP + BAR + below(row)} text-anchor={anchor}>
                {name} {count(tokens)}
              </text>
            </g>
          ))}
        </svg>
      )}
      <p class="legend">
        <span>
          <i class="key system" />
          System and tools
        </span>
        <span>
          <i class="key memory" />
          Memory
        </span>
        <span>
          <i class="key user" />
          People
        </span>
        <span>
          <i class="key assistant" />
          Model
        </span>
        <span>
          <i class="key tool" />
          Tool results
        </span>
        {chunks.some(({ drops }) => drops) && <span class="faint">red edge: the next truncation drops it</span>}
      </p>
    </div>
  );
}

function toParts(chunks: readonly Chunk[], earlier: readonly Earlier[]): Part[] {
  const toPart = (chunk: Chunk): Part => ({
    key: chunk.id,
    kind: chunk.kind === 'SYSTEM' ? 'system' : chunk.kind === 'MEMORY' ? 'memory' : toKind(chunk.role),
    tokens: chunk.tokens,
    words:
      chunk.kind === 'SYSTEM'
        ? 'System prompt and tools'
        : chunk.kind === 'MEMORY'
          ? 'Memory of earlier turns'
          : `Turn ${turnNumber(chunk.turn)}, ${chunk.role}`,
    chunk: chunk.id,
    drops: chunk.drops,
  });
  if (chunks.length <= MAX_SEGMENTS && earlier.length === 0) return chunks.map(toPart);
  const parts: Part[] = chunks.filter(({ kind }) => kind !== 'WORKING_FLOW').map(toPart);
  parts.push(...earlier.map(toEarlierPart));
  for (const chunk of chunks.slice(parts.length - earlier.length)) {
    const last = parts.at(-1);
    const words = `Turn ${turnNumber(chunk.turn)}`;
    if (last?.words === words) parts[parts.length - 1] = { ...last, tokens: last.tokens + chunk.tokens };
    else parts.push({ ...toPart(chunk), kind: turnNumber(chunk.turn) % 2 === 0 ? 'assistant' : 'user', words });
  }
  if (parts.length <= MAX_PARTS) return parts;
  const isFixed = ({ kind }: Part): boolean => kind === 'system' || kind === 'memory';
  return [
    ...parts.filter(isFixed),
    ...together(
      parts.filter((part) => !isFixed(part)),
      Math.ceil(parts.length / MAX_PARTS),
    ),
  ];
}

function toEarlierPart({ chunk, turns, tokens, drops }: Earlier, at: number): Part {
  const [first = '', last = ''] = turns;
  const words = first === last ? `Turn ${turnNumber(first)}` : `Turn ${turnNumber(first)} to Turn ${turnNumber(last)}`;
  return { key: chunk, kind: at % 2 === 0 ? 'assistant' : 'user', tokens, words, chunk, drops };
}

/** Neighbours as one: what is narrower than a pixel cannot be seen. */
function together(parts: readonly Part[], many: number): Part[] {
  const joined: Part[] = [];
  for (let at = 0; at < parts.length; at += many) {
    const [first, ...more] = parts.slice(at, at + many) as [Part, ...Part[]];
    const last = more.at(-1);
    joined.push({
      ...first,
      kind: joined.length % 2 === 0 ? 'assistant' : 'user',
      tokens: more.reduce((sum, { tokens }) => sum + tokens, first.tokens),
      words: last === undefined ? first.words : `${first.words} to ${last.words}`,
      drops: first.drops || more.some(({ drops }) => drops),
    });
  }
  return joined;
}

function toKind(role: string): Part['kind'] {
  return role === 'user' || role === 'assistant' || role === 'tool' ? role : 'mixed';
}

interface Label {
  readonly name: string;
  readonly tokens: number;
  readonly x: number;
  readonly anchor: 'start' | 'middle' | 'end';
  /** 0 is above the bar, the others below it. */
  readonly row: number;
  readonly text: number;
}

/** How far below the bar the words of a row stand. */
function below(row: number): number {
  return row === 0 ? 0 : 24 + (row - 1) * 15;
}

/** Above the bar, and below it where its neighbours leave no room; lines that are one have one name. */
function placeLabels(lines: readonly { readonly name: string; readonly tokens: number; readonly x: number }[], width: number): Label[] {
  const ends: number[] = [];
  const sorted = [...lines].sort((a, b) => a.tokens - b.tokens);
  const merged = sorted.reduce<{ name: string; tokens: number; x: number }[]>((all, line) => {
    const last = all.at(-1);
    if (last?.tokens !== line.tokens) return [...all, line];
    return [...all.slice(0, -1), { ...last, name: `${last.name}, ${line.name}` }];
  }, []);
  return merged.map(({ name, tokens, x }) => {
    const wide = (name.length + count(tokens).length + 1) * 6.4;
    const anchor = x > width - wide / 2 ? ('end' as const) : x < wide / 2 ? ('start' as const) : ('middle' as const);
    const begin = anchor === 'end' ? x - wide : anchor === 'start' ? x : x - wide / 2;
    const free = ends.findIndex((end) => begin > end + 8);
    const row = free === -1 ? ends.length : free;
    ends[row] = begin + wide;
    return { name, tokens, x: Math.min(x, width - 0.5), anchor, row, text: x };
  });
}
