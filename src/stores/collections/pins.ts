/** What is accepted of MCP servers: of each agent's. */
import { decodeRecord, encodeRecord } from '../codecs/document-codec.js';
import { pinField, pinSchema } from '../codecs/entry-codec.js';
import type { OpenCollection, RecordCodec } from './collection.js';
import type { AgentKey, Pins, ToolPin } from '../store.js';

const PINS: RecordCodec<ToolPin> = { idOf: pinField, encode: encodeRecord, decode: (text) => decodeRecord(pinSchema, text) };

export function createPins(open: OpenCollection): Pins {
  const of = (key: AgentKey) => open({ name: 'pins', key }, PINS);
  return {
    async list(key) {
      return [...(await of(key).read(`read the pins of agent ${key.agent}`, 'refuse')).items];
    },

    async pin(key, pins) {
      if (pins.length === 0) return;
      await of(key).change(`pin ${pins.length} tools of agent ${key.agent}`, (before) => {
        const known = new Set(before.map(pinField));
        const fresh = pins.filter((pin) => !known.has(pinField(pin)));
        return fresh.length === 0 ? undefined : [...before, ...fresh];
      });
    },

    async accept(key, pins) {
      if (pins.length === 0) return;
      const accepted = new Set(pins.map(pinField));
      await of(key).change(`accept ${pins.length} tools of agent ${key.agent}`, (before) => [
        ...before.filter((pin) => !accepted.has(pinField(pin))),
        ...pins,
      ]);
    },
  };
}
