import type { JsonObject } from '../../src/records/message.js';
import { summaryJsonSchema } from '../../src/memory/compaction/summary-answer.js';
import { toStrictSchema } from '../../src/models/answer-schema.js';
import { renderRequest as renderAnthropic } from '../../src/models/anthropic/render.js';
import { renderRequest as renderGemini } from '../../src/models/gemini/client.js';
import type { ModelRequest } from '../../src/models/model.js';
import { renderRequest as renderOllama } from '../../src/models/ollama/client.js';
import { renderChat } from '../../src/models/openai/render-chat.js';
import { renderResponses } from '../../src/models/openai/client.js';
import { strictSchemaProblem } from '../support/provider-apis/check-answer-schema.js';
import { request } from './builders.js';

const answerSchema = {
  name: 'a verdict',
  schema: {
    type: 'object',
    properties: { words: { type: 'string', minLength: 1 }, score: { type: 'number', minimum: 0, description: '0 to 1' } },
    required: ['words', 'score'],
  },
};
const strict = {
  type: 'object',
  properties: { words: { type: 'string' }, score: { type: 'number', description: '0 to 1' } },
  required: ['words', 'score'],
  additionalProperties: false,
};
const tools = [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object', properties: {} } }];

/** What a wish for an answer adds to a request. */
function added(render: (request: ModelRequest) => object, model: string, parts: Partial<ModelRequest> = {}): unknown {
  const [without, wished] = [render(request({ model, ...parts })), render(request({ model, ...parts, answerSchema }))];
  const flat = (value: object): [string, unknown][] => Object.entries('config' in value ? (value.config as object) : value);
  const before = new Map(flat(without).map(([key, value]) => [key, JSON.stringify(value)]));
  return Object.fromEntries(flat(wished).filter(([key, value]) => before.get(key) !== JSON.stringify(value)));
}

describe('where a model is known to take a schema, it is sent', () => {
  test.each<[string, (request: ModelRequest) => object, string, object]>([
    ['Anthropic', renderAnthropic, 'claude-haiku-4-5-20251001', { output_config: { format: { type: 'json_schema', schema: strict } } }],
    [
      'Chat Completions',
      renderChat,
      'gpt-5.5',
      { response_format: { type: 'json_schema', json_schema: { name: 'a_verdict', strict: true, schema: strict } } },
    ],
    [
      'Responses',
      renderResponses,
      'gpt-5.5',
      { text: { format: { type: 'json_schema', name: 'a_verdict', strict: true, schema: strict } } },
    ],
    ['Gemini', renderGemini, 'gemini-3.8-flash', { responseMimeType: 'application/json', responseJsonSchema: strict }],
    ['Ollama', renderOllama, 'llama4:scout', { format: strict }],
  ])('%s', (_, render, model, expected) => {
    expect(JSON.stringify(added(render, model))).toBe(JSON.stringify(expected));
  });
});

test.each<[string, (request: ModelRequest) => object, string, Partial<ModelRequest>]>([
  ['to a model of Anthropic’s that is not known to take one', renderAnthropic, 'claude-next', {}],
  ['to a model of another server that speaks OpenAI’s protocol', renderChat, 'meta/llama', {}],
  ['to Gemini beside tools', renderGemini, 'gemini-2.5-flash', { tools }],
  ['to Ollama beside tools', renderOllama, 'llama4:scout', { tools }],
  ['where it cannot be said strictly', renderChat, 'gpt-5.5', { answerSchema: { name: 'any', schema: { type: 'object' } } }],
])('no schema is sent %s', (_, render, model, parts) => {
  expect(render(request({ model, answerSchema, ...parts }))).toEqual(render(request({ model, ...parts, answerSchema: undefined })));
});

const ALL = { allRequired: true };

describe('a strict schema', () => {
  const object = (properties: JsonObject, required: string[] = Object.keys(properties)): JsonObject => ({
    type: 'object',
    properties,
    required,
    additionalProperties: false,
  });
  const either = (...anyOf: JsonObject[]): JsonObject => ({ anyOf });

  test.each<[string, JsonObject, JsonObject]>([
    ['closes objects at every depth', { type: 'array', items: { type: 'object', properties: {} } }, { type: 'array', items: object({}) }],
    ['leaves bounds out', { type: 'string', maxLength: 3, pattern: 'a', format: 'email' }, { type: 'string' }],
    ['keeps what is listed', { type: 'string', enum: ['a', 'b'] }, { type: 'string', enum: ['a', 'b'] }],
    ['lists a constant', { const: 'a' }, { type: 'string', enum: ['a'] }],
    ['has one word for choices', { oneOf: [{ type: 'string' }, { type: 'null' }] }, either({ type: 'string' }, { type: 'null' })],
  ])('%s', (_, inner, expected) => {
    expect(toStrictSchema({ type: 'object', properties: { inner }, required: ['inner'] }, ALL)).toEqual(object({ inner: expected }));
  });

  test('has all of its properties: an optional one may be null', () => {
    expect(toStrictSchema({ type: 'object', properties: { a: { type: 'string' } } }, ALL)).toEqual(
      object({ a: either({ type: 'string' }, { type: 'null' }) }),
    );
  });

  test.each<[string, JsonObject]>([
    ['a list of anything', { type: 'array' }],
    ['an object of any keys', { type: 'object', properties: {}, additionalProperties: { type: 'string' } }],
    ['a list of unlike items', { type: 'array', prefixItems: [{ type: 'string' }] }],
    ['a reference to nowhere', { $ref: '#/$defs/a' }],
    ['anything', {}],
  ])('cannot say %s', (_, inner) => {
    expect(toStrictSchema({ type: 'object', properties: { inner }, required: ['inner'] }, ALL)).toBeUndefined();
    expect(toStrictSchema(inner, ALL)).toBeUndefined();
  });

  test('is what a summary has', () => {
    const summary = toStrictSchema(summaryJsonSchema(), ALL);
    expect(summary && strictSchemaProblem(summary, { allRequired: true, bounds: false })).toBeUndefined();
    expect(Object.keys((summary?.properties ?? {}) as object)).toEqual(['episodic', 'semantic', 'retired', 'fold']);
  });
});
