/**
 * Loaded before a worker (`--require`): three tools with a side effect (`ship` can find out whether it was done), each step of it one line, fsynced, in the file LEDGER.
 * A run ends only when `<LEDGER>.go` is there, so that a test decides what happens in the middle of it.
 */
const { appendFileSync, existsSync, closeSync, fsyncSync, openSync, writeSync } = require('node:fs');
const { join } = require('node:path');
const product = join(process.env.PERDURA_TEST_PRODUCT, 'dist');
const { z } = require(require.resolve('zod', { paths: [product] }));
const { builtinTools } = require(join(product, 'tools', 'builtin', 'index.js'));
const { defineTool } = require(join(product, 'tools', 'define-tool.js'));

const ledger = process.env.LEDGER;

function write(what, name, item, callId) {
  const file = openSync(ledger, 'a');
  writeSync(file, JSON.stringify({ what, name, item, callId, pid: process.pid }) + '\n');
  fsyncSync(file);
  closeSync(file);
}

function sideEffect(name, repeatable, more = {}) {
  return defineTool({
    ...more,
    name,
    description: `Does something that shows in a ledger (${repeatable ? 'may' : 'must not'} run twice).`,
    input: z.object({ item: z.string(), ms: z.int().min(0).default(0).describe('How long it takes.') }),
    policy: { repeatable, timeoutMs: 120_000 },
    async run({ item, ms }, { callId, signal }) {
      write('start', name, item, callId);
      while (!existsSync(`${ledger}.go`)) {
        if (signal.aborted) return { ok: false, error: 'stopped' };
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      await new Promise((resolve) => setTimeout(resolve, ms));
      write('end', name, item, callId);
      return `done: ${item}`;
    },
  });
}

appendFileSync(ledger, '');
/** Done, as far as the world knows: `<LEDGER>.shipped` is there. */
const verify = () => (existsSync(`${ledger}.shipped`) ? { done: true, content: 'it was shipped' } : { done: false });
builtinTools.push(sideEffect('note', true), sideEffect('pay', false), sideEffect('ship', false, { verify }));
