/** What the real Gemini API refuses, in its own words. Pure. Limits of a single model are not checked. */
import type { ApiError } from './api-error.js';
import { extraField, isRecord, type Fields } from './check-fields.js';
import { geminiSchemaProblem } from './check-tool-schema.js';
import { geminiError } from './gemini-error.js';

const known: Fields = new Set([
  'contents',
  'tools',
  'toolConfig',
  'safetySettings',
  'systemInstruction',
  'generationConfig',
  'cachedContent',
  'serviceTier',
]);
const knownOfGeneration: Fields = new Set([
  ...[
    'stopSequences',
    'responseMimeType',
    'responseSchema',
    'responseJsonSchema',
    'responseModalities',
    'candidateCount',
    'maxOutputTokens',
  ],
  ...['temperature', 'topP', 'topK', 'seed', 'presencePenalty', 'frequencyPenalty', 'thinkingConfig', 'mediaResolution'],
]);
const knownOfFunction: Fields = new Set([
  'name',
  'description',
  'behavior',
  'parameters',
  'parametersJsonSchema',
  'response',
  'responseJsonSchema',
]);
const data = ['text', 'inlineData', 'functionCall', 'functionResponse', 'fileData', 'executableCode', 'codeExecutionResult'];
const knownOfPart: Fields = new Set([...data, 'thought', 'thoughtSignature', 'videoMetadata', 'mediaResolution']);
const mediaTypes = [
  'application/pdf',
  ...['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif'],
  ...['audio/wav', 'audio/mp3', 'audio/aiff', 'audio/aac', 'audio/ogg', 'audio/flac'],
  ...['mp4', 'mpeg', 'quicktime', 'mov', 'avi', 'x-flv', 'mpg', 'webm', 'wmv', '3gpp'].map((type) => `video/${type}`),
];

interface Content {
  readonly role: string;
  readonly parts: readonly Record<string, unknown>[];
}

export function checkGemini(body: unknown, model: string): ApiError | undefined {
  if (!isRecord(body)) return geminiError(400, 'Invalid JSON payload received.');
  const words = checkFields(body) ?? checkTools(body.tools) ?? checkContents(body.contents, model);
  return words === undefined ? undefined : geminiError(400, words);
}

function unknownName(name: string, at: string): string {
  return `Invalid JSON payload received. Unknown name "${name}"${at === '' ? '' : ` at '${at}'`}: Cannot find field.`;
}

function checkFields(body: Record<string, unknown>): string | undefined {
  const extra = extraField(body, known);
  if (extra !== undefined) return unknownName(extra, '');
  const { generationConfig: config, systemInstruction: system } = body;
  if (isRecord(config)) {
    const odd = extraField(config, knownOfGeneration);
    if (odd !== undefined) return unknownName(odd, 'generation_config');
    if (config.maxOutputTokens !== undefined && !(Number(config.maxOutputTokens) >= 1)) {
      return '* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must be positive.';
    }
    const { responseJsonSchema: schema, responseMimeType: type } = config;
    if (schema !== undefined && !isRecord(schema)) return `Invalid value at 'generation_config.response_json_schema'`;
    if (schema !== undefined && type !== 'application/json') {
      return '* GenerateContentRequest.generation_config.response_json_schema: only allowed when response_mime_type is application/json.';
    }
    const problem = isRecord(schema) ? geminiSchemaProblem(schema) : undefined;
    if (problem !== undefined) return `* GenerateContentRequest.generation_config.response_json_schema: ${problem}`;
    if (type === 'application/json' && body.tools !== undefined) {
      return "Function calling with a response mime type: 'application/json' is unsupported";
    }
  }
  if (isRecord(system) && !(Array.isArray(system.parts) && system.parts.length > 0)) {
    return '* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty.';
  }
  return undefined;
}

function checkTools(tools: unknown): string | undefined {
  if (tools === undefined) return undefined;
  if (!Array.isArray(tools)) return `Invalid value at 'tools'`;
  for (const [at, tool] of tools.entries()) {
    const list: unknown = isRecord(tool) ? tool.functionDeclarations : undefined;
    for (const [index, declared] of (Array.isArray(list) ? list : []).entries()) {
      const path = `tools[${at}].function_declarations[${index}]`;
      if (!isRecord(declared)) return `Invalid value at '${path}'`;
      const extra = extraField(declared, knownOfFunction);
      if (extra !== undefined) return unknownName(extra, path);
      const wrong = checkName(declared.name, `GenerateContentRequest.${path}.name`);
      if (wrong !== undefined) return wrong;
      const { parametersJsonSchema: schema } = declared;
      if (schema !== undefined && !isRecord(schema)) return `Invalid value at '${path}.parameters_json_schema'`;
      const problem = schema && geminiSchemaProblem(schema);
      if (problem !== undefined) return `* GenerateContentRequest.${path}.parameters_json_schema: ${problem}`;
    }
  }
  return undefined;
}

function checkName(name: unknown, path: string): string | undefined {
  if (typeof name !== 'string' || name === '') return `* ${path}: Name cannot be empty.`;
  if (/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/.test(name)) return undefined;
  return (
    `* ${path}: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), ` +
    'underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.'
  );
}

function checkContents(contents: unknown, model: string): string | undefined {
  if (!Array.isArray(contents) || contents.length === 0) return '* GenerateContentRequest.contents: contents is not specified';
  for (const [index, content] of contents.entries()) {
    const path = `GenerateContentRequest.contents[${index}]`;
    if (!isRecord(content)) return `Invalid value at 'contents[${index}]'`;
    const extra = extraField(content, new Set(['role', 'parts']));
    if (extra !== undefined) return unknownName(extra, `contents[${index}]`);
    if (content.role !== 'user' && content.role !== 'model') return 'Please use a valid role: user, model.';
    if (!Array.isArray(content.parts) || content.parts.length === 0) return `* ${path}.parts: contents.parts must not be empty.`;
    for (const [at, part] of content.parts.entries()) {
      const wrong = checkPart(part, `${path}.parts[${at}]`);
      if (wrong !== undefined) return wrong;
    }
  }
  return checkTurns(contents as readonly Content[]) ?? checkSignatures(contents as readonly Content[], model);
}

function checkPart(part: unknown, path: string): string | undefined {
  if (!isRecord(part)) return `Invalid value at '${path}'`;
  const extra = extraField(part, knownOfPart);
  if (extra !== undefined) return unknownName(extra, path);
  const given = data.filter((field) => part[field] !== undefined);
  if (given.length !== 1) return `* ${path}.data: required oneof field 'data' must have one initialized field`;
  const { inlineData, fileData, functionCall, functionResponse } = part;
  if (isRecord(inlineData)) {
    if (!mediaTypes.includes(String(inlineData.mimeType))) return `Unsupported MIME type: ${String(inlineData.mimeType)}`;
    return /^[A-Za-z0-9+/=]+$/.test(String(inlineData.data))
      ? undefined
      : `Invalid value at '${path}.inline_data.data' (TYPE_BYTES), Base64 decoding failed`;
  }
  if (isRecord(fileData)) return typeof fileData.fileUri === 'string' ? undefined : `* ${path}.file_data.file_uri: must not be empty.`;
  if (isRecord(functionCall)) {
    if (functionCall.args !== undefined && !isRecord(functionCall.args)) return `Invalid value at '${path}.function_call.args' (Map)`;
    return checkName(functionCall.name, `${path}.function_call.name`);
  }
  if (isRecord(functionResponse)) {
    if (!isRecord(functionResponse.response)) return `Invalid value at '${path}.function_response.response' (Map)`;
    return checkName(functionResponse.name, `${path}.function_response.name`);
  }
  return undefined;
}

function count(content: Content | undefined, field: 'functionCall' | 'functionResponse'): number {
  return (content?.parts ?? []).filter((part) => part[field] !== undefined).length;
}

function checkTurns(contents: readonly Content[]): string | undefined {
  for (const [index, content] of contents.entries()) {
    const before = contents[index - 1];
    if (count(content, 'functionCall') > 0) {
      if (content.role !== 'model' || before?.role !== 'user') {
        return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.';
      }
      if (count(contents[index + 1], 'functionResponse') !== count(content, 'functionCall')) return unequal;
    }
    if (count(content, 'functionResponse') > 0 && count(content, 'functionResponse') !== count(before, 'functionCall')) {
      return count(before, 'functionCall') > 0
        ? unequal
        : 'Please ensure that function response turn comes immediately after a function call turn.';
    }
  }
  return undefined;
}

const unequal =
  'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';

/** In the turn that is still going on, from Gemini 3 on: the first call of each step. */
function checkSignatures(contents: readonly Content[], model: string): string | undefined {
  if (!/gemini-([3-9]|\d\d)/.test(model)) return undefined;
  const begin = contents.findLastIndex((content) => content.role === 'user' && count(content, 'functionResponse') === 0);
  for (const [offset, content] of contents.slice(begin + 1).entries()) {
    const at = content.parts.findIndex((part) => part.functionCall !== undefined);
    const call = content.parts[at];
    if (!call || (typeof call.thoughtSignature === 'string' && call.thoughtSignature !== '')) continue;
    return (
      'Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. ' +
      `Additional data, function call \`default_api:${String((call.functionCall as { name?: unknown }).name)}\`, position ${begin + 1 + offset}.`
    );
  }
  return undefined;
}
