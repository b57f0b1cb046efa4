/** What a conversation says of itself and of others, in the names that its tenant knows. */
import { DELETED } from '../../client/describe.js';
import { ClientError } from '../../client/errors.js';
import { scopeParts } from '../../records/scope.js';
import { TENANT_IDS } from './ids.js';

export interface Reveal {
  /** A copy with its ids and scopes as the tenant knows them. What people, models and tools said is left as it is. */
  value<T>(value: T, asked?: Asked): Promise<T>;
  words(text: string, asked?: Asked): Promise<string>;
  /** What to throw in the place of an error of the client below. */
  error(error: unknown, asked?: Asked): Promise<unknown>;
}

/** Conversations that the request itself has named, by their ids in Temporal: an answer names them as it did, whether there are such or not. */
export type Asked = ReadonlyMap<string, string>;

export interface RevealNames {
  readonly tenant: string;
  readonly prefix: string;
  /** Undefined where there is no such conversation any more. */
  readonly publicIdOf: (workflowId: string) => Promise<string | undefined>;
}

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
/** What was said, or asked of a tool: these have fields of any name. */
const CONTENT = new Set(['arguments', 'payload', 'blocks', 'text', 'preview', 'input', 'context']);
const WHOLE = new RegExp(`^${TENANT_IDS.source}(?::turn_\\d+:\\d+)*$`);
const AT_ONCE = 16;
const NONE: Asked = new Map();
const ANOTHER = '(another conversation)';

export function createReveal({ tenant, prefix, publicIdOf }: RevealNames): Reveal {
  const scopeWords = new RegExp(`(memory:|memory of )${tenant}\\.`, 'g');

  /** Public ids of all that are named. */
  const lookUp = async (named: ReadonlySet<string>, asked: Asked = NONE): Promise<ReadonlyMap<string, string>> => {
    const known = new Map(asked);
    const rest = [...named].filter((id) => !known.has(id));
    while (rest.length > 0) {
      const found = rest
        .splice(0, AT_ONCE)
        .map(async (id) => known.set(id, id.startsWith(prefix) ? ((await publicIdOf(id)) ?? DELETED) : ANOTHER));
      await Promise.all(found);
    }
    return known;
  };

  const rename = (text: string, known: ReadonlyMap<string, string>): string =>
    text.replace(TENANT_IDS, (id) => known.get(id) ?? ANOTHER).replace(scopeWords, '$1');

  const words = async (text: string, asked?: Asked): Promise<string> =>
    rename(text, await lookUp(new Set(text.match(TENANT_IDS) ?? []), asked));

  return {
    words,

    async value(value, asked) {
      const named = new Set<string>();
      walk(value, (text) => {
        for (const id of text.match(TENANT_IDS) ?? []) named.add(id);
        return text;
      });
      const known = await lookUp(named, asked);
      return walk(value, (text, key) => {
        if (key === 'scope' || key === 'scopes') return scopeParts(text).tenant === tenant ? scopeParts(text).scope : text;
        return rename(text, known);
      }) as typeof value;
    },

    async error(error, asked) {
      if (!(error instanceof ClientError)) return error;
      return new ClientError(error.kind, await words(error.message, asked), { cause: error });
    },
  };
}

/** Looks at ids, scopes and sentences, and at nothing that was said. */
function walk(value: unknown, look: (text: string, key: string) => string, key = ''): unknown {
  if (typeof value === 'string')
    return WORDS.has(key) || key === 'scope' || key === 'scopes' || WHOLE.test(value) ? look(value, key) : value;
  if (Array.isArray(value)) return value.map((one) => walk(one, look, key));
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, CONTENT.has(name) ? one : walk(one, look, name)]));
}
