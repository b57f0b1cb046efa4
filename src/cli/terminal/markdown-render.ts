/**
 * Markdown as a terminal shows it. Its libraries are loaded only by who has a terminal with colours.
 *
 * 1. The input has passed `toTerminalText`. The output has passed it again, between the renderer's colours: an entity
 *    such as `&#27;` is a control character only once it is rendered.
 * 2. A link shows where it leads, as text: never a sequence (OSC 8) that hides it behind other words.
 * 3. A block that cannot be rendered is shown as its source.
 * 4. No word of a table is split: where its columns have no room for their words, each row is a list.
 */
import type * as CodeColours from 'cli-highlight';
import type CliTable from 'cli-table3';
import type { MarkedExtension, Tokens } from 'marked' with { 'resolution-mode': 'import' };
import pc from 'picocolors';
import type { BlockLexer } from './markdown.js';
import { toTerminalText, wrapWords } from './terminal-text.js';

export interface Markdown {
  render(source: string, columns: number): string;
  widthOf(text: string): number;
  readonly lex: BlockLexer;
}

export async function loadMarkdown(): Promise<Markdown> {
  const [{ Lexer, Marked }, codeColours, { default: widthOf }, { default: Table }] = await Promise.all([
    import('marked'),
    import('cli-highlight'),
    import('string-width'),
    import('cli-table3'),
  ]);

  const render = (source: string, columns: number): string => {
    const marked = new Marked();
    /** Columns that lists around it take. */
    let inset = 0;
    marked.use(inColours(codeColours));
    marked.use({
      renderer: {
        hr: () => `${'─'.repeat(Math.min(Math.max(columns - 1, 3), 40))}\n\n`,
        checkbox: () => '',
        list(token) {
          const items = token.items.map((item, at) => {
            const mark = token.ordered ? `${(Number(token.start) || 0) + at}. ` : '• ';
            const box = item.task ? (item.checked ? '☑ ' : '☐ ') : '';
            inset += mark.length;
            const body = item.tokens
              .filter(({ type }) => type !== 'checkbox')
              .map((part) => this.parser.parse([part]).replace(/\n+$/, ''))
              .filter(Boolean);
            inset -= mark.length;
            return `${mark}${box}${indent(body.join('\n'), mark.length)}`;
          });
          return `${items.join(token.loose ? '\n\n' : '\n')}\n\n`;
        },
        table(token) {
          const inline = ({ tokens }: Tokens.TableCell): string => this.parser.parseInline(tokens);
          const text = { head: token.header.map(inline), rows: token.rows.map((row) => row.map(inline)), align: token.align };
          return `${drawTable(text, columns - 1 - inset, { Table, widthOf })}\n\n`;
        },
      },
    });
    return marked.parse(source, { async: false });
  };

  return {
    widthOf,
    lex: (source) => new Lexer().blockTokens(source),
    render(source, columns) {
      try {
        const rendered = onlyColours(render(source, columns).replace(/^\n+|\s+$/g, ''));
        // Code is copied: its lines stay whole, and the terminal cuts them.
        return new Lexer().blockTokens(source).some(({ type }) => type === 'code') ? rendered : wrapWords(rendered, columns - 1);
      } catch {
        return source.trimEnd();
      }
    },
  };
}

/** All that goes by no width: words, weights and colours, and a blank line after each block. */
export function inColours(codeColours: typeof CodeColours): MarkedExtension {
  return {
    renderer: {
      text(token) {
        return 'tokens' in token && token.tokens !== undefined ? this.parser.parseInline(token.tokens) : shownText(token.text);
      },
      link(token) {
        const [text, href] = [this.parser.parseInline(token.tokens), toTerminalText(token.href)];
        return text === href || `mailto:${text}` === href ? text : `${text} (${href})`;
      },
      image(token) {
        return toTerminalText(`[image: ${token.text === '' ? '' : `${token.text}, `}${token.href}]`);
      },
      heading({ depth, tokens }) {
        const text = pc.bold(this.parser.parseInline(tokens));
        return `${depth === 1 ? pc.magenta(pc.underline(text)) : pc.green(text)}\n\n`;
      },
      paragraph({ tokens }) {
        return `${this.parser.parseInline(tokens)}\n\n`;
      },
      code: ({ text, lang }) => `  ${indent(highlightedCode(toTerminalText(text), lang, codeColours), 2)}\n\n`,
      blockquote({ tokens }) {
        const quoted = `  ${indent(this.parser.parse(tokens).trim(), 2)}`;
        return `${eachLine(quoted, (line) => pc.gray(pc.italic(line)))}\n\n`;
      },
      space: () => '',
      html: ({ text }) => eachLine(toTerminalText(text), pc.gray),
      strong({ tokens }) {
        return pc.bold(this.parser.parseInline(tokens));
      },
      em({ tokens }) {
        return pc.italic(this.parser.parseInline(tokens));
      },
      del({ tokens }) {
        return pc.dim(pc.gray(pc.strikethrough(this.parser.parseInline(tokens))));
      },
      codespan: ({ text }) => pc.yellow(toTerminalText(text)),
      br: () => '\n',
    },
  };
}

function highlightedCode(code: string, lang: string | undefined, { highlight, supportsLanguage }: typeof CodeColours): string {
  // What follows the first word is for others: `ts title="…"`.
  const [language] = /^\S+/.exec(lang ?? '') ?? [];
  // Of a language that it does not know it writes a line on the screen by itself.
  if (language !== undefined && !supportsLanguage(language)) return eachLine(code, pc.yellow);
  try {
    return highlight(code, { ...(language !== undefined && { language }) });
  } catch {
    return eachLine(code, pc.yellow);
  }
}

/** Of a colour that goes over several lines, a line by itself, as one that is wrapped or cut, would have no end. */
function eachLine(text: string, paint: (line: string) => string): string {
  return text.split('\n').map(paint).join('\n');
}

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&amp;', '&'],
  ['&lt;', '<'],
  ['&gt;', '>'],
  ['&quot;', '"'],
  ['&#39;', "'"],
]);

function shownText(text: string): string {
  return toTerminalText(text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ENTITIES.get(entity) ?? entity));
}

/** Of all sequences only those that set colours and weights stay; `8`, which hides words, does not. */
export function onlyColours(rendered: string): string {
  return rendered
    .split(/(\x1b\[(?:[0-7]|9|[1-4]\d|5[0-5]|9[0-7])m)/)
    .map((part, at) => (at % 2 === 1 ? part : toTerminalText(part)))
    .join('');
}

function indent(text: string, by: number): string {
  return text.replaceAll('\n', `\n${' '.repeat(by)}`);
}

export interface TextTable {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly align: readonly ('left' | 'right' | 'center' | null)[];
}

export interface TableLibraries {
  readonly Table: typeof CliTable;
  /** Columns that a text takes, without its colours. */
  readonly widthOf: (text: string) => number;
}

/** Of each column, what stands beside its text: a border and two blanks. */
const BESIDE = 3;

/** At most `columns` wide. */
export function drawTable({ head, rows, align }: TextTable, columns: number, { Table, widthOf }: TableLibraries): string {
  const measured = (measure: (text: string) => number): number[] =>
    head.map((_, at) => Math.max(1, ...[head, ...rows].map((row) => measure(row[at] ?? ''))));
  const longestWord = (text: string): number => Math.max(0, ...text.split(/\s+/).map((word) => leastWidth(word, widthOf)));
  const widths = fitWidths(measured(widthOf), measured(longestWord), columns - 1 - BESIDE * head.length);
  if (widths === undefined) return listRows(head, rows, columns);
  const fitted = (row: readonly string[]): string[] => widths.map((width, at) => wrapWords(row[at] ?? '', width));
  const table = new Table({
    head: fitted(head),
    colWidths: widths.map((width) => width + 2),
    colAligns: align.map((side) => side ?? 'left'),
    style: { head: ['bold'], border: ['gray'] },
  });
  table.push(...rows.map(fitted));
  return table.toString();
}

/** Scripts without blanks end a line between any two of their characters. */
function leastWidth(word: string, widthOf: TableLibraries['widthOf']): number {
  return /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]/u.test(word) ? 2 : widthOf(word);
}

/** Takes from the widest that has more than its longest word, until all fit; undefined where the words alone do not. */
export function fitWidths(wanted: readonly number[], least: readonly number[], available: number): number[] | undefined {
  const widths = wanted.map((width, at) => Math.max(width, least[at] ?? 1));
  for (let over = widths.reduce((sum, width) => sum + width, 0) - available; over > 0; over -= 1) {
    const spare = widths.map((width, at) => (width > (least[at] ?? 1) ? width : 0));
    const widest = spare.indexOf(Math.max(...spare));
    if (spare[widest] === 0) return undefined;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function listRows(head: readonly string[], rows: readonly (readonly string[])[], columns: number): string {
  const lines = (row: readonly string[]): string =>
    head.map((name, at) => wrapWords(`${name === '' ? '' : `${name}: `}${row[at] ?? ''}`, columns - 1)).join('\n');
  return rows.length === 0 ? wrapWords(head.join(', '), columns - 1) : rows.map(lines).join('\n\n');
}
