/** The native API against its own `/openapi.json`: what it took must be allowed there, and what it answered must be there to the last field. */
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import type { GatewayApp } from '../../src/gateway/context.js';
import { ask, type Answer, type Asked } from './tenants.js';

/** Words of refusals (400) that no schema tells: whether a file is there, two tools have one name, all lists together are too long. */
export const NOT_IN_SCHEMA = /there is no attachment|there is no word in|has two tools of one name|the limit is \d+|may have \d+ files/;

interface Described {
  readonly requestBody?: { readonly content: Readonly<Record<string, object>> };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, object>> }>>;
}

export interface CheckedApi {
  /** Throws where the document says otherwise. */
  ask(token: string, method: string, path: string, asked?: Asked): Promise<Answer>;
  /** Operations that have answered with JSON, or with nothing where that is what they do. */
  readonly answered: ReadonlySet<string>;
  /** All that are described, but for those that answer with a file or a stream. */
  readonly operations: readonly string[];
}

export async function checkedApi(app: GatewayApp, token: string): Promise<CheckedApi> {
  const { json } = await ask(app, token, 'GET', '/openapi.json');
  const document = json as { readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>> };
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ name: `${method.toUpperCase()} ${path}`, method, path, described })),
  );
  const asDescribed = schemasIn(document);
  const toTheLastField = schemasIn(closed(document));
  const answered = new Set<string>();
  return {
    answered,
    operations: operations
      .filter(({ described }) => Object.values(described.responses).every(({ content = {} }) => Object.keys(content).every(isJson)))
      .map(({ name }) => name),
    async ask(asker, method, path, asked = {}) {
      const answer = await ask(app, asker, method, path, asked);
      const operation = operations.find((one) => one.method === method.toLowerCase() && matches(one.path, path));
      if (operation === undefined) throw new Error(`${method} ${path} is not described`);
      const at = ['paths', operation.path, operation.method];
      const { status } = answer;
      if (status < 300 && asked.body !== undefined && operation.described.requestBody !== undefined) {
        check(asDescribed([...at, 'requestBody', 'content', 'application/json', 'schema']), asked.body, `what ${operation.name} took`);
      }
      const described = operation.described.responses[status];
      if (described === undefined && status < 300) throw new Error(`${operation.name} is not said to answer ${status}`);
      const type = described === undefined ? 'application/problem+json' : 'application/json';
      if (answer.json !== undefined) {
        const schema = toTheLastField([...at, 'responses', described === undefined ? 'default' : `${status}`, 'content', type, 'schema']);
        check(schema, answer.json, `what ${operation.name} answered`);
      }
      if (status < 300) answered.add(operation.name);
      return answer;
    },
  };
}

const isJson = (type: string): boolean => type.endsWith('json');

function matches(template: string, path: string): boolean {
  return new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`).test(path.replace(/\?.*$/, ''));
}

function schemasIn(document: object): (at: readonly string[]) => ValidateFunction {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema(document, 'api');
  return (at) => {
    const pointer = at.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/');
    const found = ajv.getSchema(`api#/${pointer}`);
    if (found === undefined) throw new Error(`there is no schema at ${at.join(' ')}`);
    return found;
  };
}

/** The same with each object refusing fields that it does not name. */
function closed<T>(value: T): T {
  if (Array.isArray(value)) return value.map(closed) as T;
  if (typeof value !== 'object' || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, closed(one as unknown)]));
  return ('properties' in copy && !('additionalProperties' in copy) ? { ...copy, additionalProperties: false } : copy) as T;
}

function check(isValid: ValidateFunction, value: unknown, what: string): void {
  if (isValid(value)) return;
  const problems = (isValid.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
  throw new Error(`${what} is not as described:\n${problems.join('\n')}\n${JSON.stringify(value).slice(0, 4_000)}`);
}
