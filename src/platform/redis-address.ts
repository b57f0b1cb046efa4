/**
 * `REDIS_URL`: which Redis, of which kind, and how to reach it. The schemes of clusters and Sentinel name several hosts, which no URL of
 * Node's may.
 *
 *   redis://user:password@host:6379/0                     one server; rediss:// is TLS, here and below
 *   redis+cluster://user:password@a:7000,b:7001,c         some nodes of a Redis Cluster, which name the others
 *   redis+sentinel://user:password@a:26379,b/0?name=NAME  some Sentinels, which name the primary
 */
export interface RedisAddress {
  readonly kind: 'single' | 'cluster' | 'sentinel';
  readonly isTls: boolean;
  /** Of a single server its client reads the address itself: `url`. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** Without the options below. */
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  readonly db: number;
  readonly options: RedisUrlOptions;
}

const OPTIONS = ['ca', 'cert', 'key', 'servername', 'timeout', 'name', 'sentinel_username', 'sentinel_password'] as const;
const OF_SENTINEL: readonly string[] = ['name', 'sentinel_username', 'sentinel_password'];
type RedisUrlOptions = { readonly [name in (typeof OPTIONS)[number]]?: string };

/** What may be written, for those who wrote something else. */
export const REDIS_FORMS =
  'redis://user:password@host:6379/0, redis+cluster://user:password@a:6379,b:6379 or redis+sentinel://user:password@a:26379,b:26379/0?name=NAME, ' +
  'each with rediss for TLS (characters such as / and # in the password are written %2F and %23)';

const FORM = /^(redis|rediss)(?:\+(cluster|sentinel))?:\/\/(?:([^/?#]*)@)?([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i;
const HOST = /^(\[[\da-f:.]+\]|[^\s:[\]]+)(?::(\d{1,5}))?$/i;
const PORTS = { single: 6379, cluster: 6379, sentinel: 26379 };
const MAX_TIMEOUT_MS = 60_000;

/** Throws an error that says what is wrong, and shows nothing of the url. */
export function parseRedisAddress(url: string): RedisAddress {
  const [, scheme = '', suffix, credentials, authority = '', path = '', query = ''] = FORM.exec(url) ?? [];
  if (scheme === '') throw new Error(`it is not of the form ${REDIS_FORMS}`);
  const kind = (suffix?.toLowerCase() ?? 'single') as RedisAddress['kind'];
  const parameters = new URLSearchParams(query);
  const options = Object.fromEntries(OPTIONS.flatMap((name) => (parameters.get(name) ? [[name, parameters.get(name)]] : [])));
  checkOptions(kind, parameters, options);
  for (const name of OPTIONS) if (kind !== 'single' || !OF_SENTINEL.includes(name)) parameters.delete(name);
  const shared = {
    ...{ kind, isTls: scheme.toLowerCase() === 'rediss', options },
    url: parameters.size === 0 ? url.replace(/\?.*$/, '') : url.replace(/\?.*$/, `?${parameters.toString()}`),
  };
  if (kind === 'single') return { ...shared, hosts: [], db: 0 };
  if (!/^\d*$/.test(path) || (kind === 'cluster' && Number(path) !== 0))
    throw new Error(`what follows its hosts is ${kind === 'cluster' ? 'no /: a cluster has one database' : 'the number of a database'}`);
  const hosts = authority.split(',').map((text) => {
    const [, host = '', port = String(PORTS[kind])] = HOST.exec(text) ?? [];
    if (host === '' || Number(port) === 0 || Number(port) > 65_535) throw new Error(`one of its hosts is not of the form host:port`);
    return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
  });
  const [username, password] = splitCredentials(credentials);
  return { ...shared, hosts, db: Number(path), ...(username && { username }), ...(password && { password }) };
}

function checkOptions(kind: RedisAddress['kind'], given: URLSearchParams, { name, timeout }: RedisUrlOptions): void {
  const known = OPTIONS.filter((option) => kind === 'sentinel' || !OF_SENTINEL.includes(option));
  // A single server's client has always taken further ones.
  const unknown = kind === 'single' ? undefined : [...given.keys()].find((one) => !known.some((option) => option === one));
  if (unknown !== undefined) throw new Error(`it has an option that is not known; there are ${known.join(', ')}`);
  if (kind === 'sentinel' && name === undefined) throw new Error('it does not name the primary that its Sentinels watch: add ?name=NAME');
  if (timeout !== undefined && !(/^\d{1,5}$/.test(timeout) && Number(timeout) > 0 && Number(timeout) <= MAX_TIMEOUT_MS))
    throw new Error(`its timeout is a number of milliseconds, at most ${MAX_TIMEOUT_MS}`);
}

function splitCredentials(credentials = ''): [username: string, password: string] {
  const colon = credentials.indexOf(':');
  const [user, password] = colon < 0 ? [credentials, ''] : [credentials.slice(0, colon), credentials.slice(colon + 1)];
  try {
    return [decodeURIComponent(user), decodeURIComponent(password)];
  } catch {
    throw new Error('a % in its user or password is not followed by two hexadecimal digits: write it %25');
  }
}

/** Without user, password and query (which may carry options such as `password=`). */
export function withoutSecrets(url: string): string {
  return url.replace(/\?.*$/s, '').replace(/^([a-z+]+:\/\/)?.*@/is, '$1');
}

/** The same with its first host alone, which Node can read as a URL. */
export function withFirstHost(url: string): string {
  return url.replace(/^(rediss?\+[a-z]+:\/\/(?:[^/?#]*@)?[^,/?#]*),[^/?#]*/i, '$1');
}
