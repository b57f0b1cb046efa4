/**
 * A worker reads an agent's files again when they have changed, and starts its servers again when they have ended. What it was at the
 * worker's start has passed the door (folder-trust.ts); anything else that the door asks about waits for a person's yes, as it would at
 * the next start: an `mcp.json`, what an `agent.json` allows, and the files that a server runs.
 */
import { createHash, randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { lstat, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { agentConfigSchema } from '../../agents/agent-config.js';
import type { AgentTrust } from '../../agents/load-agent.js';
import { withLock } from '../lock.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalLine } from '../terminal/terminal-text.js';
import { filesOfServer, folderContents, grantedIn, type FolderItem } from './folder-contents.js';
import { readTrust, rememberTrust } from './folder-trust.js';
import { isTrustedByEnvironment, trustFile, type Config } from '../../config.js';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import { errorMessage } from '../../platform/errors.js';
import { decodeText } from '../../records/file-type.js';
import type { ApprovalRule } from '../../tools/approval-rules.js';
import type { McpServer } from '../../tools/mcp/server-config.js';

/** For a folder that is trusted as a whole: undefined. Made after the door was passed. `warn` hears of each content once. */
export function createAgentTrust({ cwd, env }: Pick<Config, 'cwd' | 'env'>, warn: (line: string) => void): AgentTrust | undefined {
  if (isTrustedByEnvironment(env)) return undefined;
  const folder = realpathSync(cwd);
  const atStart = new Set(folderContents(folder, env).map(toKey));
  const reported = new Set<string>();

  /** Those that wait for a yes. */
  const waiting = async (items: readonly Pick<FolderItem, 'name' | 'sha256'>[]): Promise<string[]> => {
    const others = items.filter((item) => !atStart.has(toKey(item)));
    if (others.length === 0) return [];
    // Unchecked places belong to the operator: an agents folder that the environment names, for one.
    const listed = new Set(folderContents(folder, env).map(({ name }) => name));
    const trusted = await readTrust(trustFile(env), folder);
    return others.filter(({ name, sha256 }) => listed.has(name) && trusted[name] !== sha256).map(({ name }) => name);
  };

  return {
    async mayUse(file, text) {
      const isAgent = basename(file) === 'agent.json';
      const content = isAgent ? grantedIn(text)?.content : text;
      if (content === undefined) return true;
      // As the door names it, whatever links lead there.
      const name = relative(resolve(cwd), file);
      const sha256 = createHash('sha256').update(content).digest('hex');
      if ((await waiting([{ name, sha256 }])).length === 0) return true;
      const until = isAgent
        ? 'its rules that allow, no sandbox, hosts of commands, and tools that it believes do not count until then; all else in it does'
        : 'the MCP servers that were trusted stay, and no others';
      if (!reported.has(sha256) && reported.size < MAX_REPORTED)
        warn(`${toTerminalLine(name, 200)} has changed and is not trusted: ${until}. Run \`perdura trust\` in ${folder}`);
      reported.add(sha256);
      return false;
    },

    async whyNotStart(server: McpServer) {
      const names = await waiting(filesOfServer(folder, server, { from: server.folder, env }));
      if (names.length === 0) return undefined;
      const shown = names.slice(0, 3).map((name) => toTerminalLine(name, 200));
      const changed = `${shown.join(', ')}${names.length > 3 ? ` and ${names.length - 3} more` : ''}`;
      return `it is not started, since it runs ${changed}, changed and not trusted: run \`perdura trust\` in ${folder}`;
    },
  };
}

const MAX_REPORTED = 1_000;

function toKey({ name, sha256 }: Pick<FolderItem, 'name' | 'sha256'>): string {
  return `${name} ${sha256}`;
}

/** Resolves to the file, relative to the folder. The rule comes first: it speaks of one call, and the rules after it ask about that. */
export async function allowInAgent(
  { cwd, env, agentsDir }: Pick<Config, 'cwd' | 'env' | 'agentsDir'>,
  agent: string,
  rule: ApprovalRule,
): Promise<string> {
  if (!ID_PATTERN.test(agent)) throw new CliError(`${JSON.stringify(agent)} is not the name of an agent`, EXIT.usage);
  const file = join(agentsDir, agent, 'agent.json');
  const name = relative(resolve(cwd), file);
  const attempt = `cannot write a rule into ${toTerminalLine(name, 200)}`;
  return withLock(`${trustFile(env)}.rule.lock`, async () => {
    const text = await readOwnFile(file, attempt);
    const written = withRule(text, rule, attempt);
    const trusted = await readRuleTrust({ cwd, env }, name, text, attempt);
    const fresh = `${file}.${randomUUID()}`;
    try {
      await writeFile(fresh, written, { mode: (await lstat(file)).mode & 0o777 });
      // First: what a worker reads is then trusted already.
      await trusted?.remember(written);
      await rename(fresh, file);
    } catch (error) {
      await rm(fresh, { force: true });
      await trusted?.remember(text);
      throw new CliError(`${attempt}: ${errorMessage(error)}`, EXIT.failed, { cause: error });
    }
    return name;
  });
}

async function readOwnFile(file: string, attempt: string): Promise<string> {
  const found = await lstat(file).catch(() => undefined);
  if (found === undefined) {
    throw new CliError(
      `${attempt}: there is no such file here; allow it in the conversation, or make the agent in this folder`,
      EXIT.notFound,
    );
  }
  if (!found.isFile()) throw new CliError(`${attempt}: it is no file of its own but a link or a folder; edit it by hand`, EXIT.failed);
  return decodeText(await readFile(file));
}

/** The rest stays as it was written; only blanks may differ. */
function withRule(text: string, rule: ApprovalRule, attempt: string): string {
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (error) {
    throw new CliError(`${attempt}: it is no JSON (${errorMessage(error)})`, EXIT.failed);
  }
  const { approvals = [], ...rest } = config as { readonly approvals?: unknown };
  const all = { ...rest, approvals: [rule, ...(Array.isArray(approvals) ? (approvals as unknown[]) : [])] };
  const checked = agentConfigSchema.safeParse(all);
  if (!checked.success) throw new CliError(`${attempt}: ${checked.error.issues[0]?.message ?? 'it cannot be used'}`, EXIT.failed);
  return `${JSON.stringify(all, null, 2)}\n`;
}

/** Undefined where this file needs no trust. */
async function readRuleTrust(
  { cwd, env }: Pick<Config, 'cwd' | 'env'>,
  name: string,
  text: string,
  attempt: string,
): Promise<{ readonly remember: (text: string) => Promise<void> } | undefined> {
  if (isTrustedByEnvironment(env)) return undefined;
  const folder = realpathSync(cwd);
  // Unchecked places belong to the person: an agents folder that their environment names.
  if (relative(folder, resolve(folder, name)).startsWith('..')) return undefined;
  const before = grantedIn(text);
  const isListed = before !== undefined && folderContents(folder, env).some((item) => item.name === name);
  if (before !== undefined && isListed && (await readTrust(trustFile(env), folder))[name] !== hashContent(before.content)) {
    throw new CliError(`${attempt}: what it allows already is not trusted yet; run \`perdura trust\` first`, EXIT.unreachable);
  }
  return {
    async remember(content) {
      const granted = grantedIn(content);
      if (granted !== undefined)
        await rememberTrust(trustFile(env), folder, [{ name, sha256: hashContent(granted.content) }], { add: true });
    },
  };
}

function hashContent(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}
