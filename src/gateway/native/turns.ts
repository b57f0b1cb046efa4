/** Messages and their turns: sent and waited for, sent and streamed, or queued; then read, live or as they were. */
import { z } from '@hono/zod-openapi';
import type { GatewayApp, GatewayContext } from '../context.js';
import type { Conversations } from '../core/conversations.js';
import { CLEARED } from '../../client/turns/stream.js';
import type { TurnResult } from '../../records/feed-event.js';
import { turnNumber } from '../../records/identity.js';
import type { Entry } from '../../records/message.js';
import type { TurnEnd } from '../../records/turn-end.js';
import { GatewayError, toProblem } from '../core/errors.js';
import { waitForEnd } from '../../client/turns/turn-status.js';
import type { TurnEventAt } from '../../client/turns/follow-turn.js';
import { timeoutSignal } from '../../platform/promises.js';
import { OLDEST } from '../../stores/feed-cursor.js';
import { sendEvents, type ServerEvent } from '../sse.js';
import { untenanted } from '../tenants/routes.js';
import { chooseMessageId } from './conversations.js';
import { add } from './operation.js';
import { entry, pendingTurn, submitted, turnEnd, turnResult } from './answers.js';
import { conversationId, cursor, message, onConversation, onTurn, turnId, waiting, whole } from './schemas.js';

const tag = 'turns';
const MAX_CONVERSATIONS = 50;
const beginning = z.union([cursor, turnId]);
const datasetName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);

export function addTurns(app: GatewayApp): void {
  add(app, {
    name: 'sendMessage',
    method: 'post',
    path: '/v1/conversations/{id}/messages',
    tag,
    summary: 'Send a message',
    description:
      'Waits for the answer for up to `wait` seconds, then answers 202 with the turn, which goes on; `mode=enqueue` answers at once. With ' +
      '`Accept: text/event-stream` the turn is streamed, to a last event `turn-finished` with the whole answer. The same id is one ' +
      'message, and `start` begins the conversation where there is none.',
    params: onConversation,
    query: waiting.extend({ mode: z.enum(['wait', 'enqueue']).default('wait') }),
    body: message,
    answer: turnResult,
    pending: submitted,
    mayStream: true,
    act: async (core, { params: { id }, query: { mode, wait }, body: { start: begin, ...fields }, signal, context }) => {
      const sent = { ...fields, id: await chooseMessageId(context, fields.id) };
      const options = { signal, ...(begin !== undefined && { start: begin }) };
      if (wantsEvents(context)) {
        return streamed(context, async function* (gone) {
          const taken = await core.submit(id, sent, { ...options, signal: gone });
          yield { event: 'submitted', data: JSON.stringify(taken) };
          yield* toServerEvents(core.answer(taken, gone));
        });
      }
      const taken = await core.submit(id, sent, options);
      context.header('location', `/v1/conversations/${encodeURIComponent(id)}/turns/${taken.turn ?? ''}`);
      if (mode === 'enqueue') return context.json(taken, 202);
      if (taken.turn === null) return CLEARED;
      return (await waitFor(core.whileWorked, { id, turn: taken.turn, wait, signal })) ?? context.json(taken, 202);
    },
  });
  add(app, {
    name: 'attachFile',
    method: 'post',
    path: '/v1/conversations/{id}/attachments',
    tag,
    summary: 'Keep a picture or a PDF with the conversation, for the `images` or `documents` of a message',
    description:
      'The body is the file itself: PNG, JPEG, GIF, WebP or PDF, by its content, of at most 10 MiB. `images: [answer]` sends a picture, `documents: [answer]` a PDF.',
    params: onConversation,
    takesFile: true,
    status: 201,
    answer: z.object({ mediaType: z.string(), ref: z.string() }),
    act: async ({ client }, { params: { id }, context }) => client.attach(id, new Uint8Array(await context.req.arrayBuffer())),
  });
  add(app, {
    name: 'withdrawMessage',
    method: 'delete',
    path: '/v1/conversations/{id}/messages/{messageId}',
    tag,
    summary: 'Take back a message that no turn has taken yet',
    params: onConversation.extend({ messageId: z.string().max(128) }),
    answer: z.object({ messageId: z.string(), withdrawn: z.boolean(), reason: z.string().optional() }),
    act: ({ client }, { params: { id, messageId } }) => client.withdraw(id, messageId),
  });
  add(app, {
    name: 'getTurn',
    method: 'get',
    path: '/v1/conversations/{id}/turns/{turn}',
    tag,
    summary: 'How a turn ended; waits for that for up to `wait` seconds, then answers 202',
    params: onTurn,
    query: waiting,
    answer: turnResult,
    pending: pendingTurn,
    act: async (core, { params: { id, turn }, query: { wait }, signal, context }) => {
      const result = wait === 0 ? undefined : await waitFor(core.whileWorked, { id, turn, wait, signal });
      return result ?? (await waitForEnd(core, { conversation: id, turn }, signal)) ?? context.json({ conversation: id, turn }, 202);
    },
  });
  add(app, {
    name: 'addToDataset',
    method: 'post',
    path: '/v1/conversations/{id}/turns/{turn}/dataset',
    tag,
    summary: 'Add it, with the turns before it, to a dataset of the project that this gateway runs in',
    description:
      'A file `evals/datasets/NAME.jsonl`, without secrets and what was forgotten. A turn that is in it already is one case, with both labels. ' +
      'Only where `perdura up` serves: elsewhere `perdura dataset add` does it in the folder of the project.',
    role: 'operator',
    guard: untenanted,
    params: onTurn,
    body: z.strictObject({ name: datasetName.default('cases'), label: datasetName.optional() }),
    status: 201,
    answer: z.object({
      id: z.string().openapi({ description: 'of the case', example: 'conv-3f2a/turn_0007' }),
      name: z.string(),
      cases: z.int().openapi({ description: 'that the dataset has now' }),
      isNew: z.boolean(),
      labels: z.array(z.string()),
    }),
    act: async ({ client }, { params: { id, turn }, body: { name, label }, context }) => {
      await client.describe(id);
      const added = await context.get('addToDataset')(client, id, turn, { name, labels: label === undefined ? [] : [label] });
      if (added !== undefined) return added;
      const message =
        'this gateway runs in no project whose files it may write: run `perdura dataset add ID --turn N` in the folder of the project, or serve it with `perdura up`';
      throw new GatewayError({ status: 409, type: 'no-project', message });
    },
  });
  add(app, {
    name: 'streamTurn',
    method: 'get',
    path: '/v1/conversations/{id}/turns/{turn}/events',
    tag,
    summary: 'A turn from its beginning, or after `Last-Event-ID`, to its end',
    params: onTurn,
    query: z.object({ after: cursor.default('0') }),
    streams: true,
    act: (core, { params: { id, turn }, query: { after }, context }) =>
      streamed(context, (gone) => toServerEvents(core.attach({ id, turn, after: lastEventId(context) ?? after, signal: gone }))),
  });
  add(app, {
    name: 'streamConversation',
    method: 'get',
    path: '/v1/conversations/{id}/events',
    tag,
    summary: 'Live events of a conversation',
    description: 'An event `resync` means that some before it are no longer kept: read the entries, then go on.',
    params: onConversation,
    query: z.object({ after: cursor.default('$') }),
    streams: true,
    act: (core, { params: { id }, query: { after }, context }) =>
      streamed(context, (gone) => watched(core, id, lastEventId(context) ?? after, gone)),
  });
  add(app, {
    name: 'streamConversations',
    method: 'get',
    path: '/v1/events',
    tag,
    summary: 'Live events of up to 50 conversations in one stream',
    description:
      'Each `id:` is where all of them are: sent as `Last-Event-ID`, none of them misses anything. `cursor` of an event is where its own ' +
      'conversation is. `after` says where to begin, once for each `conversation` and in their order: a cursor, or a turn, from whose beginning on.',
    query: z.object({
      conversation: z.union([conversationId, z.array(conversationId).min(1).max(MAX_CONVERSATIONS)]),
      after: z.union([beginning, z.array(beginning).max(MAX_CONVERSATIONS)]).optional(),
    }),
    streams: true,
    act: (core, { query: { conversation, after = [] }, context }) => {
      const ids = [conversation].flat();
      const begins = [after].flat();
      if (begins.length > 0 && begins.length !== ids.length) {
        throw new GatewayError({ status: 400, type: 'invalid', message: 'after: one for each conversation, in their order, or none' });
      }
      const requested = ids.flatMap((id, at) => (begins[at] === undefined ? [] : [[id, begins[at]] as const]));
      const positions = new Map([...requested, ...readPositions(context.req.header('last-event-id'))]);
      return streamed(context, (gone) => merged(core, [...new Set(ids)], positions, gone));
    },
  });
  add(app, {
    name: 'listEntries',
    method: 'get',
    path: '/v1/conversations/{id}/entries',
    tag,
    summary: 'Everything recorded, oldest first',
    description:
      '`last` asks for the latest ones instead of the first, `before` for those before a slot: a long conversation is read from its end.',
    params: onConversation,
    query: z.object({
      after: whole(0).default(0).openapi({ default: 0 }),
      before: whole(1).optional(),
      last: whole(1, 1_000).optional().openapi({ description: 'how many at most, in place of `limit`' }),
      limit: whole(1, 1_000).default(200).openapi({ default: 200 }),
      branch: whole(1).optional().openapi({ description: 'what a rewind has cut out' }),
    }),
    answer: z.object({
      entries: z.array(entry),
      next: z.int().nullable().openapi({ description: 'for `after`; null: there are no more' }),
      previous: z.int().nullable().openapi({ description: 'for `before`, where `last` was asked for; null: they begin with the first' }),
      ends: z.array(turnEnd).openapi({ description: 'of their turns, how those ended that have no whole answer' }),
    }),
    act: async ({ client }, { params: { id }, query: { after, before, last, limit, branch } }) => {
      const readEnds = async (entries: readonly Entry[]): Promise<TurnEnd[]> => {
        const turns = new Set(entries.map(({ turn }) => turn));
        return (await client.turnEnds(id)).filter(({ turn }) => turns.has(turn));
      };
      if (last !== undefined && branch === undefined) {
        const { entries, previous } = await client.latest(id, { last, ...(before !== undefined && { before }) });
        const later = entries.filter(({ slot }) => slot > after);
        return { entries: later, next: null, previous, ends: await readEnds(later) };
      }
      const all = (await client.history(id, { after, ...(branch !== undefined && { branch }) })).filter(
        ({ slot }) => slot < (before ?? Infinity),
      );
      const entries = last === undefined ? all.slice(0, limit) : all.slice(-last);
      const next = last === undefined && all.length > limit ? (entries.at(-1)?.slot ?? null) : null;
      return { entries, next, previous: null, ends: await readEnds(entries) };
    },
  });
}

/** Undefined where it has not ended within `wait` seconds. */
async function waitFor(
  core: Conversations,
  { id, turn, wait, signal }: { readonly id: string; readonly turn: string; readonly wait: number; readonly signal: AbortSignal },
): Promise<TurnResult | undefined> {
  const patience = timeoutSignal(wait * 1000);
  try {
    return await core.ended(id, turn, AbortSignal.any([signal, patience]));
  } catch (error) {
    if (patience.aborted && !signal.aborted) return undefined;
    throw error;
  }
}

function wantsEvents(context: GatewayContext): boolean {
  return (context.req.header('accept') ?? '').includes('text/event-stream');
}

function streamed(context: GatewayContext, events: (gone: AbortSignal) => AsyncIterable<ServerEvent>): Promise<Response> {
  return sendEvents(context, events, (error) => {
    const { status, type, message: detail } = toProblem(error);
    return { event: 'error', data: JSON.stringify({ type: `urn:perdura:${type}`, title: type, status, detail }) };
  });
}

async function* toServerEvents(followed: AsyncIterable<TurnEventAt>): AsyncGenerator<ServerEvent> {
  for await (const { cursor: at, event } of followed) {
    yield { ...(at !== null && { id: at }), event: event.kind, data: JSON.stringify(event) };
  }
}

/** `after`: a cursor, or a turn: events of earlier ones are then left out. */
async function* watched({ client }: Conversations, id: string, after: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const first = turnId.safeParse(after).success ? turnNumber(after) : undefined;
  let hasBegun = first === undefined;
  for await (const { cursor: at, event } of client.watch(id, { after: first === undefined ? after : OLDEST, signal })) {
    hasBegun ||= event.kind === 'resync' || ('turn' in event && turnNumber(event.turn) >= (first ?? 0));
    if (hasBegun) yield { id: at, event: event.kind, data: JSON.stringify({ conversation: id, cursor: at, ...event }) };
  }
}

async function* merged(
  core: Conversations,
  ids: readonly string[],
  positions: Map<string, string>,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const ready: { readonly id: string; readonly event: ServerEvent; readonly taken: () => void }[] = [];
  let wake: (() => void) | undefined;
  let failure: Error | undefined;
  let open = ids.length;
  // Each waits until its event was taken: what is not read stays in the store.
  const read = async (id: string): Promise<void> => {
    for await (const event of watched(core, id, positions.get(id) ?? '$', either)) {
      await new Promise<void>((taken) => {
        ready.push({ id, event, taken });
        wake?.();
      });
    }
  };
  for (const id of ids) {
    void read(id)
      .catch((error: unknown) => (failure = error instanceof Error ? error : new Error(String(error))))
      .finally(() => {
        open -= 1;
        wake?.();
      });
  }
  try {
    for (;;) {
      if (failure !== undefined) throw failure;
      if (open === 0 && ready.length === 0) return;
      const one = ready.shift();
      if (one === undefined) {
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      positions.set(one.id, one.event.id ?? '0');
      yield { ...one.event, id: writePositions(positions) };
      one.taken();
    }
  } finally {
    stop.abort();
    for (const { taken } of ready) taken();
  }
}

/** A client may only send back a value that an event had: any other is ignored. */
function lastEventId(context: GatewayContext): string | undefined {
  const given = cursor.safeParse(context.req.header('last-event-id'));
  return given.success ? given.data : undefined;
}

function writePositions(positions: ReadonlyMap<string, string>): string {
  return Buffer.from(JSON.stringify([...positions])).toString('base64url');
}

const positionsShape = z.array(z.tuple([z.string().max(200), beginning])).max(MAX_CONVERSATIONS);

function readPositions(given: string | undefined): Map<string, string> {
  try {
    return new Map(positionsShape.parse(JSON.parse(Buffer.from(given ?? '', 'base64url').toString())));
  } catch {
    return new Map();
  }
}
