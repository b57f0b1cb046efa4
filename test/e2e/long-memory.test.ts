/**
 * A conversation much longer than its model can see: no prompt is over the budget, what was said early is known late, and Redis
 * and files make the same requests. 60 turns; with PERDURA_LONG=1 2,000.
 */
import { textOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { text, type Reply } from '../support/provider-apis/reply.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { runsOf, workflowTaskFailures } from '../support/run-chain.js';
import { figure, LONG } from '../support/scene.js';
import { startWorld, type World } from '../support/world.js';

const TURNS = LONG ? 2_000 : 60;
const BUDGET = 5_000;
/** Compaction alone: when the window is trimmed depends on when its consolidation is done. */
const AGENT = {
  maxTokens: 500,
  tools: ['get_time', 'list_files', 'read_file', 'search_files', 'search_history', 'set_task'],
  context: { maxTokens: BUDGET + 1_000, safetyMargin: 500 },
  memory: { memoryWindow: 10_000 },
};
const LEDGER = 'The harbour master keeps the ledger. '.repeat(25);

let redis: RedisServer;
let worlds: readonly World[] = [];
let requests: ApiRequest[] = [];

beforeAll(async () => {
  redis = await startRedis();
  const own = { agent: AGENT, answer };
  worlds = [await startWorld({ ...own, redisUrl: redis.url }), await startWorld(own)];
});
afterAll(async () => {
  for (const world of worlds) await world.close();
  await redis.stop();
});

/** The summarizer keeps what it was asked to remember, as a good one would. */
function answer(request: ApiRequest): Reply {
  if (!JSON.stringify(request.system ?? '').includes('You condense')) {
    requests.push(request);
    return text(`${requests.length}. ${LEDGER}`);
  }
  const record = request.messages.map(({ content }) => textOf(content)).join('\n');
  const facts = [...new Set(record.match(/The code of box \d+ is \w+/g))].map((fact) => ({
    fact,
    tags: ['code'],
    confidence: 1,
    salience: 1,
  }));
  return text(JSON.stringify({ episodic: { summary: 'Ledgers and codes.', tags: [], salience: 0.5 }, semantic: facts }));
}

async function talk(
  world: World,
  turns: number,
): Promise<{ readonly id: string; readonly asked: readonly ApiRequest[]; readonly ms: number[] }> {
  requests = [];
  const ms: number[] = [];
  const { id } = await world.client.start(world.id());
  for (let n = 1; n <= turns; n++) {
    const from = performance.now();
    const said = n === 3 ? 'The code of box 7 is plum, remember it.' : `Go on with page ${n}.`;
    expect(await world.client.send(id, { id: `m${n}`, text: said })).toMatchObject({ stopReason: 'end' });
    ms.push(performance.now() - from);
  }
  return { id, asked: requests, ms };
}

const p50 = (of: readonly number[]): number => of.toSorted((a, b) => a - b)[Math.floor(of.length / 2)] ?? 0;

test(
  `${TURNS} turns on a model of ${BUDGET} tokens`,
  async () => {
    const [onRedis, onFiles] = worlds;
    if (!onRedis || !onFiles) throw new Error('no worlds');
    const { id, asked, ms } = await talk(onRedis, TURNS);
    const last = JSON.stringify(asked.at(-1)?.messages);
    expect(last).toContain('[MEMORY:SEMANTIC]\\n- The code of box 7 is plum');
    expect(asked).toHaveLength(TURNS);
    const largest = Math.max(...asked.map((request) => Math.ceil(JSON.stringify(request.messages).length / 4)));
    expect(largest).toBeLessThanOrEqual(BUDGET);
    expect(onRedis.api.problems).toEqual([]);
    expect(await workflowTaskFailures(onRedis, id)).toEqual([]);
    const status = await onRedis.client.status(id);
    const runs = await runsOf(onRedis, id);
    figure(
      `${TURNS} turns: the largest prompt ~${largest} tokens of ${BUDGET}, ${status.context.compactions} compactions, ${runs.length} runs, ` +
        `p50 of turns 10-30 ${p50(ms.slice(10, 30)).toFixed(0)} ms, of the last 20 ${p50(ms.slice(-20)).toFixed(0)} ms`,
    );
    // An epoch that begins with the same words as the one before leaves the prompt's beginning as it was.
    expect(status.context.prefixChanges).toBeLessThanOrEqual(status.context.compactions);
    expect(status.context.compactions).toBeGreaterThan(TURNS / 20);

    const few = 60;
    const same = await talk(onFiles, few);
    const words = (of: readonly ApiRequest[]): string[] => of.slice(0, few).map(({ messages }) => JSON.stringify(messages));
    expect(words(same.asked)).toEqual(words(asked));
    expect(onFiles.api.problems).toEqual([]);
  },
  LONG ? 1_200_000 : 180_000,
);
