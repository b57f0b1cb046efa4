/** The accepted tools of each agent's MCP servers. */
import { z } from 'zod';
import { addOnce, recordCodec, type OpenCollection } from './collection.js';
import type { AgentKey, Pins, ToolPin } from '../store.js';

/** A unique name of one tool of one server, for names of any characters. */
const nameTool = ({ server, tool }: Pick<ToolPin, 'server' | 'tool'>): string => JSON.stringify([server, tool]);
const PINS = recordCodec<ToolPin>(z.object({ server: z.string(), tool: z.string(), hash: z.string(), text: z.string() }), nameTool);

export function createPins(open: OpenCollection): Pins {
  const collect = (key: AgentKey) => open({ name: 'pins', key }, PINS);
  return {
    async list(key) {
      return [...(await collect(key).read(`read the pins of agent ${key.agent}`, 'refuse')).items];
    },

    async pin(key, pins) {
      if (pins.length === 0) return;
      await addOnce(collect(key), nameTool, `pin ${pins.length} tools of agent ${key.agent}`, ...pins);
    },

    async accept(key, pins) {
      if (pins.length === 0) return;
      const accepted = new Set(pins.map(nameTool));
      await collect(key).change(`accept ${pins.length} tools of agent ${key.agent}`, (before) => [
        ...before.filter((pin) => !accepted.has(nameTool(pin))),
        ...pins,
      ]);
    },
  };
}
