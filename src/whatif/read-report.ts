/**
 * Reads a report, line by line, from a file or from a browser's. Who wrote it is not known: each line is bounded, has its schema, and an error
 * names the file and the line. One conversation is in memory at a time.
 */
import * as v from 'valibot';
import { truncate } from '../records/text.js';
import {
  MAX_REPORT_TEXT,
  REPORT_VERSION,
  type ReportedConversation,
  type ReportHeader,
  type ReportLine,
  type ReportTotals,
} from './report.js';

/** Bytes of one line: 5,000 turns with all of their texts shortened have room in it. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;
const MAX_TURNS = 20_000;
const MAX_CALLS = 5_000;
const MAX_LIST = 1_000;
/** Texts are written shortened; a longer one is another program's. */
const MAX_TEXT = 16 * MAX_REPORT_TEXT;

/** A line with its place in the file, in bytes, so that it can be read again. */
export interface PlacedLine {
  readonly line: ReportLine;
  readonly from: number;
  readonly to: number;
}

/** Why a file is no report that can be shown. */
export class ReportError extends Error {
  override readonly name = 'ReportError';
}

export async function* readReport(chunks: AsyncIterable<Uint8Array | string>, name: string): AsyncGenerator<ReportLine, void> {
  for await (const { line } of readPlacedLines(chunks, name)) yield line;
}

/** `name`: of the file, for errors. Its first line is the header; nothing follows the totals. */
export async function* readPlacedLines(chunks: AsyncIterable<Uint8Array | string>, name: string): AsyncGenerator<PlacedLine, void> {
  let number = 0;
  let last: ReportLine['kind'] | undefined;
  for await (const { bytes, from, to, isWhole } of splitLines(chunks, (at) => `cannot read line ${at} of ${shortName(name)}`)) {
    number += 1;
    const text = new TextDecoder().decode(bytes).trim();
    if (text === '') continue;
    const where = `cannot read line ${number} of ${shortName(name)}`;
    const line = parseReportLine(text, where, isWhole);
    if (last === undefined && line.kind !== 'header') throw new ReportError(`${where}: it is no header, so this is no report. ${ADVICE}`);
    if (last !== undefined && line.kind === 'header') throw new ReportError(`${where}: a second header. A file has one report: split it.`);
    if (last === 'totals') throw new ReportError(`${where}: something follows the totals, which end a report. ${ADVICE}`);
    last = line.kind;
    yield { line, from, to };
  }
  if (last === undefined) throw new ReportError(`cannot read ${shortName(name)}: it is empty. ${ADVICE}`);
}

const ADVICE = 'Open a file that a what-if has written.';

export function parseReportLine(text: string, where: string, isWhole = true): ReportLine {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const cause = isWhole ? 'it is no JSON' : 'the file ends in its middle, as where the program that wrote it was stopped';
    throw new ReportError(`${where}: ${cause}. ${ADVICE}`);
  }
  const version: unknown = (value as { readonly version?: unknown } | null)?.version;
  if (typeof version === 'number' && version > REPORT_VERSION) {
    throw new ReportError(
      `${where}: it is of version ${version}, and this program reads version ${REPORT_VERSION}. Open it with a newer one.`,
    );
  }
  const read = v.safeParse(lineSchema, value, { abortEarly: true });
  if (read.success) return read.output;
  const [issue] = read.issues;
  const path = issue.path?.map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('') ?? '';
  throw new ReportError(
    `${where}: ${truncate(path, 200).replace(/^\./, '') || 'it'} is not as a report has it: ${truncate(issue.message, 200)}. ${ADVICE}`,
  );
}

function shortName(name: string): string {
  return JSON.stringify(truncate(name, 300));
}

interface Bytes {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
  /** It ends with a line feed. */
  readonly isWhole: boolean;
}

const LINE_FEED = 10;

/** `where`: of a line, by its number. */
async function* splitLines(chunks: AsyncIterable<Uint8Array | string>, where: (line: number) => string): AsyncGenerator<Bytes, void> {
  let parts: Uint8Array[] = [];
  let held = 0;
  let from = 0;
  let number = 1;
  const take = (isWhole: boolean): Bytes => {
    const bytes = new Uint8Array(held);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    const line = { bytes, from, to: from + held, isWhole };
    from += held + 1;
    number += 1;
    [parts, held] = [[], 0];
    return line;
  };
  const hold = (part: Uint8Array): void => {
    held += part.length;
    if (held > MAX_LINE_BYTES) {
      throw new ReportError(
        `${where(number)}: it is longer than ${MAX_LINE_BYTES / 1024 / 1024} MiB, and no conversation of a report is. ${ADVICE}`,
      );
    }
    parts.push(part);
  };
  for await (const chunk of chunks) {
    const bytes = typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk;
    let begin = 0;
    for (let end = bytes.indexOf(LINE_FEED); end !== -1; end = bytes.indexOf(LINE_FEED, begin)) {
      hold(bytes.subarray(begin, end));
      yield take(true);
      begin = end + 1;
    }
    if (begin < bytes.length) hold(bytes.subarray(begin));
  }
  if (held > 0) yield take(false);
}

const text = v.pipe(v.string('it is no text'), v.maxLength(MAX_TEXT, `it has more than ${MAX_TEXT} characters`));
const name = v.pipe(text, v.maxLength(1_000, 'it has more than 1000 characters'));
const number = v.pipe(v.number('it is no number'), v.finite('it is no finite number'));
const lane = v.picklist(['baseline', 'candidate'], 'it is neither baseline nor candidate');

function list<T>(item: v.GenericSchema<unknown, T>, most = MAX_LIST): v.GenericSchema<unknown, readonly T[]> {
  // The length first: of a list without an end no item is looked at.
  return v.pipe(v.array(v.unknown(), 'it is no list'), v.maxLength(most, `it has more than ${most} items`), v.array(item));
}

function names<const T extends readonly string[]>(...values: T) {
  return v.picklist(values, `it is none of ${values.join(', ')}`);
}

const header: v.GenericSchema<unknown, ReportHeader> = v.object({
  kind: v.literal('header'),
  version: v.literal(REPORT_VERSION),
  madeAt: name,
  changes: list(text),
  policy: names('stop', 'stub', 'live'),
  memory: names('recorded', 'candidate'),
  lanes: list(lane, 2),
  judge: v.optional(name),
});

const sum = v.object({
  ...{ modelCalls: number, inputTokens: number, cachedTokens: number, outputTokens: number, modelMs: number },
  costUsd: v.nullable(number),
});

const call = v.object({
  name,
  input: text,
  outcome: v.optional(names('ok', 'error', 'rejected', 'cancelled', 'unknown')),
  result: text,
  source: names('recording', 'product', 'stub', 'live', 'none'),
});

const side = v.object({ text, stopReason: name, calls: list(call, MAX_CALLS), sum });

const divergence = v.object({
  turn: name,
  call: number,
  of: v.optional(name),
  what: names('system', 'tools', 'messages', 'model', 'tool-calls', 'text', 'stop', 'missing'),
  recorded: text,
  played: text,
});

const playedLane = v.object({
  divergence: v.nullable(divergence),
  answerDivergence: v.optional(divergence),
  turns: list(v.object({ turn: name, message: text, recorded: v.optional(side), played: v.optional(side) }), MAX_TURNS),
  stopped: v.optional(v.object({ turn: name, why: text })),
  sum,
  recordedSum: sum,
});

const conversation: v.GenericSchema<unknown, ReportedConversation> = v.object({
  kind: v.literal('conversation'),
  id: name,
  agent: name,
  skipped: v.optional(text),
  gaps: list(text),
  turns: number,
  lanes: v.object({ baseline: v.optional(playedLane), candidate: v.optional(playedLane) }),
  verdict: v.optional(
    v.object({
      ...{ better: names('recorded', 'candidate', 'same', 'unreadable'), why: text, agreesWithItself: v.boolean() },
      costUsd: v.optional(v.nullable(number)),
    }),
  ),
});

const interval = v.nullable(v.object({ mean: number, low: number, high: number }));
const counts = v.record(name, v.tuple([number, number]));
const laneTotals = v.object({
  ...{ diverged: number, stopped: number, stopReasons: counts, tools: counts },
  change: v.object({
    ...{ inputTokens: interval, outputTokens: interval, costUsd: interval },
    ...{ modelMs: interval, modelCalls: interval, toolCalls: interval },
  }),
});

const totals: v.GenericSchema<unknown, ReportTotals> = v.object({
  kind: v.literal('totals'),
  conversations: number,
  skipped: number,
  lanes: v.object({ baseline: v.optional(laneTotals), candidate: v.optional(laneTotals) }),
  judged: v.optional(
    v.object({
      ...{ better: number, worse: number, same: number, unreadable: number, agreement: number },
      costUsd: v.optional(v.nullable(number)),
    }),
  ),
});

const lineSchema = v.lazy((value): v.GenericSchema<unknown, ReportLine> => {
  const kind: unknown = (value as { readonly kind?: unknown } | null)?.kind;
  return kind === 'conversation' ? conversation : kind === 'totals' ? totals : header;
});
