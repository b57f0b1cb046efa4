/** Text from anywhere, made fit to stand in a list that we write: it cannot pass for a line or a heading of ours. */
import { beginningOf, cleanText } from './text.js';

/** All of it in one line. */
export function oneLine(text: string): string {
  return cleanText(text).replace(/\s+/g, ' ').trim();
}

/** Its further lines begin with `indent`, so that only ours begin at the margin. */
export function indented(text: string, indent: string): string {
  return cleanText(text).trim().replace(/\n/g, `\n${indent}`);
}

/** Itself, or its beginning and how long it is. */
export function cut(text: string, characters: number): string {
  return text.length <= characters ? text : `${beginningOf(text, characters)}… [${text.length} characters in all]`;
}
