/**
 * Many conversations of several tenants and several workers against a provider with limits: it refuses nothing once its limits are known,
 * all that it gives is used, and tenants have equal shares. PERDURA_LONG=1: 200 conversations, 4 workers, four minutes.
 */
import { setMaxListeners } from 'node:events';
import { startLimitedApi, type LimitedApiOptions, type LimitedHit } from '../support/provider-apis/limited-api.js';
import { openScene } from '../support/scene.js';

const IS_LONG = process.env['PERDURA_LONG'] === '1';
const WORKERS = IS_LONG ? 4 : 2;
/** Seconds. */
const [LEARNING, MEASURED] = IS_LONG ? [60, 180] : [12, 24];
/** Conversations of each: those of the smallest can use its share all the same. */
const TENANTS = IS_LONG ? { acme: 100, beta: 50, globex: 30, umbra: 20 } : { acme: 12, beta: 8, globex: 6, umbra: 6 };

interface Trial {
  readonly model: string;
  readonly limits: LimitedApiOptions['limits'];
  readonly env: (url: string) => Record<string, string>;
  readonly agent?: object;
}

interface Measured {
  readonly turns: number;
  readonly refusedFirst: number;
  readonly refusedLater: number;
  /** Of what the nearest limit gives. */
  readonly used: number;
  readonly jain: number;
  readonly byTenant: Readonly<Record<string, number>>;
}

const RATE = IS_LONG ? 600 : 180;

test.each<[string, Trial]>([
  [
    'requests, as Anthropic limits them',
    {
      model: 'anthropic/claude-sonnet-5-5',
      limits: { requests: RATE, input: RATE * 100_000, output: RATE * 10_000 },
      env: (url) => ({ ANTHROPIC_BASE_URL: url }),
    },
  ],
  [
    'tokens of prompts, as Anthropic limits them',
    {
      model: 'anthropic/claude-sonnet-5-5',
      limits: { requests: RATE * 100, input: RATE * 2_000, output: RATE * 10_000 },
      env: (url) => ({ ANTHROPIC_BASE_URL: url }),
    },
  ],
  [
    'tokens that an answer may have, as OpenAI counts them',
    {
      model: 'openai/gpt-5-mini',
      limits: { requests: RATE * 100, tokens: RATE * 6_000 },
      env: (url) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: 'test' }),
      agent: { maxTokens: 4_000 },
    },
  ],
])(
  '%s',
  async (_, trial) => {
    const measured = await run(trial);
    process.stdout.write(`${JSON.stringify({ model: trial.model, limits: trial.limits, ...measured })}\n`);
    expect(measured).toMatchObject({ refusedLater: 0 });
    expect(measured.jain).toBeGreaterThan(0.95);
    // clock: a limit is so much a minute; half of the short trial's rate leaves a slow machine its time.
    expect(measured.used).toBeGreaterThan(IS_LONG ? 0.95 : 0.5);
  },
  400_000,
);

async function run({ model, limits, env, agent = {} }: Trial): Promise<Measured> {
  const api = await startLimitedApi({ limits, filled: 0.1 });
  const scene = await openScene({ redis: true, agent: { ...agent, tools: [] }, env: { ...env(api.url), PERDURA_MODEL: model } });
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  try {
    await Promise.all(Array.from({ length: WORKERS }, () => scene.startWorker()));
    const from = Date.now();
    const talks = Object.entries(TENANTS).flatMap(([tenant, count]) =>
      Array.from({ length: count }, async (_, i) => {
        const id = scene.id();
        for (let turn = 1; !stop.signal.aborted; turn++)
          await scene.client.send(id, `talk-${tenant}-${i}`, { start: { tenant }, signal: stop.signal }).catch(() => undefined);
      }),
    );
    await new Promise((resolve) => setTimeout(resolve, (LEARNING + MEASURED) * 1_000));
    stop.abort();
    await Promise.all(talks);
    return measure(api.hits, limits, from + LEARNING * 1_000, from + (LEARNING + MEASURED) * 1_000);
  } finally {
    stop.abort();
    await scene.close();
    await api.close();
  }
}

function measure(hits: readonly LimitedHit[], limits: Trial['limits'], from: number, to: number): Measured {
  // clock: the provider's first minute is for learning; what it noted of each request says which came after that.
  const later = hits.filter(({ at }) => at >= from && at < to);
  const taken = later.filter(({ status }) => status === 200);
  const minutes = (to - from) / 60_000;
  const spent = { requests: taken.length, input: sum(taken, 'input'), output: sum(taken, 'output'), tokens: sum(taken, 'charged') };
  const shares = Object.entries(limits).map(([kind, limit]) => spent[kind as keyof typeof spent] / (limit * minutes));
  const byTenant = Object.fromEntries(
    Object.keys(TENANTS).map((tenant) => [tenant, taken.filter(({ who }) => who.startsWith(`talk-${tenant}-`)).length]),
  );
  const counts = Object.values(byTenant);
  const total = counts.reduce((all, one) => all + one, 0);
  return {
    turns: taken.length,
    // clock: what came before that is shown, and nothing depends on it.
    refusedFirst: hits.filter(({ at, status }) => at < from && status === 429).length,
    refusedLater: later.filter(({ status }) => status === 429).length,
    used: Math.max(...shares),
    jain: total ** 2 / (counts.length * counts.reduce((all, one) => all + one ** 2, 0)),
    byTenant,
  };
}

function sum(hits: readonly LimitedHit[], what: 'input' | 'output' | 'charged'): number {
  return hits.reduce((all, hit) => all + hit[what], 0);
}
