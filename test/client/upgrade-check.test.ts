/** Open runs replayed by another build: what each comes to, which of them are taken, and the reports. */
import { checkRuns, isInSample, choosePart, toJUnit, type CheckedRun, type OpenRun } from '../../src/client/upgrade-check.js';
import { createReplays, type WorkflowCode } from '../../src/heal/replay-here.js';
import type { History } from '../../src/heal/fetch-runs.js';
import { readHistories, workflowIdOf } from '../replay/history-file.js';
import { silence } from '../replay/replay-all.js';
import { twoBuilds } from '../support/builds.js';
import { converterOf } from '../support/temporal-worker.js';

beforeAll(silence);

const recorded = readHistories();
const named = (name: string) => {
  const found = recorded.find((run) => run.name === name);
  if (!found) throw new Error(`${name} was not recorded`);
  return { id: workflowIdOf(found), history: found.history as unknown as History };
};

function run(id: string, more: Partial<OpenRun> = {}): OpenRun {
  return { id, runId: `run of ${id}`, type: 'conversation', build: null, isPinned: false, ...more };
}

async function check(
  runs: readonly OpenRun[],
  { code, fetch, isStrict = false }: { code: { readonly code: string }; fetch: (run: OpenRun) => Promise<History>; isStrict?: boolean },
): Promise<CheckedRun[]> {
  const checked: CheckedRun[] = [];
  const read = async (): Promise<WorkflowCode> => ({ workflowBundle: code, dataConverter: converterOf(undefined) });
  const signal = new AbortController().signal;
  await checkRuns(runs, {
    fetch,
    replay: createReplays(read, { restMs: 20 }),
    isStrict,
    checked: (one) => void checked.push(one),
    signal,
  });
  return checked;
}

const outcomes = (checked: readonly CheckedRun[]) => Object.fromEntries(checked.map(({ id, outcome }) => [id, outcome]));

test('by the same code all go on; by code whose steps differ in order they break, and what is pinned stays, unless that is asked for', async () => {
  const { v1, v2 } = await twoBuilds();
  const [turns, tools] = [named('text-turns'), named('tool-ordinary')];
  const fetch = async ({ id }: OpenRun) => (id === turns.id ? turns : tools).history;
  const runs = [run(turns.id), run(tools.id, { build: 'b1', isPinned: true })];
  const same = await check(runs, { code: v1, fetch });
  expect(same.map(({ id, outcome, turns: count }) => [id, outcome, count])).toEqual([
    [turns.id, 'replays', 3],
    [tools.id, 'replays', 1],
  ]);
  const other = await check(runs, { code: v2, fetch });
  expect(outcomes(other)).toEqual({ [turns.id]: 'breaks', [tools.id]: 'stays' });
  for (const { why } of other) expect(why).toMatch(/[Nn]ondeterminism/);
  expect(outcomes(await check(runs, { code: v2, fetch, isStrict: true }))).toEqual({ [turns.id]: 'breaks', [tools.id]: 'breaks' });
});

test('what cannot be read is no success: a history that does not come, one of another program, one that is cut off; what has ended is left out', async () => {
  const { v1 } = await twoBuilds();
  const { id, history } = named('text-turns');
  const foreign = structuredClone(history) as {
    events: { workflowExecutionStartedEventAttributes?: { workflowType?: { name?: string } } }[];
  };
  foreign.events[0]!.workflowExecutionStartedEventAttributes!.workflowType!.name = 'of-another-version';
  const answers: Readonly<Record<string, () => Promise<History>>> = {
    away: () => Promise.reject(new Error('no connection')),
    gone: () => Promise.reject(Object.assign(new Error('not found'), { code: 5 })),
    foreign: () => Promise.resolve(foreign as unknown as History),
    unbegun: () => Promise.resolve({ events: history.events?.slice(0, 2) ?? [] }),
    [id]: () => Promise.resolve(history),
  };
  const checked = await check(
    Object.keys(answers).map((one) => run(one)),
    { code: v1, fetch: (one) => answers[one.id]!() },
  );
  expect(outcomes(checked)).toEqual({ away: 'unread', gone: 'ended', foreign: 'breaks', unbegun: 'replays', [id]: 'replays' });
  const why = (of: string) => checked.find((one) => one.id === of)?.why;
  expect(why('away')).toBe('its history could not be fetched: no connection');
  expect(why('foreign')).toContain('of-another-version');
});

test('a sample is the same ones every time, and parts have each once', () => {
  const ids = Array.from({ length: 4_000 }, (_, n) => `conv-${n}`);
  const sample = ids.filter((id) => isInSample(id, 0.25));
  expect(sample.length).toBeGreaterThan(850);
  expect(sample.length).toBeLessThan(1_150);
  expect(ids.filter((id) => isInSample(id, 0.5))).toEqual(expect.arrayContaining(sample));
  expect(ids.every((id) => isInSample(id, 3))).toBe(true);
  const sizes = [0, 1, 2].map((part) => sample.filter((id) => choosePart(id, 3) === part).length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(sample.length);
  // Of a sample too: it is taken by another number.
  for (const size of sizes) expect(size).toBeGreaterThan(sample.length / 5);
});

test('the report for CI has a case for each, and nothing of a message ends it early', () => {
  const checked = (id: string, outcome: CheckedRun['outcome'], more: Partial<CheckedRun> = {}): CheckedRun => {
    return { ...run(id), outcome, turns: 1, ms: 1_500, ...more };
  };
  const report = toJUnit(
    [
      checked('a', 'replays'),
      checked('b"<&>', 'breaks', { why: 'ends"/></testsuites>\u0000\n\ud800', build: 'v1' }),
      checked('c', 'stays', { why: 'other steps' }),
      checked('d', 'unread', { why: 'away' }),
      checked('e', 'ended'),
    ],
    12.3456,
  );
  expect(report).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="perdura check-upgrade" tests="4" failures="1" errors="1" skipped="1" time="12.346">
    <testcase classname="conversation" name="a" time="1.500"/>
    <testcase classname="conversation" name="b&#34;&#60;&#38;&#62;" time="1.500"><failure message="ends&#34;/&#62;&#60;/testsuites&#62;\ufffd&#10;\ufffd (on build v1)"/></testcase>
    <testcase classname="conversation" name="c" time="1.500"><skipped message="other steps"/></testcase>
    <testcase classname="conversation" name="d" time="1.500"><error message="away"/></testcase>
  </testsuite>
</testsuites>
`);
});
