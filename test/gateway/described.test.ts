/** Bodies that the document allows are taken, and those that it forbids are refused: both made of the document itself, from a seed. */
import Ajv2020 from 'ajv/dist/2020';
import { createGateway } from '../../src/gateway/app.js';
import { fakeInstallation } from '../support/fake-client.js';
import { ask, byName } from '../support/tenants.js';

type Schema = Readonly<Record<string, unknown>>;
const { client } = fakeInstallation();
const app = createGateway({ client, authenticate: byName, requestsPerMinute: 1_000_000, page: false });
const TIMES = 40;

test('every body of the document, valid or not, gets the answer that the document promises', async () => {
  const document = JSON.parse(await (await app.request('http://localhost/openapi.json', { headers: { host: 'localhost' } })).text()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, { requestBody?: { content: Record<string, { schema: Schema }> } }>>>>;
    readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
  };
  const ajv = new Ajv2020({ strict: false, validateFormats: false }).addSchema(document, 'api');
  const random = seeded(Number(process.env['PERDURA_SEED'] ?? 39));
  const make = maker(document.components.schemas, random);
  const seen = { valid: 0, invalid: 0 };
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { requestBody }] of Object.entries(methods)) {
      const schema = requestBody?.content['application/json']?.schema;
      if (schema === undefined) continue;
      const pointer = ['paths', path, method, 'requestBody', 'content', 'application/json', 'schema'];
      const isValid = ajv.getSchema(`api#/${pointer.map((part) => encodeURIComponent(part.replaceAll('/', '~1'))).join('/')}`)!;
      const at = path
        .replace('{id}', 'c-1')
        .replace('{scope}', 'default')
        .replace(/\{\w+\}/g, 'x');
      for (let time = 0; time < TIMES; time += 1) {
        const body = time % 2 === 0 ? make(schema) : spoil(make(schema), random);
        const isAllowed = isValid(body) as boolean;
        seen[isAllowed ? 'valid' : 'invalid'] += 1;
        const { status, text } = await ask(app, '/admin', method.toUpperCase(), `${at}`, { body });
        // What no schema tells: whether a file is there and of its kind, a name is free for use, a text is a time.
        const isLater = /there is no attachment|\.mediaType must be|cannot be a conversation's id|expected an ISO date/.test(text);
        const isRefused = status === 400 && !isLater;
        expect([method, at, JSON.stringify(body), text, isAllowed ? isRefused : status === 400]).toEqual([
          ...[method, at, JSON.stringify(body), text],
          !isAllowed,
        ]);
      }
    }
  }
  expect(seen.valid).toBeGreaterThan(200);
  expect(seen.invalid).toBeGreaterThan(200);
});

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
