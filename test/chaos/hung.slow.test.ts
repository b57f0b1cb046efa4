/**
 * Code of one's own that never ends, or ends the process: it ends two workers and no third, its conversation is told, and goes on. A worker
 * that is killed is no such evidence.
 */
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { answerTo, echo, latestResults, resultText, saidIn } from '../support/echo-model.js';
import { figure, sceneTest, until, type Scene } from '../support/scene.js';

const HUNG = /given up: 2 workers that ran this/;
const HUNG_OR_SILENT = new RegExp(`${HUNG.source}|no sign of life from the worker`);

/** Each run of what does harm is a line in the file `ran`. `spin` is in its loop after a pause, as code behind an `await` is. */
const CONFIG = `
const { appendFileSync } = require('node:fs');
const { join } = require('node:path');
const { execFileSync } = require('node:child_process');
const { z } = require(require.resolve('zod', { paths: [process.env.PERDURA_TEST_PRODUCT] }));
const { defineTool } = require(join(process.env.PERDURA_TEST_PRODUCT, 'dist', 'index.js'));
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
const HARM = {
  spin: () => { for (;;); },
  // Without the look ahead V8 would find in linear time that it does not fit (worker.ts).
  regex: () => /^(?=a)(a+)+$/.test('a'.repeat(64) + 'b'),
  wait: () => execFileSync('sleep', ['600']),
  exit: () => process.exit(0),
  throw: () => new Promise(() => setTimeout(() => { throw new Error('out of reach'); }, 10)),
};
const harm = (what) => {
  appendFileSync(join(__dirname, 'ran'), what + '\\n');
  return HARM[what]();
};
module.exports = {
  tools: Object.keys(HARM).map((name) => defineTool({
    name,
    description: 'Does harm.',
    input: z.object({}),
    policy: { repeatable: true, timeoutMs: 600_000 },
    run: async () => { await pause(); return String(await harm(name)); },
  })),
  processors: { input: [{ name: 'slow', order: 1, process: async (text) => { await pause(); if (text === 'poison') harm('regex'); return text; } }] },
};
`;

function hungTest(title: string, act: (scene: Scene) => Promise<void>): void {
  sceneTest(
    title,
    {
      impatient: true,
      answer: (request) => echo(request, (said) => (said.startsWith('call ') ? [{ name: said.slice(5), input: {} }] : [])),
    },
    async (scene) => {
      await writeFile(join(scene.dir, 'perdura.config.cjs'), CONFIG);
      await act(scene);
    },
    600_000,
  );
}

/** Another worker for each that ends, as a supervisor has it; answers how many have ended. */
function superviseWorkers(scene: Scene): { readonly ended: () => number; readonly logs: () => string } {
  let [ended, isOver] = [0, false];
  const logs: string[] = [];
  scene.onClose(() => (isOver = true));
  const next = async (): Promise<void> => {
    while (!isOver) {
      const worker = await scene.startWorker({ env: { PERDURA_BLOCKED_END_MS: '6000' } });
      await worker.ended;
      logs.push(worker.log());
      if (!isOver) ended += 1;
    }
  };
  void next().catch((error: unknown) => logs.push(String(error)));
  return { ended: () => ended, logs: () => logs.join('\n') };
}

function runs({ dir }: Scene): string[] {
  const file = join(dir, 'ran');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

/** The note has the time of a heartbeat, ten seconds. A machine without a processor for it loses one, and the call's attempts end it. */
const ATTEMPTS = 4;

for (const what of ['spin', 'regex', 'wait', 'exit', 'throw']) {
  hungTest(`a tool that does "${what}" ends two workers and no others, and the model is told`, async (scene) => {
    const workers = superviseWorkers(scene);
    const id = scene.id();
    const call = await scene.client.send(id, { id: 'one', text: `call ${what}` }, { start: {} });
    expect(call.text).toBe(answerTo(`call ${what}`));
    const request = scene.api.hits.findLast(({ body }) => body !== undefined && latestResults(body).length > 0)?.body;
    expect(request && latestResults(request).map(resultText)).toEqual([expect.stringMatching(HUNG_OR_SILENT)]);
    expect(runs(scene).length).toBeLessThanOrEqual(ATTEMPTS);
    expect(workers.logs()).toContain('run-tool of');
    figure(`a tool that does "${what}" ran ${runs(scene).length} times, and ${workers.ended()} workers ended`);
    expect((await scene.client.send(id, { id: 'two', text: 'go on' })).text).toBe(answerTo('go on'));
  });
}

hungTest('a message that no processor gets through fails its turn in words, and the next one is answered', async (scene) => {
  superviseWorkers(scene);
  const id = scene.id();
  await scene.client.send(id, { id: 'one', text: 'hello' }, { start: {} });
  const poisoned = await scene.client.send(id, { id: 'two', text: 'poison' });
  // Where the message was stored before the model was to be called, the model has answered the words in its place.
  if (poisoned.stopReason === 'failed') expect(poisoned.error).toEqual({ type: 'hung-worker', message: expect.stringMatching(HUNG) });
  else expect(poisoned.text).toContain('was not taken in');
  expect((await scene.client.send(id, { id: 'three', text: 'go on' })).text).toBe(answerTo('go on'));
  const request = scene.api.hits.at(-1)?.body;
  expect(request && saidIn(request)).toEqual(['hello', expect.stringContaining('was not taken in'), 'go on']);
});

sceneTest(
  'a worker that is killed three times in the middle of a tool is no such evidence',
  {
    ...{ impatient: true, ledger: true },
    answer: (request) => echo(request, (said) => (said === 'note' ? [{ name: 'note', input: { item: said } }] : [])),
  },
  async (scene) => {
    const sent = scene.client.send(scene.id(), { id: 'one', text: 'note' }, { start: {} });
    for (const began of [1, 2, 3]) {
      const worker = await scene.startWorker();
      await until(`run ${began} of the tool`, () => scene.ledger().length === began);
      await worker.kill();
    }
    scene.letToolsEnd();
    await scene.startWorker();
    expect((await sent).text).toBe(answerTo('note'));
    expect(scene.ledger().map(({ what }) => what)).toEqual(['start', 'start', 'start', 'start', 'end']);
  },
);
