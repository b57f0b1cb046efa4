/** How turns ended that have no whole answer, of one life. A turn ends once: the first word on it counts. */
import { byTurn, type TurnEnd } from '../../records/turn-end.js';
import { decodeTurnEnd } from '../codecs/lives-codec.js';
import type { TurnEnds } from '../store.js';
import type { OpenCollection, RecordCodec } from './collection.js';

/** Of a conversation that fails for ever the newest are kept. */
const MAX_KEPT = 500;

const ENDS: RecordCodec<TurnEnd> = { idOf: ({ turn }) => turn, encode: (end) => JSON.stringify(end), decode: decodeTurnEnd };

export function createTurnEnds(open: OpenCollection): TurnEnds {
  return {
    async add(key, ends) {
      if (ends.length === 0) return;
      await open({ name: 'turn-ends', key }, ENDS).change(`write how ${ends.length} turns of ${key.conversation} ended`, (known) => {
        const turns = new Set(known.map(({ turn }) => turn));
        const all = [...known, ...ends.filter(({ turn }) => !turns.has(turn))].sort(byTurn).slice(-MAX_KEPT);
        return all.every((end) => known.includes(end)) ? undefined : all;
      });
    },

    async list(key) {
      return [...(await open({ name: 'turn-ends', key }, ENDS).read(`read how turns of ${key.conversation} ended`)).items].sort(byTurn);
    },
  };
}
