/** One line of text from anywhere: without what moves, hides or reorders what stands beside it. */

// Controls, marks of direction and their overrides, zero-width characters, tags.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

const WIDTHLESS = /[\u00ad\u200b\u2060\ufeff]/;

/** `most`: characters, after which it is cut. */
export function plainText(text: string, most = 500): string {
  const line = text
    .slice(0, most * 4)
    .replace(HIDDEN, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  const all = Array.from(line);
  return all.length > most ? `${all.slice(0, most).join('')}…` : line;
}

/** Many lines, as they are: what has no width is left out, and of what reorders its place is shown. */
export function plainLines(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(HIDDEN, (mark) => (WIDTHLESS.test(mark) ? '' : '\ufffd'));
}

/** Of programs and their arguments: what cannot be seen is shown by its code, since it counts. */
export function plainCode(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(HIDDEN, (mark) => `\\u{${(mark.codePointAt(0) ?? 0).toString(16)}}`);
}
