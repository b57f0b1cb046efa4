/** What a store takes. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** What all keys of ours take in memory. */
export async function redisBytes(url: string): Promise<number> {
  const redis = new Redis(url);
  try {
    const keys = await redis.keys('perdura:*');
    const sizes = await Promise.all(keys.map((key) => redis.memory('USAGE', key, 'SAMPLES', 0)));
    return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  } finally {
    await redis.quit();
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
