/** What is looked at before anything starts: an agent that does not exist, and a disk that is full, would stop the first answer late. */
import { access, constants, mkdir, realpath, statfs } from 'node:fs/promises';
import { agentsFolder } from '../../agents/load-agent.js';
import { openNamespace } from './temporal-connection.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findUserConfig, temporalConnection, type Config } from '../../config.js';
import { qualifiedScope } from '../../records/identity.js';

/** Where the worker has another agents folder, or the folder's code names one, only the worker knows: then nothing is refused. */
export async function refuseUnusableAgent(config: Config, agent: string | undefined, tenant?: string): Promise<void> {
  if (agent === undefined) return;
  const [{ AgentConfigError, loadAgent }, { agentsMark, mayHaveOtherAgents }] = await Promise.all([
    import('../../agents/load-agent.js'),
    import('../../client/temporal/worker-place.js'),
  ]);
  const folder = agentsFolder(config);
  const error = await loadAgent(folder, agent, qualifiedScope(tenant, agent)).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (!(error instanceof AgentConfigError) || findUserConfig(config.cwd) !== undefined) return;
  const temporal = await temporalConnection(config);
  const connection = await openNamespace(temporal);
  try {
    const agents = agentsMark(await realpath(folder).catch(() => folder));
    const { namespace } = temporal;
    if (await mayHaveOtherAgents(connection, { namespace, taskQueue: config.taskQueue, agents })) return;
  } finally {
    await connection.close();
  }
  throw new CliError(`cannot start a conversation: ${error.message}`, error.kind === 'unknown-agent' ? EXIT.notFound : EXIT.failed, {
    cause: error,
  });
}

/** Less than this, and a turn may not fit. */
const TOO_LITTLE = 10 * 1024 ** 2;

export async function checkMemoryFolder(dir: string, tooLittle = TOO_LITTLE): Promise<void> {
  await mkdir(dir, { recursive: true });
  await access(dir, constants.W_OK);
  const { bavail, bsize } = await statfs(dir);
  if (bavail * bsize >= tooLittle) return;
  throw new CliError(
    `cannot keep conversations in ${dir}: its disk is full (${Math.floor((bavail * bsize) / 1024)} KiB free); free some space, or set PERDURA_MEMORY_DIR`,
    EXIT.unreachable,
  );
}

/** A failover is over by then. */
const REDIS_PATIENCE_MS = 8_000;

/** Throws where conversations cannot be kept: of Redis, what is wrong with it. A Redis that is down is no reason to write files: memory would seem lost. */
export async function checkStore(
  { redisUrl, memoryDir }: Pick<Config, 'redisUrl' | 'memoryDir'>,
  patienceMs = REDIS_PATIENCE_MS,
): Promise<void> {
  if (redisUrl === undefined) return checkMemoryFolder(memoryDir);
  const { awaitRedis } = await import('../../stores/redis/upkeep.js');
  await awaitRedis(redisUrl, patienceMs);
}

const FOLDER = 'make that folder writable, or start in another one';

const FILE_FAILURES: Readonly<Record<string, string>> = {
  EACCES: FOLDER,
  EPERM: FOLDER,
  EROFS: 'its disk is read-only: start in another folder',
  ENOSPC: 'its disk is full: free some space',
  EDQUOT: 'its disk is full for this user: free some space',
  ENOTDIR: 'a file stands where a folder is needed: move it away',
  EEXIST: 'a file stands where a folder is needed: move it away',
};

/** Names the refusal of the file system, and what to do. */
export function asSentence(error: unknown): unknown {
  const { code = '', path, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined || error instanceof CliError) return error;
  // Node makes the folders above too, and says this where they cannot be made, as on a disk that is read-only.
  const advice = code === 'ENOENT' && syscall === 'mkdir' ? FOLDER : FILE_FAILURES[code];
  if (advice === undefined) return error;
  return new CliError(`cannot write ${path ?? 'what is needed here'} (${code}); ${advice}`, EXIT.unreachable, { cause: error });
}
