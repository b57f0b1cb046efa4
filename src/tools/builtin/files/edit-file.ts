import { z } from 'zod';
import { defineTool } from '../../define-tool.js';
import { refuseNewScripts } from '../../protected-paths.js';
import type { Tool } from '../../tool.js';
import { reasonToAskBeforeWriting, examinePath } from '../../approval-paths.js';
import { enterWorkspace } from '../../workspace.js';
import { readWhole, inTurn, FILE_BYTES, type FileSettings } from './write-file.js';
import { errorMessage } from '../../../platform/errors.js';
import { encodeText, withoutMark } from '../../../records/file-type.js';

const NAMED_LINES = 20;

export function createEditFile({ protectedPlaces = [] }: FileSettings = {}): Tool {
  return defineTool({
    name: 'edit_file',
    description:
      'Changes a part of a text file in the workspace: oldText, which must stand there exactly and only once, becomes newText. ' +
      'Read the file first, and send enough of the text around the change.',
    input: z.object({
      path: z.string().min(1).describe('Relative to the workspace, such as "notes/plan.md".'),
      oldText: z.string().min(1).describe('Exactly as it stands in the file, with blanks and line breaks.'),
      newText: z.string().describe('What is to stand there instead. Empty: oldText is taken out.'),
      all: z.boolean().default(false).describe('True: every place where oldText stands.'),
    }),
    // Done once more it would not find its text, and say that it had failed.
    policy: { repeatable: false },
    examine: ({ path }, { workspace }) => examinePath(workspace, path, (place) => place.resolveNew(path), reasonToAskBeforeWriting),
    run: ({ path, ...request }, { workspace, signal }) =>
      inTurn(async () => {
        signal.throwIfAborted();
        const place = await enterWorkspace(workspace, protectedPlaces);
        const real = await place.resolveNew(path);
        const name = place.shown(real);
        const before = await readWhole(place, real, FILE_BYTES);
        if (!before) throw new Error(`cannot find ${name} in the workspace. Look with list_files; write_file makes a new file.`);
        const { text, lines } = edited(name, before.text, request);
        const bytes = Buffer.from(encodeText(text, before.form));
        if (bytes.length > FILE_BYTES)
          throw new Error(`cannot edit ${name}: it would have ${bytes.length} bytes, over the limit of ${FILE_BYTES}`);
        refuseNewScripts(workspace, real, before.text, text);
        await place.writeFile(real, bytes, before.seen);
        const more = lines.length > NAMED_LINES ? ` and ${lines.length - NAMED_LINES} more` : '';
        const where = `${lines.length === 1 ? 'line' : 'lines'} ${lines.slice(0, NAMED_LINES).join(', ')}${more}`;
        return { ok: true, content: `edited ${name} on ${where}; it has ${bytes.length} bytes now`, files: { edited: [name] } };
      }),
  });
}

export const editFile = createEditFile();

function edited(name: string, text: string, request: Parameters<typeof editText>[1]): ReturnType<typeof editText> {
  try {
    return editText(text, request);
  } catch (cause) {
    throw new Error(`did not edit ${name}: ${errorMessage(cause)}`);
  }
}

/** Exact old text -> new text. Pure: an error says how the model can correct its call. */
interface Edited {
  readonly text: string;
  /** Number of the line where each change begins, in the new text. */
  readonly lines: readonly number[];
}

interface EditRequest {
  readonly oldText: string;
  readonly newText: string;
  /** Every place; otherwise there must be one alone. */
  readonly all: boolean;
}

const NAMED_PLACES = 10;
const LINE_CHARS = 160;

/** Throws an `Error` whose message says what to send instead. The text around the change stays unit for unit, whatever ends its lines. */
function editText(text: string, request: EditRequest): Edited {
  const [oldText, newText] = [withoutMark(request.oldText), withoutMark(request.newText)];
  if (oldText === '') throw new Error('oldText is empty; send the text that is to be changed.');
  const ends = text.includes('\n') || !text.includes('\r') ? undefined : '\r';
  if (ends !== undefined) {
    // All lines end in carriage returns, as old editors of the Mac write them.
    const { text: changed, lines } = editText(toFeeds(text), { ...request, oldText: toFeeds(oldText), newText: toFeeds(newText) });
    return { text: changed.replaceAll('\n', ends), lines };
  }
  const { places, isExact } = findInLines(text, oldText);
  const [place] = places;
  if (place === undefined) throw new Error(`oldText is not in the file. ${hint(text, oldText)}`);
  if (places.length > 1 && !request.all) {
    const lines = places.slice(0, NAMED_PLACES).map(({ from }) => lineAt(text, from));
    const more = places.length > lines.length ? ` and ${places.length - lines.length} more` : '';
    throw new Error(
      `oldText is in the file ${places.length} times, beginning on the lines ${lines.join(', ')}${more}. ` +
        'Send more of the text around the one that is meant, or all: true to change every one.',
    );
  }
  const inserted = fitEnds(text, places, {
    newText: isExact ? newText : newText.replaceAll('\r\n', '\n'),
    isAsSent: isExact && (oldText + newText).includes('\r'),
  });
  if (places.every(({ from, to }, i) => text.slice(from, to) === inserted[i]))
    throw new Error('oldText and newText are the same, so there is nothing to change.');
  return replaceAt(text, places, inserted);
}

interface Place {
  readonly from: number;
  readonly to: number;
}

/** Models send line feeds alone: what is not there as it was sent is looked for with CR LF and LF as the same. */
function findInLines(text: string, oldText: string): { readonly places: readonly Place[]; readonly isExact: boolean } {
  const exact = findPlaces(text, oldText).map((from) => ({ from, to: from + oldText.length }));
  if (exact.length > 0 || !(text + oldText).includes('\r\n')) return { places: exact, isExact: true };
  const wanted = oldText.replaceAll('\r\n', '\n');
  const starts = findPlaces(text.replaceAll('\r\n', '\n'), wanted);
  const toPlain = createWayBack(text);
  return { places: starts.map((from) => ({ from: toPlain(from), to: toPlain(from + wanted.length) })), isExact: false };
}

/** From a place in the text with line feeds alone to the same place in the text; the places come in order. */
function createWayBack(text: string): (at: number) => number {
  let returns = 0;
  let next = text.indexOf('\r\n');
  return (at) => {
    while (next !== -1 && next - returns < at) {
      returns++;
      next = text.indexOf('\r\n', next + 2);
    }
    return at + returns;
  };
}

/** The new text for each place, its lines ended as the line that the place is in. `isAsSent`: by a model that knows of CR. */
function fitEnds(text: string, places: readonly Place[], sent: { readonly newText: string; readonly isAsSent: boolean }): string[] {
  const crLf = sent.newText.replace(/\r?\n/g, '\r\n');
  const hasCrLf = text.includes('\r\n');
  const hasFeeds = /(^|[^\r])\n/.test(text);
  if (!hasCrLf || !hasFeeds) return places.map(() => (hasCrLf ? crLf : sent.newText));
  if (sent.isAsSent) return places.map(() => sent.newText);
  let feed = text.indexOf('\n');
  let next = text.indexOf('\n', feed + 1);
  return places.map(({ from }) => {
    while (next !== -1 && feed < from) {
      feed = next;
      next = text.indexOf('\n', feed + 1);
    }
    return text[feed - 1] === '\r' ? crLf : sent.newText;
  });
}

function toFeeds(text: string): string {
  return text.replace(/\r\n?/g, '\n');
}

function replaceAt(text: string, places: readonly Place[], inserted: readonly string[]): Edited {
  // Before it is made: a few bytes that stand in many places come to gigabytes.
  const length = places.reduce((sum, { from, to }, i) => sum + (inserted[i]?.length ?? 0) - (to - from), text.length);
  if (length > FILE_BYTES) throw new Error(`the file would have at least ${length} bytes, over the limit of ${FILE_BYTES}.`);
  const pieces: string[] = [];
  const lines: number[] = [];
  let after = 0;
  let line = 1;
  for (const [i, { from, to }] of places.entries()) {
    const between = text.slice(after, from);
    const piece = inserted[i] ?? '';
    pieces.push(between, piece);
    line += countFeeds(between);
    lines.push(line);
    line += countFeeds(piece);
    after = to;
  }
  pieces.push(text.slice(after));
  return { text: pieces.join(''), lines };
}

/** What is nearly there: the same but for blanks, or the same up to some line. */
function hint(text: string, oldText: string): string {
  const lines = text.split('\n');
  const wanted = oldText.split('\n');
  const plain = lines.map(withoutBlanks);
  const plainWanted = wanted.map(withoutBlanks);
  while (plainWanted.length > 1 && plainWanted.at(-1) === '') plainWanted.pop();
  const first = plainWanted.findIndex((line) => line !== '');
  if (first === -1) return 'It holds nothing but blanks; send the text around it as well.';
  const { at, length } = longestBeginning(plain, plainWanted.slice(first));
  if (length === 0) {
    const [part] = wanted.length > 1 ? findPlaces(text, (wanted[first] ?? '').trim(), 1) : [];
    if (part !== undefined) {
      const line = lineAt(text, part);
      return `Its first line is a part of line ${line}: ${quoteLine(lines[line - 1])}. Read the file again.`;
    }
    return 'Nor is its first line, even with other blanks. Read the file again, and send the text exactly as it stands there.';
  }
  if (first + length >= plainWanted.length) {
    return `With other blanks or line ends it is on line ${at + 1}: ${quoteLine(lines[at])}. Send the blanks exactly as they stand there.`;
  }
  return (
    `It agrees with line ${at + 1} and what follows, up to line ${at + length + 1}, where the file has ${quoteLine(lines[at + length])} ` +
    `and oldText ${quoteLine(wanted[first + length])}.`
  );
}

function withoutBlanks(line: string): string {
  return line.replace(/\s+/g, '');
}

function quoteLine(line = ''): string {
  return JSON.stringify(line.length > LINE_CHARS ? `${line.slice(0, LINE_CHARS)}…` : line);
}

function lineAt(text: string, at: number): number {
  return countFeeds(text.slice(0, at)) + 1;
}

function countFeeds(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

// Finds by Knuth, Morris and Pratt, in one pass over both. `indexOf` takes the product of both lengths on some texts: half a minute for
// 400,000 equal letters with another one among them.

/** Places that do not overlap, from the beginning; at most `most`. */
function findPlaces(text: string, wanted: string, most = Infinity): number[] {
  const units = toUnits(text);
  const longer = matcher(toUnits(wanted));
  const places: number[] = [];
  let length = 0;
  for (let i = 0; i < units.length && places.length < most; i++) {
    length = longer(length, units[i]);
    if (length < wanted.length) continue;
    places.push(i - length + 1);
    length = 0;
  }
  return places;
}

/** Where most of the first of `wanted` stand one after the other in `lines`. */
function longestBeginning(lines: readonly string[], wanted: readonly string[]): { readonly at: number; readonly length: number } {
  const longer = matcher(wanted);
  let best = { at: -1, length: 0 };
  let length = 0;
  for (let i = 0; i < lines.length && best.length < wanted.length; i++) {
    length = longer(length, lines[i]);
    if (length > best.length) best = { at: i - length + 1, length };
  }
  return best;
}

/** How many of the first of `wanted` have been met, after so many were and then `next` came. */
function matcher<T>(wanted: ArrayLike<T>): (length: number, next: T | undefined) => number {
  const shorter = new Int32Array(wanted.length);
  const longer = (met: number, next: T | undefined): number => {
    let length = met;
    while (length > 0 && (length === wanted.length || wanted[length] !== next)) length = shorter[length - 1] ?? 0;
    return wanted[length] === next ? length + 1 : 0;
  };
  for (let i = 1; i < wanted.length; i++) shorter[i] = longer(shorter[i - 1] ?? 0, wanted[i]);
  return longer;
}

function toUnits(text: string): Uint16Array {
  const bytes = Buffer.from(text, 'utf16le');
  return new Uint16Array(bytes.buffer, bytes.byteOffset, text.length);
}
