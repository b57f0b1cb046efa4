/** One turn of very many tool calls, one after the other and side by side. */
import { blocksOf } from '../support/provider-apis/api-request.js';
import { callTools, text, type ToolCall } from '../support/provider-apis/reply.js';
import { violations } from '../chaos/invariants.js';
import { resultText, roundsSoFar } from '../support/echo-model.js';
import { figure, LONG, sceneTest, seconds, until, type Scene } from '../support/scene.js';

const CALLS = LONG ? 500 : 120;
const LINES = Array.from({ length: 600 }, (_, i) => `This is line ${i + 1} of the file.`);
const ANSWER = 'I have read all of it.';

const SHAPES = [
  { rounds: CALLS, parallel: 1 },
  { rounds: LONG ? 10 : 3, parallel: 50 },
];

for (const { rounds, parallel } of SHAPES) {
  sceneTest(
    `a turn of ${rounds} rounds of ${parallel} tool calls completes, within what a run may have, and loses nothing`,
    {
      redis: true,
      // Without PERDURA_LONG a run is short too, so that the turn goes over hand-overs.
      agent: { limits: { maxToolRounds: 600, ...(LONG ? {} : { handOver: { events: 600 } }) } },
      files: { 'lines.txt': LINES.join('\n') },
      answer: (request) => {
        const round = roundsSoFar(request);
        if (round === rounds) return text(ANSWER);
        return callTools(...Array.from({ length: parallel }, (_, i) => readLine(round * parallel + i + 1)));
      },
    },
    async (scene) => {
      const id = scene.id();
      await scene.startWorker();
      const begin = Date.now();
      const result = await scene.client.send(id, { id: 'm1', text: 'read it' }, { start: {} });
      const took = Date.now() - begin;

      expect(result).toMatchObject({ text: ANSWER, stopReason: 'end', toolCalls: rounds * parallel });
      expect(violations(await scene.client.history(id), [{ messageId: 'm1', result, expectedText: ANSWER }])).toEqual([]);
      expect(linesSeen(scene)).toEqual(LINES.slice(0, rounds * parallel));
      expect(scene.api.hits).toHaveLength(rounds + 1);
      expect(scene.api.problems).toEqual([]);
      const runs = await runsOf(scene, id);
      const events = Math.max(...runs.map((run) => run.events));
      const bytes = Math.max(...runs.map((run) => run.bytes));
      figure(
        `a turn of ${rounds} × ${parallel} tool calls: ${seconds(took)}, ${runs.length} runs, the largest ${events} events and ${(bytes / 1e6).toFixed(2)} MB`,
      );
      expect(events).toBeLessThan(5_000);
      expect(bytes).toBeLessThan(5_000_000);
    },
    LONG ? 600_000 : 400_000,
  );
}

function readLine(number: number): ToolCall {
  return { name: 'read_file', input: { path: 'lines.txt', offset: number, limit: 1 } };
}

/** What the model was told last, in order. */
function linesSeen(scene: Scene): (string | undefined)[] {
  const messages = scene.api.hits.at(-1)?.body?.messages ?? [];
  const results = messages.flatMap(({ content }) =>
    blocksOf(content).flatMap((block) => (block.type === 'tool_result' ? [resultText(block)] : [])),
  );
  return results.map((result) => /This is line \d+ of the file\./.exec(result)?.[0]);
}

/** Visibility is a moment behind: the chain is whole when its youngest run is there and all others are closed. */
async function runsOf(scene: Scene, id: string): Promise<{ events: number; bytes: number }[]> {
  const { runId } = await scene.temporal.workflow.getHandle(id).describe();
  return until('all runs', async () => {
    const runs = [];
    for await (const run of scene.temporal.workflow.list({ query: `WorkflowId = '${id}'` })) runs.push(run);
    const whole = runs.some((run) => run.runId === runId) && runs.every((run) => run.runId === runId || run.status.name !== 'RUNNING');
    if (!whole) return undefined;
    return Promise.all(
      runs.map(async (run) => {
        const { historyLength, historySize } = await scene.temporal.workflow.getHandle(id, run.runId).describe();
        return { events: historyLength, bytes: historySize ?? 0 };
      }),
    );
  });
}
