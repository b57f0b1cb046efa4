/** The client of a command, the replay that it uses, and what a person would type to do the same with the `temporal` program. */
import type { PerduraClient, Replay } from '../../client.js';
import { DEFAULT_TEMPORAL_ADDRESS, temporalConnection, type Config, type TemporalConnection } from '../../config.js';
import type { Run } from '../../conversation/replay/past.js';
import type { WorkflowCode } from '../../heal/replay-here.js';
import type { Code } from '../../workflow-code.js';
import { hasWorker, openNamespace, startCommands } from '../services/temporal-connection.js';
import type { Output } from '../terminal/output.js';
import type { Surroundings } from './context.js';

interface ConnectOptions {
  readonly needsWorker: boolean;
  readonly serves?: boolean;
}

/** The client that the surroundings bring, else a new one. */
export function openClient(
  { openClient: open }: Surroundings,
  config: Config,
  output: Output,
  options: ConnectOptions,
): Promise<PerduraClient> {
  return open === undefined ? connectClient(config, output, options) : open(config, output);
}

/** A client on a server that answers. Warns when no worker is there to take the message. */
async function connectClient(config: Config, output: Output, options: ConnectOptions): Promise<PerduraClient> {
  const temporal = await temporalConnection(config);
  const connection = await openNamespace(temporal);
  try {
    if (options.needsWorker && !(await hasWorker(connection, temporal.namespace, config.taskQueue))) {
      output.problem(
        `no worker takes work from task queue ${config.taskQueue}: messages wait until \`${startCommands().worker}\` or \`${startCommands().chat}\` runs`,
      );
    }
    const { createClientOn, WORKER_PATIENCE_MS } = await import('../../client.js');
    // A folder's code runs for a search alone.
    const embedder = async () => (await (await import('../../extensions/user-config.js')).loadUserConfig(config.cwd)).embedder;
    const patience = options.serves === true ? { workerPatienceMs: WORKER_PATIENCE_MS } : {};
    const replay = createReplay(config, options.serves === true ? REST_MS : 0);
    return createClientOn(config, { connection, namespace: temporal.namespace }, { ...patience, replay, embedder });
  } catch (error) {
    await connection.close();
    throw error;
  }
}

interface ReplayedRuns {
  /** Oldest first; without those that cannot be replayed. */
  readonly runs: readonly Run[];
  /** False when earlier runs are no longer in Temporal's history. */
  readonly complete: boolean;
  readonly problems: readonly string[];
}

export async function replayedRuns(
  client: PerduraClient,
  id: string,
  config: Pick<Config, 'cwd' | 'secrets' | 'encryptionRoots'>,
): Promise<ReplayedRuns> {
  const { histories, complete } = await client.runs(id);
  const { runs, problems } = await createReplay(config)(id, histories);
  return { runs: runs.filter((run) => run !== undefined), complete, problems };
}

/** A gateway's worker for replays waits as long for the next one: who looks at one moment looks at another. */
const REST_MS = 30_000;

/**
 * By the folder's code, as its worker runs it, or by that of a bundle. Loads the SDK's core when it is called: commands that replay nothing pay
 * nothing.
 */
export function createReplay(config: Pick<Config, 'cwd' | 'secrets' | 'encryptionRoots'>, restMs = 0, bundle?: string): Replay {
  let opened: Promise<Replay> | undefined;
  const open = async (): Promise<Replay> => {
    const [{ createReplays }, { installTelemetry }] = await Promise.all([
      import('../../heal/replay-here.js'),
      import('../../telemetry/observability.js'),
    ]);
    // The replay's log would stand between the lines.
    installTelemetry({ logLevel: 'error' });
    return createReplays(() => (bundle === undefined ? folderCode(config) : bundledCode(bundle, config)), { restMs });
  };
  return async (...history) => (await (opened ??= open()))(...history);
}

async function folderCode(config: Pick<Config, 'cwd' | 'secrets' | 'encryptionRoots'>): Promise<Omit<Code, 'hash' | 'collects'>> {
  const [{ loadUserConfig }, { workflowCodeOf }] = await Promise.all([
    import('../../extensions/user-config.js'),
    import('../../workflow-code.js'),
  ]);
  const { hash: _hash, collects: _collects, ...code } = await workflowCodeOf(await loadUserConfig(config.cwd), config);
  return code;
}

async function bundledCode(code: string, config: Pick<Config, 'cwd' | 'secrets' | 'encryptionRoots'>): Promise<WorkflowCode> {
  const { workflowCodeOf } = await import('../../workflow-code.js');
  const { dataConverter } = await workflowCodeOf({}, config);
  return { workflowBundle: { code }, ...(dataConverter && { dataConverter }) };
}

/** What a person would type to see or do the same with the `temporal` program. */
export function temporalCommand(temporal: TemporalConnection, words: readonly string[]): string {
  const { address } = temporal.connectionOptions;
  const where = [
    ...(address === DEFAULT_TEMPORAL_ADDRESS ? [] : ['--address', address]),
    ...(temporal.namespace === 'default' ? [] : ['-n', temporal.namespace]),
  ];
  return ['temporal', ...words, ...where].map(shellWord).join(' ');
}

/** Words of the `temporal` program for what a command has done. A long input is not shown. */
export function updateWords(name: string, id: string, input?: object): readonly string[] {
  return ['workflow', 'update', 'execute', '--name', name, '-w', id, ...inputWords(input)];
}

export function signalWords(name: string, id: string, input?: object): readonly string[] {
  return ['workflow', 'signal', '--name', name, '-w', id, ...inputWords(input)];
}

export function queryWords(name: string, id: string): readonly string[] {
  return ['workflow', 'query', '--name', name, '-w', id];
}

/** UTF-16 units. */
const MAX_INPUT = 400;

function inputWords(input: object | undefined): string[] {
  if (input === undefined) return [];
  const text = JSON.stringify(input);
  return ['--input', text.length > MAX_INPUT ? '…' : text];
}

/** For a POSIX shell; double quotes where they need no escapes, since queries are full of single ones. */
function shellWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return word.includes("'") && !/["$`\\!]/.test(word) ? `"${word}"` : `'${word.replaceAll("'", `'\\''`)}'`;
}
