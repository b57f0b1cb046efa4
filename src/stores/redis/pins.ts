/** What is accepted of MCP servers, in Redis: a hash of each agent's. */
import { decodeRecord, encodeRecord } from '../codecs/document-codec.js';
import { pinField, pinSchema } from '../codecs/entry-codec.js';
import { pinsKeyOf } from './keys.js';
import type { RedisLink } from './link.js';
import type { Pins } from '../store.js';

export function createRedisPins(link: RedisLink): Pins {
  return {
    async list(key) {
      const texts = await link.ask(`read the pins of agent ${key.agent}`, (redis) => redis.hvals(pinsKeyOf(key)));
      return texts.flatMap((text) => decodeRecord(pinSchema, text) ?? []);
    },

    async pin(key, pins) {
      await link.ask(`pin ${pins.length} tools of agent ${key.agent}`, (redis) =>
        Promise.all(pins.map((pin) => redis.hsetnx(pinsKeyOf(key), pinField(pin), encodeRecord(pin)))),
      );
    },

    async accept(key, pins) {
      if (pins.length === 0) return;
      const fields = Object.fromEntries(pins.map((pin) => [pinField(pin), encodeRecord(pin)]));
      await link.ask(`accept ${pins.length} tools of agent ${key.agent}`, (redis) => redis.hset(pinsKeyOf(key), fields));
    },
  };
}
