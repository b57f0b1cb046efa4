/** Turns per second when many talk at once, on one worker. */
import { said } from '../bodies.js';
import { cpuMeter, middleOf, overAll, repeat, timeTurns, warmUp, type Pair } from '../pairs.js';
import type { StoreKind } from '../product.js';
import type { Measured, Row } from '../row.js';
import type { Talk } from '../talk.js';

const CONVERSATIONS = 100;
const LIMIT = 0.9;

export const throughput: Row = {
  name: 'throughput',
  async measure(surroundings, { pairs, first, atOnce }) {
    const floor = await surroundings.floor();
    const measured: Measured[] = [];
    for (const store of ['redis', 'file'] satisfies StoreKind[]) {
      const product = await surroundings.product(store);
      for (const start of [() => floor.start('text'), () => product.start()]) await warmUp(start, first, text);
      const measurePair = async (startFloor: () => Promise<Talk>): Promise<Both> => {
        const bare = await allTalk(atOnce, startFloor);
        const own = await allTalk(atOnce, () => product.start());
        const pair = (of: (talked: Talked) => number): Pair => ({ product: of(own), floor: of(bare) });
        return { perSecond: pair((talked) => talked.perSecond), cpu: pair((talked) => talked.cpu) };
      };
      const all = await repeat(pairs, () => measurePair(() => floor.start('text')));
      const equal = await repeat(pairs, () => measurePair(() => product.start()));
      const middle = middleOf(
        all.map((pair) => pair.perSecond),
        equal.map((pair) => pair.perSecond),
      );
      const cpu = overAll(all.map((pair) => pair.cpu));
      measured.push({
        row: `throughput: ${CONVERSATIONS} conversations, ${store}`,
        ...middle,
        unit: '/s',
        toHold: `≥ ${LIMIT}`,
        holds: middle.ratio >= LIMIT,
        notes: [
          ...middle.notes,
          `CPU of client and worker, ms a turn: ${cpu.product.toFixed(1)} / ${cpu.floor.toFixed(1)} = ${cpu.ratio.toFixed(2)}`,
        ],
      });
    }
    return measured;
  },
};

interface Both {
  readonly perSecond: Pair;
  readonly cpu: Pair;
}

interface Talked {
  readonly perSecond: number;
  /** Milliseconds of a turn. */
  readonly cpu: number;
}

function text(number: number): string {
  return said('text', 0, number);
}

async function allTalk(each: number, start: () => Promise<Talk>): Promise<Talked> {
  const talks = await Promise.all(Array.from({ length: CONVERSATIONS }, start));
  await Promise.all(talks.map((talk) => timeTurns(talk, 1, text)));
  const begin = performance.now();
  const cpuNow = cpuMeter();
  await Promise.all(talks.map((talk) => timeTurns(talk, each, text, 1)));
  const turns = CONVERSATIONS * each;
  return { perSecond: (turns * 1000) / (performance.now() - begin), cpu: cpuNow() / turns };
}
