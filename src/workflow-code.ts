/** The code of workflows that a worker runs, and by which histories are replayed: what the build made, or the sources, with the user's reducers. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { encryptingConverter } from './client/temporal/encryption.js';
import type { Config } from './config.js';
import { bundleCustomWorkflows } from './extensions/custom-workflows.js';
import { createStateCodec } from './extensions/state-codec.js';
import type { Extensions } from './extensions/user-config.js';
import type { WorkflowCode } from './heal/replay-here.js';
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
