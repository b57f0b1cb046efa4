/** A worker in a process of its own, so that it can be killed. Told by its parent what to serve; says `ready`. */
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { startOwnWorker } from './own-worker.js';
import { recordedTools } from './tools.js';

interface Order {
  readonly address: string;
  readonly taskQueue: string;
  readonly dir: string;
  readonly apiUrl: string;
  readonly bundlePath: string;
  readonly attributes: boolean;
}

process.once('message', (order: Order) => {
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });
  void startOwnWorker({ ...order, bundle: { codePath: order.bundlePath }, tools: recordedTools }).then(() => process.send?.('ready'));
});
process.once('disconnect', () => process.exit(0));
