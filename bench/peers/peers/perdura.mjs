/** By the package's public doors alone, from the build beside this folder (`npm run build` at the top). */
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { INSTRUCTIONS } from '../workload.mjs';

const load = createRequire(import.meta.url);
const root = process.env.PERDURA_ROOT ?? '../../..';
const { createClient, defineTool, z } = load(`${root}/dist/index.js`);
const { createWorker } = load(`${root}/dist/worker.js`);
const { loadConfig } = load(`${root}/dist/config.js`);

export async function open({ folder, address, workload }) {
  const agent = join(folder, 'agents', 'default');
  await mkdir(agent, { recursive: true });
  await mkdir(join(folder, 'workspace'), { recursive: true });
  await writeFile(join(agent, 'SOUL.md'), INSTRUCTIONS);
  await writeFile(join(agent, 'agent.json'), JSON.stringify({ model: 'scripted/one', tools: ['lookup'] }));
  const config = loadConfig({ TEMPORAL_ADDRESS: address, PERDURA_LOG_LEVEL: 'error' }, folder);
  const scripted = {
    provider: 'scripted',
    async stream({ messages }, { onDelta }) {
      const { text, call } = await workload.model(JSON.stringify(messages), messages.at(-1).role === 'tool');
      if (text !== undefined) onDelta({ kind: 'text', text });
      const block = call ? { kind: 'tool-call', callId: call.id, name: call.name, input: call.input } : { kind: 'text', text };
      return { blocks: [block], stop: call ? 'tool-calls' : 'end', usage: { inputTokens: 100, cachedTokens: 0, outputTokens: 80 } };
    },
  };
  const lookup = defineTool({
    name: 'lookup',
    description: 'look up an item',
    input: z.object({ q: z.string() }),
    run: (input) => workload.tool(input),
  });
  const isReady = Promise.withResolvers?.() ?? withResolvers();
  const worker = createWorker({
    config,
    tools: [lookup],
    providers: { scripted },
    // Nobody else's conversation is cut either.
    models: { 'scripted/one': { contextWindow: 1_000_000, prices: { input: 0, output: 0 } } },
    onReady: () => isReady.resolve(),
  });
  const running = worker.run();
  await Promise.race([isReady.promise, running]);
  const client = await createClient(config);
  const turn = async (id, text) => (await client.send(id, { id: `m${/\d+/.exec(text)[0]}`, text }, { start: {} })).text;
  return {
    turn,
    // The same id is the same message.
    resume: turn,
    storedBytes: () => bytesOf(config.memoryDir),
    async close() {
      await client.close();
      worker.shutdown();
      await running;
    },
  };
}

function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

async function bytesOf(folder) {
  const names = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(names.map((name) => stat(join(folder, name)).then((one) => (one.isFile() ? one.size : 0))));
  return sizes.reduce((sum, size) => sum + size, 0);
}
