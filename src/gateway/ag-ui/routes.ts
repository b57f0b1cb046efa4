/** AG-UI: front ends of any kind by its `HttpAgent`, unchanged. A thread is a conversation, and a run is a turn or the rest of one. */
import type { Context } from 'hono';
import type { PerduraClient } from '../../client.js';
import { checkEdits, type GatewayApp, type GatewayContext } from '../context.js';
import { answerCalls, type CallAnswer, type DecidedCalls } from '../core/answer-calls.js';
import type { Conversations } from '../core/conversations.js';
import { toProblem, type Problem } from '../core/errors.js';
import { toConversationId, readBody } from '../core/read-body.js';
import { interactiveTurn, openTurn, openSubmitted, type Reader, type TurnSource } from '../core/interactive-turn.js';
import { readStatus } from '../../client/turns/turn-status.js';
import { sendEvents, type ServerEvent } from '../sse.js';
import { createFrames, PROTOCOL, type Frame } from './frames.js';
import { runRequest, readStart, readWish, type RunRequest, type Wish } from './request.js';

const PATH = '/agui';

export function addAguiRoutes(app: GatewayApp): void {
  app.post(PATH, async (context) => {
    const core = context.get('conversations');
    const request = await readBody(context, runRequest);
    const [wish, start] = [readWish(request), readStart(request)];
    if (wish.kind === 'answer') checkEdits(context, wish.answers);
    return streamed(context, (gone) => fulfil(core, { request, wish, start, gone }));
  });

  app.post(`${PATH}/:id/stop`, async (context) => {
    await context.get('conversations').client.interrupt(toConversationId(context.req.param('id')));
    return context.body(null, 204);
  });
}

/** As RUN_ERROR words it: the protocol has no separate shape for a refused request. */
export function answerAguiProblem(context: Context, { status, type, message }: Problem): Response {
  return context.json({ message, code: type }, status);
}

interface Fulfilling {
  readonly request: RunRequest;
  readonly wish: Wish;
  readonly start: ReturnType<typeof readStart>;
  readonly gone: AbortSignal;
}

async function* fulfil(core: Conversations, { request, wish, start, gone }: Fulfilling): AsyncGenerator<Frame, void> {
  const id = toConversationId(request.threadId);
  const { message } = wish;
  if (wish.kind === 'answer') {
    let answered: DecidedCalls | undefined;
    try {
      answered = await answerCalls(core.client, id, wish.answers, wish);
    } catch (error) {
      const problem = toProblem(error);
      // A thread that was copied under another id: its history is no conversation here, and the words begin one.
      if (message === undefined || problem.type !== 'not-found') return yield* refused(request, problem);
    }
    // Where the turn no longer waits for any of the calls, the words beside the answers are a new message.
    if (answered && (message === undefined || answered.decided.length > 0)) {
      return yield* streamTurn(core, request, await openTurn(core, id, answered.turn), { gone, ...afterAnswers(wish.answers, answered) });
    }
  }
  if (message === undefined) return;
  const open = await openCalls(core.client, id, message.id);
  if (open.length > 0) return yield* refused(request, unanswered(open));
  const taken = await core.submit(id, message, { start, signal: gone });
  yield* streamTurn(core, request, await openSubmitted(core, taken), { gone, known: [] });
}

/** A client that answers first has the turn up to there. One that repeats an answer has lost a stream, and gets the whole turn. */
function afterAnswers(answers: readonly CallAnswer[], { decided }: DecidedCalls): Pick<Reader, 'answered' | 'known'> {
  const answered = decided.map(({ callId, kind }) => ({ callId, isApproval: kind === 'approval' }));
  const isFirst = decided.length === answers.length;
  return { answered, known: isFirst ? answered : [] };
}

/** Calls for which a new message would have to wait: the protocol has them answered first. A message that was taken before is shown again. */
async function openCalls(client: PerduraClient, id: string, messageId: string): Promise<readonly string[]> {
  const status = await readStatus(client, id);
  if (status === null || status.pendingApprovals === 0) return [];
  const [waiting, entries] = await Promise.all([client.approvals(id), client.history(id)]);
  if (entries.some((entry) => entry.messageId === messageId)) return [];
  return waiting.filter(({ conversation }) => conversation === id).map(({ callId }) => callId);
}

function unanswered(open: readonly string[]): Problem {
  const message = `${open.join(', ')} must be answered first, by resume or, of a tool that the client runs, by a message of the tool`;
  return { status: 409, type: 'interrupted', message };
}

/** The protocol reports a wrong answer to an interrupt as an event. */
function* refused({ threadId, runId }: RunRequest, problem: Problem): Generator<Frame, void> {
  yield { type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL };
  yield errorFrame(problem);
}

function errorFrame({ message, type }: Problem): Frame {
  return { type: 'RUN_ERROR', message, code: type };
}

async function* streamTurn(core: Conversations, request: RunRequest, source: TurnSource, reader: Reader): AsyncGenerator<Frame, void> {
  const { threadId, runId, messages, state } = request;
  const { id: conversation, turn } = source;
  const continues = (reader.known ?? []).length > 0;
  const frames = createFrames({ threadId, runId, conversation, turn, messages, state, continues });
  yield* frames.start();
  for await (const one of interactiveTurn(core, source, reader)) {
    const made = one.kind === 'pause' ? frames.pause(one.waiting) : frames.take(one.change);
    if (one.kind === 'pause' || !one.isKnown) yield* made;
  }
}

function streamed(context: GatewayContext, frames: (gone: AbortSignal) => AsyncGenerator<Frame, void>): Promise<Response> {
  return sendEvents(
    context,
    async function* (gone): AsyncGenerator<ServerEvent> {
      for await (const frame of frames(gone)) yield { data: JSON.stringify(frame) };
    },
    (error) => ({ data: JSON.stringify(errorFrame(toProblem(error))) }),
  );
}
