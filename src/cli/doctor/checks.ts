/** What the doctor looks at beside Temporal: Node, the folders and their disks, the agents, the store, the provider. */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { loadAgent, type LoadedAgent } from '../../agents/load-agent.js';
import { IDENTITY_FILES } from '../../agents/system-prompt.js';
import {
  needsStandIn,
  otelProblems,
  providerSettings,
  readSetting,
  type Config,
  type Environment,
  type SettingInUse,
} from '../../config.js';
import { isScope } from '../../conversation/protocol/limits.js';
import { decodeExactly, isBinary } from '../../records/file-type.js';
import { readCircuits } from '../../models/circuit-breaker.js';
import { PROVIDERS, splitModel } from '../../models/known-models.js';
import { ModelFailure } from '../../models/model.js';
import { createModels } from '../../models/providers.js';
import { findTokenizer } from '../../models/token-counter.js';
import { atRestKeyId, type AtRest } from '../../platform/at-rest.js';
import { errorCode, errorMessage } from '../../platform/errors.js';
import {
  installCommand,
  isInstalled,
  MCP_PACKAGE,
  describeNeeds,
  OTEL_PACKAGE,
  PAGE_PACKAGES,
  TOKENIZER_PACKAGE,
} from '../../platform/optional-package.js';
import { timeoutSignal } from '../../platform/promises.js';
import { openAtRest } from '../../stores/open.js';
import { findUnreadable } from '../../stores/file/documents.js';
import { withoutSecrets } from '../../platform/redis-address.js';
import { awaitRedis, describeRedis } from '../../stores/redis/upkeep.js';
import { findSandbox } from '../../tools/builtin/command/sandbox.js';
import { fetchUrl } from '../../tools/builtin/web/fetch-url.js';
import { expandServer } from '../../tools/mcp/server-config.js';

const KEYS = [...new Set([...PROVIDERS.values()].flatMap(({ key }) => (key === undefined ? [] : [key])))];
const MINIMUM_NODE = [20, 19] as const;
const LITTLE = 1024 ** 3;
const TOO_LITTLE = 100 * 1024 ** 2;

export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isEnough = major > MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor >= MINIMUM_NODE[1]);
  return isEnough
    ? ok('Node', version)
    : broken('Node', `${version}, and ${MINIMUM_NODE.join('.')} is needed`, 'nvm install 22, or https://nodejs.org');
}

/** What `run_command` runs in. */
export async function checkSandbox(): Promise<Finding> {
  if ((await findSandbox()) !== undefined) return ok('Sandbox', 'commands run in bubblewrap');
  if (process.platform !== 'linux')
    return warning('Sandbox', `none on ${process.platform}: each command waits for a person`, 'run the worker on Linux');
  return warning(
    'Sandbox',
    'none: each command waits for a person, and tenants have none',
    'apt-get install bubblewrap; in a container, docs/security.md',
  );
}

export async function checkFolder(what: string, dir: string, setting: string): Promise<Finding> {
  const file = join(dir, `.perdura-doctor-${randomUUID()}`);
  try {
    await mkdir(dir, { recursive: true });
    await writeFile(file, 'doctor\n');
    return ok(what, `${dir} can be written`);
  } catch (error) {
    const full = errorCode(error) === 'ENOSPC';
    return broken(
      what,
      `cannot write to ${dir}: ${errorMessage(error)}`,
      full ? 'free space on that disk' : `chmod u+w '${dir}', or set ${setting}`,
    );
  } finally {
    await rm(file, { force: true }).catch(() => {});
  }
}

export async function checkDisk(config: Config): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(await firstThatExists(config.cwd));
    const free = bavail * bsize;
    const found = `${(free / 1024 ** 3).toFixed(1)} GiB free at ${config.cwd}`;
    if (free < TOO_LITTLE) return broken('Disk', found, 'free space: Temporal and the store write here');
    return free < LITTLE ? warning('Disk', found, 'free space before it runs out') : ok('Disk', found);
  } catch (error) {
    return warning('Disk', `cannot be asked: ${errorMessage(error)}`, 'look with df -h');
  }
}

async function firstThatExists(dir: string): Promise<string> {
  return statfs(dir).then(
    () => dir,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' && dirname(dir) !== dir) return firstThatExists(dirname(dir));
      throw error;
    },
  );
}

/** Every folder of the agents folder, read as a worker reads it. */
export async function checkAgents(agentsDir: string, variables: Environment, config?: Config): Promise<Finding[]> {
  let names: string[];
  try {
    const entries = await readdir(agentsDir, { withFileTypes: true });
    names = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name);
  } catch (error) {
    return [
      broken('Agents', `cannot read ${agentsDir}: ${errorMessage(error)}`, 'create it with an agent inside, or set PERDURA_AGENTS_DIR'),
    ];
  }
  const failed: Finding[] = [];
  const servers: Finding[] = [];
  const good: string[] = [];
  for (const name of names.sort()) {
    try {
      const agent = await loadAgent(agentsDir, name);
      good.push(agent.id);
      servers.push(...checkServers(agent, variables));
      failed.push(...checkAgentPackages(agent));
      if (config) failed.push(...checkListedModels(agent, config));
      for (const sentence of agent.unread) {
        const isMemory = sentence.startsWith('MEMORY.md');
        const advice = isMemory
          ? 'move what it says to USER.md or AGENTS.md'
          : 'take it out, or leave it to the other programs that read this file';
        failed.push(warning(`Agent ${name}`, sentence, advice));
      }
      failed.push(...(await checkTexts(agentsDir, name)));
    } catch (error) {
      failed.push(brokenAgent(agentsDir, name, error));
    }
  }
  if (good.length === 0 && failed.length === 0) {
    return [
      broken('Agents', `there is none in ${agentsDir}`, `mkdir -p '${agentsDir}/default' && echo '{}' > '${agentsDir}/default/agent.json'`),
    ];
  }
  const found = good.length === 0 ? [] : [ok('Agents', good.join(', '))];
  const noDefault = names.includes('default')
    ? []
    : [warning('Agents', 'there is none called default', 'name one with --agent, or create it')];
  return [...found, ...noDefault, ...failed, ...servers];
}

/** The file that the error names, or its settings. */
function brokenAgent(agentsDir: string, name: string, error: unknown): Finding {
  const message = errorMessage(error);
  const file = Object.values(IDENTITY_FILES)
    .map((one) => join(agentsDir, name, one))
    .find((path) => message.includes(path));
  const mend =
    file === undefined ? `edit ${agentsDir}/${name}/agent.json` : `correct ${file}, or move it away: no turn is answered until then`;
  return broken(`Agent ${name}`, message, mend);
}

const MAX_USERS = 100;

/** What the loader takes, and a model reads as something else; and what it does not take, of scopes with a file there. */
async function checkTexts(agentsDir: string, name: string): Promise<Finding[]> {
  const folder = join(agentsDir, name);
  const users = (await readdir(join(folder, 'users')).catch(() => [])).filter((file) => file.endsWith('.md')).slice(0, MAX_USERS);
  const read = Object.values(IDENTITY_FILES).map((file) => join(folder, file));
  const findings: Finding[] = [];
  for (const scope of users.map((file) => file.slice(0, -'.md'.length)).filter(isScope)) {
    const file = join(folder, 'users', `${scope}.md`);
    await loadAgent(agentsDir, name, scope).then(
      () => read.push(file),
      (error: unknown) => findings.push(broken(`Agent ${name}`, errorMessage(error), `correct ${file}, or move it away`)),
    );
  }
  for (const file of read) {
    const found = `${file} is neither UTF-8 nor marked as UTF-16: some of its characters are lost`;
    if (await isSpoilt(file)) findings.push(warning(`Agent ${name}`, found, 'save it as UTF-8 with an editor'));
  }
  return findings;
}

/** Whether bytes in it are no text. What cannot be read at all the loader says. */
async function isSpoilt(file: string): Promise<boolean> {
  const bytes = await readFile(file).catch(() => undefined);
  return bytes !== undefined && (isBinary(bytes) || decodeExactly(bytes) === undefined);
}

/** A model that falls over to one without a key falls into nothing, on the day on which it is needed. */
export function checkListedModels({ id, config: { models = [] } }: Pick<LoadedAgent, 'id' | 'config'>, config: Config): Finding[] {
  return models.flatMap((name) => {
    const setting = PROVIDERS.get(splitModel(name).provider)?.key;
    if (setting === undefined || readSetting(config, setting) !== undefined) return [];
    return [
      warning(
        `Models of ${id}`,
        `${name} cannot answer here: ${setting} is not set`,
        `export ${setting}=…, or take it out of "models" in its agent.json`,
      ),
    ];
  });
}

/** Not started from here: `perdura mcp tools` does that. */
function checkServers({ id, servers }: LoadedAgent, variables: Environment): Finding[] {
  if (servers.length === 0) return [];
  const what = `MCP of ${id}`;
  const missing = servers.flatMap((server) => {
    try {
      expandServer(server, variables);
      return [];
    } catch (error) {
      return [warning(what, errorMessage(error), 'set it in the environment or in .env, or write ${NAME:-default}')];
    }
  });
  return [ok(what, `${servers.map(({ name }) => name).join(', ')}; perdura mcp tools ${id} asks them`), ...missing];
}

/** A secret in it whose characters are lost opens nothing, and its owner says only that it is wrong. */
export async function checkDotEnv(cwd: string): Promise<Finding[]> {
  const file = join(cwd, '.env');
  const found = `${file} is neither UTF-8 nor marked as UTF-16: some of its characters are lost`;
  return (await isSpoilt(file)) ? [warning('Settings', found, 'save it as UTF-8 with an editor')] : [];
}

/** The store that the settings ask for. */
export async function checkStore(config: Config): Promise<Finding[]> {
  const { redisUrl, memoryDir } = config;
  const encryption = checkEncryption(config);
  if (redisUrl !== undefined) return [...(await checkRedis(redisUrl)), ...encryption];
  // Without its keys nothing can be read.
  const isReadable = encryption.every(({ health }) => health === 'ok');
  const memory = isReadable ? await checkMemory(memoryDir, openAtRest(config)) : [];
  return [await checkFolder('Store', memoryDir, 'PERDURA_MEMORY_DIR'), ...encryption, ...memory];
}

const MAX_NAMED = 10;

/** A turn that cannot read the memory of its scope is not answered until a person has seen to the file. */
async function checkMemory(memoryDir: string, atRest: AtRest): Promise<Finding[]> {
  const unreadable = await findUnreadable(memoryDir, atRest).catch(() => []);
  const named = unreadable.slice(0, MAX_NAMED).map((message) => {
    const [found = message, ...mend] = message.split('; ');
    return broken('Memory', found, mend.join('; ') || 'correct that file, or move it away');
  });
  const more = unreadable.length - named.length;
  return more === 0
    ? named
    : [...named, broken('Memory', `${more} more files of it cannot be read`, 'mend the ones above, then look again')];
}

/** Which keys there are, by name; nothing where nothing is encrypted. */
function checkEncryption(config: Config): Finding[] {
  if (config.encryption === undefined) return [];
  const { from } = config.encryption;
  try {
    const [newest = '', ...older] = config.encryptionRoots().map(atRestKeyId);
    const others = older.length === 0 ? '' : `; ${older.join(', ')} decrypt what is older (perdura admin rekey)`;
    return [ok('Encryption', `on, by key ${newest} (${from})${others}`)];
  } catch (error) {
    return [
      broken('Encryption', errorMessage(error), 'correct PERDURA_ENCRYPTION: without its keys nothing that is encrypted can be read'),
    ];
  }
}

async function checkRedis(url: string): Promise<Finding[]> {
  const where = `Redis at ${withoutSecrets(url)}`;
  try {
    await awaitRedis(url, 0);
    const { version, warnings } = await describeRedis(url);
    return [ok('Store', `${where}${version === undefined ? '' : `, version ${version}`}`), ...warnings.map(toFinding)];
  } catch (error) {
    return [broken('Store', errorMessage(error), 'start that Redis, correct REDIS_URL, or unset it to keep memory in files')];
  }
}

/** `what it is: what follows; what to do`. */
function toFinding(text: string): Finding {
  const [found = text, mend = ''] = text.split('; ');
  const setting = /set (appendonly|maxmemory-policy) (\w+)$/.exec(text);
  if (setting !== null) return warning('Store', found, `redis-cli CONFIG SET ${setting[1]} ${setting[2]}`);
  return text.includes('replica') || text.includes('is needed') || text.includes('failed')
    ? broken('Store', found, mend || 'see the text')
    : warning('Store', found, mend || 'redis-cli CONFIG GET appendonly; redis-cli CONFIG GET maxmemory-policy');
}

/** What the workers of this folder do not ask now; nothing where they ask all. */
export function checkCircuits(cwd: string, now: number): Finding[] {
  return readCircuits(cwd).map(({ of, reason, message, until, pid }) => {
    const when = until > now ? `for ${Math.ceil((until - now) / 1_000)} s more` : 'until its next call has ended';
    return warning(
      'Fallback',
      `worker ${pid} does not ask ${of} ${when}, where an agent names another model (${reason}: ${message})`,
      'it is asked again by itself; look at the status page of that provider if this stays',
    );
  });
}

// Whether the provider takes the key: by asking for a few tokens, since nothing else shows it.

const PATIENCE = 20_000;

export async function checkProvider(config: Config): Promise<Finding> {
  if (needsStandIn(config)) {
    return skipped(
      'Model',
      'ANTHROPIC_API_KEY is not set here: a worker that starts here answers by a scripted stand-in; one that runs goes by its own environment',
    );
  }
  const { model } = config;
  const begin = Date.now();
  try {
    const { model: name } = splitModel(model);
    const found = createModels(providerSettings(config))(model);
    await found.stream(
      // OpenAI's Responses refuse fewer.
      { model: name, maxTokens: 16, system: '', tools: [], messages: [{ role: 'user', text: 'hi' }] },
      { signal: timeoutSignal(PATIENCE), onDelta: () => {}, idleMs: PATIENCE, totalMs: PATIENCE },
    );
    return ok('Model', `${model} answers, ${Date.now() - begin} ms for a few tokens`);
  } catch (error) {
    const [needed] = neededPackages(model);
    if (error instanceof ModelFailure && error.kind === 'missing-package' && needed !== undefined) {
      return broken('Model', errorMessage(error), installCommand([needed]));
    }
    return broken(
      'Model',
      errorMessage(error),
      `export a key that is valid for this provider (${KEYS.join(', ')}), or correct PERDURA_MODEL`,
    );
  }
}

type Asking = Pick<LoadedAgent, 'id' | 'config' | 'servers'>;
type IsInstalled = (name: string) => boolean;

/** Of one agent; its first model is what it cannot do without. */
export function checkAgentPackages({ id, config, servers }: Asking, isThere: IsInstalled = isInstalled): Finding[] {
  const { model, models = [], context, memory } = config;
  const others = [...models, context.summaryModel, memory.consolidationModel].filter((name) => name !== undefined && name !== model);
  const cannot = (what: string, names: readonly string[], finding: typeof warning): Finding[] => {
    const missing = names.filter((name) => !isThere(name));
    return missing.length === 0 ? [] : [finding(`Agent ${id}`, `${what}: ${describeNeeds(missing)}`, installCommand(missing))];
  };
  const hasPages = config.tools === undefined || config.tools.includes(fetchUrl.name);
  return [
    ...(model === undefined ? [] : cannot(`${model} cannot answer`, neededPackages(model), broken)),
    ...others.flatMap((name) => cannot(`${name} cannot answer`, neededPackages(name ?? ''), warning)),
    ...(servers.length === 0 ? [] : cannot('its MCP servers cannot be asked', [MCP_PACKAGE], broken)),
    ...(hasPages ? cannot('fetch_url shows pages as HTML, not as Markdown', PAGE_PACKAGES, hint) : []),
    ...(model !== undefined && findTokenizer(model)
      ? cannot(`tokens of ${model} are estimated, not counted`, [TOKENIZER_PACKAGE], hint)
      : []),
  ];
}

/** It works without: nothing to mend, only something to know. */
function hint(what: string, found: string, mend: string): Finding {
  return { ...skipped(what, found), mend };
}

function neededPackages(model: string): readonly string[] {
  const needed = PROVIDERS.get(splitModel(model).provider)?.package;
  return needed === undefined ? [] : [needed];
}

/** Of what the settings ask for beside models, which answer themselves. */
export function checkSettingPackages({ otel }: Pick<Config, 'otel'>, isThere: IsInstalled = isInstalled): Finding[] {
  if (otel === undefined) return [];
  const problems = otelProblems(otel);
  if (problems.length > 0)
    return [
      broken('OpenTelemetry', `no worker starts with these OTEL_* settings: ${problems.join('; ')}`, 'change or remove these variables'),
    ];
  if (isThere(OTEL_PACKAGE)) return [];
  return [
    broken(
      'OpenTelemetry',
      `no worker starts with these OTEL_* settings: ${describeNeeds([OTEL_PACKAGE])}`,
      installCommand([OTEL_PACKAGE]),
    ),
  ];
}

// What the doctor found, and how it is shown.

/** `broken`: nothing works, or work can be lost, until it is mended. */
type Health = 'ok' | 'warning' | 'broken' | 'skipped';

export interface Finding {
  readonly what: string;
  readonly health: Health;
  readonly found: string;
  /** The command that mends it, or the thing to do. */
  readonly mend?: string;
}

export interface Report {
  readonly findings: readonly Finding[];
  readonly settings: readonly SettingInUse[];
}

export const ok = (what: string, found: string): Finding => ({ what, health: 'ok', found });
const skipped = (what: string, found: string): Finding => ({ what, health: 'skipped', found });
export const warning = (what: string, found: string, mend: string): Finding => ({ what, health: 'warning', found, mend });
export const broken = (what: string, found: string, mend: string): Finding => ({ what, health: 'broken', found, mend });

export function isBroken({ findings }: Report): boolean {
  return findings.some(({ health }) => health === 'broken');
}

const MARKS: Readonly<Record<Health, string>> = { ok: '✔', warning: '!', broken: '✘', skipped: '–' };

export function renderReport({ findings, settings }: Report): string[] {
  const width = Math.max(...findings.map(({ what }) => what.length));
  const names = Math.max(...settings.map(({ name }) => name.length));
  const counted = (health: Health): number => findings.filter((finding) => finding.health === health).length;
  return [
    ...findings.flatMap(({ what, health, found, mend }) => [
      `${MARKS[health]} ${what.padEnd(width)}  ${found.replace(/\s*\n\s*/g, ' ')}`,
      ...(mend === undefined ? [] : [`  ${' '.repeat(width)}  → ${mend}`]),
    ]),
    '',
    'Settings',
    ...settings.map(({ name, value, from }) => `  ${name.padEnd(names)}  ${value ?? 'not set'}${from === 'nowhere' ? '' : `  (${from})`}`),
    '',
    counted('broken') > 0
      ? `${counted('broken')} broken, ${counted('warning')} to look at`
      : counted('warning') > 0
        ? `nothing is broken, ${counted('warning')} to look at`
        : 'all is well',
  ];
}

/** For a report that is shown to others: no name of a person's folder, no secret that slipped into an error. */
export function pasteable(text: string, secrets: readonly string[], home: string): string {
  const hidden = secrets.filter((secret) => secret.length > 3).reduce((all, secret) => all.replaceAll(secret, '***'), text);
  const withoutUrls = hidden.replace(/([a-z+]+:\/\/)[^\s/@]*@/gi, '$1***@');
  return home.length > 1 ? withoutUrls.replaceAll(home, '~') : withoutUrls;
}
