/** Colours for code, by highlight.js: loaded with the first block that names a language. */
import { signal } from '@preact/signals';
import type { HLJSApi } from 'highlight.js';
import DOMPurify from 'dompurify';

/** Characters of a block: more would hold up the page. */
const MOST = 20_000;

/** Set once it is there: what was shown before is drawn again. */
export const highlighter = signal<HLJSApi | undefined>(undefined);
let isLoading = false;

/** Without it code stays plain; the next block tries again. */
async function load(): Promise<void> {
  isLoading = true;
  try {
    highlighter.value = (await import('highlight.js/lib/common')).default;
  } catch {
    isLoading = false;
  }
}

export function colour(block: HTMLElement, language: string): void {
  const text = block.textContent ?? '';
  if (language === '' || text.length > MOST) return;
  const api = highlighter.value;
  if (api === undefined) {
    if (!isLoading) void load();
    return;
  }
  if (api.getLanguage(language) === undefined) return;
  const { value } = api.highlight(text, { language, ignoreIllegals: true });
  block.replaceChildren(DOMPurify.sanitize(value, { ALLOWED_TAGS: ['span'], ALLOWED_ATTR: ['class'], RETURN_DOM_FRAGMENT: true }));
}
