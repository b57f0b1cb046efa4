/** Which task queue this folder's worker takes: the one of the settings, or one of its own where another folder's worker has that. */
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { findOthers, takenInWords } from '../../client/temporal/worker-place.js';
import { queueFile, type Config, type TemporalConnection } from '../../config.js';
import { openStore } from '../../stores/open.js';
import { canAsk, confirm, type Person } from '../terminal/ask.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { Output } from '../terminal/output.js';
import { hasWorker, openNamespace } from './temporal-connection.js';

/** Asks the person, where one can be asked; else a worker of another store is an error. */
export async function queueOf(
  config: Config,
  temporal: TemporalConnection,
  { output, person }: { readonly output: Output; readonly person: Person },
): Promise<string> {
  const { taskQueue } = config;
  const connection = await openNamespace(temporal);
  try {
    const { namespace } = temporal;
    // The usual case: no other worker is there, and no store need be asked.
    if (!(await hasWorker(connection, namespace, taskQueue))) return taskQueue;
    // Which agents there are, the worker's own code decides: it refuses by itself.
    const place = { store: await storeOf(config), agents: '' };
    const other = (await findOthers(connection, { namespace, taskQueue, place })).find(({ differs }) => differs === 'store');
    if (other === undefined) return taskQueue;
    const taken = takenInWords(taskQueue, other);
    if (!canAsk(person)) throw new CliError(taken, EXIT.usage);
    const own = nameFor(config.cwd);
    output.say(`\n  ${taken}\n`);
    if (!(await confirm(person, `Use task queue ${own} for this folder from now on?`, true)))
      throw new CliError(`not started: ${taken}`, EXIT.usage);
    await mkdir(dirname(queueFile(config.cwd)), { recursive: true });
    await writeFile(queueFile(config.cwd), `${own}\n`);
    output.report('Queue', `${own}, for this folder from now on (.perdura/task-queue)`);
    return own;
  } finally {
    await connection.close();
  }
}

async function storeOf(config: Config): Promise<string> {
  const store = openStore(config);
  try {
    return await store.id();
  } finally {
    await store.close();
  }
}

/** Two folders of one name have two. */
function nameFor(cwd: string): string {
  const folder = realpathSync(cwd);
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 40);
  return `perdura-${name === '' ? '' : `${name}-`}${createHash('sha256').update(folder).digest('hex').slice(0, 4)}`;
}
