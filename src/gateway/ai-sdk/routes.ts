/** The AI SDK's chat protocol: `useChat` of any framework, unchanged, with conversations that outlive page, gateway and worker. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from 'hono';
import { z } from '@hono/zod-openapi';
import { OLDEST } from '../../stores/feed-cursor.js';
import { signalOf, type GatewayApp, type GatewayContext } from '../context.js';
import { answerStream } from '../core/answer-stream.js';
import type { Conversations } from '../core/conversations.js';
import { GatewayError, toProblem, type Problem } from '../core/errors.js';
import type { Followed } from '../core/follow-turn.js';
import { workflowIdOf } from '../core/public-id.js';
import { readAs, readBody } from '../core/read-body.js';
import { runningTurn } from '../core/running-turn.js';
import type { CallEvent } from '../core/tool-calls.js';
import { sendEvents, type ServerEvent } from '../sse.js';
import { answerAgain } from './again.js';
import { createChunks, type Chunk } from './chunks.js';
import { toUiMessages } from './history.js';
import { chatRequest, startOf, wishOf, type Answer, type Wish } from './request.js';

export const CHAT_PATH = '/api/chat';
const MAX_HISTORY = 200;
/** Several calls of one step are asked for one after the other: for so long a stream waits for the next of them before it ends. */
const PAUSE_MS = 300;

export function addAiSdkRoutes(app: GatewayApp): void {
  app.post(CHAT_PATH, async (context) => {
    const core = context.get('conversations');
    const request = await readBody(context, chatRequest);
    const id = workflowIdOf(request.id);
    const wish = wishOf(request);
    return streamed(context, (gone) => fulfil(core, { id, wish, start: startOf(request), gone }));
  });

  app.get(`${CHAT_PATH}/:id/stream`, async (context) => {
    const core = context.get('conversations');
    const id = workflowIdOf(context.req.param('id'));
    const turn = await runningTurn(core.client, id, signalOf(context));
    if (turn === undefined) return context.body(null, 204);
    return streamed(context, (gone) => replay(core, { id, turn, gone }));
  });

  app.post(`${CHAT_PATH}/:id/stop`, async (context) => {
    await context.get('conversations').client.interrupt(workflowIdOf(context.req.param('id')));
    return context.body(null, 204);
  });

  app.get(`${CHAT_PATH}/:id/messages`, async (context) => {
    const { client } = context.get('conversations');
    const id = workflowIdOf(context.req.param('id'));
    const limit = readAs(z.coerce.number().int().min(1).max(1_000).default(MAX_HISTORY), context.req.query('limit'));
    const [entries, ends] = await Promise.all([client.history(id), client.turnEnds(id)]);
    return context.json(toUiMessages(entries, ends).slice(-limit));
  });
}

/** A page shows the body of a refusal as it is: words alone. */
export function answerChatProblem(context: Context, { status, message, retryAfter }: Problem): Response {
  if (retryAfter !== undefined) context.header('retry-after', String(retryAfter));
  return context.text(message, status);
}

interface Fulfilling {
  readonly id: string;
  readonly wish: Wish;
  readonly start: ReturnType<typeof startOf>;
  readonly gone: AbortSignal;
}

async function* fulfil(core: Conversations, { id, wish, start, gone }: Fulfilling): AsyncGenerator<Chunk, void> {
  if (wish.kind === 'answer') {
    const turn = await decide(core, id, wish.answers);
    return yield* replay(core, { id, turn, gone, messageId: wish.messageId, answered: wish.answers.map(({ callId }) => callId) });
  }
  if (wish.kind === 'again') {
    const again = await answerAgain(core, id, wish.message, gone);
    if (again) return yield* shown(core, { id, turn: again.turn, gone, follow: (signal) => core.attach({ id, ...again, signal }) });
  }
  const taken = await core.submit(id, wish.message, { start, signal: gone });
  const edge = taken.acceptedAs === 'duplicate' ? await core.client.newestCursor(id) : taken.after;
  yield* shown(core, {
    id,
    turn: taken.turn,
    gone,
    follow: (signal) => core.answer(taken, signal),
    messageId: taken.turn ?? `${taken.messageId}-reset`,
    edge,
  });
}

/** Those that wait no longer have been decided: by this page before, or elsewhere. */
async function decide({ client }: Conversations, id: string, answers: readonly Answer[]): Promise<string> {
  const waiting = await client.approvals(id);
  for (const { hash, ...answer } of answers) {
    const asked = waiting.find(({ callId, conversation }) => callId === answer.callId && conversation === id);
    // A question has no arguments that run.
    if (asked) await client.decide(id, asked.kind === 'approval' && hash !== undefined ? { ...answer, hash } : answer);
  }
  const [, turn] = /^(turn_\d{4,15})\/c\d{1,6}$/.exec(answers.at(-1)?.callId ?? '') ?? [];
  if (turn === undefined) throw new GatewayError({ status: 400, type: 'invalid', message: 'the toolCallId is none of this conversation' });
  return turn;
}

interface Replaying {
  readonly id: string;
  readonly turn: string;
  readonly gone: AbortSignal;
  readonly messageId?: string;
  readonly answered?: readonly string[];
}

async function* replay(core: Conversations, { id, turn, gone, ...rest }: Replaying): AsyncGenerator<Chunk, void> {
  const edge = await core.client.newestCursor(id);
  yield* shown(core, { id, turn, gone, follow: (signal) => core.attach({ id, turn, after: OLDEST, signal }), edge, ...rest });
}

interface Showing {
  readonly id: string;
  readonly turn: string | null;
  readonly gone: AbortSignal;
  readonly follow: (signal: AbortSignal) => AsyncGenerator<Followed, void>;
  /** Of the answer; default: the turn's. */
  readonly messageId?: string;
  readonly edge?: string | undefined;
  /** Calls that the page has answered: it has all of the turn up to where they were asked for. */
  readonly answered?: readonly string[];
}

async function* shown(core: Conversations, { id, turn, gone, follow, edge, answered = [], ...rest }: Showing): AsyncGenerator<Chunk, void> {
  const chunks = createChunks({ turn, messageId: rest.messageId ?? turn ?? id, answered });
  const left = new AbortController();
  const followed = follow(AbortSignal.any([gone, left.signal]));
  const batches = answerStream({ client: core.client, id, turn: turn ?? '', followed, ...(edge !== undefined && { edge }) });
  const isShownBefore = createShownBefore(answered);
  yield* chunks.start();
  let next = batches.next();
  try {
    for (;;) {
      const item = chunks.isWaiting() ? await Promise.race([next, sleep(PAUSE_MS, undefined)]) : await next;
      if (item === undefined) return yield* chunks.pause();
      if (item.done === true) return;
      next = batches.next();
      for (const event of item.value) {
        const made = chunks.take(event);
        if (!isShownBefore(event)) yield* made;
      }
    }
  } finally {
    left.abort();
    next.catch(() => undefined);
    void batches.return().catch(() => undefined);
  }
}

/** True up to where the last of these calls was asked for; of what the feed no longer has, the next sign of them ends it. */
function createShownBefore(answered: readonly string[]): (event: CallEvent) => boolean {
  const open = new Set(answered);
  let isOver = open.size === 0;
  return (event) => {
    if (isOver) return false;
    if (event.kind === 'asked' && open.delete(event.callId)) {
      isOver = open.size === 0;
      return true;
    }
    const isSign = (event.kind === 'decided' || event.kind === 'tool-started' || event.kind === 'tool-finished') && open.has(event.callId);
    isOver = isSign || event.kind === 'finished';
    return !isOver;
  };
}

function streamed(context: GatewayContext, chunks: (gone: AbortSignal) => AsyncGenerator<Chunk, void>): Promise<Response> {
  context.header('x-vercel-ai-ui-message-stream', 'v1');
  return sendEvents(
    context,
    async function* (gone): AsyncGenerator<ServerEvent> {
      for await (const chunk of chunks(gone)) yield { data: JSON.stringify(chunk) };
      yield { data: '[DONE]' };
    },
    (error) => ({ data: JSON.stringify({ type: 'error', errorText: toProblem(error).message }) }),
  );
}
