/** Seed 003's table on real bytes: 20 iterations of an 8 KB search and three 50 KB pages in one turn, with the memory channel and without. */
import { z } from 'zod';
import { renderRequest } from '../../src/models/anthropic/render.js';
import type { Model, ModelResponse } from '../../src/models/model.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { FINDING } from '../bodies.js';
import { withOwnWorker } from '../own-worker.js';
import type { Row } from '../row.js';

const ITERATIONS = 20;
const SEARCH_BYTES = 8 * 1024;
const PAGE_BYTES = 50 * 1024;
const MAX_BYTES = 50 * 1024;
const MIN_SAVED = 0.99;

const policy = { repeatable: true, quick: false, timeoutMs: 60_000 };
const search = defineTool({
  name: 'search_web',
  description: 'Searches.',
  input: z.object({ query: z.string() }),
  policy,
  run: ({ query }) => `${query}\n${FINDING.repeat(4)}`.slice(0, SEARCH_BYTES),
});
const page = defineTool({
  name: 'fetch_page',
  description: 'Fetches a page.',
  input: z.object({ url: z.string() }),
  policy,
  run: ({ url }) => `${url}\n${FINDING.repeat(25)}`.slice(0, PAGE_BYTES),
});

interface Prompt {
  readonly request: number;
  readonly conversation: number;
}

export const memoryChannel: Row = {
  name: 'memory-channel',
  async measure({ temporal, product: productOf }) {
    const { options } = await productOf('file');
    const prompts: Prompt[] = [];
    // Room for what it takes without.
    const agent = (enabled: boolean): object => ({
      tools: ['search_web', 'fetch_page'],
      memory: { enabled, memoryWindow: 10_000 },
      context: { maxTokens: 2_000_000, advanced: { softThreshold: 1_700_000, hardThreshold: 1_800_000, truncationThreshold: 1_900_000 } },
    });
    const needs = {
      ...{ temporal, options, taskQueue: 'memory-channel', agents: { with: agent(true), without: agent(false) }, tools: [search, page] },
      model: researcher((prompt) => prompts.push(prompt)),
    };
    return withOwnWorker(needs, async (client) => {
      const talk = async (
        agent: string,
      ): Promise<{ readonly carried: Prompt; readonly calls: readonly Prompt[]; readonly seconds: number }> => {
        const { id } = await client.start(undefined, { agent });
        prompts.splice(0);
        const begin = performance.now();
        await client.send(id, 'research');
        const seconds = (performance.now() - begin) / 1000;
        // What a prompt carries when nothing in it is new.
        await client.send(id, 'and?');
        return { carried: prompts.at(-1) ?? { request: 0, conversation: 0 }, calls: prompts.slice(1, -1), seconds };
      };
      const [ours, without] = [await talk('with'), await talk('without')];
      const saved = 1 - ours.carried.conversation / without.carried.conversation;
      const largest = Math.max(...ours.calls.map(({ request }) => request));
      return [
        {
          row: `memory-channel: prompt after ${ITERATIONS} iterations`,
          product: ours.carried.request,
          floor: without.carried.request,
          unit: 'B',
          toHold: `< ${MAX_BYTES}`,
          holds: ours.carried.request < MAX_BYTES,
          notes: [
            'the floor is the same without the channel',
            `each call shows its new results whole, once: the largest prompt had ${largest} B`,
            `${ours.seconds.toFixed(1)} s, without ${without.seconds.toFixed(1)} s`,
          ],
        },
        {
          row: 'memory-channel: less conversation than without',
          product: 100 * saved,
          unit: '%',
          toHold: '≥ 99 %',
          holds: saved >= MIN_SAVED,
        },
      ];
    });
  },
};

/** Searches and reads three pages, twenty times, then answers. Counts what it is sent. */
function researcher(onPrompt: (prompt: Prompt) => void): Model {
  return {
    provider: 'anthropic',
    stream(request): Promise<ModelResponse> {
      const rendered = renderRequest(request);
      onPrompt({ request: bytesOf(rendered), conversation: bytesOf(rendered.messages) });
      const usage = { inputTokens: Math.ceil(bytesOf(rendered) / 4), cachedTokens: 0, outputTokens: 100 };
      const iteration = request.messages.filter(({ role }) => role === 'assistant').length + 1;
      if (iteration > ITERATIONS) return Promise.resolve({ blocks: [{ kind: 'text', text: 'Read all.' }], stop: 'end', usage });
      const calls = [
        { name: 'search_web', input: { query: `tides and berths, number ${iteration}` } },
        ...[1, 2, 3].map((n) => ({ name: 'fetch_page', input: { url: `https://example.org/harbour/${iteration}/${n}` } })),
      ];
      const blocks = calls.map((call, n) => ({ kind: 'tool-call' as const, callId: `toolu_${n}`, ...call }));
      return Promise.resolve({ blocks, stop: 'tool-calls', usage });
    },
  };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
