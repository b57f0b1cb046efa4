/** What MCP servers have given for a scope or a tenant: a sealed text for each server. */
import { z } from 'zod';
import { recordCodec, type OpenCollection } from './collection.js';
import type { SignIns } from '../store.js';

const SEALED = recordCodec(z.object({ id: z.string(), sealed: z.string() }), ({ id }) => id);

export function createSignIns(open: OpenCollection): SignIns {
  return {
    async read(of, id) {
      const { items } = await open({ name: 'sign-ins', key: of }, SEALED).read(`read the sign-ins of ${of.owner}`, 'refuse', [id]);
      return items[0]?.sealed;
    },

    change: (of, id, decide) =>
      open({ name: 'sign-ins', key: of }, SEALED).change(
        `write a sign-in of ${of.owner}`,
        (known) => {
          const sealed = decide(known[0]?.sealed);
          return sealed === undefined ? undefined : sealed === '' ? [] : [{ id, sealed }];
        },
        [id],
      ),
  };
}
