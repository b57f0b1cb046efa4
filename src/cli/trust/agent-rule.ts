/**
 * A rule that a person has just read and agreed to, written into an agent's `agent.json`: at once or not at all, and with the folder's
 * trust, which would otherwise ask about what the same person has just said. Only for a file whose grants are trusted as they stand: yes to
 * one rule is not yes to the others.
 */
import { createHash, randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { lstat, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { agentConfigSchema } from '../../agents/agent-config.js';
import { isTrustedByEnvironment, trustFile, type Config } from '../../config.js';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import type { ApprovalRule } from '../../tools/approval-rules.js';
import { withLock } from '../lock.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalLine } from '../terminal/terminal-text.js';
import { folderContents, grantedIn } from './folder-contents.js';
import { readTrust, rememberTrust } from './trust-file.js';
import { errorMessage } from '../../platform/errors.js';

/** Resolves to the file, relative to the folder. The rule comes first: it speaks of one call, and the rules after it asked about that. */
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
    const trusted = await trustOf({ cwd, env }, name, text, attempt);
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
  return readFile(file, 'utf8');
}

/** The rest stays as it was said; only blanks may differ. */
function withRule(text: string, rule: ApprovalRule, attempt: string): string {
  let config: unknown;
  try {
    config = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new CliError(`${attempt}: it is no JSON (${errorMessage(error)})`, EXIT.failed);
  }
  const { approvals = [], ...rest } = config as { readonly approvals?: unknown };
  const all = { ...rest, approvals: [rule, ...(Array.isArray(approvals) ? (approvals as unknown[]) : [])] };
  const checked = agentConfigSchema.safeParse(all);
  if (!checked.success) throw new CliError(`${attempt}: ${checked.error.issues[0]?.message ?? 'it cannot be used'}`, EXIT.failed);
  return `${JSON.stringify(all, null, 2)}\n`;
}

/** Undefined where this file is not asked about. */
async function trustOf(
  { cwd, env }: Pick<Config, 'cwd' | 'env'>,
  name: string,
  text: string,
  attempt: string,
): Promise<{ readonly remember: (text: string) => Promise<void> } | undefined> {
  if (isTrustedByEnvironment(env)) return undefined;
  const folder = realpathSync(cwd);
  // What the door does not look at is the person's own: an agents folder that their environment names.
  if (relative(folder, resolve(folder, name)).startsWith('..')) return undefined;
  const before = grantedIn(text);
  const isListed = before !== undefined && folderContents(folder, env).some((item) => item.name === name);
  if (before !== undefined && isListed && (await readTrust(trustFile(env), folder))[name] !== hashOf(before.content)) {
    throw new CliError(`${attempt}: what it allows already is not trusted yet; run \`perdura trust\` first`, EXIT.unreachable);
  }
  return {
    async remember(content) {
      const granted = grantedIn(content);
      if (granted !== undefined) await rememberTrust(trustFile(env), folder, [{ name, sha256: hashOf(granted.content) }], { add: true });
    },
  };
}

function hashOf(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}
