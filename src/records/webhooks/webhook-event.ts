/** What a webhook receives, as schemas: for the worker that makes it, for receivers that check it, and for docs. */
import { z } from 'zod';

/** Of an answer. A longer one is cut, and `isCut` says so: the whole is in the conversation. */
export const MAX_WEBHOOK_TEXT = 16_000;

const usage = z.object({
  inputTokens: z.number(),
  cachedTokens: z.number(),
  outputTokens: z.number(),
  /** Parts of the two before, where a provider says of them. */
  cacheWriteTokens: z.number().optional(),
  reasoningTokens: z.number().optional(),
  /** US dollars; null where the price of a model is not known. */
  costUsd: z.number().nullable(),
});

const about = {
  /** As Temporal has it, and a tenant's as the tenant knows it; a sub-agent's begins with that of its first conversation and a colon. */
  conversation: z.string(),
  agent: z.string(),
  /** As it is called within its tenant. */
  scope: z.string(),
  tenant: z.string().optional(),
  title: z.string().nullable(),
  /** `turn_0007`. */
  turn: z.string(),
  /** Counts the events of a conversation from 1; deliveries may overtake each other, and some numbers are left out. */
  sequence: z.int().min(1),
};

const finished = z.object({
  ...about,
  /** As in `TurnResult`: `end`, `interrupted`, `tool-limit`, `budget`, `refused`, … */
  stopReason: z.string(),
  /** Null where the store has lost it. */
  text: z.string().nullable(),
  isCut: z.boolean().optional(),
  usage,
  toolCalls: z.int(),
  error: z.object({ type: z.string(), message: z.string() }).optional(),
});

const waiting = z.object({
  ...about,
  callId: z.string(),
  tool: z.string(),
  /** Their beginning, as JSON. They come from a model. */
  arguments: z.string(),
  /** A decision that names it counts for these very arguments. */
  hash: z.string(),
  expiresAt: z.iso.datetime(),
  /** A command that answers. */
  command: z.string(),
  /** Of a sub-agent: the conversation that it works for, and the call there. */
  parent: z.object({ conversation: z.string(), callId: z.string() }).optional(),
});

const amounts = { maxCostUsd: z.number().optional(), maxTokens: z.number().optional() };

/** Of a tenant's budget (`PERDURA_TENANT_BUDGETS`). */
const budget = z.object({
  tenant: z.string(),
  period: z.enum(['day', 'month']),
  /** `2026-11-29` or `2026-11`, in UTC. */
  name: z.string(),
  /** That much is used: 80, or 100, and from then on its turns end before they call a model. */
  percent: z.number(),
  used: z.object({ costUsd: z.number(), tokens: z.number() }),
  limit: z.object(amounts),
  resetsAt: z.iso.datetime(),
});

const timestamp = z.iso.datetime();

/** The body of a webhook (Standard Webhooks: `type`, `timestamp`, `data`). `timestamp` is when it happened. */
export const webhookEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('turn.finished'), timestamp, data: finished }),
  z.object({ type: z.literal('turn.failed'), timestamp, data: finished }),
  z.object({ type: z.literal('approval.waiting'), timestamp, data: waiting }),
  z.object({ type: z.literal('question.waiting'), timestamp, data: waiting }),
  z.object({ type: z.literal('budget.reached'), timestamp, data: budget }),
  z.object({ type: z.literal('webhook.test'), timestamp, data: z.object({ scope: z.string(), tenant: z.string().optional() }) }),
]);

/** An event as a webhook receives it. */
export type WebhookEvent = z.infer<typeof webhookEvent>;
