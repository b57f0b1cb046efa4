/**
 * A report that a person has opened. It stays in this browser. Of each conversation a row is kept and where it stands in the file: it is read
 * again when it is looked at, so that a report of any length can be.
 */
import { signal } from '@preact/signals';
import { findStanding, type Standing } from '../../../../src/whatif/differences.js';
import { parseReportLine, readPlacedLines } from '../../../../src/whatif/read-report.js';
import type { ReportedConversation, Verdict } from '../../../../src/whatif/report.js';
import { createSummary, type Summary } from '../../../../src/whatif/summary.js';

export interface Row {
  readonly id: string;
  readonly agent: string;
  readonly turns: number;
  readonly standing: Standing;
  readonly baseline?: Standing;
  readonly better?: Verdict['better'];
  /** Bytes of the file. */
  readonly from: number;
  readonly to: number;
}

export interface OpenedReport {
  readonly file: File;
  readonly rows: readonly Row[];
  readonly summary: Summary;
  /** What followed could not be read. */
  readonly problem?: unknown;
}

/** The one that is open, while other views are looked at too. */
export const openedReport = signal<OpenedReport | undefined>(undefined);

const MAX_ROWS = 100_000;

/** Rejects where not even its header can be read. */
export async function openReport(file: File): Promise<OpenedReport> {
  const rows: Row[] = [];
  const summary = createSummary();
  let isBegun = false;
  try {
    for await (const { line, from, to } of readPlacedLines(chunksIn(file.stream()), file.name)) {
      isBegun = true;
      summary.add(line);
      if (line.kind !== 'conversation' || rows.length >= MAX_ROWS) continue;
      const { id, agent, turns, lanes, verdict } = line;
      rows.push({
        ...{ id, agent, turns, from, to, standing: findStanding(line) },
        ...(lanes.candidate && lanes.baseline && { baseline: findStanding(line, lanes.baseline) }),
        ...(verdict && { better: verdict.better }),
      });
    }
  } catch (problem) {
    if (!isBegun) throw problem;
    return { file, rows, summary: summary.end(), problem };
  }
  return { file, rows, summary: summary.end() };
}

/** One conversation of it. */
export async function readConversation({ file }: OpenedReport, { from, to, id }: Row): Promise<ReportedConversation> {
  let text: string;
  try {
    text = await file.slice(from, to).text();
  } catch (error) {
    throw new Error(`cannot read ${JSON.stringify(file.name)}: it has changed or is gone since it was opened. Open it again.`, {
      cause: error,
    });
  }
  const line = parseReportLine(text, `cannot read ${JSON.stringify(id.slice(0, 100))} in ${JSON.stringify(file.name)}`);
  if (line.kind === 'conversation' && line.id === id) return line;
  throw new Error(`cannot read ${JSON.stringify(file.name)}: it has changed since it was opened. Open it again.`);
}

/** Safari gives no iterator of a stream. */
async function* chunksIn(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
