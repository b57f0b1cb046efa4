/** What a store takes. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { openRedisLink, scanKeys } from '../src/stores/redis/link.js';

/** What all keys of ours take in memory, on all primaries. */
export async function redisBytes(url: string): Promise<number> {
  const link = openRedisLink({ url, commandTimeoutMs: 60_000 });
  try {
    const keys = new Set<string>();
    for await (const key of scanKeys(link, 'measure what is stored', 'perdura:*')) keys.add(key);
    const sizes = await Promise.all([...keys].map((key) => link.redis.memory('USAGE', key, 'SAMPLES', 0)));
    return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  } finally {
    await link.close();
  }
}

/** Of all files below. */
export async function folderBytes(dir: string): Promise<number> {
  const found = await readdir(dir, { recursive: true, withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const sizes = await Promise.all(found.map(async (one) => (one.isFile() ? (await stat(join(one.parentPath, one.name))).size : 0)));
  return sizes.reduce((sum, size) => sum + size, 0);
}
