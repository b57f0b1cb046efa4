/** The evals of a project: which files there are, and what they export. Every fault is named by its file. */
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { z } from 'zod';
import { importDefault } from '../extensions/user-config.js';
import { ConfigError, errorCode, errorMessage } from '../platform/errors.js';
import { isRecord } from '../platform/json.js';
import { readDataset } from './dataset.js';
import type { EvalDefinition } from './index.js';
import { recordedTurnSchema, type RecordedTurn } from './recorded.js';
import type { PlannedEval } from './run-eval.js';
import type { LoadedEval } from './suite.js';

const FILE = /\.eval\.(?:ts|js|mjs|cjs)$/;
const KNOWN: readonly string[] = [
  ...['name', 'agent', 'script', 'tools', 'recording', 'files', 'memory', 'now', 'start', 'agents', 'extensions', 'cases', 'run'],
];
const MAX_FILES = 5_000;
const MAX_RECORDING = 64 * 1024 * 1024;

const recordingSchema = z.strictObject({ version: z.literal(1), conversation: z.string(), turns: z.array(recordedTurnSchema).min(1) });

/** From the project, with slashes, in alphabetical order. */
export async function findEvalFiles(project: string): Promise<readonly string[]> {
  const top = join(project, 'evals');
  const found: string[] = [];
  const walk = async (dir: string): Promise<void> => {
    const names = await readdir(dir, { withFileTypes: true }).catch((cause: unknown) => {
      if (errorCode(cause) === 'ENOENT' && dir === top) return [];
      throw new ConfigError(`cannot look for evals in ${dir}: ${errorMessage(cause)}`, { cause });
    });
    for (const one of names.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (one.isDirectory() && one.name !== 'node_modules' && !one.name.startsWith('.')) await walk(join(dir, one.name));
      else if (one.isFile() && FILE.test(one.name)) found.push(relative(project, join(dir, one.name)).split(sep).join('/'));
    }
    if (found.length > MAX_FILES) throw new ConfigError(`${top} has more than ${MAX_FILES} files of evals: name a part of them`);
  };
  await walk(top);
  return found;
}

/** Those whose name or file has one of these words in it; without words all. Throws `ConfigError`. */
export async function loadEvals(project: string, words: readonly string[] = []): Promise<readonly LoadedEval[]> {
  const files = await findEvalFiles(project);
  if (files.length === 0)
    throw new ConfigError(
      `there is no eval in ${join(project, 'evals')}: write evals/NAME.eval.ts, or record one with \`perdura eval --record ID\``,
    );
  const sought = words.map((word) => word.replace(/^\.\//, '').split(sep).join('/').toLowerCase());
  const fits = ({ file, name }: Pick<LoadedEval, 'file' | 'name'>): boolean =>
    sought.length === 0 || sought.some((word) => file.toLowerCase().includes(word) || name.toLowerCase().includes(word));
  const all: LoadedEval[] = [];
  for (const file of files) all.push(...(await loadFile(project, file)));
  const chosen = all.filter(fits);
  if (chosen.length > 0) return chosen;
  const names = [...new Set(all.map(({ name }) => name))];
  throw new ConfigError(
    `no eval has ${words.join(' or ')} in its name or its file; there are: ${names.slice(0, 20).join(', ')}${names.length > 20 ? ', …' : ''}`,
  );
}

async function loadFile(project: string, file: string): Promise<readonly LoadedEval[]> {
  const path = join(project, file);
  const exported = await importDefault(path).catch((cause: unknown) => {
    const hint = file.endsWith('.js') && cause instanceof SyntaxError ? ' (if it uses import and export, name it .mjs)' : '';
    throw new ConfigError(`cannot load ${file}: ${errorMessage(cause)}${hint}`, { cause });
  });
  if (exported === undefined) throw new ConfigError(`${file} has no default export: write \`export default defineEval({ … })\``);
  const definitions: readonly unknown[] = Array.isArray(exported) ? exported : [exported];
  const base = file.replace(/^evals\//, '').replace(FILE, '');
  const loaded: LoadedEval[] = [];
  for (const [at, given] of definitions.entries()) {
    const place = definitions.length === 1 ? file : `${file}, eval ${at + 1}`;
    const definition = checkEval(given, place);
    const name = definition.name ?? (definitions.length === 1 ? base : `${base} ${at + 1}`);
    loaded.push(...(await planCases(project, { file, place, name, definition })));
  }
  return loaded;
}

async function planCases(
  project: string,
  {
    file,
    place,
    name,
    definition,
  }: { readonly file: string; readonly place: string; readonly name: string; readonly definition: EvalDefinition<unknown> },
): Promise<readonly LoadedEval[]> {
  const { cases, recording } = definition;
  const recorded =
    recording === undefined ? undefined : await readRecording(resolve(dirname(join(project, file)), recording.recording), place);
  if (cases === undefined) return [{ file, name, definition, item: undefined, recorded }];
  const items: readonly unknown[] = 'dataset' in cases ? await readDataset(project, cases.dataset) : cases;
  return items.map((item, at) => ({ file, name, definition, item, recorded: recorded ?? turnsOfCase(item), caseName: nameCase(item, at) }));
}

/** A case of a dataset brings the results of its tools. */
function turnsOfCase(item: unknown): readonly RecordedTurn[] | undefined {
  if (!isRecord(item)) return undefined;
  const { before, turn } = item;
  const read = z.array(recordedTurnSchema).safeParse(Array.isArray(before) ? [...(before as unknown[]), turn] : undefined);
  return read.success ? read.data : undefined;
}

function nameCase(item: unknown, at: number): string {
  const { id, name } = isRecord(item) ? item : {};
  const given = id ?? name;
  return typeof given === 'string' && given !== '' ? given : `case ${at + 1}`;
}

async function readRecording(path: string, place: string): Promise<readonly RecordedTurn[]> {
  const refuse = (why: string, cause?: unknown): never => {
    throw new ConfigError(`${place}: its recording ${path} ${why}`, { cause });
  };
  const text = await readFile(path, 'utf8').catch((cause: unknown) => refuse(`cannot be read: ${errorMessage(cause)}`, cause));
  if (text.length > MAX_RECORDING) refuse(`is larger than ${MAX_RECORDING / 1024 / 1024} MiB`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    refuse(`is no JSON: ${errorMessage(cause)}`, cause);
  }
  const read = recordingSchema.safeParse(value);
  if (read.success) return read.data.turns;
  const [issue] = read.error.issues;
  return refuse(`is no recording: ${issue?.path.join('.') || 'it'}: ${issue?.message ?? 'not as one is'}`);
}

/** Throws `ConfigError`, which names the field. */
function checkEval(given: unknown, place: string): EvalDefinition<unknown> {
  const refuse = (what: string): never => {
    throw new ConfigError(`${place}: ${what}`);
  };
  if (!isRecord(given)) return refuse('it exports no eval: write `export default defineEval({ … })`');
  for (const name of Object.keys(given))
    if (!KNOWN.includes(name)) refuse(`an eval has no option "${name}"; there are: ${KNOWN.join(', ')}`);
  const { name, agent, script, tools, recording, memory, now, cases, run } = given;
  if (typeof run !== 'function') refuse('"run" must be a function, which has the conversation and what is to be true of it');
  for (const [option, value] of Object.entries({ name, agent, memory, now })) {
    if (value !== undefined && (typeof value !== 'string' || value === '')) refuse(`"${option}" must be a text`);
  }
  if (typeof now === 'string' && Number.isNaN(Date.parse(now)))
    refuse(`"now" must be a time such as 2026-11-21T09:00:00Z, and is ${JSON.stringify(now)}`);
  if (script !== undefined && typeof script !== 'function' && !Array.isArray(script))
    refuse('"script" must be a list of lines, or a function that answers a request');
  if (recording !== undefined && !(isRecord(recording) && typeof recording['recording'] === 'string'))
    refuse('"recording" must be recording(…) of perdura/evals');
  if (recording !== undefined && script !== undefined) refuse('it has a recording, whose answers are the script: leave "script" out');
  if (cases !== undefined && !Array.isArray(cases) && !(isRecord(cases) && typeof cases['dataset'] === 'string'))
    refuse('"cases" must be a list, or dataset(…) of perdura/evals');
  if (tools !== undefined && !isRecord(tools)) refuse('"tools" must be an object from the name of a tool to its stub');
  for (const [tool, stub] of Object.entries(isRecord(tools) ? tools : {})) {
    const isOne = typeof stub === 'string' || typeof stub === 'function' || (isRecord(stub) && typeof stub['error'] === 'string');
    if (!isOne) refuse(`tools.${tool} is no stub: it must be a text, { error: 'a text' }, or a function that answers one of them`);
  }
  return given as unknown as EvalDefinition<unknown>;
}

/** Whether a model under test can answer by what the eval brings. */
export function hasScript({ definition: { script, recording }, recorded }: PlannedEval): boolean {
  return script !== undefined || recording !== undefined || recorded !== undefined;
}
