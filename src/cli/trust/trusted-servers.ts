/**
 * A worker reads `mcp.json` again when it has changed. What it was at the worker's start has passed the door (folder-trust.ts); anything
 * else waits for a person's yes, as it would at the next start.
 */
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { isTrustedByEnvironment, trustFile } from '../../config.js';
import { toTerminalLine } from '../terminal/terminal-text.js';
import { folderContents } from './folder-contents.js';
import { readTrust } from './trust-file.js';

/** Made after the door was passed. `warn` hears of each text once. */
export function createTrustedServers(cwd: string, warn: (line: string) => void): (file: string, text: string) => Promise<boolean> {
  if (isTrustedByEnvironment()) return async () => true;
  const folder = realpathSync(cwd);
  const atStart = new Set(folderContents(folder).map(({ name, sha256 }) => `${name} ${sha256}`));
  const told = new Set<string>();
  return async (file, text) => {
    // As the door names it, whatever links lead there.
    const name = relative(resolve(cwd), file);
    const sha256 = createHash('sha256').update(text).digest('hex');
    if (atStart.has(`${name} ${sha256}`)) return true;
    // What the door does not look at is the operator's own: an agents folder that the environment names, for one.
    if (!folderContents(folder).some((item) => item.name === name)) return true;
    if ((await readTrust(trustFile(), folder))[name] === sha256) return true;
    if (!told.has(sha256) && told.size < MAX_TOLD)
      warn(
        `${toTerminalLine(name, 200)} has changed and is not trusted: the MCP servers that were trusted stay, and no others. Run \`perdura trust\` in ${folder}`,
      );
    told.add(sha256);
    return false;
  };
}

const MAX_TOLD = 1_000;
