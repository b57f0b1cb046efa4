/** What a model has in its request when it is asked, over long conversations: planted facts, decisions that change, goals. */
import { playScenario } from '../memory/play.js';
import { scenarios } from '../memory/script.js';
import { workingSessions } from '../memory/working.js';
import type { Measured, Row } from '../row.js';

export const memory: Row = {
  name: 'memory',
  async measure({ temporal, product: productOf }, { memoryScale }) {
    const { options } = await productOf('file');
    const rows: Measured[] = [];
    for (const [n, scenario] of scenarios(memoryScale).entries())
      rows.push(...(await playScenario({ temporal, options }, scenario, `memory-${n}`)));
    return rows;
  },
};

/** The same of sessions with tools. */
export const work: Row = {
  name: 'work',
  async measure({ temporal, product: productOf }) {
    const { options } = await productOf('file');
    const rows: Measured[] = [];
    for (const [n, scenario] of workingSessions().entries())
      rows.push(...(await playScenario({ temporal, options }, scenario, `work-${n}`)));
    return rows;
  },
};
