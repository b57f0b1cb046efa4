/** What views share: what the gateway answers, keys, and the width of an element. */
import { useEffect, useRef, useState, useLayoutEffect } from 'preact/hooks';
import type { RefObject } from 'preact';
import { whileVisible } from './while-visible.js';

export interface Answered<T> {
  /** The latest that there was: it stays while a newer one is asked for. */
  readonly value?: T;
  readonly error?: unknown;
  readonly isAsking: boolean;
  readonly again: () => void;
}

/**
 * What the gateway answers, for as long as a view shows it: requested again when `of` changes, on demand, and every `everyMs` (undefined: once).
 */
export function useAnswer<T>(of: string, ask: (signal: AbortSignal) => Promise<T>, everyMs?: number): Answered<T> {
  const [state, setState] = useState<{ readonly of: string; readonly value?: T; readonly error?: unknown; readonly isAsking: boolean }>({
    of,
    isAsking: true,
  });
  const [tries, setTries] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    const leaving = new AbortController();
    const run = async (): Promise<void> => {
      setState((before) => ({ ...(before.of === of ? before : { of }), isAsking: true }));
      try {
        const value = await latest.current(leaving.signal);
        if (!leaving.signal.aborted) setState({ of, value, isAsking: false });
      } catch (error) {
        if (!leaving.signal.aborted) setState((before) => ({ ...before, error, isAsking: false }));
      }
    };
    const stop = everyMs === undefined ? (void run(), () => undefined) : whileVisible(run, everyMs);
    return () => {
      leaving.abort();
      stop();
    };
  }, [of, tries, everyMs]);
  const shown = state.of === of ? state : { isAsking: true };
  return { ...shown, again: () => setTries((count) => count + 1) };
}

/** Keys of a view, while no field has the focus and no other control wants them. */
export function useKeys(keys: Readonly<Record<string, () => void>>): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target instanceof Element && event.target.closest('input, textarea, select, [role=tablist], [role=slider]')) return;
      const act = latest.current[event.key];
      if (act === undefined) return;
      event.preventDefault();
      act();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

/** How wide an element is, in CSS pixels: pictures are drawn for it, so that their words stay as large as all others. */
export function useWidth<E extends Element>(): readonly [RefObject<E | null>, number] {
  const ref = useRef<E>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const measure = (): void => setWidth(Math.floor(element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
