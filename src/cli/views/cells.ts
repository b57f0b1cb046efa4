/** Texts in cells of a terminal: `漢` takes two, a combining accent none. */

/** Cells that a text takes on one line. */
export type Measure = (text: string) => number;

/** string-width is an ES module: loaded when a person is to read what is printed. */
export async function loadMeasure(): Promise<Measure> {
  const { default: stringWidth } = await import('string-width');
  return (text) => stringWidth(text);
}

/** At most `width` cells, cut between characters as people see them. */
export function fit(text: string, width: number, measure: Measure): string {
  if (width <= 0) return '';
  if (measure(text) <= width) return text;
  let kept = '';
  let used = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    const more = measure(segment);
    if (used + more > width - 1) break;
    kept += segment;
    used += more;
  }
  return `${kept.trimEnd()}…`;
}

/** Exactly `width` cells. */
export function pad(text: string, width: number, measure: Measure, align: 'left' | 'right' = 'left'): string {
  const fitted = fit(text, width, measure);
  const blanks = ' '.repeat(Math.max(0, width - measure(fitted)));
  return align === 'left' ? fitted + blanks : blanks + fitted;
}
