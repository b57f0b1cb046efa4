/** What is remembered: by a conversation, and by a scope. */
import { z } from '@hono/zod-openapi';
import type { FoundInScope, Recalled, ScopeMemory } from '../../client.js';
import { ClientError } from '../../client/errors.js';
import { blame, countedChange, diffMemory } from '../../memory/documents/memory-diff.js';
import { MAX_MATCHES, MAX_QUERY, searchHistory, queryTerms } from '../../memory/documents/search-history.js';
import { type HistoryEntry, type MemoryChange, type MemoryText, NO_MEMORY_VERSION } from '../../records/memory/documents.js';
import { itemRecordSchema } from '../../records/memory/agent-memory.js';
import { compactionRecordSchema, episodeLinksSchema, episodicItemSchema, semanticItemSchema } from '../../records/memory/items.js';
import type { GatewayApp } from '../context.js';
import { add } from './operation.js';
import { openShape, toQuery, questionShape } from '../../memory/recall/question.js';
import { seconds } from './answers.js';
import { onConversation, scopeName, visibleText, whole, decimal } from './schemas.js';

const tag = 'memory';
const onScope = z.object({ scope: scopeName });
const scope = scopeName.default('default').openapi({ description: 'whose memory' });
const forgotten = z.strictObject({ text: visibleText(2_000) });
const [day = ''] = z.regexes.date.source.split('$');
const TIME = String.raw`(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?`;
/** What `questionShape` takes, in a form that the document can have. */
const moment = z
  .string()
  .regex(new RegExp(`${day}(?:[T ]${TIME})?$`), 'expected an ISO date or time, such as 2026-02-27 or 2026-02-27T14:30Z');
const when = ({ description = '' }: { readonly description?: string | undefined }) => moment.optional().openapi({ description });
const { after, before } = questionShape;
const version = z.string().regex(/^[\w:-]{1,128}$/);
const HISTORY_SHOWN = 200;

const texts = z.array(z.string());
const source = z
  .object({
    trust: z
      .union([z.enum(['user', 'model', 'person', 'file', 'application']), z.templateLiteral(['tool:', z.string()])])
      .openapi({ type: 'string', description: 'who stands behind it: user, model, person, file, application, or tool:NAME' }),
    conversation: z.string().optional(),
    turn_ids: texts.optional(),
    tools: texts.optional().openapi({ description: 'that the model had read before, or file or application' }),
  })
  .openapi('LineSource');
const sourced = { line: z.string(), source };
const proposal = z.object({ ...sourced, id: z.string(), ts: seconds, state: z.enum(['open', 'accepted', 'rejected']) }).openapi('Proposal');
const changeFields = { id: z.string(), ts: seconds, cause: z.enum(['consolidation', 'hand', 'accepted', 'forgotten', 'care']) };
const change = z
  .object({ ...changeFields, from: z.string(), version: z.string(), lines: z.array(z.object(sourced)), added: z.int(), removed: z.int() })
  .openapi('MemoryChange');
const blamed = z
  .object({ ...sourced, number: z.int(), change: z.object(changeFields).optional() })
  .openapi('BlamedLine', { description: 'one that no change names a person wrote' });
const historyEntry = z
  .object({ id: z.string(), kind: z.enum(['summary', 'raw-fallback']), ts: seconds, text: z.string() })
  .openapi('HistoryEntry');
const fact = z
  .object({
    ...semanticItemSchema.shape,
    batch: z.string().nullable(),
    source: z.object({ conversation: z.string(), turn_ids: texts, tools: texts.optional() }).nullable(),
    replaced: z.object({ by: z.string().nullable(), ts: seconds }).optional().openapi({ description: 'it counts no longer' }),
  })
  .openapi('Fact');
const episode = z
  .object({
    ...episodicItemSchema.shape,
    ...episodeLinksSchema.shape,
    session: z.int(),
    epoch: z.int(),
    slots: z.array(z.array(z.int())).openapi({ description: 'first and last of each range' }),
    made: compactionRecordSchema.optional(),
  })
  .openapi('Episode');
const { v: _, ...itemFields } = itemRecordSchema.shape;
const item = z.object(itemFields).openapi('MemoryItem');

const recalled = z
  .object({
    scope: z.string().openapi({ description: 'for /v1/search/open, beside the address' }),
    address: z.string().openapi({ description: 'for /v1/search/open' }),
    kind: z.string(),
    ts: z.number().openapi({ description: 'seconds since 1970; 0 where nothing dates it' }),
    conversation: z.string().optional(),
    turn: z.string().optional(),
    speaker: z.string(),
    trust: z
      .string()
      .openapi({ description: 'user, model, person, or what is not to be trusted: file (attached or quoted), application, tool:NAME' }),
    tools: texts.optional().openapi({ description: 'that the model had read before: then it is not to be trusted either' }),
    text: z.string(),
    files: z.int().optional().openapi({ description: 'how many pictures and documents came with it' }),
    isPart: z.literal(true).optional().openapi({ description: 'there is more of the text' }),
    marks: z.array(z.array(z.int())).openapi({ description: 'where words of the question stand in it: [start, end) in UTF-16 units' }),
    score: z.number(),
    confidence: z.number().openapi({ description: '0 to 1: how much of the question its own words are' }),
  })
  .openapi('Recalled');

export function addMemory(app: GatewayApp): void {
  add(app, {
    name: 'getConversationMemory',
    method: 'get',
    path: '/v1/conversations/{id}/memory',
    tag,
    summary: 'Summaries of its turns, and the facts of its scope',
    params: onConversation,
    answer: z.object({ episodes: z.array(episode), facts: z.array(fact), skipped: z.int() }),
    act: ({ client }, { params: { id } }) => client.memory(id),
  });
  add(app, {
    name: 'listItems',
    method: 'get',
    path: '/v1/conversations/{id}/items',
    tag,
    summary: 'What is in its memory channel, without the contents',
    params: onConversation,
    answer: z.object({ items: z.array(item), skipped: z.int() }),
    act: ({ client }, { params: { id } }) => client.items(id),
  });
  add(app, {
    name: 'getItem',
    method: 'get',
    path: '/v1/conversations/{id}/items/{item}',
    tag,
    summary: 'One item of its memory channel, with its text',
    params: onConversation.extend({ item: z.string().max(128) }),
    answer: z.object({ ...itemFields, text: z.string() }),
    act: ({ client }, { params: { id, item } }) => client.item(id, item),
  });
  add(app, {
    name: 'getMemory',
    method: 'get',
    path: '/v1/memory/{scope}',
    tag,
    summary: 'MEMORY.md of a scope, its facts, and the latest of its HISTORY',
    role: 'operator',
    params: onScope,
    answer: z.object({
      text: z.object({ version: z.string(), text: z.string() }),
      facts: z.array(fact),
      history: z.array(historyEntry),
      proposals: z.array(proposal),
    }),
    act: async ({ client }, { params: { scope } }) => {
      const memory = client.scope(scope);
      const [text, facts, proposals] = await Promise.all([memory.text(), memory.facts(), memory.proposals()]);
      const history: HistoryEntry[] = [];
      for await (const one of await memory.history()) if (history.push(one) >= HISTORY_SHOWN) break;
      return { text, facts, history, proposals };
    },
  });
  add(app, {
    name: 'search',
    method: 'post',
    path: '/v1/search',
    tag,
    summary: 'Messages and memories, found by a question: in a scope, the best first, or in all, scope by scope',
    role: 'operator',
    body: z.strictObject({
      scope: scopeName.optional().openapi({ description: 'whose memory; without it, that of all' }),
      ...{ ...questionShape, after: when(after), before: when(before) },
    }),
    answer: z.object({ hits: z.array(recalled), notes: z.array(z.string()).optional() }),
    act: async ({ client }, { body: { scope, ...terms } }) => {
      const { question, ...query } = toQuery(terms, new Date());
      const notes: string[] = [];
      const options = { ...query, onNote: (note: string) => notes.push(note) };
      const hits =
        scope === undefined ? await client.search(question, options) : await inScope(client.scope(scope).search(question, options), scope);
      return { hits, ...(notes.length > 0 && { notes }) };
    },
  });
  add(app, {
    name: 'listScopes',
    method: 'get',
    path: '/v1/scopes',
    tag,
    summary: 'Scopes that have messages or memories',
    role: 'operator',
    answer: z.object({ scopes: texts }),
    act: async ({ client }) => ({ scopes: [...(await client.scopes())] }),
  });
  add(app, {
    name: 'openFound',
    method: 'post',
    path: '/v1/search/open',
    tag,
    summary: 'What was said at an address that a search has given, and around it',
    role: 'operator',
    body: z.strictObject({ scope, ...openShape }),
    answer: z.object({ hits: z.array(recalled) }),
    act: async ({ client }, { body: { scope, at, around } }) => ({ hits: await inScope(client.scope(scope).open(at, around), scope) }),
  });
  add(app, {
    name: 'forget',
    method: 'post',
    path: '/v1/memory/{scope}/forget',
    tag,
    summary: 'Remove every line and fact that says this, and keep it from coming back',
    role: 'operator',
    params: onScope,
    body: forgotten,
    answer: z.object({ lines: texts, facts: texts, proposals: texts }).openapi({ description: 'facts and proposals by their ids' }),
    act: ({ client }, { params: { scope }, body: { text } }) => client.scope(scope).forget(text),
  });
  add(app, {
    name: 'reviewProposal',
    method: 'post',
    path: '/v1/memory/{scope}/review',
    tag,
    summary: 'Accept or reject a line that waits for review',
    role: 'operator',
    params: onScope,
    body: z.strictObject({
      id: z
        .string()
        .regex(/^prop_\d{4,15}$/)
        .openapi({ example: 'prop_0001' }),
      decision: z.enum(['accept', 'reject']),
    }),
    answer: z.object({ id: z.string(), line: z.string(), state: z.enum(['accepted', 'rejected']) }),
    act: ({ client }, { params: { scope }, body: { id, decision } }) => client.scope(scope).review(id, decision),
  });
  addDocument(app);
}

async function inScope(hits: Promise<readonly Recalled[]>, scope: string): Promise<FoundInScope[]> {
  return (await hits).map((hit) => ({ ...hit, scope }));
}

/** The changes that made MEMORY.md, and its earlier texts. */
function addDocument(app: GatewayApp): void {
  const role = 'operator';
  add(app, {
    name: 'blameMemory',
    method: 'get',
    path: '/v1/memory/{scope}/blame',
    tag,
    summary: 'MEMORY.md line by line, each with who brought it and when',
    role,
    params: onScope,
    answer: z.object({ version: z.string(), lines: z.array(blamed) }),
    act: async ({ client }, { params: { scope } }) => {
      const { version, text, changes } = await readWhole(client.scope(scope));
      return { version, lines: blame(text, changes) };
    },
  });
  add(app, {
    name: 'listMemoryVersions',
    method: 'get',
    path: '/v1/memory/{scope}/changes',
    tag,
    summary: 'Versions of MEMORY.md, the newest first, with how many lines each brought and took',
    role,
    params: onScope,
    query: z.object({ limit: whole(1, 500).default(100).openapi({ default: 100 }) }),
    answer: z.object({ version: z.string(), changes: z.array(change), more: z.boolean() }),
    act: async ({ client }, { params: { scope }, query: { limit } }) => {
      const memory = client.scope(scope);
      const { version, changes } = await readWhole(memory);
      const newest = changes.slice(-limit).reverse();
      return { version, changes: await Promise.all(newest.map((one) => countedChange(memory, one))), more: changes.length > limit };
    },
  });
  add(app, {
    name: 'diffMemory',
    method: 'get',
    path: '/v1/memory/{scope}/diff',
    tag,
    summary: 'What is new, gone and the same between two versions; without `from`, by the change that made `to`',
    role,
    params: onScope,
    query: z.object({ from: version.optional(), to: version.optional() }),
    answer: z.object({
      from: z.string(),
      to: z.string(),
      lines: z.array(z.object({ kind: z.enum(['added', 'removed', 'kept']), line: z.string() })),
    }),
    act: async ({ client }, { params: { scope }, query }) => {
      const memory = client.scope(scope);
      const { version: present, changes } = await readWhole(memory);
      const to = query.to ?? present;
      const from = query.from ?? changes.findLast((change) => change.version === to)?.from ?? NO_MEMORY_VERSION;
      const [before, after] = await Promise.all([textOfVersion(memory, from), textOfVersion(memory, to)]);
      return { from, to, lines: diffMemory(before, after) };
    },
  });
  add(app, {
    name: 'listFacts',
    method: 'get',
    path: '/v1/memory/{scope}/facts',
    tag,
    summary: 'Facts of a scope; with `all`, those too that others have replaced, and by which',
    role,
    params: onScope,
    query: z.object({ all: z.enum(['true', 'false']).default('false') }),
    answer: z.object({ facts: z.array(fact) }),
    act: async ({ client }, { params: { scope }, query: { all } }) => ({ facts: await client.scope(scope).facts({ all: all === 'true' }) }),
  });
  add(app, {
    name: 'searchHistory',
    method: 'get',
    path: '/v1/memory/{scope}/history',
    tag,
    summary: 'Entries of HISTORY that have all the words, newest first; without words, all of them',
    role,
    params: onScope,
    query: z.object({
      query: z.string().max(MAX_QUERY).default(''),
      limit: whole(1, MAX_MATCHES).default(20).openapi({ default: 20 }),
      before: decimal(0).optional().openapi({ description: 'epoch seconds: entries from before it alone' }),
    }),
    answer: z.object({ entries: z.array(historyEntry), more: z.boolean() }),
    act: async ({ client }, { params: { scope }, query: { query, limit, before }, signal }) => {
      const history = await client.scope(scope).history();
      if (queryTerms(query).length > 0) {
        const { matches, more } = await searchHistory(history, { query, limit, signal, ...(before !== undefined && { before }) });
        return { entries: matches.map(({ excerpt, ...entry }) => ({ ...entry, text: excerpt })), more };
      }
      const entries: HistoryEntry[] = [];
      for await (const entry of history) {
        signal.throwIfAborted();
        if (before !== undefined && entry.ts >= before) continue;
        if (entries.push(entry) > limit) break;
      }
      return { entries: entries.slice(0, limit), more: entries.length > limit };
    },
  });
  add(app, {
    name: 'previewForget',
    method: 'post',
    path: '/v1/memory/{scope}/forget/preview',
    tag,
    summary: 'What `forget` would take out, by the same rule; nothing is changed',
    role,
    params: onScope,
    body: forgotten,
    answer: z.object({
      lines: texts,
      facts: z.array(z.object({ id: z.string(), fact: z.string() })),
      proposals: z.array(z.object({ id: z.string(), line: z.string() })),
      historyLines: z.int(),
    }),
    act: ({ client }, { params: { scope }, body: { text } }) => client.scope(scope).wouldForget(text),
  });
}

/** An edit by a person with an editor becomes a change when the text is read: so the text is read first. */
async function readWhole(memory: ScopeMemory): Promise<MemoryText & { readonly changes: readonly MemoryChange[] }> {
  const text = await memory.text();
  return { ...text, changes: await memory.changes() };
}

async function textOfVersion(memory: ScopeMemory, wanted: string): Promise<string> {
  const text = wanted === NO_MEMORY_VERSION ? '' : await memory.textOf(wanted);
  if (text !== undefined) return text;
  throw new ClientError(
    'not-found',
    `${memory.scope} has no version ${wanted.slice(0, 12)} of MEMORY.md, or its text is not kept any more`,
  );
}
