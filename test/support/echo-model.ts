/**
 * A model whose answers can be checked: it answers `hello` with `You said: hello`, and what begins with `tool:` after that
 * tool has run. It looks at nothing but the request, so that it answers any attempt of any call the same.
 */
import { withoutDay, blocksOf, type ApiRequest, type ToolResultBlock } from './provider-apis/api-request.js';
import { callTools, text, type Reply, type ToolCall } from './provider-apis/reply.js';

export function answerTo(said: string): string {
  return `You said: ${said}`;
}

/** All that people said in this conversation, oldest first. */
export function saidIn({ messages }: ApiRequest): string[] {
  return messages
    .filter(({ role }) => role === 'user')
    .flatMap(({ content }) => blocksOf(content).flatMap((block) => (block.type === 'text' ? [withoutDay(block.text)] : [])));
}

/** Results of the round of tools that has just ended; empty where a person spoke last. */
export function latestResults({ messages }: ApiRequest): ToolResultBlock[] {
  const last = messages[messages.length - 1];
  return blocksOf(last?.content).filter((block): block is ToolResultBlock => block.type === 'tool_result');
}

export function resultText({ content }: ToolResultBlock): string {
  return blocksOf(content)
    .map((block) => (block.type === 'text' ? block.text : ''))
    .join('');
}

/** How often the model was asked since a person last spoke, this time not counted. */
export function roundsSoFar({ messages }: ApiRequest): number {
  const spoke = messages.findLastIndex(({ role, content }) => role === 'user' && blocksOf(content).some(({ type }) => type === 'text'));
  return messages.slice(spoke).filter(({ role }) => role === 'assistant').length;
}

/** `calls`: what to call on a message, if anything. */
export function echo(request: ApiRequest, calls: (said: string) => readonly ToolCall[] = () => []): Reply {
  const said = saidIn(request).at(-1) ?? '';
  const wanted = calls(said);
  return wanted.length > 0 && latestResults(request).length === 0 ? callTools(...wanted) : text(answerTo(said));
}

/** Does as the last message says: what ends with `: note ITEM` or `: pay ITEM` is a call of that tool (ledger-tools.cjs). */
export function doAsTold(request: ApiRequest, ms = 50): Reply {
  return echo(request, (message) => {
    const [, name, item] = /: (note|pay) (\S+)$/.exec(message) ?? [];
    return name === undefined ? [] : [{ name, input: { item, ms } }];
  });
}
