/** What is kept of agents' MCP servers: their tools, accepted and waiting for that, and what they have given when a person signed in. */
import { z } from 'zod';
import { recordCodec, type OpenCollection } from './collection.js';
import type { AgentKey, Pins, SignIns, ToolPin } from '../store.js';

/** `server`: not a tool, but that the server was accepted, with whatever tools. */
type PinRow = ToolPin & { readonly is?: 'server' | 'waiting' | undefined };

/** A unique name of one tool of one server, for names of any characters. */
const nameTool = ({ server, tool }: Pick<ToolPin, 'server' | 'tool'>): string => JSON.stringify([server, tool]);
const nameRow = ({ server, tool, is }: PinRow): string => JSON.stringify(is === undefined ? [server, tool] : [server, tool, is]);
export const PINNED = recordCodec<PinRow>(
  z.object({ server: z.string(), tool: z.string(), hash: z.string(), text: z.string(), is: z.enum(['server', 'waiting']).optional() }),
  nameRow,
);

export function createPins(open: OpenCollection): Pins {
  const collect = (key: AgentKey) => open({ name: 'pins', key }, PINNED);
  return {
    async list(key) {
      const rows = (await collect(key).read(`read the pins of agent ${key.agent}`, 'refuse')).items;
      const toolsThat = (is: PinRow['is']): ToolPin[] =>
        rows.filter((row) => row.is === is).map(({ server, tool, hash, text }) => ({ server, tool, hash, text }));
      const servers = new Set(rows.filter(({ is }) => is !== 'waiting').map(({ server }) => server));
      return { accepted: toolsThat(undefined), waiting: toolsThat('waiting'), servers: [...servers] };
    },

    // All rows are looked at, and two that come first write the same row of the server, so that only one of them is.
    async acceptServer(key, server, pins) {
      const first = new Map(pins.toReversed().map((pin) => [nameTool(pin), pin]));
      await collect(key).change(`accept the MCP server ${server} of agent ${key.agent}`, (before) => {
        if (before.some((row) => row.server === server && row.is !== 'waiting')) return undefined;
        const others = before.filter((row) => row.server !== server);
        return [...others, { server, tool: '', hash: '', text: '', is: 'server' }, ...first.values()];
      });
    },

    async accept(key, pins) {
      if (pins.length === 0) return;
      const accepted = new Set(pins.map(nameTool));
      await collect(key).change(`accept ${pins.length} tools of agent ${key.agent}`, (before) => [
        ...before.filter((row) => row.is === 'server' || !accepted.has(nameTool(row))),
        ...pins,
      ]);
    },

    async wait(key, server, pins) {
      await collect(key).change(`note what waits of the MCP server ${server} of agent ${key.agent}`, (before) => [
        ...before.filter((row) => row.server !== server || row.is !== 'waiting'),
        ...pins.map((pin): PinRow => ({ ...pin, is: 'waiting' })),
      ]);
    },
  };
}

/** A sealed text for each server of a scope or a tenant. */
export const SIGN_INS = recordCodec(z.object({ id: z.string(), sealed: z.string() }), ({ id }) => id);

export function createSignIns(open: OpenCollection): SignIns {
  return {
    async read(of, id) {
      const { items } = await open({ name: 'sign-ins', key: of }, SIGN_INS).read(`read the sign-ins of ${of.owner}`, 'refuse', [id]);
      return items[0]?.sealed;
    },

    change: (of, id, decide) =>
      open({ name: 'sign-ins', key: of }, SIGN_INS).change(
        `write a sign-in of ${of.owner}`,
        (known) => {
          const sealed = decide(known[0]?.sealed);
          return sealed === undefined ? undefined : sealed === '' ? [] : [{ id, sealed }];
        },
        [id],
      ),

    async removeAll(of) {
      let removed = 0;
      await open({ name: 'sign-ins', key: of }, SIGN_INS).change(`remove the sign-ins of ${of.owner}`, (known) => {
        removed = known.length;
        return removed === 0 ? undefined : [];
      });
      return removed;
    },
  };
}
