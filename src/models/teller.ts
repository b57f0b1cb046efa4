/** Passes pieces of an answer on. They may end between the halves of a surrogate pair: the first half waits for the second. */
import type { ModelDelta } from './model.js';
import { toWellFormed } from './well-formed.js';

export interface Teller {
  (kind: 'text' | 'thinking', piece: string): void;
  /** The block has ended: a half that still waits will never be whole. */
  flush(): void;
}

export function createTeller(onDelta: (delta: ModelDelta) => void): Teller {
  let held = '';
  const tell = (kind: 'text' | 'thinking', piece: string): void => {
    const text = held + piece;
    held = /[\uD800-\uDBFF]$/.exec(text)?.[0] ?? '';
    const ready = toWellFormed(text.slice(0, text.length - held.length));
    if (ready !== '') onDelta({ kind, text: ready });
  };
  return Object.assign(tell, {
    flush: () => {
      held = '';
    },
  });
}
