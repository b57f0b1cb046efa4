/**
 * A model without native tool calls, made to use tools (seed 000, "Streaming & Tool Parsing"): what it may call is in the
 * system prompt, its calls and their results go as text, and what it writes is read strictly (calls.ts).
 */
import { isBodyRef, shownText, type AssistantBlock, type ConversationMessage, type JsonValue } from '../../records/message.js';
import type { Model, ModelRequest, ModelResponse, TextToolFormat } from '../model.js';
import { parseTextToolCalls, textToolInstructions } from './calls.js';
import { isRecord } from '../../platform/json.js';

export function withTextTools(model: Model, format: TextToolFormat): Model {
  return {
    provider: model.provider,
    stream: async (request, options) => readCalls(await model.stream(describeTools(request, format), options), request, format),
  };
}

function describeTools(request: ModelRequest, format: TextToolFormat): ModelRequest {
  const { answerSchema, ...rest } = request;
  const { system, tools, messages } = rest;
  const instructions = textToolInstructions(format, tools);
  return {
    ...rest,
    // A call in words would not be of it.
    ...(answerSchema && tools.length === 0 && { answerSchema }),
    system: [system, instructions].filter((text) => text !== '').join('\n\n'),
    tools: [],
    messages: messages.map((message) => toWords(message, format)),
  };
}

function toWords(message: ConversationMessage, format: TextToolFormat): ConversationMessage {
  if (message.role === 'tool') return { role: 'user', text: `Result of ${message.name} (${message.outcome}):\n${shownText(message.text)}` };
  if (message.role === 'user') return message;
  const blocks = message.blocks.map((block): AssistantBlock => {
    if (block.kind !== 'tool-call') return block;
    return { kind: 'text', text: writeCall(block.name, block.input, format) };
  });
  return { ...message, blocks };
}

function writeCall(name: string, input: JsonValue, format: TextToolFormat): string {
  if (format === 'json') return JSON.stringify({ tool: name, input });
  const args = isRecord(input) && !isBodyRef(input) ? Object.entries(input) : [];
  const lines = args.map(
    ([key, value]) => `<arg name="${escaped(key)}">${escaped(typeof value === 'string' ? value : JSON.stringify(value))}</arg>`,
  );
  return [`<tool name="${escaped(name)}">`, ...lines, '</tool>'].join('\n');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** A call that was cut off is none: only a whole answer is read. */
function readCalls(response: ModelResponse, { tools }: ModelRequest, format: TextToolFormat): ModelResponse {
  if (response.stop !== 'end') return response;
  const answer = response.blocks.flatMap((block) => (block.kind === 'text' ? [shownText(block.text)] : [])).join('');
  const { text, calls, problems } = parseTextToolCalls(answer, { format, tools });
  if (calls.length === 0 && problems.length === 0) return response;
  const notes = problems.map((problem) => `[${problem}]`);
  const rest = [text.trim(), ...notes].filter((line) => line !== '').join('\n');
  return {
    ...response,
    stop: calls.length > 0 ? 'tool-calls' : 'end',
    blocks: [
      ...response.blocks.filter((block) => block.kind !== 'text'),
      ...(rest === '' ? [] : [{ kind: 'text', text: rest } as const]),
      ...calls.map(({ name, input }, i) => ({ kind: 'tool-call', callId: `text_${i + 1}`, name, input }) as const),
    ],
  };
}
