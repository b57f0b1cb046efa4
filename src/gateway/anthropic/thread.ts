/**
 * Message threads (`message-threads-2026-08-12`), as far as the tool runner of Anthropic's client goes: answers of tools come without the
 * history, after the message that asked for them. For anything else the client is asked for the history, which finds the conversation.
 */
import { z } from 'zod';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import type { Conversations } from '../core/conversations.js';
import { GatewayError, toProblem } from '../core/errors.js';
import { answerNamed } from '../core/go-on.js';
import type { Going } from '../core/calls/client-answers.js';
import { unsupported } from '../core/read-body.js';

export const thread = z.looseObject({ type: z.string(), previous_message_id: z.string().max(500).optional() });

export const THREAD_NOT_FOUND = 'thread-not-found';

const NAME = /^msg_(.{1,64})-(turn_\d{4,15})(?:-c\d{1,6})?$/;

/** Undefined: the request has the whole history. */
export async function continueThread(
  core: Conversations,
  given: z.output<typeof thread> | undefined,
  answering: Parameters<typeof answerNamed>[2],
): Promise<Going | undefined> {
  if (given === undefined || given.type === 'create') return undefined;
  if (given.type !== 'continue') throw unsupported(`a thread of the type ${JSON.stringify(given.type.slice(0, 40))}`, 'thread.type');
  const [, conversation = '', turn = ''] = NAME.exec(given.previous_message_id ?? '') ?? [];
  if (!answering.supplied.answers || !ID_PATTERN.test(conversation)) throw notFound();
  return answerNamed(core, conversation, answering, turn).catch((error: unknown) => {
    const { type } = toProblem(error);
    throw type === 'not-waiting' || type === 'not-found' ? notFound() : error;
  });
}

function notFound(): GatewayError {
  return new GatewayError({
    status: 404,
    type: THREAD_NOT_FOUND,
    message: 'thread.previous_message_id: there is nothing to continue from it; send all messages',
    param: 'thread',
  });
}
