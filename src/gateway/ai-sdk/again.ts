/**
 * A message answered anew, or in other words. A page goes on with the id that it gave the message, and here each time is a message of its
 * own: `<id>~again-<n>`, which the history shows by the page's id.
 */
import type { PerduraClient } from '../../client.js';
import type { Message } from '../../conversation/protocol/contract.js';
import { isFromPerson, type Entry } from '../../records/message.js';
import type { Conversations } from '../core/conversations.js';
import { joinedTurn } from '../core/turns/joined-turn.js';

const AGAIN = /~again-(\d{1,6})$/;

export function pageIdOf(messageId: string): string {
  return messageId.replace(AGAIN, '');
}

export interface Again {
  readonly turn: string;
  /** Its events begin after it. */
  readonly after: string;
}

/** Undefined where the message was never taken: it is then a first one. `isEdit`: its text is another than before. */
export async function answerAgain(
  { client }: Conversations,
  id: string,
  message: Message & { readonly id: string },
  signal: AbortSignal,
): Promise<Again | undefined> {
  const said = await saidIn(client, id);
  const known = said.findLast(({ messageId }) => pageIdOf(messageId ?? '') === message.id);
  if (known === undefined) return undefined;
  const times = Number(AGAIN.exec(known.messageId ?? '')?.[1] ?? 0);
  const messageId = `${message.id}~again-${times + 1}`;
  const after = await client.newestCursor(id);
  const options = { messageId, signal };
  const again =
    known.turn === said.at(-1)?.turn && textOf(known) === message.text
      ? client.retry(id, options)
      : client.edit(id, message.text, { ...options, turn: known.turn });
  const answered = again.then(({ turnId }) => turnId ?? '');
  return { turn: await joinedTurn(client, id, { messageId, after, signal, answered }), after };
}

async function saidIn(client: PerduraClient, id: string): Promise<readonly Entry[]> {
  const entries = await client.history(id).catch((error: unknown) => {
    if ((error as { kind?: string }).kind === 'not-found') return [];
    throw error;
  });
  return entries.filter(({ message }) => isFromPerson(message));
}

function textOf({ message }: Entry): string | undefined {
  return message.role === 'user' && typeof message.text === 'string' ? message.text : undefined;
}
