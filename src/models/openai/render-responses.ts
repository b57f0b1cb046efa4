/**
 * From our words to the Responses API's. Pure, and the same bytes for the same request: the prompt cache goes by them.
 *
 * - Nothing is stored with the provider: the conversation is ours, and each request brings all of it.
 * - Reasoning goes back as the item it came as, encrypted. The item after it has no id then: ids are names of stored items.
 * - A request includes encrypted reasoning only if there is any: models that do not reason refuse the wish.
 */
import type {
  EasyInputMessage,
  FunctionTool,
  ResponseCreateParamsStreaming,
  ResponseInputContent,
  ResponseInputItem,
  ResponseReasoningItem,
} from 'openai/resources/responses/responses.js';
import type { AssistantBlock, ConversationMessage, MediaSource, UserMessage } from '../../records/message.js';
import { sentSchema } from '../answer-schema.js';
import type { ModelRequest, ToolDescription } from '../model.js';
import { asObject } from '../read-json.js';
import { PDF_TYPE, recordingsInWords, sentDocument, sentImage, sentText, markedResultText } from '../shown.js';
import { toSentInput } from '../tool-input.js';
import { toWellFormed, toWellFormedJson } from '../well-formed.js';
import { createWireIds, toWireName } from '../wire-names.js';
import { IMAGE_TYPES, MAX_CALL_ID } from './render-chat.js';

type WireId = (callId: string) => string;

/** The API refuses less. */
const MIN_OUTPUT_TOKENS = 16;

export function renderResponses(request: ModelRequest): ResponseCreateParamsStreaming {
  const { model, maxTokens, system, tools, messages, mustCall } = request;
  const answer = sentSchema('openai-responses', request);
  const wireId = createWireIds({ maxLength: MAX_CALL_ID });
  const instructions = toWellFormed(system);
  return {
    model,
    max_output_tokens: Math.max(maxTokens, MIN_OUTPUT_TOKENS),
    ...(instructions.trim() !== '' && { instructions }),
    ...(tools.length > 0 && { tools: tools.map(renderTool) }),
    ...(mustCall && { tool_choice: 'required' as const }),
    input: messages.flatMap((message) => renderMessage(message, wireId)),
    ...(answer && {
      text: { format: { type: 'json_schema' as const, name: answer.name, strict: true, schema: { ...answer.schema } } },
    }),
    store: false,
    ...(mayReason(model) && { include: ['reasoning.encrypted_content' as const] }),
    stream: true,
  };
}

function mayReason(model: string): boolean {
  return !/^(ft:)?(gpt-3|gpt-4|chatgpt)|-chat(-|$)/.test(model);
}

function renderTool({ name, description, inputSchema }: ToolDescription): FunctionTool {
  // Strict is the default here, and takes few schemas.
  return {
    type: 'function',
    name,
    description: toWellFormed(description),
    parameters: { ...toWellFormedJson(inputSchema) },
    strict: false,
  };
}

function renderMessage(message: ConversationMessage, wireId: WireId): ResponseInputItem[] {
  switch (message.role) {
    case 'user':
      return [{ type: 'message', role: 'user', content: renderUser(message) }];
    case 'tool':
      return [{ type: 'function_call_output', call_id: wireId(message.callId), output: markedResultText(message) }];
    case 'assistant':
      return message.blocks.flatMap((block, at) => renderBlock(block, message.blocks[at - 1], wireId));
    default:
      return message satisfies never;
  }
}

function renderUser(message: UserMessage): ResponseInputContent[] {
  const said = sentText(message.text);
  const words = [...recordingsInWords(message), ...(said === '' ? [] : [said])];
  const { images = [], documents = [] } = message;
  return [...documents.map(renderDocument), ...images.map(renderImage), ...words.map((text) => ({ type: 'input_text' as const, text }))];
}

function renderImage(image: MediaSource): ResponseInputContent {
  const sent = sentImage(image, { types: IMAGE_TYPES, urls: true });
  switch (sent.kind) {
    case 'base64':
      return { type: 'input_image', detail: 'auto', image_url: `data:${sent.mediaType};base64,${sent.base64}` };
    case 'url':
      return { type: 'input_image', detail: 'auto', image_url: sent.url };
    case 'words':
      return { type: 'input_text', text: sent.text };
    default:
      return sent satisfies never;
  }
}

function renderDocument(document: MediaSource): ResponseInputContent {
  const sent = sentDocument(document, { urls: true });
  switch (sent.kind) {
    case 'base64':
      return { type: 'input_file', filename: 'document.pdf', file_data: `data:${PDF_TYPE};base64,${sent.base64}` };
    case 'url':
      return { type: 'input_file', file_url: sent.url };
    case 'words':
      return { type: 'input_text', text: sent.text };
    default:
      return sent satisfies never;
  }
}

function renderBlock(block: AssistantBlock, before: AssistantBlock | undefined, wireId: WireId): ResponseInputItem[] {
  switch (block.kind) {
    case 'text': {
      const text = sentText(block.text);
      return text === '' ? [] : [{ type: 'message', role: 'assistant', content: text, ...phaseOf(before) }];
    }
    case 'thinking':
      return []; // a summary, for people
    case 'opaque':
      return renderReasoning(block.value);
    case 'tool-call':
      return [
        {
          type: 'function_call',
          call_id: wireId(block.callId),
          name: toWireName(block.name),
          arguments: JSON.stringify(toSentInput(block.input)),
        },
      ];
    default:
      return block satisfies never;
  }
}

/** Its text is not taken back, and its status belongs to answers. */
function renderReasoning(value: unknown): ResponseInputItem[] {
  if (asObject(value).type !== 'reasoning') return [];
  const { content: _content, status: _status, ...item } = asObject(value);
  return [item as unknown as ResponseReasoningItem];
}

/** Whether a message was on the way or the last word, as the block before it remembers. */
function phaseOf(before: AssistantBlock | undefined): Pick<EasyInputMessage, 'phase'> {
  const { type, phase } = before?.kind === 'opaque' ? asObject(before.value) : {};
  return type === 'message_phase' && (phase === 'commentary' || phase === 'final_answer') ? { phase } : {};
}
