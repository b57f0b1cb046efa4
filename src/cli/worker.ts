/** `perdura worker`: takes work until it is stopped. */
import { temporalConnection, type Config } from '../config.js';
import { createAgentTrust } from './trust/agent-trust.js';
import { loadUserConfig } from '../extensions/user-config.js';
import { errorFields } from '../platform/errors.js';
import { CliError, EXIT } from './terminal/exit.js';
import type { Output } from './terminal/output.js';
import { asSentence, checkStore } from './services/before-start.js';
import { checkTemporal, describeRefusedWork } from './services/temporal-connection.js';
import type { ToolsOnly } from '../worker.js';
import type { WorkerBegin, WorkerReady } from './services/worker-process.js';

/** A worker that does not end in this time after its parent's death is not waited for. */
const ORPHAN_PATIENCE = 15_000;

/**
 * What a worker with `--await-begin` does first: loads its code, and waits until its parent sends the task queue. Nothing of the folder is read
 * before: it may change until then, and is checked for trust afterwards.
 */
export async function awaitBegin(): Promise<WorkerBegin> {
  const endWithParent = (): never => process.exit(EXIT.failed);
  process.once('disconnect', endWithParent);
  const begin = new Promise<WorkerBegin>((resolve) => process.once('message', (message) => resolve(message as WorkerBegin)));
  await import('../worker.js');
  const begun = await begin;
  process.off('disconnect', endWithParent);
  return begun;
}

export async function worker(config: Config, output: Output, only?: ToolsOnly): Promise<number> {
  // Started by a chat: when that ends, however it ended, so do we, the way SIGTERM ends us.
  const endWithParent = (): void => {
    process.kill(process.pid, 'SIGTERM');
    setTimeout(() => process.exit(EXIT.failed), ORPHAN_PATIENCE).unref();
  };
  process.once('disconnect', endWithParent);
  const user = await loadUserConfig(config.cwd);
  // A store that cannot be used ends the worker before it takes any work: it would fail all of it, and
  // another worker might not.
  await checkStore(config).catch((error: unknown) => {
    throw asSentence(error);
  });
  const { createWorkerWith } = await import('../worker.js');
  const options = {
    ...user,
    config,
    ...(only && { only }),
    trust: createAgentTrust(config, (line: string) => output.report('Trust', line)),
    onReady() {
      const what = only ? `calls of ${only.tools.join(', ')}` : `work from task queue ${config.taskQueue}`;
      output.report('Worker', `takes ${what}; Ctrl+C ends it`);
      process.send?.({ kind: 'ready' } satisfies WorkerReady);
    },
  };
  // Checked only where it does not connect, so that a start costs no more: the core's message about an absent server is not for people.
  const whyNot = async (): Promise<void> => checkTemporal(await temporalConnection(config));
  const running = createWorkerWith(options, { isAlone: true, whyNot }).run();
  await running.catch(async (error: unknown) => {
    if (error instanceof CliError || errorFields(error).name === 'ConfigError') throw error;
    await whyNot();
    throw describeRefusedWork(error, await temporalConnection(config)) ?? error;
  });
  // From here on it is we who let go.
  process.off('disconnect', endWithParent);
  if (process.connected) process.disconnect();
  return EXIT.ok;
}
