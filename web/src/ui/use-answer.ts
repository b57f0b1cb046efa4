/** What the gateway answers, for as long as a view shows it: asked again when what it is of changes, on demand, and again and again where it lives. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { whileVisible } from './while-visible.js';

export interface Answered<T> {
  /** The latest that there was: it stays while a newer one is asked for. */
  readonly value?: T;
  readonly error?: unknown;
  readonly isAsking: boolean;
  readonly again: () => void;
}

/** `of`: what it depends on; another answer belongs to another one. `everyMs`: undefined, once. */
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
