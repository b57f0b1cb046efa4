/**
 * A project's `perdura.config.cjs`: `render`, which must not run twice, and `sketch`, which may, run where a worker of their task queue is.
 * Each beginning is a line with its process in the file LEDGER; a run ends only when `<LEDGER>.go` is there.
 */
const { appendFileSync, existsSync } = require('node:fs');
const { join } = require('node:path');
const product = join(process.env.PERDURA_TEST_PRODUCT, 'dist');
const { z } = require(require.resolve('zod', { paths: [product] }));
const { defineTool } = require(join(product, 'tools', 'define-tool.js'));

const ledger = process.env.LEDGER;

function elsewhere(name, repeatable) {
  return defineTool({
    name,
    description: 'Takes a machine with a GPU.',
    input: z.object({ item: z.string() }),
    policy: { repeatable, timeoutMs: 120_000, taskQueue: `${process.env.PERDURA_TASK_QUEUE}-gpu` },
    async run({ item }, { callId, signal }) {
      appendFileSync(ledger, `${JSON.stringify({ what: 'start', name, item, callId, pid: process.pid })}\n`);
      while (!existsSync(`${ledger}.go`)) {
        if (signal.aborted) return { ok: false, error: 'stopped' };
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return `${name}: ${item}`;
    },
  });
}

module.exports = { tools: [elsewhere('render', false), elsewhere('sketch', true)] };
