/** What `perdura admin capacity` computes with: a few rows of a whole run, kept where the package has them. */
import type { Capacity, PerRound } from '../src/models/capacity.js';
import type { Measured } from './row.js';

/** Throws where a row is missing: half of them would be another installation's. */
export function capacityConstants(rows: readonly Measured[], date: string): Capacity {
  const valueOf = (name: string): number => {
    const found = rows.find(({ row }) => row === name);
    if (found === undefined) throw new Error(`data/capacity.json needs the row "${name}", which was not measured`);
    return Number(found.product.toPrecision(4));
  };
  const cpu = (kind: string): number => valueOf(`${kind}, redis: CPU of client and worker`);
  const perRound = (what: string, end = ''): PerRound => ({
    turn: valueOf(`history: ${what} per text turn${end === '' ? '' : ', less bodies'}`),
    ordinaryTool: valueOf(`history: ${what} per further round, ordinary tool${end}`),
    quickTool: valueOf(`history: ${what} per further round, quick tool${end}`),
  });
  const turn = cpu('text-turn');
  const further = (kind: string): number => Number((cpu(kind) - turn).toPrecision(4));
  return {
    date: date.slice(0, 10),
    cpuMs: { turn, ordinaryTool: further('ordinary-tool'), quickTool: further('quick-tool') },
    historyBytes: perRound('bytes', ', less the result'),
    redisBytes: perRound('bytes in Redis'),
    actions: perRound('actions'),
  };
}
