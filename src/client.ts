/** The one door to conversations: start them, talk to them, watch them, read them. */
import type { Connection } from '@temporalio/client';
import { agentsFolder } from './agents/load-agent.js';
import { openConnection } from './client/temporal/connection.js';
import { encryptOn, openClient } from './client/temporal/encryption.js';
import { ClientError } from './client/errors.js';
import { agentRefusal } from './client/temporal/worker-place.js';
import type { PerduraClient } from './client/interface.js';
import { createClientWith, type ClientOptions } from './client/perdura-client.js';
import { findUserConfig, loadConfig, providerSettings, temporalConnection, type Config } from './config.js';
import type { Embedder } from './models/embedder.js';
import { errorMessage } from './platform/errors.js';

export type { PerduraClient, Started, StreamTurnOptions } from './client/interface.js';
export { createClientWith, type ClientOptions } from './client/perdura-client.js';
export { ClientError, type ClientErrorKind } from './client/errors.js';
export { createEncryptionCodec } from './client/temporal/encryption.js';
export type { AnswerAgainClient, AnswerAgainOptions, AnsweredAgain } from './client/sending.js';
export type { ChangeOptions } from './client/temporal/patience.js';
export type { AppEventToDispatch, Dispatched } from './client/stepping.js';
export type { Begun, LineageClient } from './client/lineage.js';
export type { Deleted } from './client/deletion.js';
export type { ListOptions } from './client/listing.js';
export type { ScopeMemory, SearchOptions, ToForget } from './client/memory.js';
export type { FoundInScope } from './client/search-scopes.js';
export type { Recalled } from './memory/recall/recalled.js';
export type { EventInTurn, TurnEvent } from './records/feed-event.js';
export type { ReadingClient, Remembered, StoredItem, StoredItems, WatchEvent, Whereabouts } from './client/reading.js';
export type { TurnEnd } from './records/turn-end.js';
export type { SteppingClient } from './client/stepping.js';
export type { OfTenant, UploadedFile, UploadOptions, UploadsClient } from './client/uploads.js';
export type { UsageClient, UsageOptions, UsageReport } from './client/fleet.js';
export type { Branch } from './memory/past-life.js';
export type { AllPending, HumanInputClient, Pending } from './client/human-input.js';
export type { ChunkText, ContextChanges, ContextView, InsightClient, Replay, TurnPage } from './client/insight.js';
export type { Standing } from './client/listing.js';
export type { Failures, FailureGroup, FleetClient, Workers, WorkerSeen } from './client/fleet.js';
export type { Description, Listed, PendingActivity, RunState } from './client/describe.js';

/** Milliseconds without a worker after which programs hear of it. */
export const WORKER_PATIENCE_MS = 30_000;

/**
 * Connects by the settings (`config`: those of this folder and the environment): `TEMPORAL_*` by Temporal's rules, and the store that the
 * workers use. Where no worker takes work for `workerPatienceMs` (30,000; `Infinity`: for ever), what only a worker answers throws
 * `no-worker`: `send` and `enqueue` have kept their message, which is answered later; of `reset`, `compact`, `step` and the other changes the
 * error says what is known.
 */
export async function createClient(
  config: Config = loadConfig(),
  { workerPatienceMs = WORKER_PATIENCE_MS, replay, embedder }: ClientSettings = {},
): Promise<PerduraClient> {
  const wanted = () => Promise.resolve(embedder);
  return createClientOn(config, await connectTemporal(config), { workerPatienceMs, ...(replay && { replay }), embedder: wanted });
}

/** Settings of `createClient`, each optional. */
export interface ClientSettings extends Pick<ClientOptions, 'workerPatienceMs' | 'replay'> {
  /** `ollama/MODEL`, `openai/MODEL`, or a custom one; absent: searches go by words alone. */
  readonly embedder?: string | Embedder | undefined;
}

/** A connection to Temporal, and the namespace to use on it. */
export interface Connected {
  readonly connection: Connection;
  readonly namespace: string;
}

/** The same on a connection that there is, and that the client closes. */
export function createClientOn(
  config: Config,
  { connection, namespace }: Connected,
  {
    embedder,
    ...options
  }: Pick<ClientOptions, 'workerPatienceMs' | 'replay'> & { readonly embedder?: () => Promise<ClientSettings['embedder']> } = {},
): PerduraClient {
  return createClientWith({
    ...options,
    ...(embedder && { embedder: async () => embedderOf(config, await embedder()) }),
    client: openClient({ connection: encryptOn(connection, config.encryptionRoots()), namespace }),
    namespace,
    taskQueue: config.taskQueue,
    // The folder's code may name another place.
    ...(findUserConfig(config.cwd) === undefined && {
      agentRefusal: (agent: string, tenant?: string) =>
        agentRefusal(connection, { namespace, taskQueue: config.taskQueue, folder: agentsFolder(config) }, agent, tenant),
    }),
    store: async () => (await import('./stores/open.js')).openStore(config),
    searchCacheBytes: config.searchCacheBytes,
    keptFileBytes: config.filesQuota,
    close: () => connection.close(),
  });
}

/** Connects to the Temporal server that the settings name. Throws `ClientError` `unreachable`. */
export async function connectTemporal(config: Config): Promise<Connected> {
  const { connectionOptions, namespace } = await temporalConnection(config);
  const connection = await openConnection(connectionOptions).catch((error: unknown) => {
    const what = `cannot connect to Temporal at ${connectionOptions.address}: ${errorMessage(error)}`;
    throw new ClientError('unreachable', `${what}; \`perdura up\` starts one, TEMPORAL_ADDRESS names another`, { cause: error });
  });
  return { connection: encryptOn(connection, config.encryptionRoots()), namespace };
}

async function embedderOf(config: Config, wanted: ClientSettings['embedder']): Promise<Embedder | undefined> {
  if (wanted === undefined) return undefined;
  const { createEmbedder } = await import('./models/providers.js');
  return createEmbedder(wanted, providerSettings(config));
}
