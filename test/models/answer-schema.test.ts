import type { JsonObject } from '../../src/records/message.js';
import { summaryJsonSchema } from '../../src/memory/compaction/summary-answer.js';
import { sentSchema, streamWithoutAbsent, toStrictSchema, withoutAbsent } from '../../src/models/answer-schema.js';
import { renderRequest as renderAnthropic } from '../../src/models/anthropic/render.js';
import { renderRequest as renderGemini } from '../../src/models/gemini/client.js';
import type { ModelDelta, ModelRequest } from '../../src/models/model.js';
import { renderRequest as renderOllama } from '../../src/models/ollama/client.js';
import { renderChat } from '../../src/models/openai/render-chat.js';
import { renderResponses } from '../../src/models/openai/client.js';
import { strictSchemaProblem } from '../support/provider-apis/check-answer-schema.js';
import { request } from './builders.js';
import { holdsForAnswers } from './schema-laws.js';

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
    expect(Object.keys((summary?.properties ?? {}) as object)).toEqual(['episodic', 'semantic', 'retired', 'fold', 'goal', 'openTasks']);
  });
});

describe('an answer', () => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      name: { $ref: '#/$defs/name' },
      note: { type: 'string' },
      maybe: { type: ['string', 'null'] },
      parts: {
        type: 'array',
        items: { type: 'object', properties: { id: { type: 'integer' }, of: { $ref: '#/$defs/name' } }, required: ['id'] },
      },
    },
    required: ['name'],
    $defs: { name: { type: 'string', enum: ['a', 'b'] } },
  };
  const strictly = { name: 'a', note: null, maybe: null, parts: [{ id: 1, of: null }] };

  test('has no null for what is absent, but where the schema takes one', () => {
    expect(withoutAbsent(strictly, schema)).toEqual({ name: 'a', maybe: null, parts: [{ id: 1 }] });
  });

  test('is asked for with absent properties of providers that take them, and with nulls of OpenAI', () => {
    const [all, some] = [true, false].map((allRequired) => toStrictSchema(schema, { allRequired }));
    expect(all).toMatchObject({
      properties: { note: { anyOf: [{ type: 'string' }, { type: 'null' }] }, name: { type: 'string', enum: ['a', 'b'] } },
      required: ['name', 'note', 'maybe', 'parts'],
    });
    expect(some).toMatchObject({ properties: { note: { type: 'string' } }, required: ['name'] });
  });

  test('to a schema with more properties that may be absent than Anthropic’s grammars take is not held to it', () => {
    const many = (count: number): JsonObject => ({
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, { type: 'string' }])),
    });
    const sent = (count: number): unknown =>
      sentSchema('anthropic', request({ model: 'claude-haiku-4-5', answerSchema: { name: 'a', schema: many(count) } }));
    expect([sent(24) === undefined, sent(25) === undefined]).toEqual([false, true]);
  });

  test.each<[string, JsonObject]>([
    ['is its own part', { type: 'object', properties: { again: { $ref: '#' } } }],
    ['has branches at the top', { type: 'object', anyOf: [{ properties: { a: { type: 'string' } } }] }],
  ])('to a schema that %s is not held to it', (_what, recursive) => {
    expect(toStrictSchema(recursive, ALL)).toBeUndefined();
  });

  test('that was held to nulls is told whole, without them; every other is told as it comes', async () => {
    const told = async (model: string): Promise<{ readonly deltas: readonly string[]; readonly text: unknown }> => {
      const deltas: string[] = [];
      const options = {
        signal: new AbortController().signal,
        onDelta: (delta: ModelDelta) => void (delta.kind === 'text' && deltas.push(delta.text)),
      };
      const text = JSON.stringify(strictly);
      const { blocks } = await streamWithoutAbsent(
        sentSchema('openai', request({ model, answerSchema: { name: 'a', schema } })) ? { answerSchema: { name: 'a', schema } } : {},
        options,
        ({ onDelta }) => {
          for (const piece of text.match(/.{1,20}/g) ?? []) onDelta({ kind: 'text', text: piece });
          return Promise.resolve({
            blocks: [{ kind: 'text', text }],
            stop: 'end',
            usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1 },
          });
        },
      );
      return { deltas, text: blocks[0]?.kind === 'text' ? blocks[0].text : undefined };
    };
    const clean = JSON.stringify({ name: 'a', maybe: null, parts: [{ id: 1 }] });
    expect(await told('gpt-5.5')).toEqual({ deltas: [clean], text: clean });
    const other = await told('someone/else');
    expect([other.deltas.length > 1, other.deltas.join('')]).toEqual([true, other.text]);
  });

  test('to a random schema comes back as it was', () => holdsForAnswers(12));
});
