/** What the real Chat Completions API refuses, in its own words. Pure. Limits of a single model are not checked. */
import type { ApiError } from './api-error.js';
import { extraField, isRecord, type Fields } from './check-fields.js';
import { checkAnswerFormat, checkCall, checkFunction, checkImageUrl, checkText } from './check-openai-tools.js';
import { openAIError } from './openai-error.js';

const known: Fields = new Set([
  ...['model', 'messages', 'max_completion_tokens', 'max_tokens', 'metadata', 'n', 'parallel_tool_calls', 'prompt_cache_key'],
  ...['reasoning_effort', 'response_format', 'seed', 'service_tier', 'stop', 'store', 'stream', 'stream_options', 'temperature'],
  ...['tool_choice', 'tools', 'top_p', 'user', 'verbosity'],
]);

const knownOfMessage: Readonly<Record<string, Fields>> = {
  system: new Set(['role', 'content', 'name']),
  developer: new Set(['role', 'content', 'name']),
  user: new Set(['role', 'content', 'name']),
  assistant: new Set(['role', 'content', 'name', 'tool_calls', 'refusal', 'audio']),
  tool: new Set(['role', 'content', 'tool_call_id']),
};

const maxIdLength = 40;

export function checkChat(body: unknown): ApiError | undefined {
  if (!isRecord(body)) return openAIError(400, 'We could not parse the JSON body of your request.');
  const words =
    checkFields(body) ??
    checkAnswerFormat(body.response_format, 'response_format', 'json_schema') ??
    checkTools(body) ??
    checkMessages(body.messages as readonly unknown[]);
  return words === undefined ? undefined : openAIError(400, words);
}

function checkFields(body: Record<string, unknown>): string | undefined {
  if (typeof body.model !== 'string' || body.model === '') return 'you must provide a model parameter';
  const extra = extraField(body, known);
  if (extra !== undefined) return `Unrecognized request argument supplied: ${extra}`;
  if (!Array.isArray(body.messages)) return "Missing required parameter: 'messages'.";
  if (body.messages.length === 0) {
    return "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
  }
  const { max_completion_tokens: max } = body;
  if (max !== undefined && !(Number.isInteger(max) && Number(max) >= 1))
    return "Invalid 'max_completion_tokens': integer below minimum value.";
  if (body.stream_options !== undefined && body.stream !== true)
    return "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
  return undefined;
}

function checkTools({ tools }: Record<string, unknown>): string | undefined {
  if (tools === undefined) return undefined;
  if (!Array.isArray(tools)) return "Invalid type for 'tools': expected an array of objects.";
  if (tools.length === 0) return "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.";
  for (const [index, tool] of tools.entries()) {
    if (!isRecord(tool) || tool.type !== 'function' || !isRecord(tool.function))
      return `Missing required parameter: 'tools[${index}].function'.`;
    const wrong = checkFunction(tool.function, `tools[${index}].function`);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function checkMessages(messages: readonly unknown[]): string | undefined {
  let open: string[] = [];
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`;
    if (!isRecord(message)) return `Invalid type for '${path}': expected an object.`;
    const { role } = message;
    const fields = knownOfMessage[String(role)];
    if (!fields)
      return `Invalid value: '${String(role)}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`;
    const extra = extraField(message, fields);
    if (extra !== undefined) return `Unknown parameter: '${path}.${extra}'.`;
    if (role !== 'tool' && open.length > 0) return unanswered(open);
    const wrong = role === 'tool' ? checkResult(message, open, path) : (checkContent(message, path) ?? checkCalls(message, path));
    if (wrong !== undefined) return wrong;
    if (role === 'tool') open = open.filter((id) => id !== message.tool_call_id);
    else open = callIds(message);
  }
  return open.length > 0 ? unanswered(open) : undefined;
}

function unanswered(ids: readonly string[]): string {
  return (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
    `The following tool_call_ids did not have response messages: ${ids.join(', ')}`
  );
}

function checkResult(message: Record<string, unknown>, open: readonly string[], path: string): string | undefined {
  const wrong =
    checkText(message.tool_call_id, `${path}.tool_call_id`, { maxLength: maxIdLength }) ?? checkText(message.content, `${path}.content`);
  if (wrong !== undefined) return wrong;
  return open.includes(String(message.tool_call_id))
    ? undefined
    : "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
}

function checkContent({ role, content, tool_calls: calls }: Record<string, unknown>, path: string): string | undefined {
  if (typeof content === 'string') return undefined;
  if (content === null || content === undefined) {
    return role === 'assistant' && Array.isArray(calls) ? undefined : "Invalid value for 'content': expected a string, got null.";
  }
  if (!Array.isArray(content) || content.length === 0)
    return `Invalid type for '${path}.content': expected one of a string or array of objects.`;
  for (const [at, part] of content.entries()) {
    const place = `${path}.content[${at}]`;
    if (!isRecord(part)) return `Invalid type for '${place}': expected an object.`;
    const wrong =
      part.type === 'text'
        ? checkText(part.text, `${place}.text`)
        : part.type === 'image_url' && role === 'user'
          ? checkImageUrl(isRecord(part.image_url) ? part.image_url.url : undefined, `${place}.image_url.url`)
          : part.type === 'input_audio' && role === 'user'
            ? checkAudio(part.input_audio, `${place}.input_audio`)
            : part.type === 'file' && role === 'user'
              ? checkFile(part.file, `${place}.file`)
              : `Invalid value: '${String(part.type)}'.`;
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function checkFile(file: unknown, path: string): string | undefined {
  if (!isRecord(file) || typeof file.filename !== 'string') return `Missing required parameter: '${path}.filename'.`;
  return /^data:application\/pdf;base64,[A-Za-z0-9+/=]+$/.test(String(file.file_data))
    ? undefined
    : `Invalid '${path}.file_data': expected a base64-encoded data URL with an application/pdf MIME type.`;
}

function checkAudio(audio: unknown, path: string): string | undefined {
  if (!isRecord(audio)) return `Missing required parameter: '${path}'.`;
  if (audio.format !== 'wav' && audio.format !== 'mp3') {
    return `Invalid value: '${String(audio.format)}'. Supported values are: 'wav' and 'mp3'.`;
  }
  return /^[A-Za-z0-9+/=]+$/.test(String(audio.data)) ? undefined : `Invalid '${path}.data': expected base64.`;
}

function checkCalls({ tool_calls: calls }: Record<string, unknown>, path: string): string | undefined {
  if (calls === undefined) return undefined;
  if (!Array.isArray(calls) || calls.length === 0) {
    return `Invalid '${path}.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.`;
  }
  for (const [at, call] of calls.entries()) {
    const place = `${path}.tool_calls[${at}]`;
    if (!isRecord(call) || call.type !== 'function' || !isRecord(call.function)) return `Missing required parameter: '${place}.function'.`;
    const wrong = checkText(call.id, `${place}.id`, { maxLength: maxIdLength }) ?? checkCall(call.function, `${place}.function`);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function callIds({ tool_calls: calls }: Record<string, unknown>): string[] {
  return Array.isArray(calls) ? calls.map((call: { id: string }) => call.id) : [];
}
