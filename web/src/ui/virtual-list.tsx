/**
 * A long list of rows of any height, of which only those near the window are in the page.
 *
 * - The visible rows stay where they are, whatever grows, arrives or leaves above them.
 * - At the end, the view stays there while the end grows.
 * - A row that was never drawn counts with the mean height of the drawn ones.
 */
import type { ComponentChildren, JSX } from 'preact';
import { useLayoutEffect, useReducer, useRef } from 'preact/hooks';

interface VirtualListProps<Item> {
  readonly items: readonly Item[];
  readonly toKey: (item: Item) => string;
  readonly render: (item: Item) => ComponentChildren;
  readonly label: string;
  /** Who looks comes near the beginning of what there is. */
  readonly onNearTop?: () => void;
  /** After the rows. */
  readonly foot?: ComponentChildren;
  /** Shown where they are: a row's key; each new object scrolls to it. */
  readonly goTo?: { readonly key: string };
}

const FIRST_GUESS = 140;
/** Pixels beyond the window that are drawn as well. */
const BEYOND = 900;
const NEAR_TOP = 1_600;
const AT_END = 48;

export function VirtualList<Item>({ items, toKey, render, label, onNearTop, foot, goTo }: VirtualListProps<Item>): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const { current: layout } = useRef(createLayout());
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const keys = items.map(toKey);
  const offsets = computeOffsets(keys, layout.heights);
  const view = { top: layout.top, height: layout.height };
  const from = Math.max(0, Math.min(items.length, firstBeyond(offsets, view.top - BEYOND)) - 1);
  const to = Math.min(items.length, firstBeyond(offsets, view.top + view.height + BEYOND) + 1);

  // Of each row that is in the page its height is known as soon as it changes.
  useLayoutEffect(() => {
    layout.observer = new ResizeObserver((changes) => {
      for (const { target } of changes) {
        const { key } = (target as HTMLElement).dataset;
        if (key !== undefined) layout.heights.set(key, (target as HTMLElement).offsetHeight);
      }
      layout.height = frame.current?.clientHeight ?? layout.height;
      redraw(0);
    });
    if (frame.current !== null) layout.observer.observe(frame.current);
    return () => layout.observer?.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null) return;
    // Before anything is placed by them: a row that is far taller than the guess would otherwise come and go for ever.
    if (measure(element, layout.heights)) return redraw(0);
    if (goTo !== undefined && layout.wentTo !== goTo && keys.includes(goTo.key)) {
      layout.wentTo = goTo;
      layout.isAtEnd = false;
      layout.anchor = { key: goTo.key, above: 16 };
      // Its neighbours are drawn only now, and then have another height than was guessed.
      requestAnimationFrame(() => redraw(0));
    }
    const at = layout.anchor === undefined ? -1 : keys.indexOf(layout.anchor.key);
    const wanted = layout.isAtEnd ? element.scrollHeight : at >= 0 ? (offsets[at] ?? 0) - (layout.anchor?.above ?? 0) : undefined;
    if (wanted !== undefined && Math.abs(wanted - element.scrollTop) >= 1) element.scrollTop = wanted;
    if (element.scrollTop !== layout.top || element.clientHeight !== layout.height) {
      layout.top = element.scrollTop;
      layout.height = element.clientHeight;
      redraw(0);
    }
  });

  const onScroll = (): void => {
    const element = frame.current;
    if (element === null || element.scrollTop === layout.top) return;
    layout.top = element.scrollTop;
    layout.height = element.clientHeight;
    layout.isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < AT_END;
    const first = Math.max(0, firstBeyond(offsets, layout.top) - 1);
    const key = keys[first];
    layout.anchor = key === undefined ? undefined : { key, above: (offsets[first] ?? 0) - layout.top };
    if (layout.top < NEAR_TOP) onNearTop?.();
    redraw(0);
  };

  return (
    <div class="virtual" ref={frame} onScroll={onScroll} tabIndex={0} role="log" aria-label={label} aria-live="off">
      <div style={{ height: `${offsets[from] ?? 0}px` }} />
      {items.slice(from, to).map((item) => (
        <Row key={toKey(item)} name={toKey(item)} observer={() => layout.observer}>
          {render(item)}
        </Row>
      ))}
      <div style={{ height: `${(offsets[items.length] ?? 0) - (offsets[to] ?? 0)}px` }} />
      {foot}
    </div>
  );
}

/** Of the rows that are in the page; true where one has another height than was known. */
function measure(element: HTMLElement, heights: Map<string, number>): boolean {
  let hasChanged = false;
  for (const row of element.querySelectorAll<HTMLElement>(':scope > .virtual-row')) {
    const { key = '' } = row.dataset;
    const height = row.offsetHeight;
    if (heights.get(key) === height) continue;
    heights.set(key, height);
    hasChanged = true;
  }
  return hasChanged;
}

interface RowProps {
  readonly name: string;
  readonly observer: () => ResizeObserver | undefined;
  readonly children: ComponentChildren;
}

function Row({ name, observer, children }: RowProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = place.current;
    const watching = observer();
    if (element === null) return undefined;
    watching?.observe(element);
    return () => watching?.unobserve(element);
  }, []);
  return (
    <div class="virtual-row" ref={place} data-key={name}>
      {children}
    </div>
  );
}

interface Layout {
  readonly heights: Map<string, number>;
  observer?: ResizeObserver;
  top: number;
  height: number;
  isAtEnd: boolean;
  anchor?: { readonly key: string; readonly above: number };
  wentTo?: object;
}

function createLayout(): Layout {
  return { heights: new Map(), top: 0, height: 800, isAtEnd: true };
}

/** Where each row begins, and at last where all end. */
function computeOffsets(keys: readonly string[], heights: ReadonlyMap<string, number>): number[] {
  let known = 0;
  for (const height of heights.values()) known += height;
  const guess = heights.size === 0 ? FIRST_GUESS : known / heights.size;
  const offsets = [0];
  let sum = 0;
  for (const key of keys) offsets.push((sum += heights.get(key) ?? guess));
  return offsets;
}

/** Index of the first offset beyond this one. */
function firstBeyond(offsets: readonly number[], at: number): number {
  let [low, high] = [0, offsets.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((offsets[middle] ?? 0) > at) high = middle;
    else low = middle + 1;
  }
  return low;
}
