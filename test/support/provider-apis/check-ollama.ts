/**
 * What a real Ollama refuses, in its own words. Pure. It takes fields that it does not know, and does not look at how
 * calls and results fit together: what its templates make of them is the model's to see.
 */
import { ollamaSchemaProblem } from './check-tool-schema.js';
import type { ApiError } from './api-error.js';
import { isRecord } from './check-fields.js';
import { ollamaError } from './ollama-error.js';

export function checkOllama(body: unknown): ApiError | undefined {
  if (!isRecord(body)) return ollamaError(400, 'invalid character looking for beginning of value');
  const words = checkFields(body) ?? checkTools(body.tools) ?? checkMessages(body.messages);
  return words === undefined ? undefined : ollamaError(400, words);
}

function mismatched(value: unknown, field: string, type: string): string {
  const kind = Array.isArray(value) ? 'array' : isRecord(value) ? 'object' : typeof value;
  return `json: cannot unmarshal ${kind} into Go struct field ${field} of type ${type}`;
}

function checkFields({ model, stream, options, format }: Record<string, unknown>): string | undefined {
  if (model === undefined || model === '') return 'model is required';
  if (typeof model !== 'string') return mismatched(model, 'ChatRequest.model', 'string');
  if (stream !== undefined && typeof stream !== 'boolean') return mismatched(stream, 'ChatRequest.stream', 'bool');
  if (format !== undefined && format !== '' && format !== 'json' && !isRecord(format))
    return `invalid format: ${JSON.stringify(format)}; expected "json" or a valid JSON Schema object`;
  if (options !== undefined && !isRecord(options)) return mismatched(options, 'ChatRequest.options', 'map[string]interface {}');
  return undefined;
}

function checkTools(tools: unknown): string | undefined {
  if (tools === undefined) return undefined;
  if (!Array.isArray(tools)) return mismatched(tools, 'ChatRequest.tools', 'api.Tools');
  for (const tool of tools) {
    if (!isRecord(tool) || !isRecord(tool.function)) return mismatched(tool, 'ChatRequest.tools.function', 'api.ToolFunction');
    const { name, parameters } = tool.function;
    if (typeof name !== 'string') return mismatched(name, 'ToolFunction.tools.function.name', 'string');
    if (parameters !== undefined && !isRecord(parameters))
      return mismatched(parameters, 'ToolFunction.tools.function.parameters', 'struct');
    const problem = parameters && ollamaSchemaProblem(parameters);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function checkMessages(messages: unknown): string | undefined {
  if (!Array.isArray(messages)) return mismatched(messages, 'ChatRequest.messages', '[]api.Message');
  for (const message of messages) {
    if (!isRecord(message)) return mismatched(message, 'ChatRequest.messages', 'api.Message');
    const { role, content, images, tool_calls: calls } = message;
    if (typeof role !== 'string') return mismatched(role, 'ChatRequest.messages.role', 'string');
    if (typeof content !== 'string') return mismatched(content, 'ChatRequest.messages.content', 'string');
    const wrong = checkImages(images) ?? checkCalls(calls);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function checkImages(images: unknown): string | undefined {
  if (images === undefined) return undefined;
  if (!Array.isArray(images)) return mismatched(images, 'ChatRequest.messages.images', '[]api.ImageData');
  return images.every((image) => typeof image === 'string' && /^[A-Za-z0-9+/]+=*$/.test(image))
    ? undefined
    : 'illegal base64 data at input byte 0';
}

function checkCalls(calls: unknown): string | undefined {
  if (calls === undefined) return undefined;
  if (!Array.isArray(calls)) return mismatched(calls, 'ChatRequest.messages.tool_calls', '[]api.ToolCall');
  for (const call of calls) {
    const called: unknown = isRecord(call) ? call.function : undefined;
    if (!isRecord(called)) return mismatched(called, 'ChatRequest.messages.tool_calls.function', 'api.ToolCallFunction');
    if (!isRecord(called.arguments)) {
      return mismatched(called.arguments, 'ChatRequest.messages.tool_calls.function.arguments', 'api.ToolCallFunctionArguments');
    }
  }
  return undefined;
}
