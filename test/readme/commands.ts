/** README, taken apart into what a test can hold it to. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';

export const ROOT = join(__dirname, '..', '..');

export interface Fenced {
  readonly language: string;
  readonly text: string;
  /** The comments that stand right before it, such as `not run: needs Docker`. */
  readonly marks: readonly string[];
}

/** README and every page of docs/, from the top. What TypeDoc writes is not ours to hold to anything. */
export function pagesOfDocs(): readonly string[] {
  const names = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => name.split(sep).join('/'));
  const own = names.filter((name) => name.endsWith('.md') && !name.startsWith('reference/api/'));
  return ['README.md', ...own.sort().map((name) => `docs/${name}`)];
}

export function fencedBlocks(markdown: string): Fenced[] {
  return [...markdown.matchAll(/^((?:<!-- .* -->\n)*)```(.*)\n([^]*?)^```$/gm)].map(([, comments = '', language = '', text = '']) => ({
    language,
    text,
    marks: [...comments.matchAll(/<!-- (.*) -->/g)].map(([, words = '']) => words),
  }));
}

/** What keeps a block from being run by the test of its page: a reason, or the test that runs it. */
export function exemptionOf({ marks }: Fenced): string | undefined {
  return marks.find((mark) => /^(not run|run by)\b/.test(mark));
}

export function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** Every command, in the order of the page. */
export function commandsIn(markdown: string): string[] {
  return fencedBlocks(markdown)
    .filter((block) => block.language === 'sh' && exemptionOf(block) === undefined)
    .flatMap(({ text }) => text.split('\n').filter((line) => line !== ''));
}

/** Without what is another one at each start, and without the breaks of lines. */
export function lasting(screen: string): string {
  return screen
    .replace(/(✔ Memory +files in ).*?,/g, '$1…,')
    .replace(/(✔ Temporal ).*/g, '$1…')
    .replace(/(✔ Worker +started in )[\d.]+ s/g, '$1…')
    .replace(/(✔ Browser +)\S+/g, '$1…')
    .replace(/(conversation) conv-.*/g, '$1 …')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '…')
    .replace(/\s+/g, ' ')
    .trim();
}
