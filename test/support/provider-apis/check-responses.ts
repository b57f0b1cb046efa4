/** What the real Responses API refuses, in its own words. Pure. Limits of a single model are not checked. */
import type { ApiError } from './api-error.js';
import { extraField, isRecord, type Fields } from './check-fields.js';
import { checkAnswerFormat, checkCall, checkFunction, checkImageUrl, checkText } from './check-openai-tools.js';
import { openAIError } from './openai-error.js';

const known: Fields = new Set([
  ...['background', 'conversation', 'include', 'input', 'instructions', 'max_output_tokens', 'max_tool_calls', 'metadata', 'model'],
  ...['parallel_tool_calls', 'previous_response_id', 'prompt', 'prompt_cache_key', 'reasoning', 'service_tier', 'store', 'stream'],
  ...['stream_options', 'temperature', 'text', 'tool_choice', 'tools', 'top_p', 'truncation'],
]);

const knownOfItem: Readonly<Record<string, Fields>> = {
  message: new Set(['type', 'role', 'content', 'phase', 'id', 'status']),
  function_call: new Set(['type', 'call_id', 'name', 'arguments', 'id', 'status', 'namespace', 'caller']),
  function_call_output: new Set(['type', 'call_id', 'output', 'id', 'status']),
  reasoning: new Set(['type', 'id', 'summary', 'content', 'encrypted_content', 'status']),
};

const maxIdLength = 64;
const minOutputTokens = 16;

export function checkResponses(body: unknown): ApiError | undefined {
  if (!isRecord(body)) return openAIError(400, 'We could not parse the JSON body of your request.');
  const words =
    checkFields(body) ??
    checkAnswerFormat(isRecord(body.text) ? body.text.format : undefined, 'text.format') ??
    checkTools(body) ??
    checkInput(body.input as readonly unknown[], body.store !== false);
  return words === undefined ? undefined : openAIError(400, words);
}

function checkFields(body: Record<string, unknown>): string | undefined {
  if (typeof body.model !== 'string' || body.model === '') return "Missing required parameter: 'model'.";
  const extra = extraField(body, known);
  if (extra !== undefined) return `Unknown parameter: '${extra}'.`;
  const max = body.max_output_tokens;
  if (max !== undefined && !(Number.isInteger(max) && Number(max) >= minOutputTokens)) {
    return `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${minOutputTokens}, but got ${String(max)} instead.`;
  }
  if (!Array.isArray(body.input) || body.input.length === 0)
    return "One of 'input' or 'previous_response_id' or 'prompt' must be provided.";
  const wantsEncrypted = Array.isArray(body.include) && body.include.includes('reasoning.encrypted_content');
  return wantsEncrypted && /^gpt-(3|4)/.test(body.model) ? 'Encrypted content is not supported with this model.' : undefined;
}

function checkTools({ tools }: Record<string, unknown>): string | undefined {
  if (tools === undefined) return undefined;
  if (!Array.isArray(tools)) return "Invalid type for 'tools': expected an array of objects.";
  for (const [index, tool] of tools.entries()) {
    if (!isRecord(tool) || tool.type !== 'function') return `Invalid value: '${String((tool as { type?: unknown }).type)}'.`;
    const wrong = checkFunction(tool, `tools[${index}]`) ?? checkStrict(tool);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

/** Strict is the default, and a schema for it closes its objects. */
function checkStrict({ name, strict, parameters }: Record<string, unknown>): string | undefined {
  if (strict === false || (isRecord(parameters) && parameters.additionalProperties === false)) return undefined;
  return `Invalid schema for function '${String(name)}': In context=(), 'additionalProperties' is required to be supplied and to be false.`;
}

function checkInput(items: readonly unknown[], stored: boolean): string | undefined {
  const called = new Set<unknown>();
  const answered = new Set<unknown>();
  for (const [index, item] of items.entries()) {
    const path = `input[${index}]`;
    if (!isRecord(item)) return `Invalid type for '${path}': expected an object.`;
    const type = String(item.type ?? 'message');
    const fields = knownOfItem[type];
    if (!fields) return `Invalid value: '${type}'. Supported values are: '${Object.keys(knownOfItem).join("', '")}'.`;
    const extra = extraField(item, fields);
    if (extra !== undefined) return `Unknown parameter: '${path}.${extra}'.`;
    const wrong = checkItem(type, item, path) ?? (type === 'reasoning' ? checkReasoning(item, items[index + 1], path, stored) : undefined);
    if (wrong !== undefined) return wrong;
    if (type === 'function_call') called.add(item.call_id);
    if (type !== 'function_call_output') continue;
    if (!called.has(item.call_id)) return `No tool call found for function call output with call_id ${String(item.call_id)}.`;
    answered.add(item.call_id);
  }
  const open = [...called].find((id) => !answered.has(id));
  return open === undefined ? undefined : `No tool output found for function call ${String(open)}.`;
}

function checkItem(type: string, item: Record<string, unknown>, path: string): string | undefined {
  switch (type) {
    case 'message':
      return checkMessage(item, path);
    case 'function_call':
      return checkText(item.call_id, `${path}.call_id`, { maxLength: maxIdLength }) ?? checkCall(item, path);
    case 'function_call_output':
      return checkText(item.call_id, `${path}.call_id`, { maxLength: maxIdLength }) ?? checkText(item.output, `${path}.output`);
    default:
      return undefined;
  }
}

function checkMessage({ role, content }: Record<string, unknown>, path: string): string | undefined {
  if (!['user', 'assistant', 'system', 'developer'].includes(String(role))) return `Invalid value: '${String(role)}'.`;
  if (typeof content === 'string') return undefined;
  if (!Array.isArray(content) || content.length === 0)
    return `Invalid type for '${path}.content': expected one of a string or array of objects.`;
  const allowed = role === 'assistant' ? ['output_text', 'refusal'] : ['input_text', 'input_image', 'input_file'];
  for (const [at, part] of content.entries()) {
    const place = `${path}.content[${at}]`;
    if (!isRecord(part) || !allowed.includes(String(part.type))) {
      return `Invalid value: '${String((part as { type?: unknown }).type)}'. Supported values are: '${allowed.join("', '")}'.`;
    }
    const wrong =
      part.type === 'input_image'
        ? checkImageUrl(part.image_url, `${place}.image_url`)
        : part.type === 'input_file'
          ? checkFile(part, place)
          : checkText(part.text ?? part.refusal, `${place}.text`);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function checkFile({ file_data: data, file_url: url, filename }: Record<string, unknown>, path: string): string | undefined {
  if (typeof url === 'string') return undefined;
  if (typeof filename !== 'string') return `Missing required parameter: '${path}.filename'.`;
  return /^data:application\/pdf;base64,[A-Za-z0-9+/=]+$/.test(String(data)) ? undefined : `Invalid '${path}.file_data'.`;
}

function checkReasoning(item: Record<string, unknown>, next: unknown, path: string, stored: boolean): string | undefined {
  const { id, summary, content, encrypted_content: encrypted } = item;
  const wrong = checkText(id, `${path}.id`);
  if (wrong !== undefined) return wrong;
  if (!Array.isArray(summary)) return `Missing required parameter: '${path}.summary'.`;
  if (Array.isArray(content) && content.length > 0) {
    return `Invalid '${path}.content': array too long. Expected an array with maximum length 0, but got an array with length ${content.length} instead.`;
  }
  if (!stored && typeof encrypted !== 'string') {
    return `Item with id '${String(id)}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`;
  }
  const follows = isRecord(next) && (next.type === 'reasoning' || next.type === 'function_call' || next.role === 'assistant');
  return follows ? undefined : `Item '${String(id)}' of type 'reasoning' was provided without its required following item.`;
}
