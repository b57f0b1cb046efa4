/**
 * A worker reads an agent's files again when they have changed, and starts its servers again when they have ended. What it was at the
 * worker's start has passed the door (folder-trust.ts); anything else that the door asks about waits for a person's yes, as it would at
 * the next start: an `mcp.json`, what an `agent.json` allows, and the files that a server runs.
 */
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { basename, relative, resolve } from 'node:path';
import type { AgentTrust } from '../../agents/load-agent.js';
import { isTrustedByEnvironment, trustFile, type Config } from '../../config.js';
import type { McpServer } from '../../tools/mcp/server-config.js';
import { toTerminalLine } from '../terminal/terminal-text.js';
import { filesOfServer, folderContents, grantedIn, type FolderItem } from './folder-contents.js';
import { readTrust } from './trust-file.js';

/** For a folder that is trusted as a whole: undefined. Made after the door was passed. `warn` hears of each content once. */
export function createAgentTrust({ cwd, env }: Pick<Config, 'cwd' | 'env'>, warn: (line: string) => void): AgentTrust | undefined {
  if (isTrustedByEnvironment(env)) return undefined;
  const folder = realpathSync(cwd);
  const atStart = new Set(folderContents(folder, env).map(keyOf));
  const reported = new Set<string>();

  /** Those that wait for a yes. */
  const waiting = async (items: readonly Pick<FolderItem, 'name' | 'sha256'>[]): Promise<string[]> => {
    const others = items.filter((item) => !atStart.has(keyOf(item)));
    if (others.length === 0) return [];
    // What the door does not look at is the operator's own: an agents folder that the environment names, for one.
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
        ? 'its rules that allow, and the tools and words that it believes, do not count until then; all else in it does'
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

function keyOf({ name, sha256 }: Pick<FolderItem, 'name' | 'sha256'>): string {
  return `${name} ${sha256}`;
}
