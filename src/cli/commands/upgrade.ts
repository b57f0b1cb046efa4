/**
 * `perdura upgrade`: the builds of the workers (Temporal's Worker Versioning), and which of them takes new conversations. `perdura
 * check-upgrade`: whether open ones go on with another build of the workflow code, before it is rolled out.
 */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import type { Deployments, DeploymentStanding } from '../../client/temporal/deployments.js';
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
import { renderTable, type Column, type Look } from '../views/table.js';

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

const CHECK_UPGRADE: CommandRow = {
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
};

interface UpgradeOptions {
  readonly deployment?: string;
  readonly wake?: true;
  readonly parked?: true;
  readonly force?: true;
}

const DEPLOYMENT = ['--deployment <name>', 'which deployment; default: TEMPORAL_DEPLOYMENT_NAME, else that of the task queue'] as const;
const FORCE = ['--force', 'also where none of its workers asks for work, or it lacks a task queue of the build before'] as const;

export const UPGRADE: readonly CommandRow[] = [
  {
    name: 'upgrade',
    description: 'show the builds of the workers and how many conversations are on each; --wake moves those that are idle',
    options: [
      DEPLOYMENT,
      ['--wake', 'idle conversations move now to the build that takes new ones; others once their turn has ended'],
      ['--parked', 'with --wake: those that wait for a person inside a turn move too'],
    ],
    help: `Examples:
  perdura upgrade current v42     new conversations begin on v42; others move there between turns
  perdura upgrade ramp v42 5      5 % of them
  perdura upgrade --wake          also those that are idle
  perdura upgrade current v41     back again

Builds are those of Temporal's Worker Versioning: docs/operations/upgrading.md.`,
    async run(frame, { deployment: wanted, wake, parked }: UpgradeOptions): Promise<Answer> {
      if (parked && !wake) throw new CliError('--parked says which conversations --wake moves: add --wake', EXIT.usage);
      return withDeployments(frame, wanted, async (deployments, deployment, session) => {
        const before = await session.withSlowNotice('looking up builds', deployments.standing(deployment));
        if (!wake) return drawStanding(before);
        const { current, ramping } = before;
        if (current === null)
          throw new CliError(
            `cannot wake: deployment ${deployment} has no current build; \`perdura upgrade current BUILD\` makes one`,
            EXIT.failed,
          );
        const targets = [current, ...(ramping === null ? [] : [ramping.build])];
        const waking = deployments.wake(deployment, targets, { ...(parked && { parked }), signal: session.signal });
        const told = await session.withSlowNotice('waking conversations', waking);
        const data = { deployment, targets, told };
        const what = `${counted(told, 'conversation or memory', 'conversations and memories')} on other builds`;
        return {
          data,
          text: told === 0 ? `nothing is on another build than ${targets.join(' and ')}` : `told ${what} to move`,
          notes: told === 0 ? [] : ['`perdura upgrade` shows how many are still there'],
          problems: listProblems(before),
        };
      });
    },
  },
  {
    name: 'upgrade current',
    description: 'make a build the one on which new conversations begin, and to which others move between turns',
    args: [['<build>', 'its build id, as TEMPORAL_WORKER_BUILD_ID of its workers']],
    options: [DEPLOYMENT, FORCE],
    async run(frame, buildId: string, { deployment: wanted, force }: UpgradeOptions): Promise<Answer> {
      return withDeployments(frame, wanted, async (deployments, deploymentName, { withSlowNotice }) => {
        await withSlowNotice(
          'changing the current build',
          deployments.setCurrent({ deploymentName, buildId }, { ...(force && { force }) }),
        );
        return {
          data: { deployment: deploymentName, current: buildId },
          text: `new conversations begin on ${buildId}; others move there between turns`,
          notes: ['`perdura upgrade --wake` moves those that are idle'],
          temporal: ['worker', 'deployment', 'set-current-version', '--deployment-name', deploymentName, '--build-id', buildId],
        };
      });
    },
  },
  {
    name: 'upgrade ramp',
    description: 'give a build a share of the conversations; 0 takes it away again',
    args: [
      ['<build>', 'its build id'],
      ['<percent>', 'from 0 to 100, with decimals'],
    ],
    options: [DEPLOYMENT, FORCE],
    async run(frame, buildId: string, percent: string, { deployment: wanted, force }: UpgradeOptions): Promise<Answer> {
      const percentage = Number(percent);
      if (!/^\d{1,3}(\.\d+)?$/.test(percent) || percentage > 100)
        throw new CliError(`${JSON.stringify(percent.slice(0, 20))} is no share: write 0 to 100, such as 5 or 12.5`, EXIT.usage);
      return withDeployments(frame, wanted, async (deployments, deploymentName, { withSlowNotice }) => {
        const setting = deployments.setRamp({ deploymentName, buildId }, percentage, { ...(force && { force }) });
        await withSlowNotice('changing the ramp', setting);
        const words = ['--deployment-name', deploymentName, '--build-id', buildId, '--percentage', percent];
        return {
          data: { deployment: deploymentName, ramping: percentage === 0 ? null : { build: buildId, percentage } },
          text: percentage === 0 ? `${buildId} gets no more conversations by a ramp` : `${percent} % of the conversations go to ${buildId}`,
          temporal: ['worker', 'deployment', 'set-ramping-version', ...words],
        };
      });
    },
  },
  CHECK_UPGRADE,
];

async function withDeployments(
  frame: CommandFrame,
  wanted: string | undefined,
  work: (deployments: Deployments, deployment: string, session: CommandSession) => Promise<Answer>,
): Promise<Answer> {
  const session = await frame.open();
  const { createDeployments, readRouting } = await import('../../client/temporal/deployments.js');
  const { taskQueue, deploymentName } = session.config;
  const connection = await openNamespace(session.temporal);
  const queue = { namespace: session.temporal.namespace, taskQueue };
  try {
    const deployment = wanted ?? deploymentName ?? (await readRouting(connection.workflowService, queue)).current?.deploymentName;
    if (deployment === undefined)
      throw new CliError(
        `the workers of task queue ${taskQueue} have no builds: set TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID for them, or name a deployment with --deployment`,
        EXIT.failed,
      );
    return await work(createDeployments(connection.workflowService, queue), deployment, session);
  } finally {
    await connection.close();
  }
}

function drawStanding(standing: DeploymentStanding): Answer {
  const { deployment, builds, withoutBuild } = standing;
  return {
    data: standing,
    draw: (look) => renderBuilds(standing, look),
    notes: [
      ...(builds.length === 0 ? [`deployment ${deployment} has no builds yet`] : []),
      ...(withoutBuild > 0 ? [`${counted(withoutBuild, 'conversation')} on workers without a build, or not worked yet`] : []),
    ],
    problems: listProblems(standing),
    temporal: ['worker', 'deployment', 'describe', '--name', deployment],
  };
}

function listProblems({ builds }: DeploymentStanding): readonly string[] {
  return builds
    .filter(({ workers, conversations }) => workers === 0 && conversations > 0)
    .map(
      ({ build, conversations }) =>
        `build ${build} has no worker, and ${counted(conversations, 'conversation')} on it: they wait until one runs (docs/operations/upgrading.md says how they move without)`,
    );
}

function renderBuilds({ builds, ramping }: DeploymentStanding, look: Look): StyledLine[] {
  const columns: Column<DeploymentStanding['builds'][number]>[] = [
    { title: 'BUILD', cell: ({ build }) => toTerminalLine(build, 64), look: () => 'cyan', rank: 0 },
    {
      title: 'STATUS',
      cell: ({ build, status }) => (ramping?.build === build ? `${status} ${ramping.percentage} %` : status),
      look: ({ status }) => (status === 'current' ? 'green' : status === 'ramping' ? 'yellow' : 'dim'),
      rank: 1,
    },
    { title: 'WORKERS', cell: ({ workers }) => formatCount(workers), align: 'right', rank: 3 },
    { title: 'CONVERSATIONS', cell: ({ conversations }) => formatCount(conversations), align: 'right', rank: 2 },
  ];
  return builds.length === 0 ? [] : renderTable(builds, columns, look);
}

// Whether open conversations go on with another build's code.

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
