/** `perdura report`: what a what-if has found, as people, browsers and build servers read it. It needs nothing but the file. */
import { createReadStream, createWriteStream } from 'node:fs';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { InvalidArgumentError } from 'commander';
import { errorMessage } from '../../../platform/errors.js';
import { DEFAULT_FAILURES, FAILURES, type Failure } from '../../../whatif/render-junit.js';
import type { ReportLine } from '../../../whatif/report.js';
import type { Answer, CommandFrame, CommandRow } from '../../session/command.js';
import { CliError, EXIT } from '../../terminal/exit.js';
import { plain } from '../../terminal/terminal-text.js';

/** Files that are made of a report, and what lets it fail. */
export interface ReportForms {
  readonly html?: string;
  readonly junit?: string;
  readonly failOn?: readonly Failure[];
}

export const REPORT: readonly CommandRow[] = [
  {
    name: 'report',
    description: 'show the report of a what-if; as an HTML page or as JUnit; exit code 1 where --fail-on finds something',
    args: [['<file>', 'which a what-if has written']],
    options: [
      ['--html <file>', 'write one HTML page, which needs nothing beside it'],
      ['--junit <file>', 'write JUnit, each conversation a test case'],
      [
        '--fail-on <what>',
        `what fails, separated by commas: ${FAILURES.join(', ')} (default: nothing; in JUnit ${DEFAULT_FAILURES.join(', ')})`,
        parseFailures,
      ],
    ],
    help: `acts: other tools are called than recorded, or a turn ends otherwise. differs: that, or other words. stopped: it was not played to its end.
worse: the judge, in both orders, prefers what was recorded.`,
    run: showReport,
  },
];

function parseFailures(text: string): readonly Failure[] {
  return text.split(',').map((word) => {
    const found = FAILURES.find((one) => one === word.trim());
    if (found === undefined) throw new InvalidArgumentError(`"${word.trim()}" is none of ${FAILURES.join(', ')}.`);
    return found;
  });
}

async function showReport(frame: CommandFrame, file: string, forms: ReportForms): Promise<Answer> {
  const { cwd } = frame.config();
  return presentReport(resolve(cwd, file), {
    ...forms,
    ...(forms.html !== undefined && { html: resolve(cwd, forms.html) }),
    ...(forms.junit !== undefined && { junit: resolve(cwd, forms.junit) }),
  });
}

/** Reads the file once for each form: nothing of it is kept but its summary. Paths are absolute. */
export async function presentReport(file: string, { html, junit, failOn }: ReportForms): Promise<Answer> {
  const [{ createSummary }, { renderTable }, { renderHtml }, { renderJunit, findFailures, findProblem }] = await Promise.all([
    import('../../../whatif/summary.js'),
    import('../../../whatif/render-table.js'),
    import('../../../whatif/render-html.js'),
    import('../../../whatif/render-junit.js'),
  ]);
  const summary = createSummary();
  const fails = new Set(failOn);
  let failed = 0;
  for await (const line of readFile(file)) {
    summary.add(line);
    if (line.kind === 'conversation' && findFailures(line, fails).length > 0) failed += 1;
  }
  const { findings, changes, about, totals, isWhole } = summary.end();
  if (html !== undefined) await write(html, 'the HTML page', renderHtml(readFile(file)));
  if (junit !== undefined) await write(junit, 'JUnit', renderJunit(readFile(file), failOn === undefined ? {} : { failOn }));
  const problem = failOn === undefined ? undefined : findProblem({ isWhole, totals });
  const written = [html, junit].filter((one) => one !== undefined);
  return {
    data: { about, findings, changes, totals, isWhole, failed, written },
    async draw({ width, measure }) {
      const lines: string[] = [];
      for await (const line of renderTable(readFile(file), { ...(width !== undefined && { width }), measure })) lines.push(line);
      return lines.map(plain);
    },
    notes: written.map((one) => `written: ${one}`),
    problems: [
      ...(failed > 0 ? [`${failed} of ${totals.conversations} conversations fail (--fail-on ${[...fails].join(',')})`] : []),
      ...(problem === undefined ? [] : [problem]),
    ],
    exitCode: failed > 0 || problem !== undefined ? EXIT.failed : EXIT.ok,
  };
}

async function* readFile(file: string): AsyncGenerator<ReportLine, void> {
  const { readReport } = await import('../../../whatif/read-report.js');
  try {
    yield* readReport(createReadStream(file), file);
  } catch (cause) {
    const why = cause instanceof Error && cause.name === 'ReportError' ? cause.message : `cannot read ${file}: ${errorMessage(cause)}`;
    throw new CliError(why, EXIT.usage, { cause });
  }
}

async function write(file: string, what: string, parts: AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(parts), createWriteStream(file));
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    throw new CliError(`cannot write ${what} to ${file}: ${errorMessage(cause)}. Name a file in a folder that is there.`, EXIT.usage, {
      cause,
    });
  }
}
