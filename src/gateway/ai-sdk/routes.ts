/** The AI SDK's chat protocol: `useChat` of any framework, unchanged, with conversations that outlive page, gateway and worker. */
import type { Context } from 'hono';
import { z } from '@hono/zod-openapi';
import { signalOf, type GatewayApp, type GatewayContext } from '../context.js';
import { answerCalls, toAnswered } from '../core/calls/answered-calls.js';
import { refuseWhileClientRuns } from '../core/calls/client-answers.js';
import type { Conversations } from '../core/conversations.js';
import { toProblem, type Problem } from '../core/errors.js';
import { workflowIdOf } from '../core/public-id.js';
import { readAs, readBody } from '../core/read-body.js';
import { runningTurn } from '../core/turns/running-turn.js';
import { shownTurn, viewAgain, viewOf, type ShownTurn } from '../core/turns/shown-turn.js';
import type { AnsweredCall } from '../core/calls/waiting-calls.js';
import { sendEvents, type ServerEvent } from '../sse.js';
import { answerAgain } from './again.js';
import { createChunks, type Chunk } from './chunks.js';
import { toUiMessages } from './history.js';
import { chatRequest, startOf, wishOf, type Wish } from './request.js';

export const CHAT_PATH = '/api/chat';
const MAX_HISTORY = 200;

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
    return streamed(context, async function* (gone) {
      yield* shown(core, await viewAgain(core, id, turn), { gone });
    });
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
    const { turn, decided } = await answerCalls(core.client, id, wish.answers);
    const answered = toAnswered(wish.answers.map(({ callId, to: kind }) => ({ callId, kind })));
    const given = new Set(decided.flatMap(({ callId, kind }) => (kind === 'client-tool' ? [callId] : [])));
    return yield* shown(core, await viewAgain(core, id, turn), { gone, messageId: wish.messageId, answered, given });
  }
  if (wish.kind === 'again') {
    const again = await answerAgain(core, id, wish.message, gone);
    if (again) return yield* shown(core, { id, turn: again.turn, follow: (signal) => core.attach({ id, ...again, signal }) }, { gone });
  }
  await refuseWhileClientRuns(core, id, wish.message.id);
  const taken = await core.submit(id, wish.message, { start, signal: gone });
  yield* shown(core, await viewOf(core, taken), { gone, messageId: taken.turn ?? `${taken.messageId}-reset` });
}

interface Shown {
  readonly gone: AbortSignal;
  /** Of the answer; default: the turn's. */
  readonly messageId?: string;
  /** Calls that the page has answered: it has all of the turn up to where they were asked for. */
  readonly answered?: readonly AnsweredCall[];
  /** Calls of which it has the result, because it has given it. */
  readonly given?: ReadonlySet<string>;
}

async function* shown(core: Conversations, view: ShownTurn, { messageId, given, ...showing }: Shown): AsyncGenerator<Chunk, void> {
  const chunks = createChunks({ turn: view.turn, messageId: messageId ?? view.turn ?? view.id, ...(given && { given }) });
  yield* chunks.start();
  for await (const one of shownTurn(core, view, showing)) {
    const made = one.kind === 'pause' ? chunks.pause(one.waiting) : chunks.take(one.event);
    if (one.kind === 'pause' || !one.isKnown) yield* made;
  }
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
