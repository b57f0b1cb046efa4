/** A process that replays a share of a conversation's runs (replay-runs.ts), answers, and ends. */
import { temporal } from '@temporalio/proto';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { replayHere } from './replay-here.js';
import type { Share } from './replay-runs.js';

Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });

// Who asked is gone: nobody wants the answer.
process.once('disconnect', () => process.exit(1));
process.once('message', (share: Share) => void answer(share));

async function answer({ code, workflowId, histories }: Share): Promise<void> {
  const replayed = await replayHere(
    code,
    workflowId,
    histories.map((bytes) => temporal.api.history.v1.History.decode(bytes)),
  );
  process.send?.(replayed, undefined, undefined, () => process.exit(0));
}
