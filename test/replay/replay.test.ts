/** Histories recorded by the real stack must replay with the workflows of today; mutants.slow.test.ts shows that this can fail. */
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Worker } from '@temporalio/worker';
import { readHistories, withReadablePayloads, workflowIdOf, type RecordedRun } from './history-file.js';
import { workflowBundle } from '../support/temporal-worker.js';
import { optionsOf, replayAll, silence } from './replay-all.js';

const histories = readHistories();
beforeAll(silence);

test('every recorded run replays with the workflows as they are, one after the other in one worker', async () => {
  const failures = await replayAll(await workflowBundle(), histories);
  expect(Object.fromEntries([...failures].map(([name, error]) => [name, error.message]))).toEqual({});
}, 900_000);

/**
 * Temporal drops what a closed run wanted to send, and a loaded server takes its time: where the confirmation is missing, the run must
 * not have ended. It and the task that it brought are taken out of a history; all else stays as it was.
 */
test('a sub-agent that has not been heard yet does not hand over', async () => {
  const bundle = await workflowBundle();
  const failures: string[] = [];
  for (const run of histories.filter(({ name }) => name.startsWith('sub-agent-that-asks-hands-over'))) {
    const { events } = run.history;
    const at = events.findIndex((event) => event['externalWorkflowExecutionSignaledEventAttributes']);
    const next = events.findIndex(({ eventType }, i) => i > at + 3 && eventType !== 'EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED');
    if (at < 0) continue;
    const unheard = {
      ...run.history,
      events: [...events.slice(0, at), ...events.slice(next).map((event) => movedBy(event, at - next, next))],
    };
    await Worker.runReplayHistory(optionsOf(bundle), unheard, workflowIdOf(run)).catch((error: Error) => failures.push(error.message));
  }
  expect(failures.join('\n')).toMatch(/No command scheduled for event HistoryEvent\(id: \d+, WorkflowExecutionContinuedAsNew\)/);
});

/** An event with each number of an event from `from` on moved. */
function movedBy<T>(event: T, by: number, from: number): T {
  const text = JSON.stringify(event, (key, value: unknown) =>
    /EventId$|^eventId$/.test(key) && Number(value) > from ? String(Number(value) + by) : value,
  );
  return JSON.parse(text) as T;
}

describe('the recorded histories', () => {
  const text = (run: RecordedRun): string => JSON.stringify(withReadablePayloads(run.history));
  const all = histories.map(text).join('\n');

  test.each([
    ['an ordinary activity', 'EVENT_TYPE_ACTIVITY_TASK_COMPLETED'],
    ['a tool that rides', '"tools":[{"callId":'],
    ['results of tools that rode', '"tools":[{"life":'],
    ['a store step', '"activityType":{"name":"store-step"}'],
    ['a step that came back for a duplicate', '"kind":"deferred","reason":"duplicate"'],
    ['a step that came back for an agent that cannot be used', '"kind":"deferred","reason":"unusable"'],
    ['a step that came back for a budget', '"kind":"deferred","reason":"budget"'],
    ['a step that came back for a truncation', '"kind":"deferred","reason":"truncation"'],
    ['a step that came back for a compaction', '"kind":"deferred","reason":"compaction"'],
    ['a step that came back for a stop', '"kind":"deferred","reason":"stopped"'],
    ['a fence that came too late', '"committed":[{"effect":'],
    ['a message in parts', '"parts":["'],
    ['a message that the store had lost', '"lost":true'],
    ['an end of a session', '"activityType":{"name":"evict"}'],
    ['an undone compaction', '"activityType":{"name":"uncompact"}'],
    ['a store that was away', '"type":"StoreUnavailable"'],
    ['a heartbeat that stopped', 'TIMEOUT_TYPE_HEARTBEAT'],
    ['a second attempt', '"attempt":2'],
    ['a workflow task that timed out', 'EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT'],
    ['a timer that fired', 'EVENT_TYPE_TIMER_FIRED'],
    ['a timer that was not needed', 'EVENT_TYPE_TIMER_CANCELED'],
    ['a stop', 'EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED'],
    ['a reset', 'Session cleared.'],
    ['an answer that the store did not take', '"persisted":false'],
    ['an update', 'EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED'],
    ['a signal', 'EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED'],
    ['an input that nobody can read', 'bm90IGpzb24='],
    ['a hand-over', 'EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW'],
    ['a state that was carried over', '"carried":{'],
    ['an end', 'EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED'],
  ])('have %s', (_what, part) => {
    expect(all.includes(part)).toBe(true);
  });

  test('have no local activity', () => {
    expect(histories.filter((run) => text(run).includes('core_local_activity')).map(({ name }) => name)).toEqual([]);
  });

  test('have hand-overs between turns and inside one', () => {
    const carried = histories
      .map((run) => /"carried":(\{.*?\}),"workflow|"turn":(null|\{)/.exec(text(run).split('"carried":{')[1] ?? '')?.[2])
      .filter((turn) => turn !== undefined);
    expect(new Set(carried)).toEqual(new Set(['null', '{']));
  });

  test('say nothing of the machine that recorded them', () => {
    expect([...new Set(all.match(/"identity":"[^"]*"/g))]).toEqual(['"identity":"machine"']);
    expect(all.match(/\d+@[\w.-]+/g) ?? []).toEqual([]);
    expect(all.match(/\/(root|home|Users|tmp|var|opt|work|usr)\/[^"\s]*/g) ?? []).toEqual([]);
    expect(all.match(/"stackTrace":"[^"]/g) ?? []).toEqual([]);
  });
});

test('protobufjs is there once for all of Temporal: with a second copy no history can be read from JSON', () => {
  const users = ['@temporalio/common', '@temporalio/proto', '@temporalio/client', '@temporalio/worker'];
  const copies = users.map((user) => realpathSync(createRequire(require.resolve(user)).resolve('protobufjs')));
  expect([...new Set(copies)]).toEqual([realpathSync(require.resolve('protobufjs'))]);
});
