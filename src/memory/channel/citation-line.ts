/** What stands for an old result when there are many: the beginning of each thing that its plugin said, in a line. */
import type { KeptResult } from '../../conversation/context/citing.js';
import { beginningOf } from '../../records/text.js';
import { isRecord } from '../../platform/json.js';

const LINE_CHARACTERS = 90;
/** Of one field, so that a long one leaves room for those behind it. */
const FIELD_CHARACTERS = 60;
/** The tool's name stands before the line, and the id after it. */
const SAID_ELSEWHERE = ['actionName', 'memoryId', 'retrieveWith'];

export function citationLine({ name, text, item: { citation } }: KeptResult): string {
  const bytes = typeof text === 'string' ? Buffer.byteLength(text) : text.bytes;
  const shown = [name, ...(fieldsIn(citation) ?? [plainLine(citation)])].filter((part) => part !== '').join(' · ');
  const size = ` · ${bytes} bytes`;
  return beginningOf(shown, LINE_CHARACTERS - size.length) + size;
}

/** Undefined where it is no object: a citation of an earlier version, or one that was cut. */
function fieldsIn(citation: string): string[] | undefined {
  try {
    const value: unknown = JSON.parse(citation);
    if (!isRecord(value)) return undefined;
    return Object.entries(value).flatMap(([field, one]) => (SAID_ELSEWHERE.includes(field) ? [] : [said(field, one)]));
  } catch {
    return undefined;
  }
}

/** A text says itself what it is; a number does not. */
function said(field: string, value: unknown): string {
  const text = typeof value === 'string' ? value : `${field} ${JSON.stringify(value)}`;
  return beginningOf(plainLine(text), FIELD_CHARACTERS);
}

function plainLine(text: string): string {
  return text.replace(/[\p{C}\s]+/gu, ' ').trim();
}
