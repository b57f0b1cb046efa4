/** What is accepted of MCP servers, in `<dir>/pins/<agent>.jsonl`: a small file, written whole. */
import { join } from 'node:path';
import { decodeRecord, encodeRecord } from '../codecs/document-codec.js';
import { describeErrors } from './errors.js';
import { changeList, readList, type ListFile } from './lists.js';
import { toFileName } from './paths.js';
import { pinField, pinSchema } from '../codecs/entry-codec.js';
import type { AgentKey, Pins, ToolPin } from '../store.js';

export function createFilePins(dir: string): Pins {
  const fileOf = ({ agent }: AgentKey): ListFile<ToolPin> => {
    const path = join(dir, 'pins', toFileName(agent));
    return { path: `${path}.jsonl`, lock: `${path}.lock`, encode: encodeRecord, decode: (line) => decodeRecord(pinSchema, line) };
  };
  return {
    async list(key) {
      const file = fileOf(key);
      return [...(await describeErrors(file.path, `read the pins of agent ${key.agent}`, () => readList(file))).items];
    },

    async pin(key, pins) {
      if (pins.length === 0) return;
      const file = fileOf(key);
      await describeErrors(file.path, `pin ${pins.length} tools of agent ${key.agent}`, () =>
        changeList(file, (before) => {
          const known = new Set(before.map(pinField));
          const fresh = pins.filter((pin) => !known.has(pinField(pin)));
          return fresh.length === 0 ? undefined : [...before, ...fresh];
        }),
      );
    },

    async accept(key, pins) {
      if (pins.length === 0) return;
      const file = fileOf(key);
      const accepted = new Set(pins.map(pinField));
      await describeErrors(file.path, `accept ${pins.length} tools of agent ${key.agent}`, () =>
        changeList(file, (before) => [...before.filter((pin) => !accepted.has(pinField(pin))), ...pins]),
      );
    },
  };
}
