/**
 * From our words to Ollama's. Pure.
 *
 * Messages come normalized: each call is answered directly after its message, in the order of the calls, by which the API pairs them: it
 * has names here, and no ids. Pictures go as their bytes: the server fetches none.
 */
import type { ChatRequest, Message, Tool } from 'ollama';
import type { AssistantBlock, ConversationMessage, UserMessage } from '../../records/message.js';
import { answerTokens } from '../context-window.js';
import { sentSchema } from '../answer-schema.js';
import type { ModelRequest, ToolDescription } from '../model.js';
import { documentInWords, inTurns, recordingsInWords, sentImage, sentText, textAndCalls, markedResultText } from '../shown.js';
import { toSentInput } from '../tool-input.js';
import { toWellFormed, toWellFormedJson } from '../well-formed.js';
import { toWireName } from '../wire-names.js';

const IMAGE_TYPES: readonly string[] = ['image/jpeg', 'image/png', 'image/webp'];

export function renderRequest(request: ModelRequest): ChatRequest & { stream: true } {
  const { model, maxTokens, system, tools, messages, contextWindow } = request;
  // Held to a schema, a model could not call: it shapes every word, calls included.
  const schema = tools.length === 0 ? sentSchema('ollama', request)?.schema : undefined;
  const instructions = toWellFormed(system);
  return {
    model,
    messages: [
      ...(instructions.trim() === '' ? [] : [{ role: 'system', content: instructions }]),
      ...inTurns(
        messages.flatMap((message) => renderMessage(message)),
        joinUsers,
      ),
    ],
    ...(tools.length > 0 && { tools: tools.map(renderTool) }),
    ...(schema && { format: schema }),
    stream: true,
    options:
      contextWindow === undefined
        ? { num_predict: maxTokens }
        : { num_ctx: contextWindow, num_predict: answerTokens(maxTokens, contextWindow) },
  };
}

function renderTool({ name, description, inputSchema }: ToolDescription): Tool {
  const parameters = toWellFormedJson(inputSchema) as unknown as NonNullable<Tool['function']['parameters']>;
  return { type: 'function', function: { name, description: toWellFormed(description), parameters } };
}

function renderMessage(message: ConversationMessage): Message[] {
  switch (message.role) {
    case 'user':
      return [renderUser(message)];
    case 'tool':
      return [{ role: 'tool', tool_name: toWireName(message.name), content: markedResultText(message) }];
    case 'assistant':
      return renderAssistant(message.blocks);
    default:
      return message satisfies never;
  }
}

function joinUsers(last: Message, next: Message): Message {
  // Base64 both: `renderUser` makes them.
  const images = [...(last.images ?? []), ...(next.images ?? [])] as string[];
  return { ...last, content: `${last.content}\n\n${next.content}`, ...(images.length > 0 && { images }) };
}

function renderUser(message: UserMessage): Message {
  const sent = (message.images ?? []).map((image) => sentImage(image, { types: IMAGE_TYPES, urls: false }));
  const words = [
    ...sent.map((image) => (image.kind === 'words' ? image.text : '')),
    ...recordingsInWords(message),
    ...(message.documents ?? []).map(documentInWords),
    sentText(message.text),
  ];
  const pictures = sent.flatMap((image) => (image.kind === 'base64' ? [image.base64] : []));
  return {
    role: 'user',
    content: words.filter((part) => part !== '').join('\n'),
    ...(pictures.length > 0 && { images: pictures }),
  };
}

function renderAssistant(blocks: readonly AssistantBlock[]): Message[] {
  const { text, calls } = textAndCalls(blocks);
  if (text === '' && calls.length === 0) return [];
  return [
    {
      role: 'assistant',
      content: text,
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ name, input }) => ({ function: { name: toWireName(name), arguments: toSentInput(input) } })),
      }),
    },
  ];
}
