import { fetchRuns, type HistoryEvent } from '../../src/heal/fetch-runs.js';
import { createPairing, readActivities, type Activity } from '../../src/heal/read-activities.js';
import { message, modelStep } from './builders.js';
import { fakeHistory, type FakeOptions } from './fake-history.js';

const execution = { namespace: 'default', workflowId: 'c1' };

function turns(from: number, to: number, text = 'short'): Activity[] {
  return Array.from({ length: to - from + 1 }, (_, i) => {
    const turn = from + i;
    return modelStep({ turn, slot: 2 * turn, write: { messages: [message(2 * turn - 1, turn, { text })] } });
  }).flat();
}

async function read(runs: readonly (readonly Activity[])[], options: FakeOptions = {}, runId?: string) {
  const history = fakeHistory(runs, options);
  const { pages, ...about } = await readActivities(history.service, { ...execution, ...(runId && { runId }) }, [
    'model-step',
    'store-step',
  ]);
  const activities: Activity[] = [];
  let events = 0;
  for await (const page of pages) {
    activities.push(...page.activities);
    events += page.events;
  }
  return { ...about, activities, events, asked: history.asked, all: history.events };
}

function outputsOf(activities: readonly Activity[]): unknown[] {
  return activities.filter(({ kind }) => kind === 'completed').map(({ output }) => output);
}

test('all runs of the chain are read, the oldest first, each event once', async () => {
  const runs = [turns(1, 70), turns(71, 80), turns(81, 200)];
  const { runs: count, complete, activities, events, all } = await read(runs);
  expect({ count, complete, events }).toEqual({ count: 3, complete: true, events: all });
  expect(outputsOf(activities)).toEqual(outputsOf(runs.flat()));
});

test('another run than the latest is where a life is read that has ended', async () => {
  const { runs, activities } = await read([turns(1, 2), turns(3, 4), turns(5, 6)], {}, 'run-2');
  expect(runs).toBe(2);
  expect(outputsOf(activities)).toEqual(outputsOf(turns(1, 4)));
});

test('a run that has passed its retention is said', async () => {
  const { complete, activities } = await read([turns(1, 2), turns(3, 4)], { gone: ['run-1'] });
  expect(complete).toBe(false);
  expect(outputsOf(activities)).toEqual(outputsOf(turns(3, 4)));
  await expect(read([turns(1, 2)], { gone: ['run-1'] })).rejects.toThrow('no such run');
});

test('pages are small at first, grow where events are short, and shrink where these are long', async () => {
  const { asked: short } = await read([turns(1, 300)]);
  expect(short.slice(0, 4)).toEqual([1, 50, 200, 500]);
  const { asked: long, activities } = await read([turns(1, 60, 'x'.repeat(100_000))]);
  expect(Math.max(...long)).toBeLessThan(100);
  expect(outputsOf(activities)).toHaveLength(60);
});

test('a page that gRPC refuses is asked for again in smaller ones, down to single events', async () => {
  const { asked, activities } = await read([turns(1, 20)], { maxPage: 7 });
  expect(asked.filter((size) => size < 0)).not.toEqual([]);
  expect(outputsOf(activities)).toEqual(outputsOf(turns(1, 20)));
  await expect(read([turns(1, 20)], { maxPage: 0 })).rejects.toThrow('larger than max');
});

test('others have a turn between two pages', async () => {
  let others = 0;
  const ticking = setInterval(() => others++, 0);
  const { asked } = await read([turns(1, 300)], { maxPage: 20 });
  clearInterval(ticking);
  expect(asked.length).toBeGreaterThan(50);
  expect(others).toBeGreaterThan(10);
});

test('whole histories have each event once, in order', async () => {
  const { service, events } = fakeHistory([turns(1, 70), turns(71, 80)]);
  const { histories, complete } = await fetchRuns(service, execution);
  expect(complete).toBe(true);
  expect(histories.map((history) => history.events?.map(({ eventId }) => Number(eventId)))).toEqual(
    histories.map((history) => history.events?.map((_, i) => i + 1)),
  );
  expect(histories.flatMap((history) => history.events ?? [])).toHaveLength(events);
});

describe('pairs', () => {
  const scheduled = (eventId: number, name: string, data: Uint8Array): HistoryEvent =>
    ({ eventId, activityTaskScheduledEventAttributes: { activityType: { name }, input: { payloads: [{ data }] } } }) as never;
  const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

  test('an input is remembered until its end comes, pages later; other activities are not looked at', () => {
    const pair = createPairing(new Set(['store-step']));
    expect(pair([scheduled(5, 'store-step', json({ a: 1 })), scheduled(6, 'deliver', Buffer.from('no JSON'))])).toMatchObject({
      activities: [{ kind: 'scheduled', input: { a: 1 } }],
      problems: [],
    });
    const end = { eventId: 9, activityTaskCompletedEventAttributes: { scheduledEventId: 5, result: { payloads: [{ data: json(2) }] } } };
    expect(pair([end as never]).activities).toMatchObject([{ kind: 'completed', name: 'store-step', input: { a: 1 }, output: 2 }]);
    expect(pair([end as never]).activities).toEqual([]);
  });

  test('what failed, timed out or was cancelled has no result', () => {
    for (const end of ['activityTaskFailedEventAttributes', 'activityTaskTimedOutEventAttributes', 'activityTaskCanceledEventAttributes']) {
      const pair = createPairing(new Set(['store-step']));
      const events = [scheduled(5, 'store-step', json({})), { eventId: 6, [end]: { scheduledEventId: 5 } } as never];
      expect(pair(events).activities.map(({ kind }) => kind)).toEqual(['scheduled']);
    }
  });

  test('one that answers nothing has no output; one that nobody can read is said', () => {
    const pair = createPairing(new Set(['uncompact']));
    const end = { activityTaskCompletedEventAttributes: { scheduledEventId: 5, result: null } };
    expect(pair([scheduled(5, 'uncompact', json({})), end as never]).activities.at(-1)).toMatchObject({
      kind: 'completed',
      output: undefined,
    });
    const { activities, problems } = pair([scheduled(7, 'uncompact', Buffer.from('{"a'))]);
    expect(activities).toEqual([]);
    expect(problems).toEqual([expect.stringContaining('the input of uncompact (event 7) cannot be read')]);
  });

  test('a million characters of any language are read as they were written', () => {
    const text = 'Ĝis — 漢字 😀'.repeat(20_000);
    const pair = createPairing(new Set(['store-step']));
    expect(pair([scheduled(5, 'store-step', json({ text }))]).activities).toMatchObject([{ input: { text } }]);
  });
});
