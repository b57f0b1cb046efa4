/** Anthropic's Messages API, for its clients: an agent is a model; the history of each request finds its conversation. */
import { z } from 'zod';
import { estimateTokens } from '../../records/token-usage.js';
import { signalOf, type GatewayApp } from '../context.js';
import { toProblem } from '../core/errors.js';
import { submitSupplied } from '../core/go-on.js';
import { createOneText } from '../core/turns/one-text.js';
import { agentOf, idempotencyKey, optional, readBody } from '../core/read-body.js';
import { firstMessage } from '../core/supplied-history.js';
import { refuseFailed } from '../core/turns/turn-failure.js';
import { turnPieces, type TurnPiece } from '../core/turns/turn-texts.js';
import { sendEvents, type ServerEvent } from '../sse.js';
import { prompt, readPrompt } from './content.js';
import { toAnthropicError } from './errors.js';
import { continueThread, thread } from './thread.js';
import { blockStart, blockStop, message, messageEnd, messageStart, textDelta, type MessageEvent, type MessageHead } from './frames.js';

export { answerAnthropicProblem } from './errors.js';

const request = z.looseObject({
  ...prompt,
  max_tokens: z.number().int().min(1),
  stream: z.boolean().optional(),
  thread: optional(thread),
  metadata: optional(z.looseObject({ user_id: optional(z.string().max(512)) })),
});

export function addAnthropicRoutes(app: GatewayApp): void {
  app.post('/v1/messages', async (context) => {
    const body = await readBody(context, request);
    const core = context.get('conversations');
    const signal = signalOf(context);
    const { media, tools, ...supplied } = readPrompt(body);
    const key = idempotencyKey(context);
    const beside = { ...media, ...(tools.length > 0 && { tools }) };
    const continued = await continueThread(core, body.thread, { supplied, key, beside, signal });
    const going =
      continued ??
      (await submitSupplied(core, {
        principal: context.get('principal').name,
        user: body.metadata?.user_id ?? '',
        agent: await agentOf(context, body.model),
        supplied,
        key,
        beside,
        signal,
      }));
    const { conversation, turn, after } = going;
    const id = `msg_${conversation}-${turn ?? 'reset'}${after?.replace(/^.*\//, '-') ?? ''}`;
    const head = { id, model: body.model, conversation };
    const mayPause = after !== undefined || tools.length > 0;
    const pieces = (gone: AbortSignal): AsyncGenerator<TurnPiece> => turnPieces(core, { ...going, mayPause }, going.follow(core, gone));
    if (body.stream === true) {
      const failed = (error: unknown): ServerEvent => ({ event: 'error', data: JSON.stringify(toAnthropicError(toProblem(error))) });
      return sendEvents(context, (gone) => events(head, pieces(gone)), failed);
    }
    for await (const piece of pieces(signal)) {
      if (piece.kind !== 'whole') continue;
      refuseFailed(piece.result);
      return context.json(message(head, piece));
    }
    throw signal.reason;
  });

  app.post('/v1/messages/count_tokens', async (context) => {
    const { media: _, tools, ...supplied } = readPrompt(await readBody(context, z.looseObject(prompt)));
    const described = tools.length === 0 ? 0 : JSON.stringify(tools).length;
    return context.json({ input_tokens: estimateTokens(firstMessage(supplied).length + described) });
  });
}

async function* events(head: MessageHead, pieces: AsyncIterable<TurnPiece>): AsyncGenerator<ServerEvent> {
  const sse = (event: MessageEvent): ServerEvent => ({ event: event.type, data: JSON.stringify(event) });
  const text = createOneText();
  let isOpen = false;
  yield sse(messageStart(head));
  for await (const piece of pieces) {
    const more = text(piece);
    if (more !== '') {
      if (!isOpen) yield sse(blockStart);
      isOpen = true;
      yield sse(textDelta(more));
    }
    if (piece.kind !== 'whole') continue;
    refuseFailed(piece.result);
    if (isOpen) yield sse(blockStop);
    for (const event of messageEnd(head, piece, isOpen)) yield sse(event);
  }
}
