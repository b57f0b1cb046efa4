/**
 * Where a moment stands on the line of time. Hours in which only a person is waited for would leave no room for the seconds in which
 * something is done: such a span is drawn short, and marked as cut.
 */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface Cut extends Span {
  readonly x: number;
  readonly width: number;
}

interface Scale {
  readonly x: (at: number) => number;
  readonly cuts: readonly Cut[];
  readonly ticks: readonly { readonly x: number; readonly ms: number }[];
}

/** Of the whole width, for a span that is cut. */
const CUT_WIDTH = 0.07;
/** A span is cut where it is so much longer than all that is done. */
const CUT_FROM = 0.6;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5];

/** `busy`: spans in which something is done. */
export function createScale(whole: Span, busy: readonly Span[], width: number): Scale {
  const all = Math.max(1, whole.to - whole.from);
  const merged = merge(busy.filter(({ to, from }) => to >= from));
  const worked = merged.reduce((sum, { from, to }) => sum + to - from, 0);
  const gaps = findGaps(whole, merged).filter(({ from, to }) => to - from > Math.max(1_500, CUT_FROM * Math.max(worked, all * 0.1)));
  const cutMs = gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  const cutWidth = Math.max(28, CUT_WIDTH * width);
  const rest = Math.max(1, width - gaps.length * cutWidth);
  const perMs = rest / Math.max(1, all - cutMs);
  const x = (at: number): number => {
    const time = Math.min(whole.to, Math.max(whole.from, at));
    let before = time - whole.from;
    let shift = 0;
    for (const { from, to } of gaps) {
      if (time <= from) break;
      const inside = Math.min(time, to) - from;
      before -= inside;
      shift += cutWidth * (inside / (to - from));
    }
    return before * perMs + shift;
  };
  const step = STEPS.find((ms) => ms * perMs >= 72) ?? 36e5;
  const ticks: { x: number; ms: number }[] = [];
  const isCut = (at: number): boolean => gaps.some(({ from, to }) => at > from && at < to);
  for (let ms = 0; ms <= all && ticks.length < 200; ms += isCut(whole.from + ms) ? Math.max(step, all / 500) : step) {
    if (!isCut(whole.from + ms)) ticks.push({ x: x(whole.from + ms), ms });
  }
  const apart = ticks.filter((tick, at) => at === 0 || tick.x - (ticks[at - 1]?.x ?? 0) > 48);
  return { x, cuts: gaps.map((gap) => ({ ...gap, x: x(gap.from), width: cutWidth })), ticks: apart };
}

function merge(spans: readonly Span[]): Span[] {
  return [...spans]
    .sort((a, b) => a.from - b.from)
    .reduce<Span[]>((merged, span) => {
      const last = merged.at(-1);
      if (last === undefined || span.from > last.to) return [...merged, span];
      return [...merged.slice(0, -1), { from: last.from, to: Math.max(last.to, span.to) }];
    }, []);
}

function findGaps(whole: Span, merged: readonly Span[]): Span[] {
  const gaps: Span[] = [];
  let at = whole.from;
  for (const { from, to } of merged) {
    if (from > at) gaps.push({ from: at, to: from });
    at = Math.max(at, to);
  }
  if (whole.to > at) gaps.push({ from: at, to: whole.to });
  return gaps;
}

/** In which row of its lane each bar stands, so that none covers another. */
export function arrangeRows(bars: readonly Span[]): readonly number[] {
  const ends: number[] = [];
  return bars.map(({ from, to }) => {
    const free = ends.findIndex((end) => end <= from);
    const row = free === -1 ? ends.length : free;
    ends[row] = to;
    return row;
  });
}
