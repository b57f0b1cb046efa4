/** One entry from what produced it: the same when it is first written, and when it is rebuilt from history. */
import { pickMedia, type AssistantMessage, type Body, type Entry, type Media, type ToolResultMessage } from './message.js';

type Place = Pick<Entry, 'slot' | 'session' | 'turn' | 'ts'>;

/** `tools`: where those lie that came with it. */
export function userEntry(
  { messageId, slot, turn, seq, session, ts }: Place & { readonly seq: number; readonly messageId: string },
  text: Body,
  media: Media = {},
  tools?: string,
): Entry {
  const message = { role: 'user', text, ...pickMedia(media), ...(tools !== undefined && { tools: { ref: tools } }) } as const;
  return { v: 1, slot, session, turn, seq, ts, message, messageId };
}

/** Undefined when the answer has nothing worth remembering. */
export function assistantEntry(answer: Place & Omit<AssistantMessage, 'role'>, seq: number): Entry | undefined {
  const { slot, session, turn, ts, blocks, model, stop } = answer;
  return blocks.length === 0 ? undefined : { v: 1, slot, session, turn, seq, ts, message: { role: 'assistant', blocks, model, stop } };
}

export function toolEntry(result: Place & Omit<ToolResultMessage, 'role'>, seq: number): Entry {
  const { slot, session, turn, ts, callId, name, outcome, text, item, files } = result;
  const message = { role: 'tool', callId, name, outcome, text, ...(item && { item }), ...(files && { files }) } as const;
  return { v: 1, slot, session, turn, seq, ts, message };
}
