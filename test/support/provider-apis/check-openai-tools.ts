/** What both of OpenAI's APIs refuse of tools, calls and the form of an answer, in their words. `path` names the place, as in `tools[0].function`. */
import { strictSchemaProblem } from './check-answer-schema.js';
import { isRecord } from './check-fields.js';
import { openaiSchemaProblem } from './check-tool-schema.js';

const namePattern = /^[a-zA-Z0-9_-]+$/;
const maxNameLength = 64;
const answerFormats: readonly string[] = ['text', 'json_object', 'json_schema'];

export function checkFunction(tool: Record<string, unknown>, path: string): string | undefined {
  const wrong = checkName(tool.name, `${path}.name`);
  if (wrong !== undefined) return wrong;
  const { parameters } = tool;
  if (parameters === undefined || parameters === null) return undefined;
  if (!isRecord(parameters)) return `Invalid type for '${path}.parameters': expected an object.`;
  const problem = openaiSchemaProblem(parameters);
  return problem && `Invalid schema for function '${String(tool.name)}': ${problem}`;
}

export function checkCall(call: Record<string, unknown>, path: string): string | undefined {
  const wrong = checkName(call.name, `${path}.name`);
  if (wrong !== undefined) return wrong;
  if (typeof call.arguments !== 'string') return `Invalid type for '${path}.arguments': expected a string.`;
  return undefined;
}

export function checkText(value: unknown, path: string, { maxLength }: { readonly maxLength?: number } = {}): string | undefined {
  if (value === undefined) return `Missing required parameter: '${path}'.`;
  if (typeof value !== 'string') return `Invalid type for '${path}': expected a string.`;
  if (maxLength === undefined || value.length <= maxLength) return undefined;
  return `Invalid '${path}': string too long. Expected a string with maximum length ${maxLength}, but got a string with length ${value.length} instead.`;
}

export function checkImageUrl(url: unknown, path: string): string | undefined {
  if (typeof url !== 'string') return `Missing required parameter: '${path}'.`;
  if (/^https?:\/\/\S+$/.test(url)) return undefined;
  if (!url.startsWith('data:')) return `Invalid '${path}'. Expected a valid URL, but got a value with an invalid format.`;
  return /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/.test(url)
    ? undefined
    : "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].";
}

/** How the answer should look. `inner`: where the name and the schema stand, which is beside the type by default. */
export function checkAnswerFormat(format: unknown, path: string, inner?: string): string | undefined {
  if (format === undefined) return undefined;
  if (!isRecord(format) || !answerFormats.includes(String(format.type))) {
    return `Invalid value for '${path}.type'. Supported values are: 'json_object', 'json_schema', and 'text'.`;
  }
  if (format.type !== 'json_schema') return undefined;
  const at = inner === undefined ? path : `${path}.${inner}`;
  const named = inner === undefined ? format : format[inner];
  if (!isRecord(named)) return `Missing required parameter: '${at}'.`;
  const { name, schema, strict } = named;
  const wrong = checkName(name, `${at}.name`);
  if (wrong !== undefined) return wrong;
  if (!isRecord(schema)) return `Missing required parameter: '${at}.schema'.`;
  const found = strict === true ? strictSchemaProblem(schema, { allRequired: true, bounds: true }) : undefined;
  const context = found?.at.map((key) => `'${key}'`).join(', ');
  return found && `Invalid schema for response_format '${String(name)}': In context=(${context}), ${found.why}.`;
}

function checkName(name: unknown, path: string): string | undefined {
  const wrong = checkText(name, path, { maxLength: maxNameLength });
  if (wrong !== undefined) return wrong;
  return namePattern.test(String(name))
    ? undefined
    : `Invalid '${path}': string does not match pattern. Expected a string that matches the pattern '${namePattern.source}'.`;
}
