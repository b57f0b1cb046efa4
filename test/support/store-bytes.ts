/** Everything that a store holds, as one text: to look for words that must not be anywhere in it. */
import { existsSync, type Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** Names and contents of all files below a folder. */
export async function bytesOfFiles(dir: string): Promise<string> {
  const found = await entriesBelow(dir);
  const texts = await Promise.all(
    found.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      // A lock, or a file that is being replaced, may be gone by now.
      return entry.isFile() ? `${path}\n${await readFile(path, 'latin1').catch(() => '')}` : path;
    }),
  );
  return texts.join('\n');
}

/** A folder below it may be removed meanwhile: then from the beginning. */
async function entriesBelow(dir: string): Promise<Dirent[]> {
  for (;;) {
    try {
      return await readdir(dir, { recursive: true, withFileTypes: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || !existsSync(dir)) throw error;
    }
  }
}

/** Every key and every value, whatever its type. */
export async function bytesOfRedis(url: string): Promise<string> {
  const redis = new Redis(url);
  try {
    const keys = await redis.keys('*');
    const values = await Promise.all(keys.map((key) => valueOf(redis, key)));
    return keys.map((key, i) => `${key}\n${JSON.stringify(values[i])}`).join('\n');
  } finally {
    redis.disconnect();
  }
}

async function valueOf(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case 'hash':
      return redis.hgetall(key);
    case 'set':
      return redis.smembers(key);
    case 'zset':
      return redis.zrange(key, '0', '-1', 'WITHSCORES');
    case 'list':
      return redis.lrange(key, 0, -1);
    case 'stream':
      return redis.xrange(key, '-', '+');
    case 'string':
      return redis.get(key);
    case 'none':
      return null;
    default:
      throw new Error(`${key} is of a type that this does not read`);
  }
}
