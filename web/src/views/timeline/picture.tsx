/** A turn drawn: a lane for each kind of thing, a bar for each thing, and a line where something broke or moved. */
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { useWidth } from '../../ui/hooks.js';
import { duration } from '../../ui/words.js';
import { arrangeRows, createScale } from './scale.js';
import { labelBar, LANES, MARKS, describeBar, describeTokens, type Bar, type Timeline } from './words.js';

const ROW = 24;
const BAR = 17;
const LANE_GAP = 10;
const TOP = 30;
/** Below it the names of lanes stand above them. */
const NARROW = 620;
const MIN_BAR = 3;
const IDLE = new Set<Bar['lane']>(['person', 'retry']);

interface PictureProps {
  readonly timeline: Timeline;
  readonly now: number;
  readonly selected: string | undefined;
  readonly onSelect: (id: string) => void;
}

export function Picture({ timeline, now, selected, onSelect }: PictureProps): JSX.Element {
  const [frame, width] = useWidth<HTMLDivElement>();
  const svg = useRef<SVGSVGElement>(null);
  const { bars, marks } = timeline;
  const from = timeline.from ?? 0;
  const to = Math.max(timeline.to ?? now, ...bars.map((bar) => bar.to ?? now), from + 1);
  const isNarrow = width < NARROW;
  const left = isNarrow ? 0 : 92;
  const room = Math.max(80, width - left - 8);
  const busy = bars.filter(({ lane }) => !IDLE.has(lane)).map((bar) => ({ from: bar.from, to: bar.to ?? now }));
  const scale = createScale({ from, to }, busy, room);
  const lanes = LANES.flatMap(([lane, title]) => {
    const own = bars.filter((bar) => bar.lane === lane);
    if (own.length === 0) return [];
    const rows = arrangeRows(
      own.map((bar) => ({ from: scale.x(bar.from), to: Math.max(scale.x(bar.to ?? now), scale.x(bar.from) + MIN_BAR) + 1 })),
    );
    return [{ lane, title, bars: own, rows, count: Math.max(...rows) + 1 }];
  });
  const heads = isNarrow ? 18 : 0;
  let top = TOP;
  const placed = lanes.map((lane) => {
    const y = top + heads;
    top = y + lane.count * ROW + LANE_GAP;
    return { ...lane, y };
  });
  const height = top + 4;
  const order = placed
    .flatMap((lane) => lane.bars.map((bar, at) => ({ bar, y: lane.y + (lane.rows[at] ?? 0) * ROW })))
    .sort((a, b) => a.bar.from - b.bar.from);
  const current = order.find(({ bar }) => bar.id === selected)?.bar.id ?? order[0]?.bar.id;

  const move = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const at = order.findIndex(({ bar }) => bar.id === current);
    const next = order[Math.min(order.length - 1, Math.max(0, at + step))];
    if (next === undefined) return;
    onSelect(next.bar.id);
    svg.current?.querySelector<SVGElement>(`[data-bar="${CSS.escape(next.bar.id)}"]`)?.focus();
  };

  return (
    <div ref={frame} class="timeline-picture">
      {width > 0 && (
        <svg ref={svg} width={width} height={height} role="group" aria-label="What happened in this turn, over time" onKeyDown={move}>
          <defs>
            <pattern id="lost" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect width="6" height="6" class="lost-ground" />
              <line x1="0" y1="0" x2="0" y2="6" class="lost-line" />
            </pattern>
          </defs>
          {scale.ticks.map(({ x, ms }) => (
            <g key={ms}>
              <line x1={left + x} x2={left + x} y1={TOP - 8} y2={height} class="grid-line" />
              <text x={left + x} y={14} class="tick" text-anchor={x < 20 ? 'start' : 'middle'}>
                {ms === 0 ? '0' : duration(ms)}
              </text>
            </g>
          ))}
          {placed.map(({ lane, title, y }) => (
            <text key={lane} x={0} y={isNarrow ? y - 5 : y + 13} class="lane-name">
              {title}
            </text>
          ))}
          {scale.cuts.map(({ x, width: cut, from: begin, to: end }) => (
            <g key={begin} class="cut">
              <rect x={left + x} y={TOP - 8} width={cut} height={height - TOP + 8} />
              <text x={left + x + cut / 2} y={14} text-anchor="middle" class="tick">
                {`⋯ ${duration(end - begin)}`}
              </text>
            </g>
          ))}
          {order.map(({ bar, y }) => (
            <BarShape
              key={bar.id}
              bar={bar}
              y={y}
              x={left + scale.x(bar.from)}
              started={bar.started === null ? undefined : left + scale.x(bar.started)}
              end={left + scale.x(bar.to ?? now)}
              words={describeBar(bar, from, now)}
              isSelected={bar.id === selected}
              isCurrent={bar.id === current}
              onSelect={onSelect}
            />
          ))}
          <g aria-hidden="true">
            {order.map(({ bar, y }) => (
              <BarWords
                key={bar.id}
                bar={bar}
                y={y}
                x={left + scale.x(bar.from)}
                started={bar.started === null ? undefined : left + scale.x(bar.started)}
                end={left + scale.x(bar.to ?? now)}
              />
            ))}
          </g>
          {marks
            .filter(({ kind }) => kind !== 'message' || marks.length < 40)
            .map((mark) => {
              const x = left + scale.x(mark.at);
              return (
                <g key={`${mark.run}/${mark.event}/${mark.kind}`} class={`mark-line ${mark.kind}`}>
                  <title>{`${MARKS[mark.kind]}: ${mark.words}`}</title>
                  <line x1={x} x2={x} y1={TOP - 6} y2={height} />
                  {mark.kind === 'worker-died' ? <path d={`M${x - 4} ${TOP - 10}l8 8m0 -8l-8 8`} /> : <circle cx={x} cy={TOP - 6} r={3} />}
                </g>
              );
            })}
        </svg>
      )}
    </div>
  );
}

interface BarShapeProps {
  readonly bar: Bar;
  readonly x: number;
  readonly y: number;
  readonly started: number | undefined;
  readonly end: number;
  readonly words: string;
  readonly isSelected: boolean;
  readonly isCurrent: boolean;
  readonly onSelect: (id: string) => void;
}

function BarShape({ bar, x, y, started, end, words, isSelected, isCurrent, onSelect }: BarShapeProps): JSX.Element {
  const width = Math.max(MIN_BAR, end - x);
  // Before the attempt that counts: lost with the one before it, or waited for a worker.
  const lost = bar.attempt > 1 ? Math.min(width, (started ?? end) - x) : 0;
  return (
    <g
      class={`bar lane-${bar.lane} is-${bar.outcome}${isSelected ? ' is-selected' : ''}`}
      role="button"
      tabindex={isCurrent ? 0 : -1}
      aria-pressed={isSelected}
      aria-label={words}
      data-bar={bar.id}
      onClick={() => onSelect(bar.id)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        onSelect(bar.id);
      }}
    >
      <title>{words}</title>
      <rect x={x - 1} y={y - 3} width={width + 2} height={ROW - 1} class="bar-reach" />
      <rect x={x} y={y} width={width} height={BAR} rx={3} class="bar-body" />
      {lost > 1 && <rect x={x} y={y} width={lost} height={BAR} rx={3} class="bar-lost" />}
    </g>
  );
}

/** What there is room for; beside the bar and not in it, since the bar's name says all of it. */
function BarWords({ bar, x, y, started, end }: Omit<BarShapeProps, 'words' | 'isSelected' | 'isCurrent' | 'onSelect'>): JSX.Element | null {
  const lost = bar.attempt > 1 ? Math.min(end - x, (started ?? end) - x) : 0;
  const inside = bar.lane === 'model' ? describeTokens(bar) : labelBar(bar);
  if (inside === '' || (end - x - lost) / 6.3 <= inside.length + 1) return null;
  return (
    <text x={x + lost + 6} y={y + 12.5} class={`bar-words lane-${bar.lane} is-${bar.outcome}`}>
      {inside}
    </text>
  );
}
