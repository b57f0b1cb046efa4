import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { colour, highlighter } from './highlight.js';
import { plainLines } from './words.js';
import './markdown.css';
import DOMPurify from 'dompurify';
import { Marked } from 'marked';

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
  }, [text, highlighter.value]);
  return <div class="markdown" dir="auto" ref={place} />;
}

// Markdown of strangers as HTML that can do nothing. What `marked` makes is cleaned by DOMPurify, which is what counts; rules for links and
// pictures come after it, on the tree that will be shown.
//
// - No picture is loaded from anywhere: its place is a link with its words.
// - A link leads to http, https or mail, elsewhere, in a tab of its own that knows nothing of this one. It shows where it leads.
// - Nothing has an id, a class, a style, a form or a handler of its own making.
// - HTML within it is text, except for a few tags without attributes that have no other spelling.
// - A very long or deeply nested text is not parsed: it is shown as plain text.

const HARMLESS = /^<\/?(?:br|sub|sup|kbd|b|i|s|strong|em) ?\/?>$/i;
const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => (HARMLESS.test(text.trim()) ? text : escaped(text)),
    // The language stands where nothing else does, until the block is coloured.
    code: ({ text, lang = '' }) => `<pre><code title="${escaped(lang.trim().split(/\s/)[0] ?? '')}">${escaped(text)}\n</code></pre>`,
  },
});
const MAX_PARSED = 200_000;
/** The parser takes seconds for them, then gives up. */
const MANY_QUOTES = /(?:>[ \t]*){100}/;
const SAFE = /^(?:https?:\/\/|mailto:)/i;

const ALLOWED = {
  ALLOWED_TAGS: [
    ...[
      'p',
      'br',
      'hr',
      'strong',
      'b',
      'i',
      'em',
      'del',
      's',
      'code',
      'pre',
      'blockquote',
      'ul',
      'ol',
      'li',
      'a',
      'img',
      'sup',
      'sub',
      'kbd',
    ],
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'input'],
  ],
  ALLOWED_ATTR: ['href', 'title', 'align', 'start', 'alt', 'src', 'type', 'checked', 'disabled', 'colspan', 'rowspan'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
} as const;

/** Undefined: too long or too deep to be parsed. */
function renderMarkdown(text: string): DocumentFragment | undefined {
  const html = text.length > MAX_PARSED || MANY_QUOTES.test(text) ? undefined : parsed(plainLines(text));
  if (html === undefined) return undefined;
  const fragment = DOMPurify.sanitize(html, {
    ...ALLOWED,
    ALLOWED_TAGS: [...ALLOWED.ALLOWED_TAGS],
    ALLOWED_ATTR: [...ALLOWED.ALLOWED_ATTR],
  });
  for (const link of fragment.querySelectorAll('a')) tame(link);
  for (const picture of fragment.querySelectorAll('img')) picture.replaceWith(linkPicture(picture));
  for (const box of fragment.querySelectorAll('input')) box.replaceWith(box.checked ? '☑ ' : '☐ ');
  for (const table of fragment.querySelectorAll('table')) {
    const wide = document.createElement('div');
    wide.className = 'wide';
    wide.tabIndex = 0;
    table.replaceWith(wide);
    wide.append(table);
  }
  for (const block of fragment.querySelectorAll('pre')) {
    block.tabIndex = 0;
    const code = block.querySelector('code');
    if (code !== null) {
      const language = code.title.toLowerCase();
      code.removeAttribute('title');
      colour(code, language);
    }
    const around = document.createElement('div');
    around.className = 'block';
    block.replaceWith(around);
    around.append(block, copyButton(block));
  }
  return fragment;
}

function copyButton(block: HTMLElement): HTMLButtonElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'button tight';
  button.textContent = 'Copy';
  button.addEventListener('click', () => {
    navigator.clipboard.writeText(block.textContent ?? '').then(
      () => (button.textContent = 'Copied'),
      () => (button.textContent = 'Not allowed: select it'),
    );
  });
  return button;
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}

/** What is nested too deeply for the parser is no text of people. */
function parsed(text: string): string | undefined {
  try {
    return marked.parse(text, { async: false });
  } catch {
    return undefined;
  }
}

function tame(link: HTMLAnchorElement): void {
  const to = link.getAttribute('href') ?? '';
  if (!SAFE.test(to)) {
    link.replaceWith(...link.childNodes);
    return;
  }
  link.target = '_blank';
  link.rel = 'noopener noreferrer nofollow';
  link.title = to.slice(0, 500);
}

function linkPicture(picture: HTMLImageElement): Node {
  const [from, words] = [picture.getAttribute('src') ?? '', picture.alt.trim() || 'picture'];
  if (!SAFE.test(from) || picture.closest('a') !== null) return document.createTextNode(`[${words}]`);
  const link = document.createElement('a');
  link.href = from;
  link.textContent = `[picture: ${words}]`;
  tame(link);
  return link;
}
