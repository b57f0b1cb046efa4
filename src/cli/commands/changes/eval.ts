/** `perdura eval`: runs the evals of the project, records a conversation as one, and runs them again whenever a file changes. */
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { providerSettings, secretsInFolder, secretsOf, secretVariables, variablesOf, type Config } from '../../../config.js';
import type { Claim } from '../../../evals/assertions.js';
import type { RealModel } from '../../../evals/run-eval.js';
import type { EvalResult, SuiteResult } from '../../../evals/suite.js';
import type { Extensions } from '../../../extensions/user-config.js';
import { errorMessage } from '../../../platform/errors.js';
import { createKnownSecrets } from '../../../platform/known-secrets.js';
import { counted, oneLine } from '../../../records/text.js';
import { findConversation } from '../../args/find-conversation.js';
import { parseAmount, parseCount, parseModelName } from '../../args/values.js';
import { watchProject } from '../../services/watch-project.js';
import type { Answer, CommandFrame, CommandRow } from '../../session/command.js';
import { CliError, EXIT } from '../../terminal/exit.js';
import { onInterrupt } from '../../terminal/input.js';
import type { Output } from '../../terminal/output.js';
import { toTerminalLine, type StyledLine } from '../../terminal/terminal-text.js';
import { rememberOwnEvals } from '../../trust/folder-trust.js';
import { withSource } from './datasets.js';

interface EvalOptions {
  readonly model?: string;
  readonly live?: true;
  readonly judge?: string;
  readonly runs: number;
  readonly passRate: number;
  readonly atOnce: number;
  readonly budget?: number;
  readonly strict?: true;
  readonly junit?: string;
  readonly watch?: true;
  readonly record?: string;
  readonly name?: string;
  readonly withMemory?: true;
}

/** Of failed runs of one case, for people. */
const MAX_RUNS_SHOWN = 3;
const FIRST_NOTICE_MS = 1_000;
const NEXT_NOTICE_MS = 5_000;

export const EVAL: readonly CommandRow[] = [
  {
    name: 'eval',
    description: 'run the evals of this folder, evals/*.eval.ts; exit code 1 where something does not hold',
    args: [['[words...]', 'only those with one of these in their name or file']],
    options: [
      ['--model <model>', "a real model in place of the evals' scripts, such as anthropic/claude-sonnet-5-5", parseModelName],
      ['--live', 'real models in place of the scripts: those that agents name'],
      ['--judge <model>', 'judges what evals have a rubric for', parseModelName],
      ['--runs <count>', 'of each eval and case', parseCount, 1],
      ['--pass-rate <share>', 'how many of the runs of a case have to pass, from 0 to 1', parseShare, 1],
      ['--at-once <count>', 'runs at the same time', parseCount, 4],
      ['--budget <usd>', 'once real models have cost so much, nothing more begins', parseAmount],
      ['--strict', 'soft claims count, and so do those that could not be looked at'],
      ['--junit <file>', 'write a report that CI systems read'],
      ['--watch', 'run them again when a file of the project changes, until Ctrl+C'],
      ['--record <id>', 'write a conversation as an eval with the answers of its model and tools; then run it'],
      ['--name <name>', 'with --record: of the new file (default: the id)'],
      ['--with-memory', 'with --record: MEMORY.md, and what tools have read of long-term memory, go along'],
    ],
    help: `Without --model and --live an eval's script is its model: no key, no socket, milliseconds. Each run is tried once: a provider that fails
fails it. Exit codes: 0 all holds, 1 something does not or did not run, 2 an eval or an option cannot be used, 3 something is missing, such as a
key. --record takes secrets out, and what was forgotten; the words of people stay, so read the files before you commit them.`,
    run: runEvals,
  },
];

function parseShare(text: string): number {
  const share = Number(text);
  if (text.trim() === '' || !(share >= 0 && share <= 1)) throw new InvalidArgumentError('write a share from 0 to 1, such as 0.9.');
  return share;
}

async function runEvals(frame: CommandFrame, words: readonly string[], options: EvalOptions): Promise<Answer | number> {
  const { record, watch, name, withMemory, live, model } = options;
  if (live === true && model !== undefined)
    throw new CliError('--live takes the models that agents name, and --model another: leave one out', EXIT.usage);
  if (record === undefined && (name !== undefined || withMemory === true))
    throw new CliError('--name and --with-memory are for --record', EXIT.usage);
  if (record !== undefined && (watch === true || words.length > 0))
    throw new CliError('--record writes one eval and runs it: leave --watch and the names of others out', EXIT.usage);
  if (watch === true) return watchEvals(frame, words, options);
  if (record !== undefined) return recordEval(frame, record, options);
  return runHere(frame, words, options);
}

async function runHere(frame: CommandFrame, words: readonly string[], options: EvalOptions): Promise<Answer> {
  const config = frame.config();
  const { output, surroundings, closed } = frame;
  const [{ loadEvals, hasScript }, { runSuite, isGreen, toJUnit }, { loadUserConfig }] = await Promise.all([
    import('../../../evals/load.js'),
    import('../../../evals/suite.js'),
    import('../../../extensions/user-config.js'),
  ]);
  const extensions = await loadUserConfig(config.cwd);
  const evals = await loadEvals(config.cwd, words);
  const { real, judge } = await openModels(config, extensions, options);
  const silent = evals.find((one) => real === undefined && !hasScript(one));
  if (silent !== undefined)
    throw new CliError(
      `${silent.file} has no script, so it needs a real model: --model names one, --live takes those that agents name`,
      EXIT.usage,
    );
  const stop = new AbortController();
  const forget = onInterrupt(surroundings.signals, () => stop.abort());
  const total = evals.length * options.runs;
  const progress = createProgress(output, total);
  let result: SuiteResult;
  try {
    result = await runSuite(evals, {
      ...{ project: config.cwd, extensions, signal: AbortSignal.any([stop.signal, closed]), runs: options.runs, atOnce: options.atOnce },
      ...(real && { real }),
      ...(judge && { judge }),
      ...(options.budget !== undefined && { budgetUsd: options.budget }),
      ran: progress.ran,
    });
  } finally {
    progress.end();
    forget();
  }
  const secrets = createKnownSecrets([...secretsOf(config), ...secretVariables(variablesOf(config)), ...secretsInFolder(config.cwd)]);
  const shown = secrets.redactIn(result);
  if (options.junit !== undefined) await writeReport(resolve(config.cwd, options.junit), toJUnit(shown));
  if (stop.signal.aborted) throw new CliError(`stopped: ${counted(shown.runs, 'run')} of ${total} had ended`, EXIT.interrupted);
  const green = isGreen(shown, { passRate: options.passRate, isStrict: options.strict === true });
  return toAnswer(shown, shown.missing !== undefined ? EXIT.unreachable : green ? EXIT.ok : EXIT.failed);
}

/** As the project's worker opens them. */
async function openModels(config: Config, extensions: Extensions, { model, live, judge, budget }: EvalOptions) {
  const isReal = model !== undefined || live === true;
  if (!isReal && judge === undefined) {
    if (budget === undefined) return {};
    throw new CliError('--budget is for real models: add --model, --live or --judge', EXIT.usage);
  }
  const [{ createModels }, { createOfflineModel }, { createJudge }] = await Promise.all([
    import('../../../models/providers.js'),
    import('../../../models/offline.js'),
    import('../../../evals/judge.js'),
  ]);
  const models = createModels({
    ...providerSettings(config),
    custom: { offline: createOfflineModel(), ...extensions.providers },
    declared: extensions.models,
    silence: extensions.silence,
  });
  for (const name of [model, judge]) {
    if (name === undefined) continue;
    try {
      models(name);
    } catch (error) {
      throw new CliError(errorMessage(error), EXIT.usage, { cause: error });
    }
    if (budget !== undefined && models.limits(name).price === null)
      throw new CliError(
        `no price of ${name} is known, so a budget cannot be kept: declare it under "models" of perdura.config, or leave --budget out`,
        EXIT.usage,
      );
  }
  const real: RealModel | undefined = isReal
    ? { models, defaultModel: config.model, ...(model !== undefined && { name: model }) }
    : undefined;
  return { ...(real && { real }), ...(judge !== undefined && { judge: createJudge(judge, models) }) };
}

async function recordEval(frame: CommandFrame, given: string, options: EvalOptions): Promise<Answer> {
  const [{ takeConversation }, { nameFor, writeEval }, { loadUserConfig }] = await Promise.all([
    import('../../../evals/from-conversation.js'),
    import('../../../evals/write-eval.js'),
    import('../../../extensions/user-config.js'),
  ]);
  if (options.name !== undefined && !/^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$/.test(options.name))
    throw new CliError(`${JSON.stringify(options.name)} is no name of an eval: write up to 80 letters, digits, - and _`, EXIT.usage);
  const session = await frame.open();
  const { config, signal, output } = session;
  const id = await findConversation(session, given);
  const taken = await session.withSlowNotice(
    `reading ${id}`,
    withSource(session, (source) => takeConversation(source, id, { withMemory: options.withMemory === true })),
  );
  const where = { project: config.cwd, name: options.name ?? nameFor(id), extensions: await loadUserConfig(config.cwd), signal };
  await rememberOwnEvals(config);
  const written = await session.withSlowNotice(`playing ${counted(taken.turns.length, 'turn')} of ${id}`, writeEval(taken, where));
  for (const gap of taken.gaps) output.note(`(${toTerminalLine(gap, 300)})`);
  const { data, ...answer } = await runHere(frame, [written.file], { ...options, runs: 1 });
  return {
    ...answer,
    data: { ...written, turns: taken.turns.length, gaps: taken.gaps, result: data },
    say: `wrote ${written.file} and ${written.recording}: read both before you commit them\n${answer.say ?? ''}`,
  };
}

async function writeReport(file: string, report: string): Promise<void> {
  await writeFile(file, report).catch((cause: unknown) => {
    throw new CliError(`cannot write the report ${file}: ${errorMessage(cause)}; name a file in a folder that is there`, EXIT.usage, {
      cause,
    });
  });
}

function createProgress(output: Pick<Output, 'note'>, total: number) {
  let done = 0;
  const tell = (): void => output.note(`${done} of ${counted(total, 'run')} done …`);
  let timer = setTimeout(function next() {
    tell();
    timer = setTimeout(next, NEXT_NOTICE_MS);
  }, FIRST_NOTICE_MS);
  return { ran: (now: number) => void (done = now), end: () => clearTimeout(timer) };
}

function toAnswer(result: SuiteResult, exitCode: number): Answer {
  const { evals, runs, failed, soft, skipped, notRun, whyNotRun, costUsd, seconds, missing } = result;
  const passed = runs - failed;
  const parts = [
    `${passed} of ${counted(runs, 'run')} passed`,
    ...(soft > 0 ? [`${counted(soft, 'soft claim')} did not hold`] : []),
    ...(skipped > 0 ? [`${counted(skipped, 'claim')} could not be looked at`] : []),
    ...(costUsd === null ? ['cost unknown'] : costUsd > 0 ? [`$${costUsd.toFixed(4)}`] : []),
    `${seconds.toFixed(1)} s`,
  ];
  return {
    data: result,
    draw: () => evals.flatMap(drawEval),
    say: parts.join(', '),
    problems: [
      ...(missing === undefined ? [] : [missing]),
      ...(notRun > 0 ? [`${counted(notRun, 'run')} did not begin: ${whyNotRun ?? 'it was stopped'}`] : []),
    ],
    exitCode,
  };
}

function drawEval({ name, case: item, passed, runs, passRate }: EvalResult): StyledLine[] {
  const title = toTerminalLine(item === null ? name : `${name} › ${item}`, 200);
  const state =
    passRate === null
      ? { text: 'not run', style: 'yellow' as const }
      : passRate === 1
        ? { text: 'passed ', style: 'green' as const }
        : { text: 'failed ', style: 'red' as const };
  const took = runs.length === 1 ? `  ${Math.round(runs[0]?.ms ?? 0)} ms` : runs.length === 0 ? '' : `  ${passed} of ${runs.length}`;
  const told = runs.flatMap((run, n) => (run.claims.some(({ outcome }) => outcome !== 'passed') ? [{ run, n }] : []));
  const lines = told
    .slice(0, MAX_RUNS_SHOWN)
    .flatMap(({ run, n }) => run.claims.flatMap((claim) => drawClaim(claim, runs.length > 1 ? `run ${n + 1}, ` : '')));
  const more = told.length - MAX_RUNS_SHOWN;
  return [
    [state, { text: `  ${title}` }, { text: took, style: 'dim' }],
    ...lines,
    ...(more > 0 ? [[{ text: `         … and ${counted(more, 'run')} more: -o json has all`, style: 'dim' as const }]] : []),
  ];
}

/** Those that hold are not shown. */
function drawClaim({ what, why = '', outcome, isSoft }: Claim, run: string): StyledLine[] {
  if (outcome === 'passed') return [];
  const word = outcome === 'skipped' ? 'not looked at' : isSoft ? 'soft' : 'failed';
  const style = outcome === 'failed' && !isSoft ? 'red' : 'yellow';
  return [[{ text: `         ${run}${word}: `, style }, { text: toTerminalLine(oneLine(`${what}: ${why}`), 1_000) }]];
}

/** Each round is a separate process, so that it reads every file anew. */
async function watchEvals(frame: CommandFrame, words: readonly string[], options: EvalOptions): Promise<number> {
  const { model, live, judge, runs, passRate, atOnce, budget, strict, junit } = options;
  const given = [
    ...['eval', ...words, '--runs', String(runs), '--pass-rate', String(passRate), '--at-once', String(atOnce)],
    ...(model === undefined ? [] : ['--model', model]),
    ...(live ? ['--live'] : []),
    ...(judge === undefined ? [] : ['--judge', judge]),
    ...(budget === undefined ? [] : ['--budget', String(budget)]),
    ...(strict ? ['--strict'] : []),
    ...(junit === undefined ? [] : ['--junit', junit]),
    ...['-o', frame.globals().output],
  ];
  await watchProject(frame, frame.config(), given);
  return EXIT.interrupted;
}
