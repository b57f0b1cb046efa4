/**
 * What a folder would run, or send elsewhere, by what is in it: a clone of a stranger's project must not do so before a person has
 * seen it. Settings of the person's environment are theirs and not listed; texts for a model (SOUL.md, MEMORY.md) run nothing.
 * Looked at before each command, so the files are read as they are, without the schemas that their readers load.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { ConfigError, findUserConfig, isTakenUnasked, shownSetting, variablesOfFolder, type Environment } from '../../config.js';
import { decodeText } from '../../records/file-type.js';

export interface FolderItem {
  /** `.env ANTHROPIC_BASE_URL`, `perdura.config.ts`, `agents/default/mcp.json`. */
  readonly name: string;
  /** What it does, in words; what others wrote in them is not made safe for a terminal yet. */
  readonly says: string;
  /** Of its content, hex. */
  readonly sha256: string;
}

/** More than that is no configuration; a folder that names more is refused, because no person could read it all. */
const MAX_FILES = 5_000;
const MAX_FOLLOWED = 1024 * 1024;
/** Of the server of a folder. It changes with each message: the question is only whether it was made here. */
export const OWN_DATABASE = { name: join('.perdura', 'temporal.db'), sha256: sha256('made here') };

/** Programs that one command runs, and people change all the time: the question is only whether they may run here. */
export const EVALS = { name: 'evals', sha256: sha256('programs') };

/** In a fixed order. Throws `ConfigError` where `.env` cannot be read. */
export function folderContents(folder: string, env: Environment): readonly FolderItem[] {
  const variables = variablesOfFolder(folder, env);
  const { files, agentFolders, add, follow, followServers } = createGathering(folder, variables.fromFile);
  const fromShell = variables.real['PERDURA_AGENTS_DIR'];
  // A relative one means another folder in each folder: it was not meant for this one.
  if (fromShell === undefined || !isAbsolute(fromShell)) {
    agentFolders.add(resolve(folder, fromShell ?? variables.fromFile['PERDURA_AGENTS_DIR'] ?? 'agents'));
  }

  const config = findUserConfig(folder);
  const texts: string[] = [];
  if (config !== undefined && isFile(config)) {
    const content = readFileSync(config);
    add(config, `code that runs in every command that needs it and in the worker, ${content.length} bytes`, content);
    texts.push(decodeText(content));
    follow(config, decodeText(content));
  }
  for (const dir of agentFolders) {
    for (const agent of foldersIn(dir)) {
      const file = join(agent, 'mcp.json');
      const servers = readText(file);
      if (servers !== undefined) {
        add(file, serversIn(servers), servers);
        // As its reader sees them, whatever escapes are used in the file.
        texts.push(...stringsIn(parsed(servers)));
        follow(file, servers);
        followServers(file, Object.values(toFields(toFields(parsed(servers))['mcpServers'])), agent);
      }
      const granted = grantedIn(readText(join(agent, 'agent.json')) ?? '');
      if (granted !== undefined) add(join(agent, 'agent.json'), granted.says, granted.content);
    }
  }
  if (existsSync(join(folder, OWN_DATABASE.name))) {
    files.set(OWN_DATABASE.name, { ...OWN_DATABASE, says: 'conversations, which go on where they stood: calls that were approved run' });
  }
  if (existsSync(join(folder, EVALS.name))) files.set(EVALS.name, { ...EVALS, says: 'programs, which `perdura eval` runs' });

  const named = new Set(texts.flatMap((text) => [...text.matchAll(/\$\{([A-Za-z_]\w*)/g)].map(([, name = '']) => name)));
  const settings = Object.entries(variables.fromFile).flatMap(([name, value]) =>
    isTakenUnasked(name) && !named.has(name) ? [] : [{ name: `.env ${name}`, says: shownSetting(name, value), sha256: sha256(value) }],
  );
  return [...settings, ...files.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Files of the folder that an MCP server's start would run, as `folderContents` lists them. `from`: where its settings stand. */
export function filesOfServer(
  folder: string,
  server: object,
  { from, env }: { readonly from: string; readonly env: Environment },
): readonly FolderItem[] {
  const { files, followServers } = createGathering(folder, variablesOfFolder(folder, env).fromFile);
  followServers(join(from, 'mcp.json'), [server], from);
  return [...files.values()];
}

interface Gathering {
  /** By path, in the order in which they were found. */
  readonly files: Map<string, FolderItem>;
  /** Those that were named, with those found on the way. */
  readonly agentFolders: Set<string>;
  add(file: string, says: string, content: string | Buffer): void;
  /** Adds what `text` names, and what that names. */
  follow(file: string, text: string): void;
  followServers(file: string, servers: readonly unknown[], agent: string): void;
}

function createGathering(folder: string, variables: Readonly<Record<string, string>>): Gathering {
  const files = new Map<string, FolderItem>();
  const agentFolders = new Set<string>();
  const add = (file: string, says: string, content: string | Buffer): void => {
    if (files.size >= MAX_FILES) {
      throw new ConfigError(
        `${folder} names more than ${MAX_FILES} files that run something, too many to look at: ` +
          'leave some out, or set PERDURA_TRUST=1 if you know all of them',
      );
    }
    files.set(file, { name: relative(folder, file), says, sha256: sha256(content) });
  };
  const addNamed = (path: string, by: string): void => {
    if (files.has(path)) return;
    const content = readFileSync(path);
    add(path, `named by ${relative(folder, by)}, ${content.length} bytes`, content);
    if (content.length < MAX_FOLLOWED) follow(path, decodeText(content));
  };
  const follow = (file: string, text: string): void => {
    for (const named of filesNamedIn(text, [dirname(file), folder], folder)) {
      if (named.kind === 'agents') agentFolders.add(named.path);
      else if (!DATA.test(named.path)) addNamed(named.path, file);
    }
  };
  const followServers = (file: string, servers: readonly unknown[], agent: string): void => {
    for (const server of servers) {
      const { command, args, env, cwd } = toFields(server);
      if (typeof command !== 'string') continue;
      const start = typeof cwd === 'string' ? resolve(agent, expanded(cwd, variables)) : agent;
      // `npm start` and `node .` name no file, and run what this one says.
      const manifest = fileNamed('package.json', [start], folder);
      if (manifest !== undefined) addNamed(manifest, file);
      const words = new Set(stringsIn([command, args, env]).flatMap((text) => splitWords(expanded(text, variables))));
      const named = [...words].flatMap((word) => fileNamed(word, [start, agent, folder], folder, SERVER_ENDINGS) ?? []);
      // The data of a server change with each use; its program, which comes first, is one by whatever name.
      for (const [at, path] of named.entries()) if (at === 0 || !DATA.test(path)) addNamed(path, file);
    }
  };
  return { files, agentFolders, add, follow, followServers };
}

/** As they are, and in their parts: `sh -c "exec node ./x.js"`, `--import=./x.js`. */
function splitWords(text: string): string[] {
  return text.length > MAX_TEXT ? [] : [text, ...text.split(/[\s"'`=,;:&|<>(){}$]+/)].filter((word) => word !== '' && word.length <= 300);
}

/** `${NAME:-otherwise}`, by what the folder itself says: what the person's environment says is theirs. */
function expanded(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_whole, name: string, otherwise = '') => variables[name] ?? otherwise);
}

/** No settings of servers go deeper. */
function stringsIn(value: unknown, levels = 8): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || levels === 0) return [];
  return Object.values(value).flatMap((inner) => stringsIn(inner, levels - 1));
}

interface Named {
  readonly kind: 'file' | 'agents';
  readonly path: string;
}

/**
 * Whatever stands between quotes and is a file of the folder: what is imported, bundled as workflows or started as a server. Packages
 * are not followed.
 */
function filesNamedIn(text: string, from: readonly string[], folder: string): readonly Named[] {
  const words = new Set([...text.matchAll(/(["'`])([^"'`\n]{1,300})\1/g)].map(([, , word = '']) => word));
  return [...words].flatMap((word): Named[] => {
    const file = fileNamed(word, from, folder);
    if (file !== undefined) return [{ kind: 'file', path: file }];
    const agents = from.map((base) => resolve(base, word)).find((path) => isWithin(path, folder) && holdsAgents(path));
    return agents === undefined ? [] : [{ kind: 'agents', path: agents }];
  });
}

function fileNamed(word: string, from: readonly string[], folder: string, endings: readonly string[] = ENDINGS): string | undefined {
  return from
    .map((base) => resolve(base, word))
    .filter((path) => isWithin(path, folder))
    .flatMap((path) => {
      const stem = path.replace(/\.[cm]?js$/, '');
      return [path, ...endings.map((ending) => stem + ending), ...endings.map((ending) => join(path, `index${ending}`))];
    })
    .find(isFile);
}

function isWithin(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`) && !path.includes('/node_modules/');
}

function holdsAgents(path: string): boolean {
  return foldersIn(path).some((agent) => isFile(join(agent, 'agent.json')));
}

/** It changes with each use, and is named by the call that is shown. */
const DATA = /\.(db|sqlite3?|log|csv|jsonl|md|txt)$/;
const ENDINGS = ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs', '.json'];
const SERVER_ENDINGS = [...ENDINGS, '.py', '/__main__.py', '.sh', '.rb'];
/** Of one setting of a server; a longer one is a text. */
const MAX_TEXT = 32_768;

function serversIn(text: string): string {
  const places = Object.entries(toFields(toFields(parsed(text))['mcpServers'])).map(([name, server]) => {
    const { command, args, url } = toFields(server);
    return typeof url === 'string'
      ? `${name} reaches ${withoutKeys(url)}`
      : `${name} runs ${[command, ...(Array.isArray(args) ? (args as unknown[]) : [])].map(String).join(' ')}`;
  });
  return `MCP servers: ${places.join('; ') || 'none that can be read'}`;
}

/**
 * Only what lets an agent do more than one of `{}` may: calls that would otherwise wait for a person, words that are believed. Not a
 * model, a limit or a name; nor a rule that asks or denies, which can be taken out as it could have been missing from the start.
 */
export function grantedIn(text: string): { readonly says: string; readonly content: string } | undefined {
  const { approvals, memory, sandbox, commandHosts } = toFields(parsed(text));
  const { trustedTools, reviewWhenToolsSpoke } = toFields(memory);
  const rules = (Array.isArray(approvals) ? (approvals as unknown[]) : []).map(toFields).filter(({ policy }) => policy === 'allow');
  const says = [
    ...(rules.length > 0
      ? [
          `runs without asking: ${rules.map(({ tool, where, exactly }) => JSON.stringify([tool, exactly === undefined ? where : { exactly }])).join(', ')}`,
        ]
      : []),
    ...(sandbox === 'none' ? ['runs commands without a sandbox'] : []),
    ...(Array.isArray(commandHosts) && commandHosts.length > 0 ? [`lets commands reach ${commandHosts.map(String).join(', ')}`] : []),
    ...(trustedTools === undefined ? [] : [`believes without review what these tools say: ${JSON.stringify(trustedTools)}`]),
    ...(reviewWhenToolsSpoke === false ? ['remembers without review what a model makes of what tools say'] : []),
  ];
  return says.length === 0
    ? undefined
    : { says: says.join('; '), content: JSON.stringify([approvals, trustedTools, reviewWhenToolsSpoke, sandbox, commandHosts]) };
}

/** Undefined for what is no JSON: who reads the file says so. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function toFields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function withoutKeys(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//***@').replace(/\?.*$/, '?***');
}

function foldersIn(dir: string): string[] {
  try {
    return readdirSync(dir)
      .map((name) => join(dir, name))
      .filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true);
  } catch {
    return [];
  }
}

/** Decoded as the agents' loader does: what it understands must be understood here too. */
function readText(file: string): string | undefined {
  return isFile(file) ? decodeText(readFileSync(file)) : undefined;
}

/** A pipe of that name would keep us waiting for a writer. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
