/**
 * Markdown as a terminal shows it. Two ESM libraries, loaded only by who has a terminal with colours.
 *
 * 1. The input has passed `toTerminalText`. The output has passed it again, between the renderer's colours: an entity
 *    such as `&#27;` is a control character only once it is rendered.
 * 2. A link shows where it leads, as text: never a sequence (OSC 8) that hides it behind other words.
 * 3. A block that cannot be rendered is shown as its source.
 * 4. No word of a table is split: where its columns have no room for their words, each row is a list.
 */
import type CliTable from 'cli-table3';
import type { Tokens } from 'marked' with { 'resolution-mode': 'import' };
import type { BlockLexer } from './markdown.js';
import { toTerminalText, wrapWords } from './terminal-text.js';

export interface Markdown {
  render(source: string, columns: number): string;
  widthOf(text: string): number;
  readonly lex: BlockLexer;
}

export async function loadMarkdown(): Promise<Markdown> {
  const [{ Lexer, Marked }, { markedTerminal }, { default: widthOf }, { default: Table }] = await Promise.all([
    import('marked'),
    import('marked-terminal'),
    import('string-width'),
    import('cli-table3'),
  ]);

  const render = (source: string, columns: number): string => {
    const marked = new Marked();
    /** Columns that lists around it take. */
    let inset = 0;
    // Its types know an older `marked`.
    marked.use(markedTerminal({ emoji: false, showSectionPrefix: false, tab: 2 }) as unknown as Parameters<typeof marked.use>[0]);
    marked.use({
      renderer: {
        text(token) {
          return 'tokens' in token && token.tokens !== undefined ? this.parser.parseInline(token.tokens) : toTerminalText(token.text);
        },
        link(token) {
          const [text, href] = [this.parser.parseInline(token.tokens), toTerminalText(token.href)];
          return text === href || `mailto:${text}` === href ? text : `${text} (${href})`;
        },
        image(token) {
          return toTerminalText(`[image: ${token.text === '' ? '' : `${token.text}, `}${token.href}]`);
        },
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
