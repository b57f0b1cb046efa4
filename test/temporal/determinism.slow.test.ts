/** A worker that forgets every conversation after every task, and so replays all of it each time, must say the same. */
import { DefaultLogger, Runtime, type WorkerOptions } from '@temporalio/worker';
import { callTools, text } from '../support/provider-apis/reply.js';
import { startOwnWorker } from '../replay/own-worker.js';
import { recordedTools } from '../replay/tools.js';
import { runsOf } from '../support/run-chain.js';
import { workflowBundle } from '../support/temporal-worker.js';
import { startWorld } from '../support/world.js';

const script = [
  { reply: text('Hello.') },
  { reply: callTools({ name: 'note', input: { text: 'a' } }) },
  { reply: callTools({ name: 'look_up', input: { text: 'b' } }, { name: 'pay', input: { text: 'c' } }) },
  { reply: text('Noted, found and paid.') },
  { reply: text('Who are you?') },
  { reply: text('Still here.') },
];

/** No memory workflow answers here: a reset need not wait for one. */
const AGENT = { limits: { handOver: { events: 40 } }, memory: { consolidationTimeout: 500 } };

/** One conversation with everything in it that goes through history: what came of it, for comparison. */
async function converse(worker: Partial<WorkerOptions>) {
  const world = await startWorld({ engine: 'temporal', script, worker: false, agent: AGENT });
  const address = process.env['PERDURA_TEST_ADDRESS'] ?? '';
  const { taskQueue, dir, api } = world;
  const stopWorker = await startOwnWorker({
    ...{ address, taskQueue, dir, apiUrl: api.url, tools: recordedTools, worker },
    bundle: await workflowBundle(),
  });
  try {
    const id = world.id();
    const results = [];
    for (const message of ['hi', 'do it all', '/new', 'hi again', { id: 'm-1', text: 'once' }, { id: 'm-1', text: 'once' }]) {
      results.push(await world.client.send(id, message, { start: {} }));
    }
    results.push(await world.client.turn(id, 'turn_0001'));
    const { phase, session, turns, queued, usage, rejectedInputs } = await world.client.status(id);
    const entries = await world.client.history(id);
    // Of all runs: the last one may have had a single task.
    const events = (await runsOf(world, id)).flat();
    const sticky = events.filter((event) => event.workflowTaskScheduledEventAttributes?.taskQueue?.normalName).length;
    world.api.assertDone();
    return {
      sticky,
      said: {
        results,
        status: { phase, session, turns, queued, usage, rejectedInputs },
        entries: entries.map(({ ts: _ts, messageId: _id, ...entry }) => entry),
        prompts: world.api.hits.map(({ body }) => body?.messages),
      },
    };
  } finally {
    await stopWorker();
    await world.close();
  }
}

beforeAll(() => {
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });
});

test('a conversation says the same on a worker that caches nothing, and on one that gives each run a context of its own', async () => {
  const cached = await converse({});
  const forgetful = await converse({ maxCachedWorkflows: 0 });
  const separate = await converse({ reuseV8Context: false });
  expect(cached.said.results.map(({ stopReason }) => stopReason)).toEqual(['end', 'end', 'reset', 'end', 'end', 'end', 'end']);
  expect(forgetful.said).toEqual(cached.said);
  expect(separate.said).toEqual(cached.said);
  expect({ cached: cached.sticky > 0, forgetful: forgetful.sticky }).toEqual({ cached: true, forgetful: 0 });
});
