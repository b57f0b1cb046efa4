/** A report as JUnit's XML, which build servers read: each conversation is a test case. */
import { xmlText } from '../records/text.js';
import { describeVerdict, findStanding, firstDifferences, mainLane, STANDING, withVisibleMarks } from './differences.js';
import type { ReportedConversation, ReportLine } from './report.js';
import { createSummary, type Summary } from './summary.js';

export const FAILURES = ['acts', 'differs', 'stopped', 'worse'] as const;
/** `acts`: other tools or another end; `differs`: anything, words too; `stopped`; `worse`: the judge, both times, prefers what was recorded. */
export type Failure = (typeof FAILURES)[number];
export const DEFAULT_FAILURES: readonly Failure[] = ['acts', 'stopped', 'worse'];

/** What fails a case. A model that merely words its answer otherwise fails none, where it is not named here. */
export interface JunitOptions {
  readonly failOn?: readonly Failure[];
}

/** Counts stand before the cases in this form, so cases are held until a suite has so many. */
const CASES_IN_SUITE = 500;
const MAX_TEXT = 2_000;

export async function* renderJunit(
  lines: AsyncIterable<ReportLine>,
  { failOn = DEFAULT_FAILURES }: JunitOptions = {},
): AsyncGenerator<string, void> {
  const fails = new Set(failOn);
  const summary = createSummary();
  let cases: Case[] = [];
  let before = 0;
  yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="perdura whatif">\n';
  for await (const line of lines) {
    summary.add(line);
    if (line.kind !== 'conversation') continue;
    cases.push(drawCase(line, fails));
    if (cases.length < CASES_IN_SUITE) continue;
    yield drawSuite(cases, before);
    before += cases.length;
    cases = [];
  }
  const { about, findings, isWhole, totals } = summary.end();
  const problem = findProblem({ isWhole, totals });
  if (problem !== undefined) cases.push({ kind: 'failed', text: drawFailure('the whole report', 'perdura whatif', problem, '') });
  yield drawSuite(cases, before, [...about, ...findings.map(({ text }) => text)].join('\n'));
  yield '</testsuites>\n';
}

/** Nothing that was cut off, and nothing of which no conversation was played, may pass for a run in which all is well. */
export function findProblem({ isWhole, totals }: Pick<Summary, 'isWhole' | 'totals'>): string | undefined {
  if (!isWhole) return 'The report has no totals: it was not written to its end.';
  return totals.conversations === totals.skipped ? 'No conversation was played.' : undefined;
}

/** Why a conversation fails; none: it passes. */
export function findFailures(line: ReportedConversation, fails: ReadonlySet<Failure>): string[] {
  const standing = findStanding(line);
  const isWorse = line.verdict?.better === 'recorded' && line.verdict.agreesWithItself;
  return [
    ...(standing === 'stopped' && fails.has('stopped') ? [`stopped: ${mainLane(line.lanes)?.stopped?.why ?? ''}`] : []),
    ...(standing === 'acts' && (fails.has('acts') || fails.has('differs')) ? [STANDING.acts] : []),
    ...(standing === 'words' && fails.has('differs') ? [STANDING.words] : []),
    ...(isWorse && fails.has('worse') ? ['the judge finds the candidate worse'] : []),
  ];
}

interface Case {
  readonly kind: 'passed' | 'failed' | 'skipped';
  readonly text: string;
}

function drawSuite(cases: readonly Case[], before: number, words = ''): string {
  const count = (kind: Case['kind']): number => cases.filter((one) => one.kind === kind).length;
  const name = before === 0 ? 'conversations' : `conversations from ${before + 1}`;
  return (
    `<testsuite name="${name}" tests="${cases.length}" failures="${count('failed')}" errors="0" skipped="${count('skipped')}">\n` +
    `${cases.map(({ text }) => text).join('')}${words === '' ? '' : `<system-out>${escapeXml(words)}</system-out>\n`}</testsuite>\n`
  );
}

function drawCase(line: ReportedConversation, fails: ReadonlySet<Failure>): Case {
  const standing = findStanding(line);
  const name = line.id;
  if (standing === 'skipped') {
    const why = line.skipped ?? 'nothing of it was played';
    return {
      kind: 'skipped',
      text: `<testcase ${attributes({ name, classname: line.agent })}><skipped ${attributes({ message: why })}/></testcase>\n`,
    };
  }
  const reasons = findFailures(line, fails);
  if (reasons.length === 0) return { kind: 'passed', text: `<testcase ${attributes({ name, classname: line.agent })}/>\n` };
  const lane = mainLane(line.lanes);
  const { baseline } = line.lanes;
  const details = [
    ...(lane === undefined ? [] : firstDifferences(lane)).map(
      ({ where, recorded, played }) => `${where}\nrecorded:\n${recorded.slice(0, MAX_TEXT)}\nplayed:\n${played.slice(0, MAX_TEXT)}`,
    ),
    ...(line.verdict === undefined ? [] : [describeVerdict(line.verdict)]),
    ...(baseline === undefined || baseline === lane
      ? []
      : [`baseline, the recorded configuration played again: ${STANDING[findStanding(line, baseline)]}`]),
  ].join('\n\n');
  return { kind: 'failed', text: drawFailure(name, line.agent, reasons.join('; '), details) };
}

function drawFailure(name: string, classname: string, message: string, details: string): string {
  return `<testcase ${attributes({ name, classname })}><failure ${attributes({ message })}>${escapeXml(details)}</failure></testcase>\n`;
}

function attributes(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escapeXml(value.slice(0, MAX_TEXT).replace(/\s+/g, ' '))}"`)
    .join(' ');
}

/** What XML has no way to write at all (most control characters) is shown by its code. */
function escapeXml(text: string): string {
  return xmlText(withVisibleMarks(text));
}
