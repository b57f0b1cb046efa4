/** The answer in full: of a long one only the beginning travels through Temporal, and the store has the whole. */
import type { TurnResult } from '../conversation/protocol/contract.js';
import { answerText } from '../records/message.js';
import type { ReadingClient } from './reading.js';

export async function wholeAnswer(client: Pick<ReadingClient, 'history'>, id: string, result: TurnResult): Promise<string> {
  if (result.textRef === undefined) return result.text;
  const entries = await client.history(id);
  const answer = entries.findLast(({ turn, message }) => turn === result.turnId && message.role === 'assistant');
  return answer === undefined ? result.text : answerText(answer.message);
}
