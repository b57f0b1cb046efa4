import { z } from 'zod';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createToolRegistry, findToolQueue, UnknownTools } from '../../src/tools/tool.js';
import type { Tool } from '../../src/tools/tool.js';

const named = (name: string): Tool => defineTool({ name, description: `Does ${name}.`, input: z.object({}), run: () => name });
const [a, b, c] = [named('a'), named('b'), named('c')];

describe('the queue of a worker of some tools', () => {
  const at = (name: string, taskQueue?: string): Tool =>
    defineTool({ name, description: `Does ${name}.`, input: z.object({}), policy: { ...(taskQueue && { taskQueue }) }, run: () => name });
  const tools = [at('plain'), at('render', 'gpu'), at('bake', 'gpu'), at('browse', 'browser'), at('here', 'perdura')];

  it('is that of all its tools', () => {
    expect(findToolQueue(tools, ['bake', 'render'], 'perdura')).toBe('gpu');
    expect(findToolQueue(tools, ['browse', 'browse'], 'perdura')).toBe('browser');
  });

  it.each<[names: string[], words: string]>([
    [[], 'name at least one'],
    [['paint'], "paint is none of the project's tools, which are plain, render, bake, browse, here"],
    [['read_file'], "read_file is none of the project's tools"],
    [['plain'], 'plain has no task queue'],
    [['render', 'bake', 'browse'], 'they have different task queues (gpu, browser); start a worker for each'],
    [['render'], 'bake has the same task queue, gpu, so its calls come here too'],
    [['here'], 'their task queue, perdura, is that of conversations'],
  ])('of %j is refused in a sentence', (names, words) => {
    expect(() => findToolQueue(tools, names, 'perdura')).toThrow(words);
  });
});

describe('the registry', () => {
  it('finds a tool by name, and nothing by the names that every object answers to', () => {
    const registry = createToolRegistry([a]);

    expect(registry.find('a')).toBe(a);
    for (const name of ['', 'A', '__proto__', 'constructor', 'toString', 'hasOwnProperty']) expect(registry.find(name)).toBeUndefined();
  });

  it('can hold a tool named like such a name', () => {
    expect(createToolRegistry([named('constructor'), named('__proto__')]).names).toEqual(['__proto__', 'constructor']);
  });

  it('refuses two tools of one name', () => {
    expect(() => createToolRegistry([a, b, named('a')])).toThrow('two tools are named a');
  });

  it('describes all sorted by name, whatever the order they came in', () => {
    expect(createToolRegistry([c, a, b]).describe()).toEqual(createToolRegistry([b, c, a]).describe());
    expect(createToolRegistry([c, a, b]).describe()).toEqual(
      ['a', 'b', 'c'].map((name) => ({
        name,
        description: `Does ${name}.`,
        inputSchema: { type: 'object', properties: {}, additionalProperties: false },
      })),
    );
  });

  it('describes the named ones in the order given, each once', () => {
    const registry = createToolRegistry([a, b, c]);

    expect(registry.describe(['c', 'a', 'c']).map((tool) => tool.name)).toEqual(['c', 'a']);
    expect(registry.select([])).toEqual([]);
  });

  it('names the tools that an agent asks for and that are not here', () => {
    const registry = createToolRegistry([a, b]);

    expect(() => registry.select(['a', 'serach', 'constructor'])).toThrow(new UnknownTools(['serach', 'constructor'], ['a', 'b']));
    expect(() => registry.select(['serach'])).toThrow('no tool is named "serach"; there are: a, b');
  });
});

it('built-ins that change what another run would find are not repeated, and those that look at nothing outside are quick', () => {
  expect(builtinTools.map((tool) => [tool.name, tool.policy.repeatable, tool.policy.quick])).toEqual([
    ['ask_user', true, true],
    ['compact_context', true, true],
    ['delegate', false, false],
    ['edit_file', false, false],
    ['fetch_url', true, false],
    ['get_time', true, true],
    ['list_files', true, false],
    ['open_memory', true, false],
    ['query_memory', true, true],
    ['read_episode', true, true],
    ['read_file', true, false],
    ['retrieve_from_memory', true, false],
    ['run_command', false, false],
    ['search_files', true, false],
    ['search_history', true, false],
    ['search_memory', true, false],
    ['set_task', true, true],
    ['store_in_memory', true, true],
    ['wait_until', true, true],
    ['write_file', true, false],
  ]);
});
