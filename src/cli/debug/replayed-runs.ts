/** What happened in a conversation, from Temporal's history by the workflow's own code. */
import type { PerduraClient, Replay } from '../../client.js';
import type { Config } from '../../config.js';
import type { Run } from '../../conversation/replay/past.js';

export interface ReplayedRuns {
  readonly runs: readonly Run[];
  /** False when earlier runs have passed their retention. */
  readonly complete: boolean;
  readonly problems: readonly string[];
}

/**
 * Loads what a worker does, once something is to be replayed. `config.cwd`: the folder whose configuration names the user's reducers;
 * without them their events would fold to nothing.
 */
export function createReplay(config: Pick<Config, 'cwd' | 'stateKeys'>): Replay {
  return async (workflowId, histories) => {
    const [{ replayHere }, { installTelemetry }, { loadUserConfig }, { workflowCodeOf }] = await Promise.all([
      import('../../heal/replay-here.js'),
      import('../../telemetry/observability.js'),
      import('../../extensions/user-config.js'),
      import('../../worker.js'),
    ]);
    // The replay's own log would stand between the lines.
    installTelemetry({ logLevel: 'error' });
    const { hash: _, ...code } = await workflowCodeOf(await loadUserConfig(config.cwd), config);
    return replayHere(code, workflowId, histories);
  };
}

export async function replayedRuns(client: PerduraClient, id: string, config: Pick<Config, 'cwd' | 'stateKeys'>): Promise<ReplayedRuns> {
  const { histories, complete } = await client.runs(id);
  const { runs, problems } = await createReplay(config)(id, histories);
  return { runs: runs.filter((run) => run !== undefined), complete, problems };
}
