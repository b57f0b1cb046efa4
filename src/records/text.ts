/** What is done to text anywhere, without a host. */

/** Bytes of `text` in UTF-8; a lone surrogate counts as the three bytes of U+FFFD. */
export function utf8Length(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    else if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text.charCodeAt(i + 1))) {
      bytes += 4;
      i++;
    } else bytes += 3;
  }
  return bytes;
}

/** The beginning of `text` in at most `units` UTF-16 units, never half of a character. */
export function truncate(text: string, units: number): string {
  return text.length <= units
    ? text
    : text
        .slice(0, units)
        .toWellFormed()
        .replace(/\uFFFD$/, '');
}

/** Well-formed, with plain line feeds and tabs as its only control characters. */
export function cleanText(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?|[\u2028\u2029]/g, '\n')
    .replace(/[^\P{Cc}\n\t]/gu, '');
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}

/** As Markdown's code, so that a title or an error cannot be a link or a heading; back-ticks would end it. */
export function asCode(text: string): string {
  return `\`${text.replace(/[`\r\n]+/g, ' ').slice(0, 300)}\``;
}

// Text from anywhere, made fit to stand in a list that we write: it cannot pass for one of our lines or headings.

/** All of it in one line. */
export function oneLine(text: string): string {
  return cleanText(text).replace(/\s+/g, ' ').trim();
}

/** Its further lines begin with `indent`, so that only ours begin at the margin. */
export function indented(text: string, indent: string): string {
  return cleanText(text).trim().replace(/\n/g, `\n${indent}`);
}

/**
 * No line of it is a heading or a fence of Markdown, underlines what stands above it, or is one of the headings that we write in brackets.
 */
export function withoutHeadings(text: string): string {
  return text.replace(
    /^([ \t>]*)(?=#{1,6}(?:\s|$)|`{3}|~{3}|={2,}[ \t]*$|-{2,}[ \t]*$|\[(?:MEMORY:|TASK\]|SUMMARIZED IN PART\]|RECENT TURNS\]|RECAP\]))/gm,
    '$1\\',
  );
}

/** Itself, or its beginning and how long it is. */
export function cut(text: string, characters: number): string {
  return text.length <= characters ? text : `${truncate(text, characters)}… [${text.length} characters in all]`;
}

/** The first of them that have room in so many UTF-16 units, each with a line break. */
export function thatFit(texts: readonly string[], characters: number): readonly string[] {
  let room = characters;
  const end = texts.findIndex((text) => (room -= text.length + 1) < 0);
  return texts.slice(0, end === -1 ? texts.length : end);
}

/** `1 turn`, `2 turns`; a noun with an irregular plural names it. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

// Times as they are kept and shown.

/** Epoch milliseconds of the last moment that a date can show. */
export const LAST_TIME = 8.64e15;

/** ISO 8601. Whatever number stands where a time should: a view never throws. */
export function isoTime(ms: number): string {
  return Math.abs(ms) <= LAST_TIME ? new Date(ms).toISOString() : 'a time that no calendar has';
}

/** XML 1.0 has no other control characters, and no half of a surrogate pair. */
export function xmlText(text: string): string {
  const readable = text.toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd');
  return readable.replace(/[&<>"'\n\r\t]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
