/**
 * What a folder would run, or send elsewhere, by what lies in it: a clone of a stranger's project must not do so before a person has
 * seen it. What the person's own environment says is theirs and not listed; texts for a model (SOUL.md, MEMORY.md) run nothing.
 * Looked at before each command, so the files are read as they are, without the schemas that their readers load.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { findUserConfig, isTakenUnasked, shownSetting, variablesOfFolder, type Environment } from '../../config.js';

export interface FolderItem {
  /** `.env ANTHROPIC_BASE_URL`, `perdura.config.ts`, `agents/default/mcp.json`. */
  readonly name: string;
  /** What it does, in words; what others wrote in them is not made safe for a terminal yet. */
  readonly says: string;
  /** Of its content, hex. */
  readonly sha256: string;
}

/** More than that is nobody's configuration; what lies beyond is not followed, and is not trusted either. */
const MAX_FILES = 500;
const MAX_FOLLOWED = 1024 * 1024;
/** Of our own server in a folder. It changes with each message: what is asked is only whether it was made here. */
export const OWN_DATABASE = { name: join('.perdura', 'temporal.db'), sha256: sha256('made here') };

/** In a fixed order. Throws `ConfigError` where `.env` cannot be read. */
export function folderContents(folder: string, env?: Environment): readonly FolderItem[] {
  const variables = variablesOfFolder(folder, env);
  const files = new Map<string, FolderItem>();
  const agentFolders = new Set<string>();
  const fromShell = variables.real['PERDURA_AGENTS_DIR'];
  // A relative one means another folder in each folder: it was not said of this one.
  if (fromShell === undefined || !isAbsolute(fromShell)) {
    agentFolders.add(resolve(folder, fromShell ?? variables.own['PERDURA_AGENTS_DIR'] ?? 'agents'));
  }
  const add = (file: string, says: string, content: string | Buffer): void => {
    files.set(file, { name: relative(folder, file), says, sha256: sha256(content) });
  };
  const follow = (file: string, text: string): void => {
    for (const named of filesNamedIn(text, [dirname(file), folder], folder)) {
      if (named.kind === 'agents') agentFolders.add(named.path);
      else if (!files.has(named.path) && files.size < MAX_FILES) {
        const content = readFileSync(named.path);
        add(named.path, `named by ${relative(folder, file)}, ${content.length} bytes`, content);
        if (content.length < MAX_FOLLOWED) follow(named.path, content.toString('utf8'));
      }
    }
  };

  const config = findUserConfig(folder);
  if (config !== undefined && isFile(config)) {
    const content = readFileSync(config);
    add(config, `code that runs in every command that needs it and in the worker, ${content.length} bytes`, content);
    follow(config, content.toString('utf8'));
  }
  const serverTexts: string[] = [];
  for (const dir of agentFolders) {
    for (const agent of foldersIn(dir)) {
      const servers = textOf(join(agent, 'mcp.json'));
      if (servers !== undefined) {
        add(join(agent, 'mcp.json'), serversIn(servers), servers);
        serverTexts.push(servers);
        follow(join(agent, 'mcp.json'), servers);
      }
      const granted = grantedIn(textOf(join(agent, 'agent.json')) ?? '');
      if (granted !== undefined) add(join(agent, 'agent.json'), granted.says, granted.content);
    }
  }
  if (existsSync(join(folder, OWN_DATABASE.name))) {
    files.set(OWN_DATABASE.name, { ...OWN_DATABASE, says: 'conversations, which go on where they stood: calls that were approved run' });
  }

  const named = new Set(serverTexts.flatMap((text) => [...text.matchAll(/\$\{([A-Za-z_]\w*)/g)].map(([, name = '']) => name)));
  const settings = Object.entries(variables.own).flatMap(([name, value]) =>
    isTakenUnasked(name) && !named.has(name) ? [] : [{ name: `.env ${name}`, says: shownSetting(name, value), sha256: sha256(value) }],
  );
  return [...settings, ...files.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
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
    for (const base of from) {
      const path = resolve(base, word);
      if (!path.startsWith(`${folder}/`) || path.includes('/node_modules/')) continue;
      const stem = path.replace(/\.[cm]?js$/, '');
      const found = [path, ...ENDINGS.map((ending) => stem + ending), ...ENDINGS.map((ending) => join(path, `index${ending}`))].find(
        isFile,
      );
      if (found !== undefined && DATA.test(found)) return [];
      if (found !== undefined) return [{ kind: 'file', path: found }];
      if (foldersIn(path).some((agent) => isFile(join(agent, 'agent.json')))) return [{ kind: 'agents', path }];
    }
    return [];
  });
}

/** It changes with each use, and is named by the call that is shown. */
const DATA = /\.(db|sqlite3?|log|csv|jsonl|md|txt)$/;
const ENDINGS = ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs', '.json'];

function serversIn(text: string): string {
  const places = Object.entries(fieldsOf(fieldsOf(parsed(text))['mcpServers'])).map(([name, server]) => {
    const { command, args, url } = fieldsOf(server);
    return typeof url === 'string'
      ? `${name} reaches ${withoutKeys(url)}`
      : `${name} runs ${[command, ...(Array.isArray(args) ? (args as unknown[]) : [])].map(String).join(' ')}`;
  });
  return `MCP servers: ${places.join('; ') || 'none that can be read'}`;
}

/** Only what lets something happen that a person would be asked about otherwise; not a model, a limit or a name. */
function grantedIn(text: string): { readonly says: string; readonly content: string } | undefined {
  const { approvals, memory } = fieldsOf(parsed(text));
  const { trustedTools, reviewWhenToolsSpoke } = fieldsOf(memory);
  const rules = (Array.isArray(approvals) ? (approvals as unknown[]) : []).map(fieldsOf).filter(({ policy }) => policy === 'allow');
  const says = [
    ...(rules.length > 0 ? [`runs without asking: ${rules.map(({ tool, where }) => JSON.stringify([tool, where])).join(', ')}`] : []),
    ...(trustedTools === undefined ? [] : [`believes without review what these tools say: ${JSON.stringify(trustedTools)}`]),
    ...(reviewWhenToolsSpoke === false ? ['remembers without review what a model makes of what tools say'] : []),
  ];
  return says.length === 0
    ? undefined
    : { says: says.join('; '), content: JSON.stringify([approvals, trustedTools, reviewWhenToolsSpoke]) };
}

/** Undefined for what is no JSON: who reads the file says so. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function withoutKeys(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//***@').replace(/\?.*$/, '?***');
}

function foldersIn(dir: string): string[] {
  try {
    return readdirSync(dir)
      .map((name) => join(dir, name))
      .filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
      .slice(0, MAX_FILES);
  } catch {
    return [];
  }
}

function textOf(file: string): string | undefined {
  return isFile(file) ? readFileSync(file, 'utf8') : undefined;
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
