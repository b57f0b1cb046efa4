/** The browser tab's title: how many wait for a person, and what is looked at. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { plainText } from '../ui/words.js';
import { waiting } from '../waiting.js';

/** What a view calls itself; it is reset by the next one. */
export const heading = signal('');

export function useTitle(): void {
  const count = waiting.value.all.length;
  const name = plainText(heading.value, 80);
  useEffect(() => {
    document.title = `${count > 0 ? `(${count}) ` : ''}${name === '' ? '' : `${name} · `}Perdura`;
  }, [count, name]);
}
