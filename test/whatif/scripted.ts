/** A model and tools that do what messages ask for, `#book tea`, `#pay 5`: the same answer to the same request. */
import { z } from 'zod';
import type { ModelRequest } from '../../src/models/model.js';
import { shownText } from '../../src/records/message.js';
import { callTool, callTools, createScriptedModel, type ScriptedLine, type ScriptedModel } from '../../src/testing/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { Tool } from '../../src/tools/tool.js';

/** How often a tool has run, and how many answers were begun that do not end by themselves. */
export interface Counts {
  ran: number;
  held: number;
}

export function createTools(counts: Counts): Tool[] {
  const count = (): number => (counts.ran += 1);
  return [
    defineTool({
      name: 'book',
      description: 'Books.',
      input: z.object({ what: z.string() }),
      policy: { repeatable: true, quick: true },
      run: ({ what }) => `booked ${what}, ${count()} in all`,
    }),
    defineTool({
      name: 'fetch',
      description: 'Takes a while, and says much.',
      input: z.object({ what: z.string() }),
      run: ({ what }) => `${count()}: ${`${what} by the harbour, `.repeat(1_500)}`,
    }),
    defineTool({
      name: 'change',
      description: 'Changes what tools share.',
      input: z.object({}),
      policy: { repeatable: true },
      run: (_, { context }) => {
        count();
        return { ok: true, content: `count was ${String(context['count'])}`, context: { count: Number(context['count'] ?? 0) + 1 } };
      },
    }),
    defineTool({
      name: 'breaks',
      description: 'Throws.',
      input: z.object({}),
      run: () => {
        throw new Error(`broken ${count()} times`);
      },
    }),
    defineTool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({ cents: z.int() }),
      policy: { approval: 'ask' },
      run: ({ cents }) => `paid ${cents}, ${count()} in all`,
    }),
  ];
}

export function createModel(counts: Counts): ScriptedModel {
  return createScriptedModel(answerWith(counts));
}

export function answerWith(counts: Counts): (request: ModelRequest) => ScriptedLine | Promise<ScriptedLine> {
  return ({ messages, system }) => {
    if (system.includes('You condense a part of a conversation')) return `A summary of ${messages.length}.`;
    const last = messages.at(-1);
    if (last?.role === 'tool') return `The result was: ${shownText(last.text).slice(0, 200)}`;
    const text = last?.role === 'user' ? shownText(last.text) : '';
    const [, command, rest = ''] = [...text.matchAll(/#(\w+) ?(.*)/g)].at(-1) ?? [];
    switch (command) {
      case 'book':
      case 'fetch':
        return callTool(command, { what: rest });
      case 'both':
        return callTools(
          { name: 'book', input: { what: 'a' } },
          { name: 'fetch', input: { what: 'b' } },
          { name: 'book', input: { what: 'a' } },
        );
      case 'change':
      case 'breaks':
        return callTool(command);
      case 'pay':
        return callTool('pay', { cents: Number(rest) });
      case 'ask':
        return callTool('ask_user', { question: 'Which one?' });
      case 'keep':
        return callTool('store_in_memory', { content: rest, type: 'custom' });
      case 'delegate':
        return callTool('delegate', { task: `#${rest}` });
      case 'hold':
        return new Promise(() => void (counts.held += 1));
      default:
        return `You said: ${text.slice(0, 100)} (${messages.length} messages)`;
    }
  };
}
