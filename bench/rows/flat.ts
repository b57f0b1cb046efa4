/** Whether a turn late in a conversation costs what an early one does. */
import { said } from '../bodies.js';
import { historiesOf, sizeOf, turnsOf } from '../history.js';
import { mean, median, middleOf, overAll, repeat, timeTurns, turnAbout } from '../pairs.js';
import type { Measured, Row } from '../row.js';

const WINDOW = 20;
const EARLY = 5;

export const flat: Row = {
  name: 'flat',
  async measure({ temporal, product: productOf }, { pairs, late }) {
    const product = await productOf('redis');
    const text = (number: number): string => said('text', 0, number);
    const long = await product.start();
    const first = late - WINDOW * Math.ceil(pairs / 2);
    await timeTurns(long, first, text);

    let window = 0;
    let young = long;
    const abouts = await repeat(pairs, async () => {
      young = await product.start();
      await timeTurns(young, EARLY - 1, text);
      const sides = { product: { talk: long, from: first + WINDOW * window++ }, floor: { talk: young, from: EARLY } };
      return turnAbout(sides, WINDOW, text);
    });
    const equal = await repeat(pairs, async () => {
      const [one, other] = [await product.start(), await product.start()];
      for (const talk of [one, other]) await timeTurns(talk, EARLY - 1, text);
      return turnAbout({ product: { talk: one, from: EARLY }, floor: { talk: other, from: EARLY } }, WINDOW, text);
    });
    const time = middleOf(
      abouts.map((pair) => pair.time),
      equal.map((pair) => pair.time),
    );
    const cpu = overAll(abouts.map((pair) => pair.cpu));

    const runs = await historiesOf(temporal, long.id);
    const lateTurns = turnsOf(runs).slice(first);
    const earlyTurns = turnsOf(await historiesOf(temporal, young.id)).slice(EARLY - 1);
    const compare = (
      row: string,
      unit: string,
      toHold: number,
      [now, then]: readonly [number, number],
      notes: readonly string[],
      noise?: number,
    ): Measured => {
      const ratio = now / then;
      return {
        row,
        product: now,
        floor: then,
        unit,
        ratio,
        toHold: `≤ ${toHold}`,
        holds: ratio <= toHold,
        notes,
        ...(noise !== undefined && { noise }),
      };
    };
    return [
      compare(
        `flat: time of turn ${late} : turn 5`,
        'ms',
        1.04,
        [time.product, time.floor],
        [
          ...time.notes,
          `CPU of client and worker, ms a turn: ${cpu.product.toFixed(1)} / ${cpu.floor.toFixed(1)} = ${cpu.ratio.toFixed(2)}`,
        ],
        time.noise,
      ),
      compare(
        `flat: events of turn ${late} : turn 5`,
        '',
        1.05,
        [mean(lateTurns.map(lengthOf)), mean(earlyTurns.map(lengthOf))],
        [`${runs.length} runs of ${runs.map(lengthOf).join(', ')} events; hand-overs count`],
      ),
      compare(`flat: bytes of turn ${late} : turn 5`, 'B', 1.05, [median(lateTurns.map(sizeOf)), median(earlyTurns.map(sizeOf))], []),
    ];
  },
};

function lengthOf(list: readonly unknown[]): number {
  return list.length;
}
