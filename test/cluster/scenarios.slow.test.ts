/** What tests of other rooms show on the dev server holds on a cluster: the same files, with its address. */
import { IMPATIENCE } from '../support/temporal-server.js';
import { NO_CLUSTER, RECOMMENDED, startCluster, type Cluster } from '../support/temporal-cluster.js';

const FILES = [
  'temporal/conversation.test',
  'temporal/hand-over.test',
  'temporal/schedules.test',
  'temporal/without-worker.test',
  'temporal/bad-signals.test',
  'temporal/bad-updates-and-starts.slow.test',
  'temporal/store-trouble.slow.test',
  'chaos/killed.test',
  'chaos/recovery.slow.test',
  'chaos/worker-killed.slow.test',
  'e2e/hand-overs.slow.test',
  'e2e/burst.slow.test',
  'e2e/resets.slow.test',
  'e2e/long-turn.slow.test',
];

if (NO_CLUSTER) test.skip(NO_CLUSTER, () => undefined);
else {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ dynamicConfig: { ...RECOMMENDED, ...IMPATIENCE } });
    process.env['PERDURA_TEST_ADDRESS'] = cluster.address;
  });
  afterAll(() => cluster.stop());

  for (const file of FILES) describe(file, () => void require(`../${file}`));

  test('no process of the cluster has ended by itself', () => expect(cluster.deaths()).toEqual([]));
}
