/**
 * The code of workflows that a worker runs, and by which histories are replayed: what the build made, or the sources, with the user's
 * reducers; and the worker that runs it.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Worker, type WorkerOptions } from '@temporalio/worker';
import { ThreadedVMWorkflowCreator, WorkerThreadClient } from '@temporalio/worker/lib/workflow/threaded-vm.js';
import { encryptingConverter } from './client/temporal/encryption.js';
import type { Config } from './config.js';
import { UNOBSERVED } from './conversation/views/observation.js';
import { bundleCustomWorkflows } from './extensions/custom-workflows.js';
import { createStateCodec } from './extensions/state-codec.js';
import type { Extensions } from './extensions/user-config.js';
import type { WorkflowCode } from './heal/replay-here.js';
import { startThread } from './platform/processes.js';
import { runtimeLog } from './telemetry/observability.js';

/** @internal The bundle that the build made, or the sources when there was none; to run it and to replay it. */
export function workflowCode(): WorkflowCode {
  const codePath = join(__dirname, 'workflow-bundle.js');
  const code = existsSync(codePath) ? { workflowBundle: { codePath } } : { workflowsPath: require.resolve('./workflows/index') };
  return { ...code, dataConverter: { payloadConverterPath: require.resolve('./workflows/payload-converter') } };
}

/** @internal */
export interface Code extends WorkflowCode {
  /** Of custom workflows. */
  readonly hash?: string;
  /** Whether custom workflows have the one that closes and archives. */
  readonly collects?: boolean;
}

/** @internal The same with the user's reducers: a replay of a history needs the code that made it. Throws `ConfigError`. */
export async function workflowCodeOf(
  { workflows }: Pick<Extensions, 'workflows'>,
  { cwd, secrets, encryptionRoots, retention, archive }: Pick<Config, 'cwd' | 'secrets' | 'encryptionRoots' | 'retention' | 'archive'>,
): Promise<Code> {
  const { workflowBundle, workflowsPath, dataConverter: plain } = workflowCode();
  const { payloadCodecs: encryption = [], ...encrypting } = encryptingConverter(encryptionRoots()) ?? {};
  // Signed first: what is checked is what the workflow made.
  const payloadCodecs = [...(secrets === undefined ? [] : [createStateCodec(secrets)]), ...encryption];
  const dataConverter = { ...plain, ...encrypting, ...(payloadCodecs.length > 0 && { payloadCodecs }) };
  if (workflows === undefined) return { ...(workflowBundle ? { workflowBundle } : { workflowsPath }), dataConverter };
  const needs = [...(retention ? (['retention'] as const) : []), ...(archive ? (['gc'] as const) : [])];
  const log = { warn: (message: string) => runtimeLog().warn(message) };
  const { code, ...made } = await bundleCustomWorkflows(workflows, { cwd, log, needs });
  return { ...made, workflowBundle: { code }, dataConverter };
}

/** @internal */
export interface WorkflowWorkerOptions {
  /** Whether the code has reducers of the application: it keeps the SDK's time limit. */
  readonly isCustom: boolean;
  /** Whether what happens in conversations has a listener. */
  readonly isObserved: boolean;
}

/** @internal */
export function createWorkflowWorker(options: WorkerOptions, { isCustom, isObserved }: WorkflowWorkerOptions): Promise<Worker> {
  if (isCustom) return Worker.create(options);
  return (isObserved ? QuickWorker : UnobservedWorker).create(options);
}

/** Without what the SDK does around each call into a workflow: a thread that watches the time, notes of promises, a question about sinks. */
class QuickWorker extends Worker {
  protected static override async createWorkflowCreator(
    ...[workflowBundle, options, logger]: Parameters<typeof Worker.createWorkflowCreator>
  ) {
    const { activities, patchActivationCallback, workflowThreadPoolSize, reuseV8Context = true } = options;
    const threads = Array.from({ length: workflowThreadPoolSize }, async () => {
      const thread = await startThread(require.resolve('./workflow-thread'), undefined, { stdout: false, stderr: false });
      const client = new WatchedThread(thread, logger, patchActivationCallback);
      await client.send({
        type: 'init',
        ...{ workflowBundle, reuseV8Context },
        isolateExecutionTimeoutMs: undefined as unknown as number,
        registeredActivityNames: new Set(activities.keys()),
        hasPatchActivationCallback: patchActivationCallback !== undefined,
      });
      return client;
    });
    return new ThreadedVMWorkflowCreator(await Promise.all(threads));
  }
}

/** Its workflows know that there is no listener. */
class UnobservedWorker extends QuickWorker {
  protected static override async getOrCreateBundle(...given: Parameters<typeof Worker.getOrCreateBundle>) {
    const bundle = await super.getOrCreateBundle(...given);
    return bundle && { ...bundle, code: `globalThis[Symbol.for('${UNOBSERVED.description}')] = true;${bundle.code}` };
  }
}

const TICK_MS = 1_000;
/** Three times what Temporal gives a workflow task: nothing comes of it any more. */
const STILL_TICKS = 30;

/**
 * A thread of workflows that is ended once it has answered nothing for so many ticks (workflows/standing-ends-worker). No clock is
 * looked at: a machine that slept did not stand still. A workflow that has called no sink is spared the question for its calls.
 */
class WatchedThread extends WorkerThreadClient {
  private waiting = 0;
  private still = 0;
  /** Runs whose last activation has called no sink. */
  private readonly silent = new Set<string>();
  private readonly watch = setInterval(() => this.look(), TICK_MS).unref();

  override async send(...[input]: Parameters<WorkerThreadClient['send']>): ReturnType<WorkerThreadClient['send']> {
    if (input.type === 'extract-sink-calls' && this.silent.delete(input.runId)) return { type: 'sink-calls', calls: [] };
    this.waiting += 1;
    try {
      const output = await super.send(input);
      if (input.type === 'activate-workflow' && isSilent(output)) this.silent.add(input.runId);
      return output;
    } finally {
      this.waiting -= 1;
      this.still = 0;
    }
  }

  override async destroy(): Promise<void> {
    await super.destroy();
    clearInterval(this.watch);
  }

  private look(): void {
    this.still = this.waiting === 0 ? 0 : this.still + 1;
    if (this.still < STILL_TICKS) return;
    clearInterval(this.watch);
    this.logger.error('the thread of the workflows stands still: this worker ends, and others take over what it ran', {
      seconds: this.still,
    });
    void this.workerThread.terminate();
  }
}

/** As workflow-thread.ts says of each completion. */
function isSilent(output: Awaited<ReturnType<WorkerThreadClient['send']>>): boolean {
  return output?.type === 'activation-completion' && (output.completion as { readonly hasSinkCalls?: boolean }).hasSinkCalls === false;
}
