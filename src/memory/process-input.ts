import type { MessageToRecord } from '../conversation/activity-io/effects.js';
import type { ConversationKey } from '../stores/store.js';
import { runProcessors, type InputProcessor } from './processors.js';

/** A person's text as it is remembered; the same again when it is rebuilt from history. Throws ProcessorFailed. */
export async function processInput(
  processors: readonly InputProcessor[] = [],
  { conversation, scope }: ConversationKey,
  { text, session, turn }: Pick<MessageToRecord, 'text' | 'session' | 'turn'>,
): Promise<string> {
  if (processors.length === 0) return text;
  return (await runProcessors(processors, text, { conversation, scope, session, turn })).toWellFormed();
}
