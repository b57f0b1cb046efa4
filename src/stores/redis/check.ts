/** What a person should know about this Redis before trusting it with conversations. */
import type { RedisLink } from './link.js';
import { isReply } from './errors.js';
import { errorMessage } from '../../platform/errors.js';

/** Reads INFO, not CONFIG: managed services and careful ACLs forbid the latter. */
export async function checkRedis(link: RedisLink): Promise<string[]> {
  await link.ask('reach the store', (redis) => redis.ping());
  let info: ReadonlyMap<string, string>;
  try {
    info = parseInfo(await link.redis.info());
  } catch (error) {
    if (!isReply(error)) throw link.unavailable('read the settings of the store', error);
    return [`redis does not show its settings (${errorMessage(error)}): make sure of appendonly yes and maxmemory-policy noeviction`];
  }
  return [...warnings(info)];
}

function* warnings(info: ReadonlyMap<string, string>): Iterable<string> {
  if (info.get('aof_enabled') === '0') {
    yield 'appendonly is no: when redis stops, conversations since its last snapshot are lost; set appendonly yes';
  }
  const policy = info.get('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    yield `maxmemory-policy is ${policy}: redis deletes conversations when its memory is full; set maxmemory-policy noeviction`;
  }
  if (info.get('aof_last_write_status') === 'err') {
    yield 'the last write of the append-only file failed (aof_last_write_status): see the disk of redis';
  }
  if (info.get('role') === 'slave') yield 'role is replica: it takes no writes; point the redis url at the primary';
  const version = info.get('redis_version') ?? '';
  const [major = 7, minor = 0] = version.split('.').map(Number);
  if (version !== '' && (major < 6 || (major === 6 && minor < 2))) yield `redis_version is ${version}: 6.2 or newer is needed`;
}

function parseInfo(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split(/\r?\n/).flatMap((line): [string, string][] => {
      const colon = line.indexOf(':');
      return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1)]] : [];
    }),
  );
}
