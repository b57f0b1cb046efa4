/** Tools of a server of the official SDK that no provider takes as they are: they keep their arguments, and their calls arrive. */
import { join } from 'node:path';
import { toToolSchema } from '../../../src/models/tool-schema.js';
import type { Tool } from '../../../src/tools/tool.js';
import { aBench, run, said, type Bench } from '../../support/mcp.js';
import {
  anthropicSchemaProblem,
  geminiSchemaProblem,
  ollamaSchemaProblem,
  openaiSchemaProblem,
} from '../../support/provider-apis/check-tool-schema.js';

let bench: Bench;
let tools: ReadonlyMap<string, Tool>;

beforeAll(async () => {
  bench = aBench();
  const server = { command: process.execPath, args: [join(__dirname, '../../support/branching-mcp-server.cjs')] };
  tools = new Map((await bench.tools({ it: server })).map((tool) => [tool.name.replace('mcp__it__', ''), tool]));
});
afterAll(() => bench.close());

const named = (name: string): Tool => {
  const tool = tools.get(name);
  if (!tool) throw new Error(`no tool ${name}; there are ${[...tools.keys()].join(', ')}`);
  return tool;
};

test('all of them are offered, as each provider takes them', () => {
  expect([...tools.keys()].sort()).toEqual(['analyse', 'list_apps', 'nothing', 'span']);
  for (const { inputSchema } of tools.values()) {
    expect([anthropicSchemaProblem, openaiSchemaProblem].map((problem) => problem(toToolSchema(inputSchema, 'full')))).toEqual([
      undefined,
      undefined,
    ]);
    expect(geminiSchemaProblem(toToolSchema(inputSchema, 'gemini'))).toBeUndefined();
    expect(ollamaSchemaProblem(toToolSchema(inputSchema, 'ollama'))).toBeUndefined();
  }
});

test('one with branches at the top has the arguments of all, and is held to them as the server wrote them', async () => {
  const analyse = named('analyse');
  expect(toToolSchema(analyse.inputSchema, 'full')).toMatchObject({
    description: 'Give exactly one of these: (video_input_id), (youtube_url).',
    properties: { video_input_id: { type: 'string' }, youtube_url: { type: 'string' } },
  });
  expect(await analyse.schemaViolation?.({ youtube_url: 'https://y.test/1' })).toBeUndefined();
  expect(await analyse.schemaViolation?.({ youtube_url: 'x', video_input_id: 'y' })).toContain('must match exactly one schema in oneOf');
  expect(said(await run(analyse, { youtube_url: 'https://y.test/1' }))).toBe('["analyse",{"youtube_url":"https://y.test/1"}]');
});

test('names of arguments that a provider refuses are others for the model, and the server’s again in its call', async () => {
  const list = named('list_apps');
  expect(list.inputSchema).toMatchObject({
    properties: { filter_name_: { type: 'string' }, limit: { type: 'integer' } },
    required: ['filter_name_'],
  });
  expect(said(await run(list, { filter_name_: 'mail', limit: 2 }))).toBe('["list_apps",{"filter[name]":"mail","limit":2}]');
});

test('a tuple of an older draft is one of 2020-12', () => {
  expect(named('span').inputSchema).toEqual({
    type: 'object',
    properties: { span: { type: 'array', prefixItems: [{ type: 'integer' }, { type: 'integer' }], items: false } },
  });
});
