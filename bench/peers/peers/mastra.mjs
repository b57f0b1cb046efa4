import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { LibSQLStore } from '@mastra/libsql';
import { Memory } from '@mastra/memory';
import { z } from 'zod';
import { INSTRUCTIONS } from '../workload.mjs';

const usage = {
  inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 80, text: 80, reasoning: 0 },
};

export async function open({ folder, workload, turns }) {
  const file = join(folder, 'memory.db');
  const answer = async (asked) => {
    const { text, call } = await workload.model(JSON.stringify(asked.prompt), asked.prompt.at(-1).role === 'tool');
    return text === undefined
      ? { part: { type: 'tool-call', toolCallId: call.id, toolName: call.name, input: JSON.stringify(call.input) }, reason: 'tool-calls' }
      : { part: { type: 'text', text }, reason: 'stop' };
  };
  const model = {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId: 'scripted',
    supportedUrls: {},
    async doGenerate(asked) {
      const { part, reason } = await answer(asked);
      return { content: [part], finishReason: { unified: reason, raw: reason }, usage, warnings: [] };
    },
    async doStream(asked) {
      const { part, reason } = await answer(asked);
      const text = [
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: part.text },
        { type: 'text-end', id: '1' },
      ];
      const parts = [{ type: 'stream-start', warnings: [] }, ...(part.type === 'text' ? text : [part])];
      parts.push({ type: 'finish', finishReason: { unified: reason, raw: reason }, usage });
      return { stream: ReadableStream.from(parts) };
    },
  };
  const storage = new LibSQLStore({ id: 'store', url: `file:${file}` });
  const lookup = createTool({
    id: 'lookup',
    description: 'look up an item',
    inputSchema: z.object({ q: z.string() }),
    execute: (input) => workload.tool(input.context ?? input),
  });
  const memory = new Memory({ storage, options: { lastMessages: 4 * turns + 100 } });
  const agent = new Agent({ id: 'agent', name: 'agent', instructions: INSTRUCTIONS, model, tools: { lookup }, memory });
  const asked = new Mastra({ agents: { agent }, storage, logger: false }).getAgent('agent');
  const turn = async (id, text) => (await asked.generate(text, { memory: { thread: id, resource: 'user' }, maxSteps: 5 })).text;
  return {
    turn,
    // An `Agent` has no turn to go on with: whoever asked asks again.
    resume: turn,
    storedBytes: async () => ['', '-wal'].reduce((sum, end) => sum + (existsSync(file + end) ? statSync(file + end).size : 0), 0),
    close: async () => {},
  };
}
