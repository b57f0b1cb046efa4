/**
 * An agent as its folder describes it: `<agents folder>/<id>/agent.json`, and the identity files for the system prompt.
 * `<id>/users/<scope>.md` stands in for `USER.md` where conversations of that scope are concerned. `<id>/mcp.json` names its MCP
 * servers: it lies here, with the operator, since a project's folder must not bring any.
 */
import { createHash } from 'node:crypto';
import { existsSync, statSync, type BigIntStats } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { z } from 'zod';
import { ID_PATTERN } from '../conversation/protocol/contract.js';
import { isScope } from '../conversation/protocol/limits.js';
import { decodeText } from '../records/file-type.js';
import { readTenant, qualifiedScope } from '../records/identity.js';
import { listIgnored, mcpConfigSchema, toServers, type McpServer } from '../tools/mcp/server-config.js';
import { listIssues } from '../tools/result-text.js';
import { enterWorkspace, PathRefused, type Workspace } from '../tools/workspace.js';
import { agentConfigSchema, withOwnModel, withoutGrants, type AgentConfig } from './agent-config.js';
import { buildSystemPrompt, IDENTITY_FILES, type IdentityFiles } from './system-prompt.js';

export interface LoadedAgent {
  readonly id: string;
  readonly config: AgentConfig;
  /** What its system prompt is made of. Memory is the scope's and no file here: it is null. */
  readonly files: IdentityFiles;
  /** MCP servers, sorted by name; what stands in their settings for variables is not filled in. */
  readonly servers: readonly McpServer[];
  /** What of the folder looks as if it were read, and is not, a sentence for each. */
  readonly unread: readonly string[];
  /** The system prompt without any memory. */
  readonly system: string;
  /** sha256, hex, of all of the above: it changes when the agent does. */
  readonly hash: string;
}

export type AgentConfigErrorKind = 'unknown-agent' | 'bad-config' | 'bad-id';

/** The id or the files are at fault, and the message says what to change. */
export class AgentConfigError extends Error {
  override readonly name = 'AgentConfigError';
  constructor(
    readonly kind: AgentConfigErrorKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * `scope` says whose conversation it is; by default the agent's. With `asOf`, the beginning of a hash, an agent that was
 * loaded as such is taken as it was then: files are looked at once a turn.
 */
export type AgentLoader = (id: string, scope?: string, asOf?: string) => Promise<LoadedAgent>;

const CONFIG_FILE = 'agent.json';
const SERVERS_FILE = 'mcp.json';
/** Long-term memory is the scope's, in the store: a file beside the identity files is not it. */
const MEMORY_FILE = 'MEMORY.md';
const CONFIG_BYTES = 64 * 1024;
const IDENTITY_BYTES = 256 * 1024;
/** A file that was changed so lately can change once more within its time stamp's grain, and look the same. */
const FRESH_MS = 2_000;
const MAX_KNOWN = 20;
const MAX_LOADED = 1_000;
/** Of an agent's hash, as turns remember it. */
export const VERSION_CHARACTERS = 16;

/** What a person may not have seen yet. */
export interface AgentTrust {
  /** Whether an agent may have what a file of it grants: by the path of its `mcp.json` or `agent.json`, and the text. */
  readonly mayUse: (file: string, text: string) => Promise<boolean>;
  /** Why a server's program may not be started as it is there now; undefined where it may. */
  readonly whyNotStart: (server: McpServer) => Promise<string | undefined>;
}

/**
 * Reads an agent's folder again only after a file in it has changed, so that every turn can call it. `shared` are MCP servers
 * of all agents; one of the same name in an agent's folder counts there. Where `mayUse` refuses an `mcp.json`, the servers stay that
 * were there before, until it agrees; where it refuses an `agent.json`, all of it counts but what it grants.
 */
export function createAgentLoader(
  agentsDir: string,
  now: () => number = Date.now,
  shared: readonly McpServer[] = [],
  mayUse: AgentTrust['mayUse'] = async () => true,
): AgentLoader {
  const loaded = new Map<string, { readonly agent: LoadedAgent; readonly stamp: string }>();
  /** A turn goes on with the agent that it began with, though another turn has seen a later one since. */
  const versions = new Map<string, LoadedAgent>();
  const accepted = new Map<string, string>();
  return async (id, scope = id, asOf) => {
    refuseBadId(id);
    refuseBadScope(scope);
    const name = `${id}/${scope}`;
    const before = loaded.get(name);
    if (before && asOf !== undefined && before.agent.hash.startsWith(asOf)) return before.agent;
    const version = versions.get(`${name}/${asOf}`);
    if (version) return version;
    // Taken before reading: a change made meanwhile shows as another stamp next time.
    const { stamp, changedAt } = readStamp(agentsDir, id, scope);
    if (before?.stamp === stamp) return before.agent;
    loaded.delete(name);
    let isWhole = true;
    const agent = await loadAgent(agentsDir, id, scope, shared, {
      async servers(text) {
        const isGood = text === undefined || accepted.get(id) === text || (await mayUse(join(agentsDir, id, SERVERS_FILE), text));
        if (!isGood) {
          isWhole = false;
          return accepted.get(id);
        }
        if (text === undefined) accepted.delete(id);
        else accepted.set(id, text);
        return text;
      },
      async mayGrant(text) {
        const isGood = await mayUse(join(agentsDir, id, CONFIG_FILE), text);
        isWhole &&= isGood;
        return isGood;
      },
    });
    // A later approval changes no file here: the next load checks again.
    if (isWhole && now() - changedAt > FRESH_MS) loaded.set(name, { agent, stamp });
    versions.set(`${name}/${agent.hash.slice(0, VERSION_CHARACTERS)}`, agent);
    for (const known of [loaded, versions]) if (known.size > MAX_LOADED) known.delete(known.keys().next().value ?? '');
    return agent;
  };
}

/** What of an agent's files is used. */
interface Usable {
  /** The text of `mcp.json`, or the one in its place. */
  readonly servers: (text: string | undefined) => Promise<string | undefined>;
  readonly mayGrant: (text: string) => Promise<boolean>;
}

const ALL_OF_IT: Usable = { servers: async (text) => text, mayGrant: async () => true };

/** Rejects with AgentConfigError; other errors are the machine's. */
export async function loadAgent(
  agentsDir: string,
  id: string,
  scope: string = id,
  shared: readonly McpServer[] = [],
  usable: Usable = ALL_OF_IT,
): Promise<LoadedAgent> {
  refuseBadId(id);
  refuseBadScope(scope);
  const tenant = readTenant(scope);
  const place = await enterAgents(agentsDir);
  const configText = await readOwn(place, agentsDir, id, CONFIG_FILE, CONFIG_BYTES);
  if (configText === undefined) throw await unknownAgent(agentsDir, id, tenant);
  const written = withOwnModel(parse(agentConfigSchema, join(agentsDir, id, CONFIG_FILE), configText));
  // In the same words as where there is none: a tenant does not learn what others have.
  if (!isVisibleTo(written, tenant)) throw await unknownAgent(agentsDir, id, tenant);
  const config = (await usable.mayGrant(configText)) ? written : withoutGrants(written);
  const read = async (name: string): Promise<string | null> => (await readOwn(place, agentsDir, id, name, IDENTITY_BYTES)) ?? null;
  const [serversText, soul, identity, user, agents, tools] = await Promise.all([
    readOwn(place, agentsDir, id, SERVERS_FILE, CONFIG_BYTES).then(usable.servers),
    read(IDENTITY_FILES.soul),
    read(IDENTITY_FILES.identity),
    read(nameUserFile(scope)).then(async (ofScope) => ofScope ?? read(IDENTITY_FILES.user)),
    read(IDENTITY_FILES.agents),
    read(IDENTITY_FILES.tools),
  ]);
  const files = { soul, identity, user, memory: null, agents, tools };
  const system = buildSystemPrompt(files);
  const servers = readServers(join(agentsDir, id, SERVERS_FILE), serversText, shared);
  const hash = createHash('sha256')
    .update(JSON.stringify([id, config, system, ...(servers.length > 0 ? [servers] : [])]))
    .digest('hex');
  const unread = [
    ...(existsSync(join(agentsDir, id, MEMORY_FILE)) ? [UNREAD_MEMORY] : []),
    ...(serversText === undefined ? [] : listIgnored(JSON.parse(serversText)).map((sentence) => `${SERVERS_FILE}: ${sentence}`)),
  ];
  return { id, config, files, servers, unread, system, hash };
}

const UNREAD_MEMORY = `${MEMORY_FILE} in the agent's folder is not read: long-term memory is kept in the store (\`perdura memory\`)`;

function refuseBadId(id: string): void {
  if (ID_PATTERN.test(id)) return;
  throw new AgentConfigError(
    'bad-id',
    `${JSON.stringify(id.slice(0, 100))} cannot be the id of an agent: it has 1 to 64 letters, digits, "_" or "-", the first a letter or digit`,
  );
}

function refuseBadScope(scope: string): void {
  if (!isScope(scope)) refuseBadId(scope);
}

/** Those of no tenant are the operator's. */
function isVisibleTo({ tenants }: Pick<AgentConfig, 'tenants'>, tenant: string | undefined): boolean {
  return tenant === undefined || tenants === undefined || tenants.includes(tenant);
}

async function enterAgents(agentsDir: string): Promise<Workspace> {
  return enterWorkspace(agentsDir).catch((cause: unknown) => {
    throw new AgentConfigError('unknown-agent', `cannot enter the agents folder ${agentsDir}: create it, or set PERDURA_AGENTS_DIR`, {
      cause,
    });
  });
}

/**
 * Undefined where there is no such file. The workspace's guard serves here too: no link leads out of the agents folder, no pipe is waited
 * for.
 */
async function readOwn(place: Workspace, agentsDir: string, id: string, name: string, mostBytes: number): Promise<string | undefined> {
  const file = join(agentsDir, id, name);
  try {
    const { handle, bytes } = await place.openFile(await place.resolve(join(id, name)));
    try {
      if (bytes > mostBytes) throw new AgentConfigError('bad-config', `${file} has ${bytes} bytes; at most ${mostBytes} are read`);
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(mostBytes), 0, mostBytes, 0);
      return decodeText(buffer.subarray(0, bytesRead));
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (!(error instanceof PathRefused)) throw error;
    if (error.kind === 'missing') return undefined;
    throw new AgentConfigError('bad-config', `cannot read ${file}: ${REASONS[error.kind]}`, { cause: error });
  }
}

/** The guard's messages speak to a model about its workspace. */
const REASONS: Record<Exclude<PathRefused['kind'], 'missing'>, string> = {
  outside: 'it is a link that leads out of the agents folder, or nowhere',
  'not-a-file': 'it is not a regular file',
  'not-a-folder': 'a part of its path is not a folder',
  'not-permitted': 'this process has no permission to',
  'bad-path': 'the path cannot be used',
};

function readServers(file: string, text: string | undefined, shared: readonly McpServer[]): readonly McpServer[] {
  if (text === undefined) return shared;
  const config = parse(mcpConfigSchema, file, text);
  // One that is disabled here hides the shared one of its name too.
  const others = shared.filter(({ name }) => !Object.hasOwn(config.mcpServers, name));
  return [...others, ...toServers(config, dirname(file))].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function parse<Schema extends z.ZodType>(schema: Schema, file: string, text: string): z.output<Schema> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new AgentConfigError('bad-config', `${file} is not JSON: ${cause instanceof Error ? cause.message : 'it cannot be parsed'}`, {
      cause,
    });
  }
  const checked = schema.safeParse(json);
  if (checked.success) return checked.data;
  throw new AgentConfigError('bad-config', `${file}: ${listIssues(checked.error.issues).join('; ')}`);
}

async function unknownAgent(agentsDir: string, id: string, tenant: string | undefined): Promise<AgentConfigError> {
  if (tenant !== undefined) {
    return new AgentConfigError('unknown-agent', `${tenant} has no agent ${id}; \`tenants\` in an agent.json names whose it is`);
  }
  const known = await knownAgents(agentsDir);
  const list = known.length > MAX_KNOWN ? `${known.slice(0, MAX_KNOWN).join(', ')} and ${known.length - MAX_KNOWN} more` : known.join(', ');
  return new AgentConfigError(
    'unknown-agent',
    `there is no agent ${id}: ${join(agentsDir, id, CONFIG_FILE)} does not exist. ${known.length > 0 ? `There are: ${list}.` : 'The agents folder has none; an agent.json of {} makes one.'}`,
  );
}

async function knownAgents(agentsDir: string): Promise<string[]> {
  const names = (await readdir(agentsDir).catch(() => [])).filter((name) => ID_PATTERN.test(name)).sort();
  const has = await Promise.all(
    names.map((name) =>
      stat(join(agentsDir, name, CONFIG_FILE)).then(
        (found) => found.isFile(),
        () => false,
      ),
    ),
  );
  return names.filter((_, at) => has[at]);
}

function nameUserFile(scope: string): string {
  return join('users', `${scope}.md`);
}

/** Looked at in every turn, and in the kernel's memory by then: eight promises cost a turn more than these looks (measured). */
function readStamp(agentsDir: string, id: string, scope: string): { stamp: string; changedAt: number } {
  const names = [CONFIG_FILE, SERVERS_FILE, ...Object.values(IDENTITY_FILES), nameUserFile(scope)];
  const stats = names.map((name) => lookAt(join(agentsDir, id, name)));
  return {
    stamp: stats.map((found) => (found ? [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':') : 'absent')).join(' '),
    changedAt: Math.max(...stats.map((found) => (found ? Number(found.ctimeMs) : 0))),
  };
}

/** Undefined for what is not there, or cannot be looked at: reading it will say so. */
function lookAt(file: string): BigIntStats | undefined {
  try {
    return statSync(file, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

// Where agents are, as the worker of a folder finds them.

/** A folder without agents has the one that we ship, unless a setting names another place; `configured` is that of a `perdura.config`. */
export function agentsFolder({ cwd, agentsDir }: { readonly cwd: string; readonly agentsDir: string }, configured?: string): string {
  if (configured !== undefined) return resolve(cwd, configured);
  const shipped = join(__dirname, '..', '..', 'agents');
  return agentsDir === join(cwd, 'agents') && !existsSync(agentsDir) && existsSync(shipped) ? shipped : agentsDir;
}

/** Of the agents that are there, and that the tenant may use; none where the folder cannot be read. */
export async function agentNames(
  config: { readonly cwd: string; readonly agentsDir: string },
  tenant?: string,
): Promise<readonly string[]> {
  const folder = agentsFolder(config);
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const names = entries.filter((entry) => !entry.isFile() && ID_PATTERN.test(entry.name)).map(({ name }) => name);
  if (tenant === undefined) return names;
  const isVisible = (name: string): Promise<boolean> =>
    loadAgent(folder, name, qualifiedScope(tenant, name)).then(
      () => true,
      () => false,
    );
  const visible = await Promise.all(names.map(isVisible));
  return names.filter((_, at) => visible[at]);
}
