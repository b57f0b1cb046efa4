/**
 * An index as bytes, so that a worker that begins need not read every message. What is of another version, of another scope, cut
 * off or changed is refused, and the caller builds the index anew: it is only derived.
 */
import { makeColumns, COLUMN_NAMES, KINDS, PassageTable, type Columns, type Numbers } from './passage-table.js';
import { LANGUAGES } from './words.js';
import { Postings, type PostingsState } from './postings.js';
import { SearchIndex } from './search-index.js';
import { BOUNDS } from './weights.js';
import type { Analyzer } from './analysis.js';

/** Raised with every change of what is stored, or of how a text is taken apart. */
const VERSION = 2;
const MAGIC = 0x50535831;
/** Magic, checksum, length of the head in bytes, length of the whole. */
const HEADER_BYTES = 16;
const ALIGNED = 8;
const POSTINGS = ['high', 'low', 'counts', 'heads', 'tails', 'pool'] as const;

interface Head {
  readonly version: number;
  /** What else must be the same for the numbers to mean the same. */
  readonly made: string;
  readonly of: string;
  readonly extra: unknown;
  readonly speakers: readonly string[];
  readonly lines: readonly (readonly [name: string, count: number])[];
  /** Elements of each array, in their order. */
  readonly lengths: readonly number[];
}

export interface Snapshot<Extra> {
  readonly index: SearchIndex;
  /** What the caller has put beside it. */
  readonly extra: Extra;
}

/** `of` names whose index it is; `extra` is JSON. */
export function toSnapshot(index: SearchIndex, of: string, extra: unknown): Uint8Array {
  const { table, postings, speakers } = index;
  table.settle();
  const state = postings.state();
  const order = new Uint32Array(table.count);
  let at = 0;
  for (const { passages, count } of table.lines) {
    order.set(passages.subarray(0, count), at);
    at += count;
  }
  const arrays: Numbers[] = [
    ...COLUMN_NAMES.map((name) => table.columns[name].subarray(0, table.count)),
    order,
    ...POSTINGS.map((name) => state[name]),
  ];
  const head: Head = {
    version: VERSION,
    made: MADE,
    of,
    extra,
    speakers,
    lines: table.lines.map(({ name, count }) => [name, count] as const),
    lengths: arrays.map(({ length }) => length),
  };
  const text = new TextEncoder().encode(JSON.stringify(head));
  const total = arrays.reduce((sum, { byteLength }) => sum + aligned(byteLength), aligned(HEADER_BYTES + text.length));
  const bytes = new Uint8Array(total);
  bytes.set(text, HEADER_BYTES);
  let offset = aligned(HEADER_BYTES + text.length);
  for (const array of arrays) {
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), offset);
    offset += aligned(array.byteLength);
  }
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(8, text.length, true);
  view.setUint32(12, total, true);
  view.setUint32(4, checksum(bytes), true);
  return bytes;
}

/** Undefined for what cannot be used. */
export function fromSnapshot<Extra>(bytes: Uint8Array, of: string, analyzer?: Analyzer): Snapshot<Extra> | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  // Typed arrays begin at multiples of their size.
  const buffer = bytes.byteOffset % ALIGNED === 0 ? bytes : bytes.slice();
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
  const isWhole =
    view.getUint32(0, true) === MAGIC && view.getUint32(12, true) === buffer.length && view.getUint32(4, true) === checksum(buffer);
  if (!isWhole) return undefined;
  const headBytes = view.getUint32(8, true);
  const head = headIn(buffer.subarray(HEADER_BYTES, HEADER_BYTES + headBytes));
  if (head === undefined || head.version !== VERSION || head.made !== MADE || head.of !== of) return undefined;
  const read = arraysIn(buffer, aligned(HEADER_BYTES + headBytes), head.lengths);
  if (read === undefined) return undefined;

  const index = new SearchIndex(analyzer);
  index.table = new PassageTable(read.columns);
  let at = 0;
  for (const [name, count] of head.lines) {
    const line = index.table.addLine(name);
    Object.assign(line, { passages: read.order.slice(at, at + count), count });
    at += count;
  }
  index.table.windows = read.columns.window.reduce((most, window) => Math.max(most, window + 1), 0);
  index.postings = Postings.from(read.postings);
  for (const name of head.speakers) index.speakerNumber(name);
  index.recount();
  return { index, extra: head.extra as Extra };
}

const MADE = JSON.stringify([COLUMN_NAMES, KINDS, LANGUAGES, BOUNDS.passage, BOUNDS.text, BOUNDS.wordLength]);

function headIn(bytes: Uint8Array): Head | undefined {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Head;
  } catch {
    return undefined;
  }
}

function arraysIn(
  bytes: Uint8Array,
  begin: number,
  lengths: readonly number[],
): { readonly columns: Columns; readonly order: Uint32Array; readonly postings: PostingsState } | undefined {
  let offset = begin;
  let next = 0;
  let fits = lengths.length === COLUMN_NAMES.length + 1 + POSTINGS.length;
  const take = <T extends Numbers>(Type: {
    new (buffer: ArrayBufferLike, at: number, length: number): T;
    readonly BYTES_PER_ELEMENT: number;
  }): T => {
    const length = lengths[next++] ?? 0;
    const size = length * Type.BYTES_PER_ELEMENT;
    fits &&= offset + size <= bytes.length;
    const array = new Type(bytes.buffer, bytes.byteOffset + (fits ? offset : 0), fits ? length : 0);
    offset += aligned(size);
    return array;
  };
  const columns = makeColumns((_, Column) => take(Column as never));
  const order = take(Uint32Array);
  const postings = Object.fromEntries(POSTINGS.map((name) => [name, take(Uint32Array)])) as unknown as PostingsState;
  return fits ? { columns, order, postings } : undefined;
}

/** Of all but itself: FNV-1a over 32-bit words. It finds damage, no forgery. */
function checksum(bytes: Uint8Array): number {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);
  let hash = 0x811c9dc5;
  for (let i = 2; i < words.length; i += 1) hash = Math.imul(hash ^ (words[i] ?? 0), 0x01000193);
  for (let i = words.length * 4; i < bytes.length; i += 1) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  return hash >>> 0;
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNED) * ALIGNED;
}
