/** What clients of Anthropic's API say: texts, and pictures in the newest message. */
import { z } from 'zod';
import type { MediaSource } from '../../records/message.js';
import { invalid, unsupported } from '../core/read-body.js';
import { inTurns, type Said, type Supplied } from '../core/supplied-history.js';

const source = z.looseObject({
  type: z.string(),
  media_type: z.string().max(100).optional(),
  data: z.string().optional(),
});
const block = z.looseObject({ type: z.string(), text: z.string().optional(), source: source.optional() });
const content = z.union([z.string(), z.array(block).max(1_000)]);
type Content = z.output<typeof content>;

/** What `/v1/messages` and its `/count_tokens` have in common. */
export const prompt = {
  model: z.string().min(1).max(128),
  messages: z
    .array(z.looseObject({ role: z.enum(['user', 'assistant']), content }))
    .min(1)
    .max(10_000),
  system: content.optional(),
  tools: z.array(z.unknown()).optional(),
};

export interface Conversed extends Supplied {
  readonly images: readonly MediaSource[];
}

export function readPrompt({ messages, system, tools = [] }: z.output<z.ZodObject<typeof prompt>>): Conversed {
  if (tools.length > 0) throw unsupported("tools of the client's own (an agent has its own)", 'tools');
  const said = messages.map(({ role, content: given }, at): Said => ({ role, text: textOf(given, `messages.${at}`) }));
  if (said.at(-1)?.role !== 'user') throw invalid('messages: the last one must be of the user', 'messages');
  const instructions = system === undefined ? '' : textOf(system, 'system');
  return {
    said: inTurns(said),
    images: imagesOf(messages.at(-1)?.content ?? '', `messages.${messages.length - 1}`),
    ...(instructions !== '' && { instructions }),
  };
}

function textOf(given: Content, where: string): string {
  if (typeof given === 'string') return given;
  return given
    .flatMap(({ type, text }, at) => {
      if (type === 'text' && text !== undefined) return [text];
      if (type === 'image' || type === 'thinking' || type === 'redacted_thinking') return [];
      throw unsupported(`content of the type ${JSON.stringify(type.slice(0, 40))}`, `${where}.content.${at}`);
    })
    .join('\n\n');
}

function imagesOf(given: Content, where: string): readonly MediaSource[] {
  if (typeof given === 'string') return [];
  return given.flatMap(({ type, source: from }, at) => {
    if (type !== 'image') return [];
    if (from?.type === 'base64' && from.media_type !== undefined && from.data !== undefined) {
      return [{ mediaType: from.media_type, base64: from.data }];
    }
    throw invalid(`${where}.content.${at}: a picture must be sent as base64, with its media_type`, `${where}.content.${at}`);
  });
}
