/**
 * No fault of a provider, of whatever shape, leaves a conversation that cannot answer a plain "hello" two messages later; requests are
 * bounded, and usage is what was billed. A run is one conversation with a provider that behaves by a seed.
 */
import {
  oddAnswer,
  pick,
  plainAnswer,
  finalRefusal,
  randomFault,
  randomFrom,
  startHostileProvider,
  type Fault,
  type HostileProvider,
} from './hostile-provider.js';
import { startWorld, type World } from './world.js';

const POISON = 'xyzzy-poison';
/** What one model call may take: four attempts of Temporal, 24 times; six forms of a refused request; and what a compaction asks. */
const MOST_REQUESTS = 24 * 4 + 3 * 6 + 20;
/** What calls of tools may add to a message: a provider that fails in each round fails by the bound of each. */
const ROUNDS = 4;
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

interface Plan {
  /** What is refused from then on; absent: nothing. */
  readonly refuses?: { readonly what: string; readonly test: (body: string) => boolean; readonly fault: Fault };
  /** What happens to the requests of the hostile message, one after another. */
  readonly faults: readonly Fault[];
  readonly message: { readonly text: string; readonly images?: readonly { readonly mediaType: string; readonly base64: string }[] };
}

export interface HostileRuns {
  /** Throws with the seed and all that was done, where a run does not hold. */
  run(seed: number): Promise<void>;
  /** Usage of all conversations against what was billed. */
  checkUsage(): Promise<void>;
  close(): Promise<void>;
}

export async function startHostileRuns(): Promise<HostileRuns> {
  const provider = await startHostileProvider();
  const world = await startWorld({
    engine: 'memory',
    openai: provider.url,
    agent: {
      model: 'openai/house-model',
      maxTokens: 1_000,
      tools: ['get_time'],
      memory: { enabled: false },
      context: { maxTokens: 24_000, safetyMargin: 1_000 },
      limits: { maxToolRounds: ROUNDS },
    },
  });
  return {
    run: (seed) => runOnce(world, provider, seed),
    async checkUsage() {
      const { total } = await world.client.usage();
      const counted = { input: total.usage.inputTokens, output: total.usage.outputTokens };
      if (JSON.stringify(counted) !== JSON.stringify(provider.billed))
        throw new Error(`usage ${JSON.stringify(counted)} is not what was billed: ${JSON.stringify(provider.billed)}`);
    },
    async close() {
      await world.close();
      await provider.close();
    },
  };
}

async function runOnce({ client, id: newId }: World, provider: HostileProvider, seed: number): Promise<void> {
  const random = randomFrom(seed);
  const id = newId();
  const done: string[] = [];
  let plan: Plan = { faults: [], message: { text: 'good day' } };
  let first = 0;
  let left: Fault[] = [];
  let odd = 0;
  provider.answer = (body) => {
    first ||= body.length;
    const next = left.shift();
    if (next) return note(next);
    if (plan.refuses?.test(body)) return note(plan.refuses.fault);
    if (odd > 0) {
      odd -= 1;
      const answer = oddAnswer(random, random() < 0.3 ? `Never say ${POISON}.` : 'Something.');
      done.push(answer.name);
      return answer;
    }
    done.push('answer');
    return { events: plainAnswer(lastWords(body).includes('hello') ? 'HELLO' : 'Well.') };
  };
  const note = (fault: Fault): Fault => {
    done.push(fault.name);
    return fault;
  };
  const fail = (what: string): never => {
    const steps = done.length > 60 ? [...done.slice(0, 40), `… ${done.length - 60} more …`, ...done.slice(-20)] : done;
    throw new Error(
      `seed ${seed}: ${what}\n${plan.refuses ? `refuses ${plan.refuses.what} with ${plan.refuses.fault.name}\n` : ''}${steps.join('\n')}`,
    );
  };
  const send = async (message: {
    readonly text: string;
  }): Promise<{ readonly text: string; readonly stopReason: string; readonly error?: unknown }> => {
    const before = provider.requests;
    done.push(`--- ${message.text.slice(0, 60)}`);
    const result = await client.send(id, message).catch((error: unknown) => ({ text: '', stopReason: 'failed', error: String(error) }));
    done.push(
      `=== ${result.stopReason} ${result.text.slice(0, 40)} ${JSON.stringify('error' in result ? result.error : '')?.slice(0, 200)}`,
    );
    const asked = provider.requests - before;
    if (asked > MOST_REQUESTS * (ROUNDS + 1)) fail(`one message took ${asked} requests`);
    if (!done.some((step) => PASSES.has(step)) && asked > 30) fail(`final refusals took ${asked} requests`);
    return result;
  };

  await client.start(id);
  await send(plan.message);
  plan = randomPlan(random, first);
  left = [...plan.faults];
  odd = Math.floor(random() * 3);
  for (const fault of [...plan.faults, ...(plan.refuses ? [plan.refuses.fault] : [])]) if (fault.passes) PASSES.add(fault.name);
  await send(plan.message);
  left = [];
  odd = 0;
  await send({ text: 'hello, are you there?' });
  const answered = await send({ text: 'hello' });
  if (answered.text !== 'HELLO' || answered.stopReason !== 'end') fail('hello was not answered');
}

/** Names of faults that are tried again. */
const PASSES = new Set<string>();

function randomPlan(random: () => number, base: number): Plan {
  const faults = Array.from({ length: random() < 0.5 ? Math.floor(random() * 6) : 0 }, () => randomFault(random));
  const long = 'The ledger of the harbour says so. '.repeat(Math.floor(random() * 250));
  const kind = pick(random, ['text', 'picture', 'size', 'answer', 'none'] as const);
  // What may pass is tried for twenty minutes, again and again: a few such runs are enough.
  const fault = random() < 0.06 ? randomFault(random) : finalRefusal(random);
  switch (kind) {
    case 'text':
      return { faults, message: { text: `${POISON} ${long}` }, refuses: { what: kind, test: (body) => body.includes(POISON), fault } };
    case 'picture':
      return {
        faults,
        message: { text: `look ${long}`, images: [{ mediaType: 'image/png', base64: PNG }] },
        refuses: { what: kind, test: (body) => body.includes('image_url'), fault },
      };
    case 'size': {
      const most = base + 1_500 + Math.floor(random() * 6_000);
      return { faults, message: { text: long }, refuses: { what: `${kind} over ${most}`, test: (body) => body.length > most, fault } };
    }
    case 'answer':
      return { faults, message: { text: `say it ${long}` }, refuses: { what: kind, test: (body) => body.includes(POISON), fault } };
    case 'none':
      return { faults, message: { text: long || 'go on' } };
  }
}

function lastWords(body: string): string {
  const { messages = [] } = JSON.parse(body) as { readonly messages?: readonly { readonly role: string; readonly content: unknown }[] };
  return JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content ?? '');
}
