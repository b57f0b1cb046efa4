import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { renderMarkdown } from './markdown.js';
import { plainLines } from './plain-text.js';
import './markdown.css';

/** Characters of what is not parsed; the rest can be copied. */
const MAX_SHOWN = 400_000;

export function Markdown({ text }: { readonly text: string }): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const fragment = renderMarkdown(text);
    if (fragment !== undefined) place.current?.replaceChildren(fragment);
    else if (place.current !== null) {
      const plain = document.createElement('p');
      plain.className = 'plain';
      plain.textContent = plainLines(text.slice(0, MAX_SHOWN));
      place.current.replaceChildren(plain);
    }
  }, [text]);
  return <div class="markdown" dir="auto" ref={place} />;
}
