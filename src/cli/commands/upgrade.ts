/** `perdura upgrade`: the builds of the workers (Temporal's Worker Versioning), and which of them takes new conversations. */
import type { Deployments, DeploymentStanding } from '../../client/temporal/deployments.js';
import { counted } from '../../records/text.js';
import { openNamespace } from '../services/temporal-connection.js';
import type { Answer, CommandFrame, CommandRow, CommandSession } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { formatCount } from '../views/quantities.js';
import { renderTable, type Column, type Look } from '../views/table.js';

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
