/** How turns ended that have no whole answer, of one life. A turn ends once: the first word on it counts. */
import { z } from 'zod';
import { byTurn, MAX_ERROR, UNFINISHED, type TurnEnd } from '../../records/turn-end.js';
import type { TurnEnds } from '../store.js';
import { recordCodec, type OpenCollection } from './collection.js';

/** A conversation that fails for ever keeps only the newest. */
const MAX_STORED = 500;

const turnEndSchema = z.object({
  v: z.literal(1),
  turn: z.string().regex(/^turn_\d{4,15}$/),
  stopReason: z.enum(UNFINISHED),
  error: z.object({ type: z.string().max(200), message: z.string().max(MAX_ERROR) }).optional(),
});

const ENDS = recordCodec<TurnEnd>(turnEndSchema, ({ turn }) => turn);

export function createTurnEnds(open: OpenCollection): TurnEnds {
  return {
    async add(key, ends) {
      if (ends.length === 0) return;
      await open({ name: 'turn-ends', key }, ENDS).change(`write how ${ends.length} turns of ${key.conversation} ended`, (known) => {
        const turns = new Set(known.map(({ turn }) => turn));
        const all = [...known, ...ends.filter(({ turn }) => !turns.has(turn))].sort(byTurn).slice(-MAX_STORED);
        return all.every((end) => known.includes(end)) ? undefined : all;
      });
    },

    async list(key) {
      return [...(await open({ name: 'turn-ends', key }, ENDS).read(`read how turns of ${key.conversation} ended`)).items].sort(byTurn);
    },
  };
}
