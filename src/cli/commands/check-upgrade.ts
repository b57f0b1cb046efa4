/** `perdura check-upgrade`: whether open conversations go on with another build of the workflow code, before it is rolled out. */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import type { CheckedRun, CheckOutcome, OpenRun } from '../../client/upgrade-check.js';
import { toClientError } from '../../client/errors.js';
import { errorMessage } from '../../platform/errors.js';
import { counted } from '../../records/text.js';
import { parseCount } from '../args/values.js';
import { openNamespace } from '../services/temporal-connection.js';
import type { Answer, CommandFrame, CommandRow, CommandSession } from '../session/command.js';
import { createReplay } from '../session/connect.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { formatCount } from '../views/quantities.js';

interface CheckOptions {
  readonly bundle?: string;
  readonly query?: string;
  readonly limit: number;
  readonly jobs: number;
  readonly shard?: Shard;
  readonly junit?: string;
  readonly strict?: true;
}

/** Counted from 1. */
interface Shard {
  readonly part: number;
  readonly parts: number;
}

/** Fewer a process are done before another one has started. */
const MIN_PER_JOB = 100;
/** Of each outcome, for people. */
const MAX_NAMED = 20;
/** The SDK's worker for replays waits as long for the next history. */
const REST_MS = 1_000;

export const CHECK_UPGRADE: readonly CommandRow[] = [
  {
    name: 'check-upgrade',
    description: 'replay all open conversations by the workflow code of this installation; exit code 1 where some would break',
    options: [
      ['--bundle <file>', "another build's code, such as its dist/workflow-bundle.js"],
      ['-q, --query <query>', "only those that fit a query of Temporal's visibility"],
      ['--limit <count>', 'of more than so many a sample, the same ones every time', parseCount, 5_000],
      ['--jobs <count>', 'processes at once', parseCount, availableParallelism()],
      ['--shard <part/parts>', 'only one part of them, such as 1/4: for jobs of CI that share the work', parseShard],
      ['--junit <file>', 'write a report that CI systems read'],
      ['--strict', 'those that are pinned to a build break too where they do not replay'],
    ],
    help: `The code is this installation's, with the reducers of the folder's perdura.config.ts, or that of --bundle. Of each conversation the present
run is replayed. One that is pinned to a build of its workers (Worker Versioning) and does not replay stays there until it hands over: it is
named, and is no failure. Exit codes: 0 all go on, 1 some break or could not be read, 2 the code cannot be used, 3 Temporal is not there.`,
    run: checkUpgrade,
  },
];

function parseShard(text: string): Shard {
  const [, part, parts] = (/^(\d{1,4})\/(\d{1,4})$/.exec(text) ?? []).map(Number);
  if (part === undefined || parts === undefined || part < 1 || part > parts)
    throw new InvalidArgumentError('write a part and how many there are, such as 1/4.');
  return { part, parts };
}

async function checkUpgrade(frame: CommandFrame, options: CheckOptions): Promise<Answer> {
  const { bundle, query, limit, jobs, shard, junit, strict = false } = options;
  const { cwd } = frame.config();
  const code = bundle === undefined ? undefined : await readBundle(resolve(cwd, bundle));
  const session = await frame.open();
  const { config, temporal, signal, withSlowNotice } = session;
  const [{ Client }, { checkRuns, createFetch, isInSample, listOpenRuns, openQuery, choosePart, toJUnit }] = await Promise.all([
    import('@temporalio/client'),
    import('../../client/upgrade-check.js'),
  ]);
  const { namespace } = temporal;
  const connection = await openNamespace(temporal);
  const begun = Date.now();
  try {
    const client = new Client({ connection, namespace });
    const ours = openQuery(config.taskQueue, query);
    const { count: open } = await client.workflow.count(ours).catch(explainQuery(query));
    const share = limit / Math.max(1, open);
    const { part, parts } = shard ?? { part: 1, parts: 1 };
    const runs: OpenRun[] = [];
    const list = async (): Promise<void> => {
      for await (const run of listOpenRuns(client, ours)) {
        if (isInSample(run.id, share) && choosePart(run.id, parts) === part - 1) runs.push(run);
      }
    };
    await withSlowNotice('listing open conversations', list());
    const processes = shard === undefined ? Math.max(1, Math.min(jobs, Math.floor(runs.length / MIN_PER_JOB))) : 1;
    const mine: CheckedRun[] = [];
    const here = checkRuns(
      runs.filter(({ id }) => processes === 1 || choosePart(id, processes) === 0),
      {
        ...{ fetch: createFetch(client, namespace), replay: createReplay(config, REST_MS, code), isStrict: strict, signal },
        checked: (run) => void mine.push(run),
      },
    );
    const others = Array.from({ length: processes - 1 }, (_, at) => checkElsewhere(session, options, { part: at + 2, parts: processes }));
    const [, elsewhere] = await withSlowNotice(`replaying ${counted(runs.length, 'run')}`, Promise.all([here, Promise.all(others)]));
    const checked = [...mine, ...elsewhere.flat()];
    const seconds = (Date.now() - begun) / 1000;
    if (junit !== undefined) await writeReport(resolve(cwd, junit), toJUnit(checked, seconds));
    return toAnswer(checked, { code: bundle ?? null, open, isSample: share < 1, seconds });
  } finally {
    await connection.close();
  }
}

async function readBundle(file: string): Promise<string> {
  const refuse = (what: string, cause?: unknown): CliError => new CliError(`cannot check by ${file}: it ${what}`, EXIT.usage, { cause });
  const code = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw refuse(`cannot be read (${errorMessage(cause)}); name the dist/workflow-bundle.js of the other build`, cause);
  });
  const { missingExports } = await import('../../extensions/custom-workflows.js');
  const missing = missingExports(code, [], refuse);
  if (missing.length > 0) throw refuse(`does not export ${missing.join(', ')}; name the dist/workflow-bundle.js of the other build`);
  return code;
}

function explainQuery(query: string | undefined): (error: unknown) => never {
  return (error) => {
    const failure = toClientError(error, query === undefined ? 'cannot list open conversations' : `cannot check by ${query}`);
    if (query === undefined || failure.kind !== 'invalid') throw failure;
    throw new CliError(`${failure.message}; \`perdura list --help\` has an example`, EXIT.usage, { cause: error });
  };
}

/** The same command in another process, for another part of them. */
async function checkElsewhere(session: CommandSession, options: CheckOptions, { part, parts }: Shard): Promise<readonly CheckedRun[]> {
  const { bundle, query, limit, strict } = options;
  const given = [
    ...['check-upgrade', '--shard', `${part}/${parts}`, '--limit', String(limit), '-o', 'json'],
    ...(bundle === undefined ? [] : ['--bundle', bundle]),
    ...(query === undefined ? [] : ['--query', query]),
    ...(strict ? ['--strict'] : []),
  ];
  const { surroundings, config, signal } = session;
  const child = spawn(process.execPath, [join(__dirname, '..', 'main.js'), ...given], {
    cwd: config.cwd,
    env: { ...surroundings.env, ...config.temporalEnv },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  });
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) child[name].setEncoding('utf8').on('data', (text: string) => (printed[name] += text));
  const code = await new Promise<number | null>((end, fail) => child.once('error', fail).once('close', end));
  if (code === EXIT.ok || code === EXIT.failed) {
    const answer = readJson(printed.stdout);
    if (answer !== undefined) return answer.runs;
  }
  throw new CliError(
    `part ${part} of ${parts} could not be checked: ${printed.stderr.trim() || `its process ended with ${code}`}`,
    code ?? EXIT.failed,
  );
}

function readJson(text: string): Report | undefined {
  try {
    return JSON.parse(text) as Report;
  } catch {
    return undefined;
  }
}

async function writeReport(file: string, report: string): Promise<void> {
  await writeFile(file, report).catch((cause: unknown) => {
    throw new CliError(`cannot write the report ${file}: ${errorMessage(cause)}; name a file in a folder that is there`, EXIT.usage, {
      cause,
    });
  });
}

interface Report {
  /** The file of `--bundle`; null: the code of this installation. */
  readonly code: string | null;
  /** Conversations and memories that fit, whether checked or not. */
  readonly open: number;
  readonly isSample: boolean;
  readonly seconds: number;
  readonly turns: number;
  readonly counts: Readonly<Record<CheckOutcome, number>>;
  readonly runs: readonly CheckedRun[];
}

function toAnswer(runs: readonly CheckedRun[], about: Pick<Report, 'code' | 'open' | 'isSample' | 'seconds'>): Answer {
  const counts = { replays: 0, breaks: 0, stays: 0, unread: 0, ended: 0 };
  for (const { outcome } of runs) counts[outcome] += 1;
  const turns = runs.reduce((sum, run) => sum + run.turns, 0);
  const report: Report = { ...about, turns, counts, runs };
  const failed = counts.breaks + counts.unread;
  const sample = about.isSample ? `, a sample of ${formatCount(about.open)}; --limit checks more` : '';
  const speed = `${formatCount(turns)} turns in ${about.seconds.toFixed(1)} s`;
  return {
    data: report,
    draw: () => [
      ...listOutcome('would break', 'red', 'breaks', runs),
      ...listOutcome('could not be read', 'red', 'unread', runs),
      ...listOutcome('stays on its build until it hands over', 'yellow', 'stays', runs),
    ],
    say:
      failed > 0
        ? `${formatCount(failed)} of ${counted(runs.length, 'open run')} would not go on with this code${sample} (${speed})`
        : `${counted(runs.length - counts.stays - counts.ended, 'open run')} of ${formatCount(runs.length)} replayed by this code, and none would break${sample} (${speed})`,
    ...(counts.breaks > 0 && {
      problems: ['do not roll this code out to workers without builds: docs/operations/upgrading.md says what to do about runs that break'],
    }),
    exitCode: failed > 0 ? EXIT.failed : EXIT.ok,
  };
}

function listOutcome(words: string, style: 'red' | 'yellow', outcome: CheckOutcome, runs: readonly CheckedRun[]): StyledLine[] {
  const found = runs.filter((run) => run.outcome === outcome);
  const lines = found
    .slice(0, MAX_NAMED)
    .map(({ id, build, why = '' }): StyledLine => [
      { text: `${id}  `, style: 'cyan' },
      { text: `${words}${build === null ? '' : ` (${toTerminalLine(build, 64)})`}: `, style },
      { text: toTerminalLine(why, 300) },
    ]);
  const more = found.length - lines.length;
  return more > 0 ? [...lines, [{ text: `… and ${formatCount(more)} more: -o json names them all`, style: 'dim' }]] : lines;
}
