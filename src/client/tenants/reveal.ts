/** What a conversation says of itself and of others, in the names that its tenant knows. */
import { scopeParts } from '../../records/identity.js';
import { DELETED } from '../describe.js';
import { ClientError } from '../errors.js';
import { TENANT_IDS } from './ids.js';
import type { TenantNames } from './names.js';

export interface Reveal {
  /** A copy with its ids and scopes as the tenant knows them. Texts of people, models and tools are left as they are. */
  value<T>(value: T, request?: RequestNames): Promise<T>;
  /** What to throw in the place of an error of the client below. */
  error(error: unknown, request?: RequestNames): Promise<unknown>;
}

/** Conversations that the request itself has named, by their ids in Temporal: an answer names them as it did, whether there are such or not. */
export type RequestNames = ReadonlyMap<string, string>;

/** Fields whose sentences name conversations. */
const WORDS = new Set([
  'id',
  'waitingFor',
  'message',
  'words',
  'next',
  'nextStep',
  'pausedBy',
  'why',
  'reason',
  'error',
  'for',
  'lastFailure',
  'failure',
]);
/** Messages and arguments of tools: these have fields of any name. */
const CONTENT = new Set(['arguments', 'payload', 'blocks', 'text', 'preview', 'input', 'context']);
const WHOLE = new RegExp(`^${TENANT_IDS.source}(?::turn_\\d+:\\d+)*$`);
const AT_ONCE = 16;
const NONE: RequestNames = new Map();
const ANOTHER = '(another conversation)';

type Names = Pick<TenantNames, 'tenant' | 'prefix' | 'toPublicId'>;

export function createReveal({ tenant, prefix, toPublicId }: Names): Reveal {
  const scopeWords = new RegExp(`(memory:|memory of )${tenant ?? ''}\\.`, 'g');

  /** Public ids of all that are named. */
  const lookUp = async (named: ReadonlySet<string>, request: RequestNames = NONE): Promise<ReadonlyMap<string, string>> => {
    const known = new Map(request);
    const rest = [...named].filter((id) => !known.has(id));
    while (rest.length > 0) {
      const found = rest
        .splice(0, AT_ONCE)
        .map(async (id) => known.set(id, id.startsWith(prefix) ? ((await toPublicId(id)) ?? DELETED) : ANOTHER));
      await Promise.all(found);
    }
    return known;
  };

  const rename = (text: string, known: ReadonlyMap<string, string>): string =>
    text.replace(TENANT_IDS, (id) => known.get(id) ?? ANOTHER).replace(scopeWords, '$1');

  const words = async (text: string, request?: RequestNames): Promise<string> =>
    rename(text, await lookUp(new Set(text.match(TENANT_IDS) ?? []), request));

  return {
    async value(value, request) {
      const named = new Set<string>();
      walk(value, (text) => {
        for (const id of text.match(TENANT_IDS) ?? []) named.add(id);
        return text;
      });
      const known = await lookUp(named, request);
      return walk(value, (text, key) => {
        if (key === 'scope' || key === 'scopes') return scopeParts(text).tenant === (tenant ?? '') ? scopeParts(text).scope : text;
        return rename(text, known);
      }) as typeof value;
    },

    async error(error, request) {
      if (!(error instanceof ClientError)) return error;
      return new ClientError(error.kind, await words(error.message, request), { cause: error });
    },
  };
}

/** Looks at ids, scopes and sentences, and at no content of messages. */
function walk(value: unknown, look: (text: string, key: string) => string, key = ''): unknown {
  if (typeof value === 'string')
    return WORDS.has(key) || key === 'scope' || key === 'scopes' || WHOLE.test(value) ? look(value, key) : value;
  if (Array.isArray(value)) return value.map((one) => walk(one, look, key));
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, CONTENT.has(name) ? one : walk(one, look, name)]));
}
