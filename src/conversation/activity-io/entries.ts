/** One entry from what produced it: the same when it is first written, and when it is rebuilt from history. */
import type { MessageToRecord, ModelAnswer } from './effects.js';
import type { ToolFinished } from './tool-effects.js';
import { type Body, type Entry, type Media, pickMedia } from '../../records/message.js';

/** `tools`: where those lie that came with it. */
export function userEntry(message: MessageToRecord, text: Body, media: Media = {}, tools?: string): Entry {
  const { messageId, slot, turn, seq, session, ts } = message;
  return {
    v: 1,
    slot,
    session,
    turn,
    seq,
    ts,
    message: { role: 'user', text, ...pickMedia(media), ...(tools !== undefined && { tools: { ref: tools } }) },
    messageId,
  };
}

/** Undefined when nothing was said that is worth remembering. */
export function assistantEntry(answer: ModelAnswer, seq: number): Entry | undefined {
  const { slot, session, turn, ts, blocks, model, stop } = answer;
  return blocks.length === 0 ? undefined : { v: 1, slot, session, turn, seq, ts, message: { role: 'assistant', blocks, model, stop } };
}

export function toolEntry(result: ToolFinished, seq: number): Entry {
  const { slot, session, turn, ts, callId, name, outcome, text, item, files } = result;
  const message = { role: 'tool', callId, name, outcome, text, ...(item && { item }), ...(files && { files }) } as const;
  return { v: 1, slot, session, turn, seq, ts, message };
}
