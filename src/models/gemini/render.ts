/**
 * From our words to Gemini's. Pure, and the same bytes for the same request: the prompt cache goes by them.
 *
 * - Messages come normalized. Results of one batch of calls are one message, in the order of the calls, by which the API pairs them; ids
 *   are not sent, as ours are not the ones it gave.
 * - A thought signature goes back on the part it came on. From Gemini 3 on, the API refuses the first call of a batch without one; if
 *   another model made the call, the API's own word for that stands in.
 * - The SDK adds nothing of its own: it calls no functions, and makes no second request.
 */
import type { Content, FunctionCallingConfigMode, FunctionDeclaration, GenerateContentParameters, Part } from '@google/genai' with {
  'resolution-mode': 'import',
};
import type { AssistantBlock, ConversationMessage, MediaSource, ToolResultMessage, UserMessage } from '../../records/message.js';
import { sentSchema } from '../answer-schema.js';
import type { ModelRequest, ToolDescription } from '../model.js';
import { asObject, asText } from '../read-json.js';
import { sentDocument, sentImage, sentRecording, sentText, type SentMedia, toolResultText } from '../shown.js';
import { toSentInput } from '../tool-input.js';
import { toWellFormed, toWellFormedJson } from '../well-formed.js';
import { toWireName } from '../wire-names.js';

const IMAGE_TYPES: readonly string[] = ['image/jpeg', 'image/png', 'image/webp', 'image/heic', 'image/heif'];

const AUDIO_TYPES: readonly string[] = ['wav', 'mp3', 'aiff', 'aac', 'ogg', 'flac'].map((type) => `audio/${type}`);
const VIDEO_TYPES: readonly string[] = ['mp4', 'mpeg', 'quicktime', 'mov', 'avi', 'x-flv', 'mpg', 'webm', 'wmv', '3gpp'].map(
  (type) => `video/${type}`,
);

const NO_SIGNATURE = 'skip_thought_signature_validator';

export function renderRequest(request: ModelRequest): GenerateContentParameters {
  const { model, maxTokens, system, tools, messages, mustCall } = request;
  // Beside tools it is refused by models before the third generation.
  const schema = tools.length === 0 ? sentSchema('gemini', request)?.schema : undefined;
  const instructions = toWellFormed(system);
  return {
    model,
    contents: renderMessages(messages, { needsSignature: isGemini3OrLater(model) }),
    config: {
      ...(instructions.trim() !== '' && { systemInstruction: { parts: [{ text: instructions }] } }),
      maxOutputTokens: maxTokens,
      ...(schema && { responseMimeType: 'application/json', responseJsonSchema: schema }),
      ...(tools.length > 0 && { tools: [{ functionDeclarations: tools.map(renderTool) }] }),
      ...(mustCall && { toolConfig: { functionCallingConfig: { mode: 'ANY' as FunctionCallingConfigMode } } }),
      automaticFunctionCalling: { disable: true },
      automaticContinuation: false,
    },
  };
}

function isGemini3OrLater(model: string): boolean {
  const [, version] = /^(?:models\/)?gemini-(\d+)/.exec(model) ?? [];
  // `gemini-flash-latest` and the like are of today.
  return version === undefined ? /gemini-\w+-latest/.test(model) : Number(version) >= 3;
}

function renderTool({ name, description, inputSchema }: ToolDescription): FunctionDeclaration {
  return { name: toFunctionName(name), description: toWellFormed(description), parametersJsonSchema: toWellFormedJson(inputSchema) };
}

/** A name begins with a letter or an underscore here; `answer.ts` finds the tool's own again. */
export function toFunctionName(name: string): string {
  const wireName = toWireName(name);
  return /^[a-zA-Z_]/.test(wireName) ? wireName : `_${wireName}`.slice(0, 64);
}

function renderMessages(messages: readonly ConversationMessage[], options: { readonly needsSignature: boolean }): Content[] {
  const contents: Content[] = [];
  let results: Part[] | undefined;
  let said: Part[] | undefined;
  for (const message of messages) {
    if (message.role === 'tool') {
      if (!results) contents.push({ role: 'user', parts: (results = []) });
      results.push(renderResult(message));
      said = undefined;
      continue;
    }
    results = undefined;
    const isUser = message.role === 'user';
    const parts = isUser ? renderUser(message) : renderAssistant(message.blocks, options);
    if (parts.length === 0) continue;
    if (isUser && said) said.push(...parts);
    else contents.push({ role: isUser ? 'user' : 'model', parts });
    said = isUser ? (said ?? parts) : undefined;
  }
  return contents;
}

function renderResult(result: ToolResultMessage): Part {
  const text = toolResultText(result);
  return {
    functionResponse: { name: toFunctionName(result.name), response: result.outcome === 'ok' ? { output: text } : { error: text } },
  };
}

function renderUser({ text, images = [], audio = [], video = [], documents = [] }: UserMessage): Part[] {
  const said = sentText(text);
  return [
    ...documents.map((source) => renderMedia(sentDocument(source, { urls: true }))),
    ...images.map((image) => renderMedia(sentImage(image, { types: IMAGE_TYPES, urls: true }))),
    ...audio.map((source) => renderMedia(sentRecording('audio', withKnownType(source), { types: AUDIO_TYPES, urls: true }))),
    ...video.map((source) => renderMedia(sentRecording('video', source, { types: VIDEO_TYPES, urls: true }))),
    ...(said === '' ? [] : [{ text: said }]),
  ];
}

/** The API has other words for the two most usual ones. */
function withKnownType(source: MediaSource): MediaSource {
  const mediaType = { 'audio/mpeg': 'audio/mp3', 'audio/x-wav': 'audio/wav' }[source.mediaType] ?? source.mediaType;
  return { ...source, mediaType };
}

function renderMedia(sent: SentMedia): Part {
  switch (sent.kind) {
    case 'base64':
      return { inlineData: { mimeType: sent.mediaType, data: sent.base64 } };
    case 'url':
      return { fileData: { mimeType: sent.mediaType, fileUri: sent.url } };
    case 'words':
      return { text: sent.text };
    default:
      return sent satisfies never;
  }
}

function renderAssistant(blocks: readonly AssistantBlock[], { needsSignature }: { readonly needsSignature: boolean }): Part[] {
  let called = false;
  return blocks.flatMap((block, at): Part[] => {
    switch (block.kind) {
      case 'text': {
        const text = sentText(block.text);
        return text === '' ? [] : [{ text }];
      }
      case 'thinking':
        return []; // a summary, for people
      case 'opaque': {
        const { on, signature } = toSignature(block);
        return on === 'text' ? [{ text: '', thoughtSignature: signature }] : [];
      }
      case 'tool-call': {
        const { on, signature } = toSignature(blocks[at - 1]);
        const signed = on === 'call' ? signature : needsSignature && !called ? NO_SIGNATURE : undefined;
        called = true;
        return [
          {
            functionCall: { name: toFunctionName(block.name), args: toSentInput(block.input) },
            ...(signed !== undefined && { thoughtSignature: signed }),
          },
        ];
      }
      default:
        return block satisfies never;
    }
  });
}

/** What `answer.ts` kept of a signature: a block of its own, before the call or after the text that it signs. */
function toSignature(block: AssistantBlock | undefined): { readonly on?: string; readonly signature?: string } {
  const value = block?.kind === 'opaque' ? asObject(block.value) : {};
  return value.type === 'thought_signature' ? { on: asText(value.on), signature: asText(value.signature) } : {};
}
