/** What happened in a conversation, from Temporal's history by the workflow's own code. */
import type { PerduraClient } from '../../client.js';
import type { Config } from '../../config.js';
import type { Run } from '../../conversation/replay/past.js';
import { replayHere } from '../../heal/replay-here.js';
import { installTelemetry } from '../../telemetry/observability.js';
import { loadUserConfig } from '../../extensions/user-config.js';
import { workflowCodeOf } from '../../worker.js';

export interface ReplayedRuns {
  readonly runs: readonly Run[];
  /** False when earlier runs have passed their retention. */
  readonly complete: boolean;
  readonly problems: readonly string[];
}

/** `config.cwd`: the folder whose configuration names the user's reducers; without them their events would fold to nothing. */
export async function replayedRuns(client: PerduraClient, id: string, config: Pick<Config, 'cwd' | 'stateKeys'>): Promise<ReplayedRuns> {
  // The replay's own log would stand between the lines.
  installTelemetry({ logLevel: 'error' });
  const { histories, complete } = await client.runs(id);
  const { hash: _, ...code } = await workflowCodeOf(await loadUserConfig(config.cwd), config);
  const { runs, problems } = await replayHere(code, id, histories);
  return { runs: runs.filter((run) => run !== undefined), complete, problems };
}
