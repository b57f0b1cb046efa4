/**
 * Markdown as a terminal shows it. Two ESM libraries, loaded only by who has a terminal with colours.
 *
 * 1. The input has passed `toTerminalText`. The output has passed it again, between the renderer's colours: an entity
 *    such as `&#27;` is a control character only once it is rendered.
 * 2. A link shows where it leads, as text: never a sequence (OSC 8) that hides it behind other words.
 * 3. A block that does not fit into the width, or cannot be rendered, is shown as its source.
 */
import type { Token, Tokens } from 'marked' with { 'resolution-mode': 'import' };
import type { BlockLexer } from './markdown-blocks.js';
import { toTerminalText, wrapWords } from './terminal-text.js';

export interface Markdown {
  render(source: string, columns: number): string;
  widthOf(text: string): number;
  readonly lex: BlockLexer;
}

export async function loadMarkdown(): Promise<Markdown> {
  const [{ Lexer, Marked }, { markedTerminal }, { default: widthOf }, { default: CliTable }] = await Promise.all([
    import('marked'),
    import('marked-terminal'),
    import('string-width'),
    import('cli-table3'),
  ]);

  const render = (source: string, columns: number): string => {
    const marked = new Marked();
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
            const body = item.tokens
              .filter(({ type }) => type !== 'checkbox')
              .map((part) => this.parser.parse([part]).replace(/\n+$/, ''))
              .filter(Boolean);
            return `${mark}${box}${indent(body.join('\n'), mark.length)}`;
          });
          return `${items.join(token.loose ? '\n\n' : '\n')}\n\n`;
        },
        table(token) {
          const inline = (tokens: Token[]): string => this.parser.parseInline(tokens);
          return `${drawTable(token, inline) ?? token.raw.trimEnd()}\n\n`;
        },
      },
    });
    return marked.parse(source, { async: false });

    function drawTable(token: Tokens.Table, inline: (tokens: Token[]) => string): string | undefined {
      const head = token.header.map((cell) => inline(cell.tokens));
      const rows = token.rows.map((row) => row.map((cell) => inline(cell.tokens)));
      const widths = head.map((_, at) => Math.max(...[head, ...rows].map((row) => widthOf(row[at] ?? ''))));
      const fitted = fitWidths(widths, columns - 1 - (head.length + 1) - 2 * head.length);
      if (fitted === undefined) return undefined;
      const table = new CliTable({
        head,
        colWidths: fitted.map((width) => width + 2),
        colAligns: token.align.map((align) => align ?? 'left'),
        wordWrap: true,
        style: { head: ['bold'], border: ['gray'] },
      });
      table.push(...rows);
      return table.toString();
    }
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

/** Takes from the widest until all fit; undefined when a column would have no room for a word. */
export function fitWidths(wanted: readonly number[], available: number): number[] | undefined {
  const widths = wanted.map((width) => Math.max(width, 1));
  for (let over = widths.reduce((sum, width) => sum + width, 0) - available; over > 0; over -= 1) {
    const widest = widths.indexOf(Math.max(...widths));
    if ((widths[widest] ?? 0) <= 4) return undefined;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
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
