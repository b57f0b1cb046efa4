/**
 * What the real Messages API refuses, in its own words. Pure.
 *
 * Wordings are those of 400s reported in public issue trackers; the limits of a single model (its context, its largest
 * `max_tokens`, whether it takes a prefilled answer) are not checked.
 */
import { invalidRequest, type ApiError } from './api-error.js';
import { strictSchemaProblem } from './check-answer-schema.js';
import { checkBody } from './check-body.js';
import { checkMessages } from './check-messages.js';
import { anthropicSchemaProblem } from './check-tool-schema.js';
import { extraField, isRecord, toolNamePattern, type Fields } from './check-fields.js';

export interface CheckOptions {
  /** For `count_tokens`, which takes no `max_tokens`. */
  readonly counting?: boolean;
  /** The `anthropic-version` it came with; default the SDK's own, 2026-10-21. */
  readonly version?: string;
}

const known: Fields = new Set([
  'cache_control',
  'container',
  'diagnostics',
  'inference_geo',
  'max_tokens',
  'messages',
  'metadata',
  'model',
  'output_config',
  'service_tier',
  'speed',
  'stop_sequences',
  'stream',
  'system',
  'thinking',
  'tool_choice',
  'tools',
]);

/** Taken from the API with version 2026-10-21. */
const knownBefore2026: Fields = new Set([...known, 'temperature', 'top_k', 'top_p']);

const knownOfTool: Fields = new Set([
  'allowed_callers',
  'cache_control',
  'defer_loading',
  'description',
  'eager_input_streaming',
  'input_examples',
  'input_schema',
  'name',
  'strict',
  'type',
]);

const maxCacheMarks = 4;

/** Undefined when the API would take it. */
export function checkRequest(body: unknown, options: CheckOptions = {}): ApiError | undefined {
  if (!isRecord(body)) return invalidRequest('Input should be a valid dictionary or object to extract fields from');
  if (hasLoneSurrogate(body)) return checkBody(JSON.stringify(body));
  const words =
    checkFields(body, options) ??
    checkTools(body) ??
    checkMessages(body) ??
    checkCacheMarks(body) ??
    checkThinking(body) ??
    checkOutput(body);
  return words === undefined ? undefined : invalidRequest(words);
}

function checkFields(body: Record<string, unknown>, { counting, version }: CheckOptions): string | undefined {
  if (body.model === undefined) return 'model: Field required';
  if (typeof body.model !== 'string') return 'model: Input should be a valid string';
  if (body.model === '') return 'model: String should have at least 1 character';
  if (!counting) {
    if (body.max_tokens === undefined) return 'max_tokens: Field required';
    if (!Number.isInteger(body.max_tokens)) return 'max_tokens: Input should be a valid integer';
    if ((body.max_tokens as number) < 1) return 'max_tokens: must be greater than or equal to 1';
  }
  if (body.messages === undefined) return 'messages: Field required';
  if (!Array.isArray(body.messages)) return 'messages: Input should be a valid list';
  const extra = extraField(body, version === '2023-06-01' ? knownBefore2026 : known);
  if (extra !== undefined) return `${extra}: Extra inputs are not permitted`;
  if (body.stream !== undefined && typeof body.stream !== 'boolean') return 'stream: Input should be a valid boolean';
  return checkSystem(body.system);
}

function checkSystem(system: unknown): string | undefined {
  if (system === undefined || typeof system === 'string') return undefined;
  if (!Array.isArray(system)) return 'system: Input should be a valid list';
  for (const [index, block] of system.entries()) {
    if (!isRecord(block) || block.type !== 'text' || typeof block.text !== 'string') return `system.${index}.type: Input should be 'text'`;
    if (block.text === '') return 'system: text content blocks must be non-empty';
    if (block.text.trim() === '') return 'system: text content blocks must contain non-whitespace text';
  }
  return undefined;
}

function checkTools({ tools, tool_choice: choice }: Record<string, unknown>): string | undefined {
  if (tools !== undefined && !Array.isArray(tools)) return 'tools: Input should be a valid list';
  const list: readonly unknown[] = tools ?? [];
  const names = new Set<unknown>();
  for (const [index, tool] of list.entries()) {
    if (!isRecord(tool)) return `tools.${index}: Input should be a valid dictionary or object to extract fields from`;
    const wrong = checkTool(tool, `tools.${index}.custom`);
    if (wrong !== undefined) return wrong;
    if (names.has(tool.name)) return 'tools: Tool names must be unique.';
    names.add(tool.name);
  }
  if (choice === undefined) return undefined;
  if (list.length === 0) return 'tool_choice may only be specified while providing tools.';
  if (isRecord(choice) && choice.type === 'tool' && !names.has(choice.name)) {
    return `tool_choice: Tool '${String(choice.name)}' not found in provided tools`;
  }
  return undefined;
}

function checkTool(tool: Record<string, unknown>, path: string): string | undefined {
  // The API's own tools (`type: web_search_…`) have other fields.
  if (tool.type !== undefined && tool.type !== 'custom') return undefined;
  if (tool.name === undefined) return `${path}.name: Field required`;
  if (typeof tool.name !== 'string') return `${path}.name: Input should be a valid string`;
  if (!toolNamePattern.test(tool.name)) return `${path}.name: String should match pattern '${toolNamePattern.source}'`;
  const extra = extraField(tool, knownOfTool);
  if (extra !== undefined) return `${path}.${extra}: Extra inputs are not permitted`;
  const schema = tool.input_schema;
  if (schema === undefined) return `${path}.input_schema: Field required`;
  if (!isRecord(schema)) return `${path}.input_schema: Input should be a valid dictionary`;
  const problem = anthropicSchemaProblem(schema);
  return problem && `${path}.input_schema${problem}`;
}

function checkCacheMarks(body: Record<string, unknown>): string | undefined {
  const marked = (value: unknown): number => {
    if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + marked(item), 0);
    if (!isRecord(value)) return 0;
    const here = value.cache_control === undefined || value.cache_control === null ? 0 : 1;
    return here + (Array.isArray(value.content) ? marked(value.content) : 0);
  };
  const found = marked([{ cache_control: body.cache_control }, body.system, body.tools, body.messages]);
  return found > maxCacheMarks ? `A maximum of ${maxCacheMarks} blocks with cache_control may be provided. Found ${found}.` : undefined;
}

function checkThinking({ thinking, max_tokens: maxTokens }: Record<string, unknown>): string | undefined {
  if (!isRecord(thinking) || thinking.type !== 'enabled') return undefined;
  const budget = thinking.budget_tokens;
  if (typeof budget !== 'number') return 'thinking.enabled.budget_tokens: Field required';
  if (budget < 1024) return 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024';
  return typeof maxTokens === 'number' && maxTokens <= budget ? '`max_tokens` must be greater than `thinking.budget_tokens`.' : undefined;
}

function checkOutput({ output_config: config }: Record<string, unknown>): string | undefined {
  if (config === undefined) return undefined;
  if (!isRecord(config)) return 'output_config: Input should be a valid dictionary';
  const extra = extraField(config, new Set(['effort', 'format']));
  if (extra !== undefined) return `output_config.${extra}: Extra inputs are not permitted`;
  const { format } = config;
  if (format === undefined || format === null) return undefined;
  if (!isRecord(format) || format.type !== 'json_schema') return "output_config.format.type: Input should be 'json_schema'";
  if (!isRecord(format.schema)) return 'output_config.format.schema: Field required';
  const found = strictSchemaProblem(format.schema, { allRequired: false, bounds: false });
  return found && `output_config.format.schema${found.at.map((key) => `.${key}`).join('')}: ${found.why}`;
}

/** Looks with its own stack: what was parsed may be nested deeper than functions can call. */
function hasLoneSurrogate(body: unknown): boolean {
  const open: unknown[] = [body];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === 'string') {
      if (/\p{Surrogate}/u.test(value)) return true;
    } else if (Array.isArray(value)) {
      for (const item of value) open.push(item);
    } else if (isRecord(value)) {
      for (const [key, item] of Object.entries(value)) open.push(key, item);
    }
  }
  return false;
}
