/**
 * Loaded before a worker (`--require`): the tool `jot`, which rides and leaves a line in the file LEDGER for each run, and a store that
 * stands still where FREEZE_AT says, by conversation: `{ "c-1": [["commit", "turn_0002/m2", "after"]] }`. A call that stands still tells so
 * in the file `<LEDGER>.frozen` and never ends; for its conversation, a kill of the process is a kill at that very place. With a fourth
 * word, `thaws`, it goes on when the file `<LEDGER>.thaw` is there.
 */
const { appendFileSync, existsSync } = require('node:fs');
const { join } = require('node:path');
const product = join(process.env.PERDURA_TEST_PRODUCT, 'dist');
const { z } = require(require.resolve('zod', { paths: [product] }));
const { builtinTools } = require(join(product, 'tools', 'builtin', 'index.js'));
const { defineTool } = require(join(product, 'tools', 'define-tool.js'));
const opening = require.resolve(join(product, 'stores', 'open.js'));
const { openStore, ...others } = require(opening);

const ledger = process.env.LEDGER;
const frozenAt = JSON.parse(process.env.FREEZE_AT ?? '{}');

builtinTools.push(
  defineTool({
    name: 'jot',
    description: 'Leaves a line.',
    input: z.object({ item: z.string() }),
    policy: { repeatable: true, quick: true },
    run({ item }, { conversation, callId }) {
      appendFileSync(ledger, JSON.stringify({ conversation, callId, item, pid: process.pid }) + '\n');
      return `jotted ${item}`;
    },
  }),
);

/** `calls` says whether a call of this function is the one that is meant. */
function freezing(name, fn, calls) {
  return async (key, ...args) => {
    const points = (frozenAt[key.conversation] ?? []).filter(([method, id]) => method === name && calls(id, ...args));
    const standAt = async (moment) => {
      const point = points.find(([, , when]) => when === moment);
      if (!point || (point[3] === 'thaws' && existsSync(`${ledger}.thaw`))) return;
      appendFileSync(`${ledger}.frozen`, `${key.conversation} ${point.join(' ')}\n`);
      while (point[3] !== 'thaws' || !existsSync(`${ledger}.thaw`)) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await standAt('before');
    const result = await fn(key, ...args);
    await standAt('after');
    return result;
  };
}

require.cache[opening].exports = {
  ...others,
  openStore(...args) {
    const store = openStore(...args);
    const { writes, effects, entries } = store;
    return {
      ...store,
      writes: { ...writes, apply: freezing('write', writes.apply, (id, { reserve }) => reserve?.claim.id === id) },
      effects: { ...effects, commit: freezing('commit', effects.commit, (id, claim) => claim.id === id) },
      // What is asked for at once with all of the context is a request being made.
      entries: { ...entries, read: freezing('read', entries.read, (slot, slots) => slots.length > 1 && slots.includes(slot)) },
    };
  },
};
