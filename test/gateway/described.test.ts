/** Bodies that the document allows are taken, and those that it forbids are refused: both made of the document itself, from a seed. */
import Ajv2020 from 'ajv/dist/2020';
import { createGateway } from '../../src/gateway/app.js';
import { NOT_IN_SCHEMA } from '../support/api-description.js';
import { fakeInstallation } from '../support/fake-client.js';
import { ask, byName } from '../support/tenants.js';

type Schema = Readonly<Record<string, unknown>>;
const { client } = fakeInstallation();
const app = createGateway({ client, authenticate: byName, requestsPerMinute: 1_000_000, page: false });
const TIMES = 40;
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required?: boolean;
  readonly schema: Schema;
}
interface Described {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

let document: Document;
let operations: readonly (Described & { readonly method: string; readonly path: string })[];
let isValid: (pointer: readonly string[], value: unknown) => boolean;

beforeAll(async () => {
  document = JSON.parse(await (await app.request('http://localhost/openapi.json', { headers: { host: 'localhost' } })).text()) as Document;
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ ...described, method, path })),
  );
  const ajv = new Ajv2020({ strict: false, formats: { 'date-time': RFC_3339, binary: true } }).addSchema(document, 'api');
  isValid = (pointer, value) =>
    ajv.getSchema(`api#/${pointer.map((part) => encodeURIComponent(part.replaceAll('/', '~1'))).join('/')}`)!(value) as boolean;
});

const random = seeded(Number(process.env['PERDURA_SEED'] ?? 39));

test('every body of the document, valid or not, gets the answer that the document promises', async () => {
  const make = maker(document.components.schemas, random);
  const seen = { valid: 0, invalid: 0 };
  for (const { path, method, requestBody } of operations) {
    const schema = requestBody?.content['application/json']?.schema;
    if (schema === undefined) continue;
    const pointer = ['paths', path, method, 'requestBody', 'content', 'application/json', 'schema'];
    const at = fill(path);
    for (let time = 0; time < TIMES; time += 1) {
      const body = time % 2 === 0 ? make(schema) : spoil(make(schema), random);
      const isAllowed = isValid(pointer, body);
      seen[isAllowed ? 'valid' : 'invalid'] += 1;
      const { status, text } = await ask(app, '/admin', method.toUpperCase(), at, { body });
      // The client that stands in has no room for files to look at.
      const isRefused = status === 400 && !NOT_IN_SCHEMA.test(text) && !/"\d+\\" cannot be a conversation's id/.test(text);
      expect([method, at, JSON.stringify(body), text, isAllowed ? isRefused : status === 400]).toEqual([
        ...[method, at, JSON.stringify(body), text],
        !isAllowed,
      ]);
    }
  }
  expect(seen.valid).toBeGreaterThan(200);
  expect(seen.invalid).toBeGreaterThan(200);
});

test('every parameter of the document, valid or not, gets the answer that the document promises', async () => {
  const make = maker(document.components.schemas, random);
  const seen = { valid: 0, invalid: 0 };
  for (const { path, method, parameters = [], requestBody } of operations) {
    if (requestBody !== undefined) continue;
    for (const [index, { name, in: where, schema }] of parameters.entries()) {
      for (const value of [String(make(schema)), ...ODD]) {
        const isNumber = ['integer', 'number'].includes(String(schema['type'])) && value.trim() !== '' && !Number.isNaN(Number(value));
        const isAllowed = isValid(['paths', path, method, 'parameters', `${index}`, 'schema'], isNumber ? Number(value) : value);
        // An address with an empty step is another one.
        if (where === 'path' && value === '') continue;
        const begun = parameters.filter((one) => one.in === 'query' && one.required && one.name !== name).map((one) => `${one.name}=a`);
        const query = where === 'query' ? [...begun, `${name}=${encodeURIComponent(value)}`] : begun;
        const at = `${fill(path, where === 'path' ? { [name]: encodeURIComponent(value) } : {})}?${query.join('&')}`;
        seen[isAllowed ? 'valid' : 'invalid'] += 1;
        const { status, text } = await ask(app, '/admin', method.toUpperCase(), at);
        expect([method, at, text, status === 400]).toEqual([method, at, text, !isAllowed]);
      }
    }
  }
  expect(seen.valid).toBeGreaterThan(100);
  expect(seen.invalid).toBeGreaterThan(100);
});

test('no operation of the document is there without a token, or with a wrong one', async () => {
  let closed = app;
  for (const [index, { path, method }] of operations.entries()) {
    // After thirty wrong tokens in a minute, a gateway looks at no others.
    if (index % 14 === 0) closed = createGateway({ client, authenticate: () => Promise.resolve(undefined), page: false });
    for (const headers of [[], [['authorization', 'Bearer wrong']]] as [string, string][][]) {
      const { status } = await closed.request(`http://localhost${fill(path)}`, {
        method: method.toUpperCase(),
        headers: [['host', 'localhost'], ...headers],
      });
      expect([method, path, status]).toEqual([method, path, 401]);
    }
  }
});

function fill(path: string, given: Readonly<Record<string, string>> = {}): string {
  const values: Readonly<Record<string, string>> = {
    id: 'c-1',
    scope: 'default',
    turn: 'turn_0001',
    chunk: 'memory',
    position: '0',
    ...given,
  };
  return path.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? 'x');
}

/** Texts for parameters that some take and others do not. */
const ODD = ['', ' ', '0', '-1', '1.5', '00', '99999999999999999999', 'true', 'turn_1', 'é', 'a b', '$', 'x'.repeat(201)];

function seeded(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

/** Texts that match the patterns of the document. */
const TEXTS = [
  'a',
  'turn_0001',
  'turn_0001/c1',
  'chunk_12',
  'provider/model',
  `att_${'0'.repeat(32)}`,
  'prop_0001',
  'qevt_1',
  'qevt_000001',
  'image/png',
  'application/pdf',
  'audio/mpeg',
  'video/mp4',
  'https://example.com/a',
  '2026-02-27T14:30Z',
];

function maker(named: Readonly<Record<string, Schema>>, random: () => number): (schema: Schema) => unknown {
  const make = (schema: Schema): unknown => {
    const { $ref, anyOf, oneOf, enum: values, type, properties, required = [], items } = schema as Record<string, never>;
    if ($ref !== undefined) return make(named[($ref as string).split('/').at(-1) ?? ''] ?? {});
    const among = (anyOf ?? oneOf) as readonly Schema[] | undefined;
    if (among !== undefined) return make(among[Math.floor(random() * among.length)] ?? {});
    if (values !== undefined) return (values as readonly unknown[])[Math.floor(random() * (values as readonly unknown[]).length)];
    if (schema['const'] !== undefined) return schema['const'];
    if (type === 'object') {
      const fields = Object.entries((properties ?? {}) as Readonly<Record<string, Schema>>);
      const kept = fields.filter(([name]) => (required as readonly string[]).includes(name) || random() < 0.5);
      return Object.fromEntries(kept.map(([name, field]) => [name, make(field)]));
    }
    if (type === 'array')
      return Array.from({ length: Number(schema['minItems'] ?? 0) + Math.floor(random() * 2) }, () => make(items as unknown as Schema));
    if (type === 'boolean') return random() < 0.5;
    if (type === 'number' || type === 'integer') return Math.max(1, Number(schema['minimum'] ?? 0));
    if (type === 'null') return null;
    if (type !== 'string') return {};
    if (schema['format'] === 'date-time') return '2026-02-27T14:30:00Z';
    const pattern = new RegExp((schema['pattern'] as string | undefined) ?? '');
    return TEXTS.find((text) => pattern.test(text)) ?? 'a';
  };
  return make;
}

/** With a field too many, or another type in one of them. */
function spoil(body: unknown, random: () => number): unknown {
  if (typeof body !== 'object' || body === null) return [];
  const names = Object.keys(body);
  const name = names[Math.floor(random() * names.length)];
  if (name === undefined || random() < 0.4) return { ...body, unknownField: 1 };
  return { ...body, [name]: [[1]] };
}
