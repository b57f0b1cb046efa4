/** Conversations that cannot be played, or not whole: the report says so, and the others are played. */
import type { Run } from '../../src/conversation/replay/past.js';
import type { Recordings } from '../../src/whatif/recording.js';
import type { ReportedConversation } from '../../src/whatif/report.js';
import { whatIf, type WhatIfOptions } from '../../src/whatif/whatif.js';
import { startRecorder, type Recorder } from './recorder.js';
import { createModel, createTools, type Counts } from './scripted.js';

const counts: Counts = { ran: 0, held: 0 };
let recorder: Recorder;
beforeAll(async () => {
  recorder = await startRecorder(createModel(counts), {
    tools: createTools(counts),
    agent: { limits: { handOver: { events: 40 } } },
  });
});
afterAll(() => recorder.close());

async function talk(turns: number): Promise<string> {
  const id = recorder.world.id();
  for (let turn = 1; turn <= turns; turn++) await recorder.world.client.send(id, turn % 2 ? `#book ${turn}` : 'and?', { start: {} });
  return id;
}

async function playAll(ids: readonly string[], more: Partial<WhatIfOptions> = {}): Promise<ReportedConversation[]> {
  const { project, recordings } = recorder;
  const lines: ReportedConversation[] = [];
  const all = whatIf(ids, {
    ...{
      recordings,
      project,
      candidate: project,
      changes: [],
      hasBaseline: false,
      policy: 'stop',
      memory: 'recorded',
      gaps: 'play',
      atOnce: 2,
    },
    signal: new AbortController().signal,
    ...more,
  });
  for await (const line of all) if (line.kind === 'conversation') lines.push(line);
  return lines;
}

test('one that is not there is named, and the others are played, in their order', async () => {
  const [first, second] = [await talk(1), await talk(2)];
  const lines = await playAll([first, 'c-nowhere', second]);
  expect(lines.map(({ id, skipped }) => [id, skipped])).toEqual([
    [first, undefined],
    ['c-nowhere', expect.stringContaining('there is no conversation')],
    [second, undefined],
  ]);
});

/** Without the first runs of a conversation, as Temporal has it after their retention. */
function retained(id: string): Recordings {
  const gap = 'its first runs are past the retention of Temporal';
  return {
    store: recorder.recordings.store,
    async open(wanted) {
      const whole = await recorder.recordings.open(wanted);
      if (wanted !== id) return whole;
      const runs = recorder.runs(id).slice(1);
      const each = async function* (): AsyncGenerator<Run> {
        for (const run of runs) yield await Promise.resolve(run);
      };
      return { ...whole, runs: each(), gaps: [gap] };
    },
  };
}

test('what is left of one whose first runs are gone is played from there, or left out', async () => {
  const id = await talk(8);
  expect(recorder.runs(id).length).toBeGreaterThan(2);
  const [played] = await playAll([id], { recordings: retained(id) });
  expect(played).toMatchObject({ gaps: [expect.stringContaining('retention')], lanes: { candidate: { divergence: null } } });
  expect(played?.turns).toBeGreaterThan(2);
  const [left] = await playAll([id], { recordings: retained(id), gaps: 'skip' });
  expect(left).toMatchObject({ skipped: 'something of it is missing', lanes: {} });
});

test('the recorded configuration beside the candidate: each has its lane', async () => {
  const id = await talk(3);
  const { project } = recorder;
  const candidate = recorder.projectWith(createModel(counts), { prompt: 'You are another.' });
  const [line] = await playAll([id], { project, candidate, hasBaseline: true });
  expect(line?.lanes.baseline?.divergence).toBeNull();
  expect(line?.lanes.candidate?.divergence?.what).toBe('system');
});
