/** A gateway in a process of its own, so that what it takes can be measured: its address goes to the parent, its memory where asked for. */
import { Client, Connection } from '@temporalio/client';
import { createClientWith } from '../src/client.js';
import { serveGateway } from '../src/gateway/index.js';
import { oneToken } from '../src/gateway/access/entrance.js';
import { openStore } from '../src/stores/open.js';
import type { GatewayPlace } from './gateway.js';

async function main(): Promise<void> {
  const [place] = process.argv.slice(2);
  const { temporal, token, taskQueue, redisUrl, memoryDir } = JSON.parse(place ?? '') as GatewayPlace;
  const began = performance.now();
  const client = createClientWith({
    client: new Client({ connection: await Connection.connect({ address: temporal }) }),
    namespace: 'default',
    taskQueue,
    store: () => openStore({ redisUrl, memoryDir }),
  });
  const { url } = await serveGateway({ client, port: 0, authenticate: oneToken(token), requestsPerMinute: 1_000_000 });
  process.on('message', () => process.send?.({ rss: process.memoryUsage.rss() }));
  process.on('disconnect', () => process.exit(0));
  process.send?.({ url, startMs: performance.now() - began });
}

void main();
