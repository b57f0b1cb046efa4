/**
 * The native API: all that the client library can do, as REST and server-sent events, described by `/openapi.json`. Here also what it answers
 * about the whole installation: its workers, failures and findings, its agents, and who asks.
 */
import { z } from '@hono/zod-openapi';
import type { GatewayApp } from '../context.js';
import { addAttachments } from './attachments.js';
import { addControl } from './control.js';
import { addConversations, addLineage } from './conversations.js';
import { addInsight } from './insight.js';
import { addMemory } from './memory.js';
import { addTurns } from './turns.js';
import { ROLES } from '../access/principal.js';
import { add } from './operation.js';
import { GatewayError } from '../core/errors.js';
import { untenanted } from '../tenants/routes.js';
import { orNull, whole } from './schemas.js';

export function addNativeRoutes(app: GatewayApp): void {
  for (const add of [addConversations, addTurns, addAttachments, addControl, addLineage, addMemory, addInsight, addFleet, addMe]) add(app);
}

const me = z
  .object({
    name: z.string(),
    role: z.enum(ROLES),
    tenant: z.string().optional().openapi({ description: 'whose conversations it sees' }),
    scopes: z.array(z.string()).optional().openapi({ description: 'of a user: of its conversations and memory' }),
  })
  .openapi('Me');

function addMe(app: GatewayApp): void {
  add(app, {
    name: 'getMe',
    method: 'get',
    path: '/v1/me',
    summary: 'Who asks: the name of the token or user, its role, its tenant and its scopes',
    tag: 'gateway',
    answer: me,
    act: (_core, { context }) => {
      const { name, role, tenant, scopes } = context.get('principal');
      return Promise.resolve({ name, role, ...(tenant !== undefined && { tenant }), ...(scopes !== undefined && { scopes }) });
    },
  });
}

const tag = 'fleet';
const slots = z.object({ used: z.number(), free: z.number(), done: z.number(), failed: z.number() });
const worker = z
  .object({
    identity: z.string(),
    version: z.string().nullable(),
    lastSeen: z.string(),
    takes: z.array(z.enum(['decisions', 'activities'])),
    load: z
      .object({ activities: slots, decisions: slots, startedAt: z.string().nullable(), cached: z.number() })
      .nullable()
      .openapi({ description: 'as the worker itself reports it; null where it or the server is of a version that does not' }),
  })
  .openapi('Worker');
const queue = z.object({
  of: z.enum(['decisions', 'activities']),
  backlog: z.number(),
  oldestS: z.number(),
  comes: z.number().openapi({ description: 'tasks a second' }),
  goes: z.number(),
});
const failure = z
  .object({
    kind: z.string(),
    count: z.int(),
    message: z.string().openapi({ description: 'of the latest: what was attempted, on what, and what to do' }),
    isRetried: z.boolean(),
    conversations: z.array(z.string()),
  })
  .openapi('FailureGroup');
const finding = z
  .object({
    what: z.string(),
    health: z.enum(['ok', 'warning', 'broken', 'skipped']),
    found: z.string(),
    mend: z.string().optional().openapi({ description: 'the command that mends it, or the thing to do' }),
  })
  .openapi('Finding');
const anyObject = z.record(z.string(), z.unknown()) as unknown as z.ZodType<object>;
const schema = anyObject.openapi('JsonSchema', { description: 'a JSON Schema of arguments' });
const pin = z
  .object({ tool: z.string(), hash: z.string(), description: z.string().nullable(), inputSchema: orNull(schema) })
  .openapi('ServerToolPin');
const server = z
  .object({
    name: z.string(),
    type: z.string(),
    place: z.string().openapi({ description: 'its address, or its program without the arguments' }),
    variables: z.array(z.string()).openapi({ description: 'names of headers or environment variables, without values' }),
    pins: z.array(pin).openapi({ description: 'tools as they were accepted; without a description where the pin cannot be read' }),
    waiting: z
      .array(pin)
      .optional()
      .openapi({ description: 'tools that were added or have changed since: not offered until a person accepts them' }),
  })
  .openapi('McpServer');
const agent = z
  .object({
    name: z.string(),
    config: anyObject,
    tools: z.array(z.object({ name: z.string(), description: z.string(), inputSchema: schema, from: z.string() })),
    servers: z.array(server),
    system: z.string().openapi({ description: 'its system prompt, without any memory' }),
  })
  .openapi('Agent');

/** Workers, failures and findings of the installation; and what agents are. */
function addFleet(app: GatewayApp): void {
  add(app, {
    name: 'listWorkers',
    method: 'get',
    path: '/v1/workers',
    tag,
    summary: 'Who takes work from the task queue, and how much of it waits',
    role: 'operator',
    guard: untenanted,
    answer: z.object({ taskQueue: z.string(), workers: z.array(worker), queues: z.array(queue) }),
    act: ({ client }) => client.workers(),
  });
  add(app, {
    name: 'listFailures',
    method: 'get',
    path: '/v1/failures',
    tag,
    summary: 'What has failed among the latest conversations, by kind',
    role: 'operator',
    query: z.object({ limit: whole(1, 200).default(200).openapi({ default: 200 }) }),
    answer: z.object({ failures: z.array(failure), looked: z.int(), silent: z.int(), more: z.boolean() }),
    act: ({ client }, { query: { limit } }) => client.failures({ limit }),
  });
  add(app, {
    name: 'listFindings',
    method: 'get',
    path: '/v1/findings',
    tag,
    summary: 'What `perdura doctor` finds where this gateway runs',
    role: 'operator',
    guard: untenanted,
    answer: z.object({ findings: z.array(finding) }),
    act: async (_core, { context }) => ({ findings: await context.get('findings')() }),
  });
  add(app, {
    name: 'getAgent',
    method: 'get',
    path: '/v1/agents/{agent}',
    tag,
    summary: 'What an agent is made of: settings, tools with their schemas, MCP servers with what was accepted of them',
    role: 'operator',
    params: z.object({ agent: z.string().min(1).max(64) }),
    answer: agent,
    act: async (_core, { params: { agent: name }, context }) => {
      const found = await context.get('describeAgent')(name);
      if (found !== undefined) return found;
      throw new GatewayError({
        status: 404,
        type: 'not-found',
        message: `there is no agent ${JSON.stringify(name)}: /v1/agents lists them`,
      });
    },
  });
}
