/**
 * The conversations by which the bench measures memory (bench/memory), played again: hundreds of turns with compactions, consolidations and
 * doors that their model opens. With nothing changed nothing differs; with another model the first call that differs is named.
 */
import { z } from 'zod';
import { createReader } from '../../bench/memory/reader.js';
import { scenarios, type Scenario } from '../../bench/memory/script.js';
import { workingSessions } from '../../bench/memory/working.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { expectSame, startRecorder } from './recorder.js';

jest.setTimeout(10 * 60_000);

const LONG = process.env['PERDURA_LONG'] === '1';
/** A talk, a turn of 200 tool rounds, and sessions that end; all of them with PERDURA_LONG=1. */
const USUAL = ['200 messages', 'a turn of 200 tool rounds', 'three sessions with /new'];
const all: readonly Scenario[] = [...scenarios(0.1), ...workingSessions()].filter(({ name }) => LONG || USUAL.includes(name));

test.each(all.map((scenario) => [scenario.name, scenario] as const))('%s', async (_, { lines, agent, findings, files }) => {
  const counts = { ran: 0 };
  const survey = defineTool({
    name: 'survey',
    description: 'Surveys a round.',
    input: z.object({ round: z.number().int() }),
    policy: { repeatable: true, quick: true, timeoutMs: 10_000 },
    run({ round }) {
      counts.ran += 1;
      return findings?.(round) ?? '';
    },
  });
  const reader = createReader(() => undefined);
  const recorder = await startRecorder(reader, { agent, tools: [survey], ...(files && { files }) });
  try {
    const { client, id: freshId } = recorder.world;
    const id = freshId();
    await client.start(id, {});
    for (const line of lines) {
      if (line.kind === 'reset') await client.reset(id);
      else await client.send(id, line.text);
    }
    const { requests } = await expectSame(recorder, id, counts);
    expect(requests.compared).toBeGreaterThanOrEqual(lines.length / 2);

    // It forgets what it was told: nothing in its request counts.
    const forgets = recorder.projectWith({
      ...reader,
      stream: (request, given) => reader.stream({ ...request, messages: request.messages.slice(-1) }, given),
    });
    const { lane } = await recorder.play(id, { candidate: forgets });
    expect(lane.divergence).toMatchObject({ turn: expect.stringMatching(/^turn_/) });
  } finally {
    await recorder.close();
  }
});
