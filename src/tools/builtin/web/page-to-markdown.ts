/**
 * A separate program, run as a thread and never imported: HTML of a stranger -> Markdown. In a thread, since a page can be
 * made so that it takes minutes or all the memory, and the worker must go on and be able to end it.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { Readability } from '@mozilla/readability';
import TurndownService from 'turndown';

export interface Page {
  readonly html: string;
  readonly url: string;
}

export interface ReadablePage {
  readonly title: string;
  readonly markdown: string;
  /** True when it is only what looked like the article; menus and the like are left out. */
  readonly isArticle: boolean;
}

/** As much, and such a part of the page, that it may stand for the page. */
const ARTICLE_CHARS = 250;
const ARTICLE_PART = 0.15;

const UNSEEN = 'title, script, style, noscript, template, iframe, object, embed, svg, canvas, link, meta, [hidden]';

/** As much of a browser's DOM as is used here; its types come with names for all of a browser. */
interface HtmlNode {
  readonly nodeName: string;
  readonly textContent: string | null;
  readonly parentNode: HtmlNode | null;
  readonly previousSibling: HtmlNode | null;
}

interface HtmlElement extends HtmlNode {
  readonly tagName: string;
  readonly children: { readonly length: number };
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  remove(): void;
}

interface HtmlDocument {
  readonly body: HtmlElement;
  querySelector(selector: string): HtmlElement | null;
  querySelectorAll(selector: string): Iterable<HtmlElement>;
  cloneNode(deep: boolean): HtmlDocument;
}

type ParseHtml = (html: string) => { readonly document: HtmlDocument };

void main();

async function main(): Promise<void> {
  const { parseHTML } = (await import('linkedom')) as unknown as { readonly parseHTML: ParseHtml };
  parentPort?.postMessage(toReadable(workerData as Page, parseHTML));
}

function toReadable({ html, url }: Page, parseHTML: ParseHtml): ReadablePage {
  // A fragment, or no HTML at all, has no body to look at otherwise.
  const whole = /<html[\s>]/i.test(html) ? html : `<!doctype html><html><body>${html}</body></html>`;
  const { document } = parseHTML(whole);
  const title = (document.querySelector('title')?.textContent ?? document.querySelector('h1')?.textContent ?? '').trim();
  const { body } = document;
  for (const element of document.querySelectorAll(UNSEEN)) element.remove();
  for (const element of document.querySelectorAll('[style]')) if (isUnseen(element)) element.remove();
  for (const element of document.querySelectorAll('a[href], img[src]')) makeAbsolute(element, url);
  const article = readArticle(document, parseHTML);
  const words = body.textContent?.trim().length ?? 0;
  const isArticle = article !== undefined && article.chars >= ARTICLE_CHARS && article.chars >= words * ARTICLE_PART;
  return { title, markdown: toMarkdown(isArticle ? article.content : body), isArticle };
}

function isUnseen(element: HtmlElement): boolean {
  const style = (element.getAttribute('style') ?? '').replace(/\s+/g, '').toLowerCase();
  return /display:none|visibility:hidden|font-size:0(;|$|p)|(^|;)opacity:0(;|$)/.test(style);
}

/** Without what would run, and without images that are written out in the page itself. */
function makeAbsolute(element: HtmlElement, base: string): void {
  const name = element.tagName.toLowerCase() === 'a' ? 'href' : 'src';
  const target = element.getAttribute(name) ?? '';
  if (URL.canParse(target, base) && /^(https?|mailto):$/.test(new URL(target, base).protocol)) {
    element.setAttribute(name, new URL(target, base).href);
  } else element.removeAttribute(name);
}

function readArticle(document: HtmlDocument, parseHTML: ParseHtml): { readonly content: HtmlElement; readonly chars: number } | undefined {
  try {
    // It takes the document apart, so it gets a copy.
    const article = new Readability(document.cloneNode(true) as never, { maxElemsToParse: 50_000 }).parse();
    if (!article?.content) return undefined;
    const { document: articleDocument } = parseHTML(`<!doctype html><html><body>${article.content}</body></html>`);
    return { content: articleDocument.body, chars: article.textContent?.trim().length ?? 0 };
  } catch {
    return undefined;
  }
}

function toMarkdown(element: HtmlElement): string {
  const service = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', hr: '---' });
  service.addRule('cell', {
    filter: ['td', 'th'],
    replacement: (content) =>
      ` ${content
        .trim()
        .replace(/\s*\n\s*/g, ' ')
        .replaceAll('|', '\\|')} |`,
  });
  service.addRule('row', {
    filter: 'tr',
    replacement: (content, row) => {
      const { parentNode: part } = row;
      const isTop = part?.nodeName.toLowerCase() !== 'tbody' || part.previousSibling === null;
      const isHead = row.previousSibling === null && isTop;
      return `\n|${content}${isHead ? `\n|${' --- |'.repeat((row as unknown as HtmlElement).children.length)}` : ''}`;
    },
  });
  service.addRule('table', { filter: ['table'], replacement: (content) => `\n\n${content.trim()}\n\n` });
  service.addRule('table part', { filter: ['thead', 'tbody', 'tfoot'], replacement: (content) => content });
  try {
    return service.turndown(element as never);
  } catch {
    // Nested deeper than a stack reaches.
    return element.textContent ?? '';
  }
}
