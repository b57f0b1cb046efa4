/** What a scripted model answers when it is asked to consolidate a memory: it keeps the memory and notes how much was said. */
import { blocksOf, systemText, type ApiRequest } from './api-request.js';
import type { Reply } from './reply.js';

/** Undefined for any other request. */
export function consolidationReply(request: ApiRequest): Reply | undefined {
  const asked = `${systemText(request)}\n${request.messages
    .flatMap(({ content }) => blocksOf(content))
    .map(textIn)
    .join('\n')}`;
  if (!asked.includes('You are a memory consolidation agent') || !asked.includes('"memory_update"')) return undefined;
  const memory = /## Current Long-term Memory\n([\s\S]*?)\n+## Conversation to Process/.exec(asked)?.[1]?.trim() ?? '';
  const talk = asked.split('## Conversation to Process').at(-1)?.split('How to answer:')[0]?.trim() ?? '';
  const time = /\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}/.exec(talk)?.[0].replace('T', ' ') ?? '0000-00-00 00:00';
  const lines = talk.split('\n').filter((line) => line.startsWith('['));
  return {
    text: JSON.stringify({
      history_entry: `[${time}] Talked with the scripted stand-in (${lines.length} messages), beginning: ${[...talk.replace(/\s+/g, ' ')].slice(0, 160).join('')}`,
      memory_update: memory === '(empty)' ? '' : memory,
    }),
  };
}

function textIn(block: ReturnType<typeof blocksOf>[number]): string {
  return block.type === 'text' ? block.text : '';
}
