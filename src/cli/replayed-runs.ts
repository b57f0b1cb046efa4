/** What happened in a conversation, from Temporal's history by the workflow's own code. */
import type { PerduraClient } from '../client.js';
import type { Run } from '../conversation/rebuild.js';
import { replayRuns } from '../heal/replay-runs.js';
import { installTelemetry } from '../observability.js';
import { workflowCode } from '../worker.js';

export interface ReplayedRuns {
  readonly runs: readonly Run[];
  /** False when earlier runs have passed their retention. */
  readonly complete: boolean;
  readonly problems: readonly string[];
}

export async function replayedRuns(client: PerduraClient, id: string): Promise<ReplayedRuns> {
  // The replay's own log would stand between the lines.
  installTelemetry({ logLevel: 'error' });
  const { histories, complete } = await client.runs(id);
  const { runs, problems } = await replayRuns(workflowCode(), id, histories);
  return { runs: runs.filter((run) => run !== undefined), complete, problems };
}
