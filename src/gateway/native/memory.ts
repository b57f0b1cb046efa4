/** What is remembered: by a conversation, and by a scope. */
import { z } from '@hono/zod-openapi';
import type { GatewayApp } from '../context.js';
import { add } from './operation.js';
import { openShape, queryOf, questionShape } from '../../memory/recall/question.js';
import { anything, onConversation, recalled } from './schemas.js';

const tag = 'memory';
const onScope = z.object({ scope: z.string().min(1).max(64) });
const scopeName = z.string().min(1).max(64).default('default').openapi({ description: 'whose memory' });
const HISTORY_SHOWN = 200;

export function addMemory(app: GatewayApp): void {
  add(app, {
    method: 'get',
    path: '/v1/conversations/{id}/memory',
    tag,
    summary: 'Summaries of its turns, and the facts of its scope',
    params: onConversation,
    answer: z.object({ episodes: z.array(anything), facts: z.array(anything), skipped: z.int() }),
    act: ({ client }, { params: { id } }) => client.memory(id),
  });
  add(app, {
    method: 'get',
    path: '/v1/conversations/{id}/items',
    tag,
    summary: 'What is in its memory channel, without the contents',
    params: onConversation,
    answer: z.object({ items: z.array(anything), skipped: z.int() }),
    act: ({ client }, { params: { id } }) => client.items(id),
  });
  add(app, {
    method: 'get',
    path: '/v1/conversations/{id}/items/{item}',
    tag,
    summary: 'One item of its memory channel, with its text',
    params: onConversation.extend({ item: z.string().max(128) }),
    answer: anything,
    act: ({ client }, { params: { id, item } }) => client.item(id, item),
  });
  add(app, {
    method: 'get',
    path: '/v1/memory/{scope}',
    tag,
    summary: 'MEMORY.md of a scope, its facts, and the latest of its HISTORY',
    role: 'operator',
    params: onScope,
    answer: z.object({ text: anything, facts: z.array(anything), history: z.array(anything), proposals: z.array(anything) }),
    act: async ({ client }, { params: { scope } }) => {
      const memory = client.scope(scope);
      const [text, facts, proposals] = await Promise.all([memory.text(), memory.facts(), memory.proposals()]);
      const history: unknown[] = [];
      for await (const one of await memory.history()) if (history.push(one) >= HISTORY_SHOWN) break;
      return { text, facts, history, proposals };
    },
  });
  add(app, {
    method: 'post',
    path: '/v1/search',
    tag,
    summary: 'What was said and is remembered in a scope, by a question, the best first',
    role: 'operator',
    body: z.strictObject({ scope: scopeName, ...questionShape }),
    answer: z.object({ scope: z.string(), hits: z.array(recalled), notes: z.array(z.string()).optional() }),
    act: async ({ client }, { body: { scope, ...asked } }) => {
      const { question, ...query } = queryOf(asked, new Date());
      const notes: string[] = [];
      const hits = await client.scope(scope).search(question, { ...query, onNote: (note) => notes.push(note) });
      return { scope, hits, ...(notes.length > 0 && { notes }) };
    },
  });
  add(app, {
    method: 'post',
    path: '/v1/search/open',
    tag,
    summary: 'What was said at an address that a search has given, and around it',
    role: 'operator',
    body: z.strictObject({ scope: scopeName, ...openShape }),
    answer: z.object({ scope: z.string(), hits: z.array(recalled) }),
    act: async ({ client }, { body: { scope, at, around } }) => ({ scope, hits: await client.scope(scope).open(at, around) }),
  });
  add(app, {
    method: 'post',
    path: '/v1/memory/{scope}/forget',
    tag,
    summary: 'Remove every line and fact that says this, and keep it from coming back',
    role: 'operator',
    params: onScope,
    body: z.strictObject({ text: z.string().min(1).max(10_000) }),
    answer: anything,
    act: ({ client }, { params: { scope }, body: { text } }) => client.scope(scope).forget(text),
  });
  add(app, {
    method: 'post',
    path: '/v1/memory/{scope}/review',
    tag,
    summary: 'Accept or reject a line that waits for review',
    role: 'operator',
    params: onScope,
    body: z.strictObject({ id: z.string().max(128), decision: z.enum(['accept', 'reject']) }),
    answer: anything,
    act: ({ client }, { params: { scope }, body: { id, decision } }) => client.scope(scope).review(id, decision),
  });
}
