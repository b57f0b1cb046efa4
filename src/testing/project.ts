/** What a test runs with: the project's agents and extensions, and a separate folder for all that is written. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join, normalize, resolve } from 'node:path';
import { agentsFolder } from '../agents/load-agent.js';
import { loadConfig, type Config } from '../config.js';
import { checkExtensions, loadUserConfig, type Extensions } from '../extensions/user-config.js';
import type { Model } from '../models/model.js';
import type { JsonObject } from '../records/message.js';

/** Files of an agent's folder by their names: texts, or an object for `agent.json`. */
export type TestAgent = Readonly<Record<string, string | JsonObject>>;

/** What `startInMemory` and `startWithTemporal` are given. */
export interface TestOptions {
  /** Answers in place of every model that agents name; what those cost stays as it is known. */
  readonly model: Model;
  /**
   * The project's folder; default: the working directory. Its `agents/` and its `perdura.config.*` are read, its `.env` is not: no test
   * uses a person's keys, Redis or memory.
   */
  readonly project?: string;
  /** In place of what the project's `perdura.config.*` exports. */
  readonly extensions?: Extensions;
  /** In place of the project's `agents/`: by an agent's name, the files of its folder. */
  readonly agents?: Readonly<Record<string, TestAgent>>;
  /** Files of the workspace at the beginning: texts by their paths in it. */
  readonly files?: Readonly<Record<string, string>>;
}

export interface TestProject {
  /** Of this test alone; deleted by `close`. */
  readonly dir: string;
  readonly agentsDir: string;
  readonly extensions: Extensions;
  /** Settings that use nothing outside of `dir`, with these beside them. Throws `ConfigError`. */
  settings(variables?: Readonly<Record<string, string>>): Config;
  close(): Promise<void>;
}

/** Throws `ConfigError` for extensions that are none. */
export async function openTestProject({ project = process.cwd(), extensions, agents, files = {} }: TestOptions): Promise<TestProject> {
  const cwd = resolve(project);
  const given = extensions === undefined ? await loadUserConfig(cwd) : checkExtensions(extensions, 'extensions');
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'perdura-test-')));
  const close = (): Promise<void> => rm(dir, { recursive: true, force: true, maxRetries: 3 });
  try {
    for (const [name, texts] of Object.entries(agents ?? {})) {
      for (const [file, content] of Object.entries(texts)) {
        const text = typeof content === 'string' ? content : JSON.stringify(content, null, 2);
        await put(join(dir, 'agents', name), `agents.${name}`, file, text);
      }
    }
    await mkdir(join(dir, 'workspace'), { recursive: true });
    for (const [path, text] of Object.entries(files)) await put(join(dir, 'workspace'), 'files', path, text);
  } catch (error) {
    await close();
    throw error;
  }
  const agentsDir = agents === undefined ? agentsFolder({ cwd, agentsDir: join(cwd, 'agents') }, given.agentsDir) : join(dir, 'agents');
  const { agentsDir: _, workflows, ...rest } = given;
  return {
    dir,
    agentsDir,
    // Paths are meant from the project, and the settings are of another folder.
    extensions: { ...rest, agentsDir, ...(workflows !== undefined && { workflows: resolve(cwd, workflows) }) },
    settings: (variables = {}) => loadConfig({ PERDURA_LOG_LEVEL: 'error', PERDURA_UI_TEXT: 'off', ...variables }, dir),
    close,
  };
}

async function put(folder: string, option: string, path: string, text: string): Promise<void> {
  const inside = normalize(path);
  if (isAbsolute(inside) || inside.startsWith('..'))
    throw new Error(`cannot write ${option}[${JSON.stringify(path)}]: it leads out of its folder`);
  await mkdir(dirname(join(folder, inside)), { recursive: true });
  await writeFile(join(folder, inside), text);
}
