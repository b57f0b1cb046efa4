/** A worker in a process of its own, so that it can be killed. Told by its parent what to serve; says `ready`. */
import { DefaultLogger, Runtime } from '@temporalio/worker';
import type { Store } from '../../src/stores/store.js';
import { startOwnWorker } from './own-worker.js';
import { recordedTools } from './tools.js';

interface Order {
  readonly address: string;
  readonly taskQueue: string;
  readonly dir: string;
  readonly apiUrl: string;
  readonly bundlePath: string;
  readonly attributes: boolean;
  /** Effects that commit and do not come back. */
  readonly lost: readonly string[];
}

process.once('message', (order: Order) => {
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });
  void startOwnWorker({
    ...order,
    bundle: { codePath: order.bundlePath },
    tools: recordedTools,
    store: (store) => ({ ...store, effects: withLost(store.effects, order.lost) }),
  }).then(() => process.send?.('ready'));
});
process.once('disconnect', () => process.exit(0));

function withLost(effects: Store['effects'], lost: readonly string[]): Store['effects'] {
  return {
    reserve: (...given) => effects.reserve(...given),
    fence: (...given) => effects.fence(...given),
    spend: (...given) => effects.spend(...given),
    async commit(key, claim, ...rest) {
      const commitment = await effects.commit(key, claim, ...rest);
      return lost.includes(claim.id) ? new Promise(() => undefined) : commitment;
    },
  };
}
