/** `perdura whatif`: recorded conversations once more, with something changed. */
import { createWriteStream, type WriteStream } from 'node:fs';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Option } from 'commander';
import { needsStandIn, providerSettings, type Config } from '../../../config.js';
import type { Reducers } from '../../../conversation/context/reducers.js';
import { agentsFolder } from '../../../agents/load-agent.js';
import { createModels } from '../../../models/providers.js';
import { createOfflineModel, OFFLINE_MODEL } from '../../../models/offline.js';
import { errorMessage } from '../../../platform/errors.js';
import { isRecord } from '../../../platform/json.js';
import type { JsonObject } from '../../../records/message.js';
import { counted } from '../../../records/text.js';
import { openStore } from '../../../stores/open.js';
import { builtinToolsWith } from '../../../tools/builtin/index.js';
import type { Candidate, Changes, Project } from '../../../whatif/project.js';
import type { Recordings } from '../../../whatif/recording.js';
import type { Divergence, ReportedConversation, ReportLine, ToolPolicy } from '../../../whatif/report.js';
import type { Stub } from '../../../whatif/stub.js';
import { createTotals } from '../../../whatif/totals.js';
import { presentReport } from './report.js';
import { findConversation } from '../../args/find-conversation.js';
import { parseCount } from '../../args/values.js';
import { openNamespace } from '../../services/temporal-connection.js';
import { createReplay } from '../../session/connect.js';
import type { Answer, CommandFrame, CommandRow, CommandSession } from '../../session/command.js';
import { CliError, EXIT } from '../../terminal/exit.js';
import { toTerminalLine, type StyledLine } from '../../terminal/terminal-text.js';

interface WhatIfFlags {
  readonly agent?: string;
  readonly last: number;
  readonly query?: string;
  readonly model?: string;
  readonly agentDir?: string;
  readonly prompt?: string;
  readonly settings?: string;
  readonly build?: string;
  readonly tools: ToolPolicy;
  readonly stubs?: string;
  readonly memory: 'recorded' | 'candidate';
  readonly gaps: 'play' | 'skip';
  readonly baseline?: true;
  readonly judge?: string;
  readonly rubric?: string;
  readonly report?: string;
  readonly jobs: number;
}

const DEFAULT_REPORT = join('.perdura', 'whatif.jsonl');
const DEFAULT_RUBRIC =
  'Which conversation helps the person better: what the person wants is done, what is told is true, and nothing else is done?';
/** The SDK's worker for replays waits as long for the next history. */
const REST_MS = 5_000;
const DEFAULT_LAST = 20;
const MAX_LAST = 10_000;

export const WHATIF: readonly CommandRow[] = [
  {
    name: 'whatif',
    description: 'play recorded conversations again with something changed; exit code 1 where one could not be played',
    args: [['[ids...]', 'conversations, or the beginnings of their ids']],
    options: [
      ['--agent <name>', 'conversations of this agent, the latest of them (--last)'],
      ['-q, --query <query>', "those that fit a query of Temporal's visibility, the latest of them (--last)"],
      ['--last <count>', 'at most so many', parseCount, DEFAULT_LAST],
      ['--model <provider/model>', 'another model'],
      ['--agent-dir <folder>', 'another folder of agents'],
      ['--prompt <file>', 'in place of SOUL.md'],
      ['--settings <file>', 'laid over agent.json'],
      ['--build <folder>', 'another checkout of the project: its perdura.config and its agents'],
      new Option(
        '--tools <policy>',
        'for a call that was not made then: stop there, answer with a stub, or run what is repeatable and asks no one',
      )
        .choices(['stop', 'stub', 'live'])
        .default('stop'),
      ['--stubs <file>', 'a module whose default export answers such calls (with --tools stub)'],
      new Option('--memory <which>', 'compactions, recall and MEMORY.md as they were, or as they would be now')
        .choices(['recorded', 'candidate'])
        .default('recorded'),
      new Option('--gaps <how>', 'conversations of which something is missing').choices(['play', 'skip']).default('play'),
      ['--baseline', 'play the recorded configuration beside it, so that the noise of a model shows'],
      ['--judge <provider/model>', 'a model says which one is better: blind, and in both orders'],
      ['--rubric <file>', 'what counts for the judge (default: what helps the person)'],
      ['--report <file>', `where the report goes, as lines of JSON (default: ${DEFAULT_REPORT})`],
      ['--jobs <count>', 'conversations at once', parseCount, 2 * availableParallelism()],
    ],
    help: `What people sent and decided comes again where it came then, and a call of a tool is answered with what it answered then: the same name and
arguments, the nth time for the nth time. Nothing is called but the model, and nothing is written but the report. Without any change the
project is played as it is now: what differs has changed since.`,
    run: whatIfCommand,
  },
];

async function whatIfCommand(frame: CommandFrame, given: readonly string[], flags: WhatIfFlags): Promise<Answer> {
  const { cwd } = frame.config();
  if (given.length === 0 && flags.agent === undefined && flags.query === undefined)
    throw new CliError('cannot play: say which conversations: ids, --agent NAME or --query QUERY', EXIT.usage);
  if (flags.stubs !== undefined && flags.tools !== 'stub')
    throw new CliError(`--stubs ${flags.stubs} is for --tools stub: write both, or none`, EXIT.usage);
  if (flags.last > MAX_LAST) throw new CliError(`--last ${flags.last} is too many: at most ${MAX_LAST} are played at a time`, EXIT.usage);
  const { changes, lines } = await readChanges(flags, cwd);
  const rubric = await readRubric(flags, cwd);
  const session = await frame.open();
  const { config, signal } = session;
  const [{ whatIf }, { createJudge }, { changeProject }] = await Promise.all([
    import('../../../whatif/whatif.js'),
    import('../../../whatif/judge.js'),
    import('../../../whatif/project.js'),
  ]);
  const [project, bundle] = await readProject(config, config.cwd, agentsFolderGiven(config));
  const [from] = flags.build === undefined && flags.agentDir === undefined ? [project] : await readOther(config, flags);
  const candidate: Candidate = changeProject(from, changes);
  const stub = flags.stubs === undefined ? undefined : await readStubs(resolve(cwd, flags.stubs), flags.stubs);
  const ids = await listIds(session, given, flags);
  if (ids.length === 0) throw new CliError('nothing is played: no conversation fits; `perdura list` shows what there is', EXIT.notFound);
  const judge = rubric && {
    name: rubric.name,
    ...createJudge({ ...rubric, model: project.models(rubric.name), limits: project.models.limits(rubric.name) }),
  };
  const recorded = session.surroundings.recordings;
  const { recordings, close } = recorded === undefined ? await openRecordings(session, bundle) : { recordings: recorded, close: nothing };
  const file = resolve(cwd, flags.report ?? DEFAULT_REPORT);
  if (flags.report === undefined) await mkdir(dirname(file), { recursive: true });
  const report = openReport(file);
  try {
    const played: ReportedConversation[] = [];
    const totals = createTotals();
    const all = whatIf(ids, {
      ...{ recordings, project, candidate, changes: lines, policy: flags.tools, memory: flags.memory, gaps: flags.gaps },
      ...{ hasBaseline: flags.baseline === true, atOnce: Math.max(1, flags.jobs), signal, ...(stub && { stub }) },
      ...(judge && { judge }),
    });
    for await (const line of all) {
      await report.add(line);
      if (line.kind !== 'conversation') continue;
      totals.add(line);
      // What people see of it is short; the whole of it is in the report.
      played.push(withoutTurns(line));
      if (session.globals.output === 'text') session.output.draw(describe(line));
    }
    await report.add(totals.end());
    await report.close();
    const answer = toAnswer(played, flags.report ?? DEFAULT_REPORT);
    const { draw } = await presentReport(file, {});
    return draw ? { ...answer, draw } : answer;
  } finally {
    await report.close();
    await close();
  }
}

const nothing = (): Promise<void> => Promise.resolve();

/** Of Temporal and the store, by this folder's code, which may be bundled already. */
async function openRecordings(
  { config, client, temporal }: CommandSession,
  bundle: string | undefined,
): Promise<{ readonly recordings: Recordings; close(): Promise<void> }> {
  const { readRecordings } = await import('../../../whatif/recording.js');
  const connection = await openNamespace(temporal);
  const store = openStore(config);
  return {
    recordings: readRecordings({
      ...{ service: connection.workflowService, namespace: temporal.namespace, store, findKey: (id) => client.key(id) },
      replay: createReplay(config, REST_MS, bundle),
    }),
    async close() {
      await store.close();
      await connection.close();
    },
  };
}

async function readChanges(flags: WhatIfFlags, cwd: string): Promise<{ readonly changes: Changes; readonly lines: readonly string[] }> {
  const { model, prompt, settings, agentDir, build } = flags;
  if (model !== undefined) refuseNoModel('--model', model);
  for (const [flag, folder] of [
    ['--agent-dir', agentDir],
    ['--build', build],
  ] as const) {
    if (folder === undefined) continue;
    const isFolder = await stat(resolve(cwd, folder)).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isFolder) throw new CliError(`${flag} ${folder} is no folder`, EXIT.usage);
  }
  const text = prompt === undefined ? undefined : await readText(resolve(cwd, prompt), '--prompt');
  const laidOver = settings === undefined ? undefined : readObject(await readText(resolve(cwd, settings), '--settings'), settings);
  return {
    changes: {
      ...(model !== undefined && { model }),
      ...(text !== undefined && { prompt: text }),
      ...(laidOver && { settings: laidOver }),
    },
    lines: Object.entries({ model, agents: agentDir, prompt, settings, build }).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}: ${value}`],
    ),
  };
}

async function readRubric(
  { judge, rubric }: WhatIfFlags,
  cwd: string,
): Promise<{ readonly name: string; readonly rubric: string } | undefined> {
  if (judge === undefined && rubric !== undefined)
    throw new CliError(`--rubric ${rubric} is for a judge: name its model with --judge PROVIDER/MODEL`, EXIT.usage);
  if (judge === undefined) return undefined;
  refuseNoModel('--judge', judge);
  return { name: judge, rubric: rubric === undefined ? DEFAULT_RUBRIC : await readText(resolve(cwd, rubric), '--rubric') };
}

function refuseNoModel(flag: string, name: string): void {
  if (/^[a-z0-9][a-z0-9._-]*\/\S+$/i.test(name)) return;
  throw new CliError(`${flag} ${name} is no model: write provider/model, such as anthropic/claude-sonnet-5-5`, EXIT.usage);
}

async function readText(file: string, flag: string): Promise<string> {
  return readFile(file, 'utf8').catch((cause: unknown) => {
    throw new CliError(`cannot read ${flag} ${file}: ${errorMessage(cause)}`, EXIT.usage, { cause });
  });
}

function readObject(text: string, file: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value)) return value as JsonObject;
  } catch (cause) {
    throw new CliError(`--settings ${file} is not JSON: ${errorMessage(cause)}`, EXIT.usage, { cause });
  }
  throw new CliError(`--settings ${file} is no object: write what of agent.json is to be different`, EXIT.usage);
}

function agentsFolderGiven(config: Config): (configured?: string) => string {
  return (configured) => agentsFolder(config, configured);
}

/** The other agents, or the other checkout, of which only the settings of providers are this one's. */
async function readOther(config: Config, { build, agentDir }: WhatIfFlags): Promise<readonly [Project, bundle?: string]> {
  const folder = build === undefined ? config.cwd : resolve(config.cwd, build);
  if (agentDir !== undefined) return readProject(config, folder, () => resolve(config.cwd, agentDir));
  return readProject(config, folder, (configured) => agentsFolder({ cwd: folder, agentsDir: join(folder, 'agents') }, configured));
}

/** With the code of its workflows, where they are not ours: it has the reducers, and replays what they have made. */
async function readProject(
  config: Config,
  cwd: string,
  agentsAt: (configured?: string) => string,
): Promise<readonly [Project, bundle?: string]> {
  const [{ loadUserConfig }, { openProject }, { toolSettings }] = await Promise.all([
    import('../../../extensions/user-config.js'),
    import('../../../whatif/project.js'),
    import('../../../worker.js'),
  ]);
  const extensions = await loadUserConfig(cwd);
  const agentsDir = agentsAt(extensions.agentsDir);
  const { bundle, reducers } = extensions.workflows === undefined ? {} : await bundleWorkflows(extensions.workflows, cwd);
  const project = openProject({
    ...{ cwd, agentsDir, extensions, ...(reducers && { reducers }) },
    tools: [...builtinToolsWith(toolSettings(config, agentsDir)), ...(extensions.tools ?? [])],
    models: createModels({
      ...providerSettings(config),
      custom: { offline: createOfflineModel({ delayMs: 0 }), ...extensions.providers },
      declared: extensions.models,
      silence: extensions.silence,
    }),
    defaultModel: needsStandIn(config) ? OFFLINE_MODEL : config.model,
  });
  return [project, bundle];
}

async function bundleWorkflows(entry: string, cwd: string): Promise<{ readonly bundle?: string; readonly reducers?: Reducers }> {
  const { bundleCustomWorkflows, reducersIn } = await import('../../../extensions/custom-workflows.js');
  // A worker has given its warnings, each time that it started.
  const { code } = await bundleCustomWorkflows(entry, { cwd, log: { warn: () => undefined } });
  return { bundle: code, reducers: reducersIn(code, resolve(cwd, entry)) };
}

async function readStubs(file: string, shown: string): Promise<Stub> {
  const [{ importDefault }, { toStub }] = await Promise.all([
    import('../../../extensions/user-config.js'),
    import('../../../whatif/stub.js'),
  ]);
  const exported = await importDefault(file).catch((cause: unknown) => {
    throw new CliError(`cannot load --stubs ${file}: ${errorMessage(cause)}`, EXIT.usage, { cause });
  });
  try {
    return toStub(exported, shown);
  } catch (cause) {
    throw new CliError(errorMessage(cause), EXIT.usage, { cause });
  }
}

/** Latest first; those that are named in their order. */
async function listIds(session: CommandSession, given: readonly string[], { agent, query, last }: WhatIfFlags): Promise<readonly string[]> {
  const named: string[] = [];
  for (const one of given) named.push(await findConversation(session, one));
  if (agent === undefined && query === undefined) return [...new Set(named)];
  const { client, withSlowNotice } = session;
  const listing = client.list({
    limit: last,
    ...(query !== undefined && { query }),
    // Sub-agents are played with their conversations.
    where: ({ id, agent: of }) => !id.includes(':') && (agent === undefined || of === agent),
  });
  const listed = await withSlowNotice('listing conversations', listing);
  return [...new Set([...named, ...listed.map(({ id }) => id)])];
}

interface ReportFile {
  add(line: ReportLine): Promise<void>;
  close(): Promise<void>;
}

function openReport(file: string): ReportFile {
  const stream: WriteStream = createWriteStream(file);
  let failure: unknown;
  stream.on('error', (error) => (failure = error));
  const refuse = (): never => {
    throw new CliError(`cannot write the report ${file}: ${errorMessage(failure)}; name a file in a folder that is there`, EXIT.usage, {
      cause: failure,
    });
  };
  return {
    async add(line) {
      if (failure !== undefined) refuse();
      if (!stream.write(`${JSON.stringify(line)}\n`)) await Promise.race([once(stream, 'drain'), once(stream, 'close')]);
      if (failure !== undefined) refuse();
    },
    async close() {
      if (!stream.writableEnded) await new Promise<void>((end) => stream.end(end));
      if (failure !== undefined) refuse();
    },
  };
}

function withoutTurns(line: ReportedConversation): ReportedConversation {
  const lanes = Object.fromEntries(Object.entries(line.lanes).map(([name, lane]) => [name, { ...lane, turns: [] }]));
  return { ...line, lanes };
}

function describe({ id, skipped, lanes, turns, gaps }: ReportedConversation): StyledLine {
  const { candidate } = lanes;
  const name = { text: `${id}  `, style: 'cyan' } as const;
  if (skipped !== undefined) return [name, { text: `not played: ${toTerminalLine(skipped, 300)}`, style: 'red' }];
  const missing = gaps.length === 0 ? '' : ` (${toTerminalLine(gaps.join('; '), 200)})`;
  if (candidate?.stopped)
    return [
      name,
      { text: `stopped in ${candidate.stopped.turn}: ${toTerminalLine(candidate.stopped.why, 300)}${missing}`, style: 'yellow' },
    ];
  if (!candidate?.divergence) return [name, { text: `${counted(turns, 'turn')}, all the same${missing}`, style: 'green' }];
  const { divergence, answerDivergence } = candidate;
  const answers = answerDivergence
    ? `; answers differ from ${place(answerDivergence)} on`
    : divergence.what === 'system'
      ? '; all answers the same'
      : '';
  return [name, { text: `differs from ${place(divergence)} on${answers}${missing}`, style: 'yellow' }];
}

function place({ turn, call, of, what }: Divergence): string {
  return `${turn}, call ${call}${of === undefined ? '' : ` of ${toTerminalLine(of, 100)}`} (${what})`;
}

function toAnswer(played: readonly ReportedConversation[], report: string): Answer {
  const of = (fits: (line: ReportedConversation) => boolean): number => played.filter(fits).length;
  const skipped = of((line) => line.skipped !== undefined);
  const stopped = of(({ lanes }) => lanes.candidate?.stopped !== undefined);
  const diverged = of(({ lanes }) => lanes.candidate !== undefined && lanes.candidate.divergence !== null);
  return {
    data: { conversations: played, skipped, stopped, diverged },
    say: `${counted(played.length - skipped, 'conversation')} played: ${diverged} differ, ${stopped} stopped, ${skipped} not played`,
    notes: [`the report is in ${report}: \`perdura report\` makes a page or JUnit of it`],
    exitCode: skipped > 0 ? EXIT.failed : EXIT.ok,
  };
}
