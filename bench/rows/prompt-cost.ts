/** What prompts cost with the provider's cache, by its published rules (memory/prompt-cache.ts), as a share of what they would cost without. */
import { z } from 'zod';
import type { PerduraClient } from '../../src/client.js';
import { renderRequest } from '../../src/models/anthropic/render.js';
import type { Model, ModelRequest } from '../../src/models/model.js';
import type { AssistantBlock } from '../../src/records/message.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createPromptCache } from '../memory/prompt-cache.js';
import { withOwnWorker } from '../own-worker.js';
import type { Measured, Row } from '../row.js';

/** Milliseconds between two requests, by the simulator's clock. */
const BETWEEN = 20_000;
const MAX_MORE = 0.03;
/** Messages, so that the turns of a disturbed conversation have three consolidations. */
const WINDOW = 30;

interface Script {
  readonly name: string;
  readonly turns: number;
  /** Calls of a tool in each turn. */
  readonly rounds: number;
  readonly most: number;
  /** A tool loop is one turn: nothing is consolidated in it. */
  readonly isDisturbed?: true;
}

const SCRIPTS: readonly Script[] = [
  { name: 'small talk', turns: 60, rounds: 0, most: 0.15 },
  { name: '60 working turns', turns: 60, rounds: 1, most: 0.18 },
  { name: 'a tool loop', turns: 1, rounds: 60, most: 0.25 },
  { name: '60 working turns', turns: 60, rounds: 1, most: 0.18, isDisturbed: true },
];

const look = defineTool({
  name: 'look',
  description: 'Looks at a page of the log.',
  input: z.object({ page: z.number().int() }),
  policy: { repeatable: true, quick: true, timeoutMs: 10_000 },
  run: ({ page }) => `Page ${page}: ${'the harbour was quiet and the crane stood still. '.repeat(12)}`,
});

export const promptCost: Row = {
  name: 'prompt-cost',
  async measure({ temporal, product: productOf }) {
    const { options } = await productOf('file');
    const rows: Measured[] = [];
    let calm = 0;
    for (const [n, script] of SCRIPTS.entries()) {
      const { model, shares } = createCountingModel(script);
      const agents = {
        default: { memory: { memoryWindow: script.isDisturbed ? WINDOW : 10_000, keepCount: 10 }, limits: { maxToolRounds: 100 } },
      };
      const { written, changes } = await withOwnWorker(
        { temporal, options, taskQueue: `prompt-cost-${n}`, agents, tools: [look], model },
        (client) => talk(client, script, `cost-${n}`),
      );
      const { share, requests } = shares();
      if (script.rounds === 1 && !script.isDisturbed) calm = share;
      const toHold = script.isDisturbed ? `≤ ${100 * MAX_MORE} % more than undisturbed` : `≤ ${100 * script.most} %`;
      rows.push({
        row: `prompt-cost: ${script.name}${script.isDisturbed ? ', with consolidations and a sibling’s /new' : ''}`,
        ...{ product: 100 * share, unit: '% of uncached', toHold },
        holds: script.isDisturbed ? share - calm <= MAX_MORE : share <= script.most,
        notes: [`${requests} requests; MEMORY.md was written ${written} times, and the beginning of the prompt changed ${changes} times`],
      });
    }
    return rows;
  },
};

async function talk(
  client: PerduraClient,
  { turns, isDisturbed }: Script,
  scope: string,
): Promise<{ readonly written: number; readonly changes: number }> {
  const { id } = await client.start(undefined, { scope });
  for (let turn = 1; turn <= turns; turn++) {
    await client.send(id, `MAIN turn ${turn}: ${'how is the harbour today, and what is left to do there? '.repeat(3)}`);
    if (!isDisturbed || turn !== Math.floor(turns / 2)) continue;
    const { id: sibling } = await client.start(undefined, { scope });
    await client.send(sibling, 'SIBLING: the lighthouse is white.');
    await client.reset(sibling);
  }
  const { context } = await client.status(id);
  return { written: (await client.scope(scope).changes()).length, changes: context.prefixChanges };
}

function createCountingModel({ rounds }: Script): {
  readonly model: Model;
  readonly shares: () => { readonly share: number; readonly requests: number };
} {
  const bill = createPromptCache();
  let [cost, uncached, requests, learned] = [0, 0, 0, 0];
  const model: Model = {
    provider: 'anthropic',
    stream(request) {
      if (request.tools.length === 0) return Promise.resolve(says(JSON.stringify(consolidated(request, ++learned))));
      const words = JSON.stringify(request.messages);
      if (words.includes('MAIN turn')) {
        const billed = bill(renderRequest(request), requests++ * BETWEEN);
        cost += billed.cost;
        uncached += billed.read + billed.written + billed.plain;
      }
      const asked = request.messages.findLastIndex((message) => message.role === 'user' && message.from === undefined);
      const done = request.messages.slice(asked).filter(({ role }) => role === 'tool').length;
      if (done < rounds && words.includes('MAIN turn')) return Promise.resolve(calls(done + 1));
      return Promise.resolve(says(`It is quiet, and nothing is left to do. ${'The crane stands still. '.repeat(8)}`));
    },
  };
  return { model, shares: () => ({ share: cost / uncached, requests }) };
}

function consolidated({ messages }: ModelRequest, learned: number): object {
  const text = messages.map((message) => (message.role === 'user' && typeof message.text === 'string' ? message.text : '')).join('\n');
  const known = [...new Set(text.match(/^- Fact \d+ of the harbour\.$/gm))];
  return {
    history_entry: '[2026-11-27 10:00] Talk about the harbour.',
    memory_update: [...known, `- Fact ${learned} of the harbour.`].join('\n'),
  };
}

function says(text: string): Awaited<ReturnType<Model['stream']>> {
  return answerOf({ kind: 'text', text }, 'end');
}

function calls(page: number): Awaited<ReturnType<Model['stream']>> {
  return answerOf({ kind: 'tool-call', callId: 'toolu_1', name: 'look', input: { page } }, 'tool-calls');
}

function answerOf(block: AssistantBlock, stop: 'end' | 'tool-calls'): Awaited<ReturnType<Model['stream']>> {
  return { blocks: [block], stop, usage: { inputTokens: 1_000, cachedTokens: 0, outputTokens: 50 } };
}
