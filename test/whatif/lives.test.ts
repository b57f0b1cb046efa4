/**
 * Whatever a conversation has lived through, played again with nothing changed it is the same: every request byte for byte, every turn, and no
 * tool runs. `PERDURA_LONG=1` tries many more lives; a failure says the seed and what was done, and `PERDURA_SEED` does it again.
 */
import { waitFor } from '../support/wait-for.js';
import { expectSame, startRecorder, type Recorder } from './recorder.js';
import { createModel, createTools, type Counts } from './scripted.js';

const LIVES = process.env['PERDURA_LONG'] === '1' ? 200 : 6;
const ACTIONS = 12;
const SEED = Number(process.env['PERDURA_SEED'] ?? 0) || Math.floor(Math.random() * 1e9);

/** Small, fast, and the same again for the same seed. */
function createChance(seed: number) {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { below: (n: number) => Math.floor(next() * n), pick: <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] as T };
}

const counts: Counts = { ran: 0, held: 0 };
let recorder: Recorder;
beforeAll(async () => {
  recorder = await startRecorder(createModel(counts), {
    tools: createTools(counts),
    agent: { limits: { handOver: { events: 80 } }, memory: { memoryWindow: 12, keepCount: 4 }, context: { maxTokens: 60_000 } },
  });
});
afterAll(() => recorder.close());

const WISHES = [
  'hello',
  '#book tea',
  '#both',
  '#change',
  '#breaks',
  '#fetch plums',
  '#keep the key',
  '#pay 5',
  '#ask',
  '#delegate book tea',
  '#delegate pay 3',
];

async function live(seed: number): Promise<{ readonly ids: readonly string[]; readonly done: readonly string[] }> {
  const { client, id: freshId } = recorder.world;
  const chance = createChance(seed);
  const ids = [freshId()];
  const done: string[] = [];
  await client.start(ids[0], {});
  const settled = (id: string) =>
    waitFor(
      async () => ({ status: await client.status(id), waiting: await client.approvals(id) }),
      ({ status: { phase, queued }, waiting }) => waiting.length > 0 || (phase === 'idle' && queued === 0),
    );
  /** What waits for a person is decided, until nothing goes on. */
  const settle = async (id: string): Promise<void> => {
    for (;;) {
      const { waiting } = await settled(id);
      const [one] = waiting;
      if (!one) return;
      const decision = chance.pick(['approve', 'deny', 'approve'] as const);
      const note = one.kind === 'question' ? 'the first' : chance.pick([undefined, 'as you like']);
      done.push(`${decision} ${one.callId} ${note ?? ''}`);
      await client.decide(id, { callId: one.callId, conversation: one.conversation, decision, ...(note !== undefined && { note }) });
    }
  };

  for (let action = 0; action < ACTIONS; action++) {
    const id = chance.pick(ids);
    const what = chance.pick([
      'send',
      'send',
      'send',
      'while',
      'hold',
      'reset',
      'compact',
      'undo',
      'model',
      'rewind',
      'fork',
      'interrupt',
    ] as const);
    const wish = `${chance.pick(WISHES)} ${action}`;
    done.push(`${what} ${ids.indexOf(id)} ${wish}`);
    switch (what) {
      case 'send':
        await client.message(id, wish);
        break;
      case 'while':
        await client.message(id, '#pay 1');
        await settled(id);
        await client.message(id, { text: wish, delivery: chance.pick(['queue', 'steer', 'interrupt'] as const) });
        break;
      case 'hold': {
        const before = counts.held;
        await client.message(id, '#hold');
        await waitFor(
          () => counts.held,
          (count) => count > before,
        );
        if (chance.below(2) === 0) await client.message(id, { text: wish, delivery: chance.pick(['steer', 'queue'] as const) });
        await client.interrupt(id, 'enough');
        break;
      }
      case 'interrupt':
        await client.message(id, wish);
        await client.interrupt(id);
        break;
      case 'reset':
        await client.reset(id);
        break;
      case 'compact':
        await client.compact(id);
        break;
      case 'undo':
        await client.undoCompaction(id).catch(() => undefined);
        break;
      case 'model':
        await client.setModel(id, chance.pick([null, 'anthropic/claude-other']));
        break;
      case 'rewind': {
        const { turns } = await client.status(id);
        if (turns > 1) await client.rewind(id, `turn_${String(1 + chance.below(turns - 1)).padStart(4, '0')}`).catch(() => undefined);
        break;
      }
      case 'fork': {
        const { turns } = await client.status(id);
        if (turns === 0 || ids.length > 2) break;
        const fork = freshId();
        const at = `turn_${String(1 + chance.below(turns)).padStart(4, '0')}`;
        await client.fork(id, { at, id: fork }).then(
          () => ids.push(fork),
          () => undefined,
        );
        break;
      }
    }
    await settle(id);
  }
  await recorder.world.advance(60_000);
  return { ids, done };
}

test.each(Array.from({ length: LIVES }, (_, n) => SEED + n))('a life of seed %i', async (seed) => {
  const { ids, done } = await live(seed);
  for (const id of ids) {
    try {
      await expectSame(recorder, id, counts);
    } catch (error) {
      throw new Error(`seed ${seed}, conversation ${ids.indexOf(id)}:\n${done.join('\n')}\n${String(error)}`, { cause: error });
    }
  }
});
