/** A worker of this process on Temporal, with the workflows of the build. */
import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DataConverter } from '@temporalio/common';
import {
  bundleWorkflowCode,
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
  type InjectedSinks,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import type { Assembled } from '../../src/assemble.js';
import { withLock } from '../../src/cli/lock.js';
import type { Replay } from '../../src/client.js';
import { watchRouting } from '../../src/client/temporal/deployments.js';
import type { Secrets } from '../../src/config/settings.js';
import { createStateCodec } from '../../src/extensions/state-codec.js';
import { bundleOptions } from '../../src/extensions/custom-workflows.js';
import { createReplays, hasBegun } from '../../src/heal/replay-here.js';
import type { ConversationListener } from '../../src/conversation/views/observation.js';
import { workerOptions } from '../../src/worker.js';
import { createWorkflowWorker } from '../../src/workflow-code.js';
import type { Observe, WorkerCode, WorldOptions } from './world.js';

const PAYLOAD_CONVERTER = require.resolve('../../src/workflows/payload-converter');

/** As a worker with these keys reads and writes. */
export function converterOf(keys: Secrets | undefined): DataConverter {
  return { payloadConverterPath: PAYLOAD_CONVERTER, ...(keys && { payloadCodecs: [createStateCodec(keys)] }) };
}

export { hasBegun, Worker };

let bundle: Promise<WorkflowBundleWithSourceMap> | undefined;

/**
 * That of the build where `npm test` has just seen to it. Otherwise made once per run of jest, by the test file that wants it first, for
 * which the others wait: it takes seconds.
 */
export function workflowBundle(): Promise<WorkflowBundleWithSourceMap> {
  const built = process.env['PERDURA_TEST_BUNDLE'];
  return (bundle ??= built === undefined ? bundleOnce(process.env['PERDURA_TEST_DIR']) : readBundle(built));
}

async function readBundle(file: string): Promise<WorkflowBundleWithSourceMap> {
  return { code: await readFile(file, 'utf8'), sourceMap: '' };
}

async function bundleOnce(dir: string | undefined): Promise<WorkflowBundleWithSourceMap> {
  if (dir === undefined) return bundleNow();
  const file = join(dir, 'workflow-bundle.js');
  return withLock(`${file}.lock`, async () => {
    const made = await readFile(file, 'utf8').catch(() => undefined);
    if (made !== undefined) return { code: made, sourceMap: '' };
    const fresh = await bundleNow();
    const own = `${file}.${randomUUID()}`;
    await writeFile(own, fresh.code);
    await rename(own, file);
    return fresh;
  });
}

function bundleNow(): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({ ...bundleOptions(), logger: new DefaultLogger('ERROR') });
}

export const connect = (address: string | undefined): Promise<NativeConnection> => {
  quiet();
  return NativeConnection.connect({ address });
};

export async function replay(keys: Secrets | undefined, ...histories: Parameters<Replay>): ReturnType<Replay> {
  return createReplays(async () => ({ workflowBundle: await workflowBundle(), dataConverter: converterOf(keys) }))(...histories);
}

export async function runWorker(
  connection: NativeConnection,
  taskQueue: string,
  { activities, runIn }: Pick<Assembled, 'activities' | 'runIn'>,
  { installation, observe, workflows, build }: Pick<WorldOptions, 'installation' | 'observe' | 'workflows'> & WorkerCode,
): Promise<() => Promise<void>> {
  const code = { workflowBundle: workflows ?? (await workflowBundle()), dataConverter: converterOf(installation) };
  const where = { namespace: 'default', taskQueue };
  const routing = build && watchRouting(connection.workflowService, { ...where, build, warn: () => undefined, pollMs: ROUTING_POLL_MS });
  const versioning = build && routing && { build, decide: routing.decide };
  const made = workerOptions({ connection, ...where, activities, ...(versioning && { versioning }) });
  const { workflowsPath: _sources, workflowBundle: _built, ...rest } = made;
  const sinks: InjectedSinks<{ conversation: ConversationListener }> = {
    conversation: { opened: { fn: () => undefined }, event: { fn: toldOnce(observe) } },
  };
  const worker = await createWorkflowWorker(
    { ...rest, ...code, ...(observe && { sinks }), shutdownGraceTime: '1s' },
    { isCustom: workflows !== undefined, isObserved: observe !== undefined },
  );
  runIn(worker);
  const running = worker.run();
  return async () => {
    worker.shutdown();
    await running;
    routing?.close();
  };
}

/** A test waits for what a worker knows. */
const ROUTING_POLL_MS = 200;

/** A workflow task that is done again tells the same again. */
function toldOnce(observe: Observe | undefined): InjectedSinks<{ conversation: ConversationListener }>['conversation']['event']['fn'] {
  const told = new Set<string>();
  return ({ workflowId, runId }, event, _change, mark) => {
    if (told.has(`${runId} ${mark}`)) return;
    told.add(`${runId} ${mark}`);
    observe?.(workflowId, event);
  };
}

let quieted = false;

function quiet(): void {
  if (quieted) return;
  quieted = true;
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });
}
