/** The store that the settings ask for. */
import type { Config } from '../../config.js';
import { checkRedis as warningsOf } from '../../stores/redis/check.js';
import { withoutSecrets } from '../../stores/redis/errors.js';
import { openRedisLink } from '../../stores/redis/link.js';
import { messageOf } from '../terminal/exit.js';
import type { Finding } from './finding.js';
import { broken, ok, warning } from './finding.js';
import { checkFolder } from './machine.js';

export async function checkStore({ redisUrl, memoryDir }: Config): Promise<Finding[]> {
  return redisUrl === undefined ? [await checkFolder('Store', memoryDir, 'PERDURA_MEMORY_DIR')] : checkRedis(redisUrl);
}

async function checkRedis(url: string): Promise<Finding[]> {
  const where = `Redis at ${withoutSecrets(url)}`;
  const link = openRedisLink({ url, commandTimeoutMs: 3000 });
  try {
    const warnings = await warningsOf(link);
    const version = /redis_version:(\S+)/.exec(await link.redis.info('server').catch(() => ''))?.[1];
    return [ok('Store', `${where}${version === undefined ? '' : `, version ${version}`}`), ...warnings.map(toFinding)];
  } catch (error) {
    return [broken('Store', messageOf(error), 'start that Redis, correct REDIS_URL, or unset it to keep memory in files')];
  } finally {
    link.redis.disconnect();
  }
}

/** `what it is: what follows; what to do`. */
function toFinding(text: string): Finding {
  const [found = text, mend = ''] = text.split('; ');
  const setting = /set (appendonly|maxmemory-policy) (\w+)$/.exec(text);
  if (setting !== null) return warning('Store', found, `redis-cli CONFIG SET ${setting[1]} ${setting[2]}`);
  return text.includes('replica') || text.includes('is needed') || text.includes('failed')
    ? broken('Store', found, mend || 'see the text')
    : warning('Store', found, mend || 'redis-cli CONFIG GET appendonly; redis-cli CONFIG GET maxmemory-policy');
}
