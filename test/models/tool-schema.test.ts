/** Schemas of tools as each provider takes them, held against what servers really list and providers really refuse. */
import { toToolSchema, type SchemaTaker } from '../../src/models/tool-schema.js';
import { withTextTools } from '../../src/models/text-tools/model.js';
import type { JsonObject, JsonValue } from '../../src/records/message.js';
import type { ModelRequest } from '../../src/models/model.js';
import {
  anthropicSchemaProblem,
  geminiSchemaProblem,
  ollamaSchemaProblem,
  openaiSchemaProblem,
} from '../support/provider-apis/check-tool-schema.js';
import { request } from './builders.js';
import { fits } from './schema-cases.js';
import { holdsForTools } from './schema-laws.js';

const TAKERS: readonly (readonly [string, SchemaTaker, (schema: JsonObject) => string | undefined])[] = [
  ['Anthropic', 'full', anthropicSchemaProblem],
  ['OpenAI', 'full', openaiSchemaProblem],
  ['Gemini', 'gemini', geminiSchemaProblem],
  ['Ollama', 'ollama', ollamaSchemaProblem],
];

/** Where it was reported, a schema as it was there in kind, and arguments that it takes. */
const REPORTED: readonly (readonly [string, JsonObject, JsonObject])[] = [
  ['inboxapi/cli#106: an object without properties', { type: 'object' }, {}],
  [
    'digitalocean-labs/mcp-digitalocean#265: a list of anything',
    { type: 'object', properties: { Tags: { type: 'array' } } },
    { Tags: ['a'] },
  ],
  [
    'Dokploy/mcp#74: bounds of draft-04 under the name of 2020-12',
    {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { ttl: { type: 'integer', exclusiveMinimum: true, minimum: 0 } },
    },
    { ttl: 1 },
  ],
  [
    'anomalyco/opencode#39118: a tuple in items',
    { type: 'object', properties: { span: { type: 'array', items: [{ type: 'integer' }, { type: 'string' }], additionalItems: false } } },
    { span: [1, 'a'] },
  ],
  [
    'sbroenne/mcp-server-excel#607: an empty text in an enum',
    { type: 'object', properties: { action: { type: 'string', enum: ['list', 'open', ''] } } },
    { action: '' },
  ],
  ['elastic/kibana#286302: an enum of nothing', { type: 'object', properties: { a: { type: 'string', enum: [] } } }, { a: 'x' }],
  [
    'can1357/oh-my-pi#4488, anthropics/claude-code#92900: true for a schema',
    { type: 'object', properties: { payload: true } },
    { payload: 1 },
  ],
  [
    'agent-infra/sandbox#83: a reference to nowhere',
    { type: 'object', properties: { language: { $ref: '#/$defs/Language' } } },
    { language: 'python' },
  ],
  [
    'agent-infra/sandbox#83: a reference beside a description',
    {
      type: 'object',
      properties: { language: { $ref: '#/definitions/Language', description: 'Of the code.' } },
      definitions: { Language: { type: 'string', enum: ['python', 'js'] } },
    },
    { language: 'js' },
  ],
  ['prism-php/prism#974: null in a list of types', { type: 'object', properties: { a: { type: ['string', 'null'] } } }, { a: null }],
  [
    'openai/openai-node#1625: nullable of OpenAPI',
    { type: 'object', properties: { content: { type: 'string', enum: ['books', 'courses'], nullable: true } } },
    { content: null },
  ],
  ['a property that is required and nowhere described', { type: 'object', properties: { a: {} }, required: ['a', 'b'] }, { a: 1, b: 2 }],
  [
    'makenotion/notion-mcp-server#341, langchain-ai/langchain#39271: anyOf at the top',
    {
      type: 'object',
      anyOf: [
        { type: 'object', properties: { content: { type: 'string' } }, required: ['content'] },
        { type: 'object', properties: { source_url: { type: 'string' } }, required: ['source_url'] },
      ],
    },
    { source_url: 'https://example.com' },
  ],
  [
    'anomalyco/opencode#35516: anyOf of what is required',
    {
      type: 'object',
      properties: { route: { type: 'string' }, file: { type: 'string' } },
      anyOf: [{ required: ['route'] }, { required: ['file'] }],
    },
    { file: 'a.ts' },
  ],
];

describe.each(TAKERS)('%s takes', (_name, taker, problem) => {
  test.each(REPORTED)('%s', (_where, schema, data) => {
    const form = toToolSchema(schema, taker);
    expect(problem(form)).toBeUndefined();
    expect(fits(form, data)).toBe(true);
  });
});

test.each(TAKERS)('%s refuses most of them as they were', (_name, _taker, problem) => {
  expect(REPORTED.filter(([, schema]) => problem(schema) !== undefined).length).toBeGreaterThan(2);
});

describe('branches at the top', () => {
  const action = (name: string, properties: JsonObject): JsonObject => ({
    type: 'object',
    properties: { action: { const: name }, ...properties },
    required: ['action', ...Object.keys(properties)],
    additionalProperties: false,
  });

  test('become one object with the properties of all, of which is required what every branch requires', () => {
    const schema = {
      oneOf: [
        action('read', { path: { type: 'string' } }),
        action('write', { path: { type: 'string', minLength: 1 }, text: { type: 'string' } }),
      ],
    };
    expect(toToolSchema(schema, 'full')).toEqual({
      type: 'object',
      properties: {
        action: { enum: ['read', 'write'] },
        path: { anyOf: [{ type: 'string' }, { type: 'string', minLength: 1 }] },
        text: { type: 'string' },
      },
      required: ['action', 'path'],
      additionalProperties: false,
    });
  });

  test('tell what one of them needs, beside the description of the tool', () => {
    const schema = {
      type: 'object',
      description: 'Analyses a video.',
      properties: { video_input_id: { type: 'string' }, youtube_url: { type: 'string' } },
      oneOf: [{ required: ['video_input_id'] }, { required: ['youtube_url'] }],
    };
    expect(toToolSchema(schema, 'ollama')).toEqual({
      type: 'object',
      description: 'Analyses a video.\nGive exactly one of these: (video_input_id), (youtube_url).',
      properties: schema.properties,
    });
  });

  test('of allOf are all meant, and conditions only say what there may be', () => {
    const schema: JsonObject = {
      allOf: [
        { properties: { a: { type: 'string' } }, required: ['a'] },
        { $ref: '#/$defs/paged' },
        { if: { properties: { a: { const: 'x' } } }, then: { properties: { b: { type: 'integer' } }, required: ['b'] } },
      ],
      $defs: { paged: { properties: { page: { type: 'integer' } }, required: ['page'] } },
    };
    expect(toToolSchema(schema, 'full')).toEqual({
      type: 'object',
      properties: { a: { type: 'string' }, page: { type: 'integer' }, b: { type: 'integer' } },
      required: ['a', 'page'],
    });
  });

  test('are in the words of a model that writes its calls as text', async () => {
    let system = '';
    const native = {
      provider: 'none',
      stream: (asked: ModelRequest) => {
        system = asked.system;
        const text = '<tool name="look">\n<arg name="count">3</arg>\n</tool>';
        return Promise.resolve({
          blocks: [{ kind: 'text' as const, text }],
          stop: 'end' as const,
          usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1 },
        });
      },
    };
    const inputSchema: JsonObject = {
      anyOf: [{ properties: { count: { type: 'integer' } } }, { properties: { name: { type: 'string' } } }],
    };
    const { blocks } = await withTextTools(native, 'xml').stream(
      request({ model: 'm', tools: [{ name: 'look', description: 'Looks.', inputSchema }] }),
      {
        signal: new AbortController().signal,
        onDelta: () => undefined,
      },
    );
    expect(system).toContain('"properties":{"count":{"type":"integer"},"name":{"type":"string"}}');
    expect(blocks).toContainEqual(expect.objectContaining({ kind: 'tool-call', input: { count: 3 } }));
  });
});

describe('references', () => {
  const tree = {
    type: 'object',
    properties: { root: { $ref: '#/$defs/node' } },
    $defs: { node: { type: 'object', title: 'Node', properties: { name: { type: 'string' }, child: { $ref: '#/$defs/node' } } } },
  };

  test('that lead back stay where the provider follows them, and are cut where it does not', () => {
    expect(toToolSchema(tree, 'full')).toMatchObject({
      properties: { root: { properties: { child: { $ref: '#/$defs/node' } } } },
      $defs: { node: { properties: { child: { $ref: '#/$defs/node' } } } },
    });
    expect(toToolSchema(tree, 'gemini')).toMatchObject({
      properties: { root: { properties: { child: { type: 'object', description: 'Nested further (Node), as the one that it is in.' } } } },
    });
    expect(JSON.stringify(toToolSchema(tree, 'gemini'))).not.toContain('$ref');
  });

  test.each(TAKERS)('that double with each level stay small for %s', (_name, taker, problem) => {
    const levels = Array.from({ length: 40 }, (_, at): [string, JsonValue] => {
      const next = { $ref: `#/$defs/l${at + 1}` };
      return [`l${at}`, { type: 'object', properties: { a: next, b: next } }];
    });
    const schema = {
      type: 'object',
      properties: { top: { $ref: '#/$defs/l0' } },
      $defs: { ...Object.fromEntries(levels), l40: { type: 'string' } },
    };
    const form = toToolSchema(schema, taker);
    expect(problem(form)).toBeUndefined();
    expect(form).toMatchObject({ properties: { top: { type: 'object' } } });
    expect(JSON.stringify(form).length).toBeLessThanOrEqual(64 * 1024);
  });

  test.each([
    ['to nothing but itself', { type: 'object', properties: { a: { $ref: '#/properties/a' } } }],
    ['of the whole to itself', { $ref: '#' }],
    ['around in a ring', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }],
    ['by an anchor', { type: 'object', properties: { a: { $ref: '#word' } }, $defs: { w: { $anchor: 'word', type: 'string' } } }],
    ['by an id', { type: 'object', properties: { a: { $ref: 'word.json' } }, $defs: { w: { $id: 'word.json', type: 'string' } } }],
  ])('%s end', (_what, schema) => {
    for (const [, taker, problem] of TAKERS) expect(problem(toToolSchema(schema, taker))).toBeUndefined();
  });
});

test.each(TAKERS)('a schema whose form would be too large keeps the names of its arguments for %s', (_name, taker, problem) => {
  const wide = { type: 'object', properties: Object.fromEntries(Array.from({ length: 400 }, (_, at) => [`p${at}`, { type: 'string' }])) };
  const choices = { ...wide, anyOf: Array.from({ length: 400 }, (_, at) => ({ minProperties: at })) };
  const large = toToolSchema({ type: 'object', properties: { a: choices, b: { description: 'x'.repeat(70_000) } } }, taker);
  expect(problem(large)).toBeUndefined();
  expect(large).toEqual({ type: 'object', properties: { a: {}, b: {} } });
  const form = toToolSchema({ type: 'object', properties: { a: choices } }, taker);
  expect([problem(form), JSON.stringify(form).length <= 64 * 1024]).toEqual([undefined, true]);
});

test('a schema that every provider takes keeps its bytes', () => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { path: { type: 'string', description: 'Where.' }, lines: { type: 'array', items: { type: 'integer', minimum: 1 } } },
    required: ['path'],
    additionalProperties: false,
  };
  const { $schema: _, ...rest } = schema;
  for (const [, taker] of TAKERS) expect(JSON.stringify(toToolSchema(schema, taker))).toBe(JSON.stringify(rest));
});

test('a form is made once for each provider, and never given to another', () => {
  const schema: JsonObject = { type: 'object', properties: { at: { type: 'string', pattern: '^[0-9]+$' } } };
  const [full, gemini] = [toToolSchema(schema, 'full'), toToolSchema(schema, 'gemini')];
  expect(toToolSchema(schema, 'full')).toBe(full);
  expect(toToolSchema(schema, 'gemini')).toBe(gemini);
  expect(gemini).not.toEqual(full);
});

test('what Gemini has no word for is told in a description', () => {
  expect(
    toToolSchema(
      { type: 'object', properties: { id: { type: 'string', format: 'uuid', pattern: '^[0-9a-f-]+$', description: 'Of it.' } } },
      'gemini',
    ),
  ).toEqual({
    type: 'object',
    properties: { id: { type: 'string', description: 'Of it. Format: uuid. Pattern: ^[0-9a-f-]+$' } },
  });
});

test('the form of a random schema is taken, and takes what the schema takes', () => holdsForTools(8));
