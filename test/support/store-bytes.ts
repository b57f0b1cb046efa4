/**
 * Everything that a store holds, as one text: to look for words that must not be anywhere in it. `atRest`: what is encrypted is opened, so that
 * words are found which are only hidden.
 */
import { existsSync, type Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { AtRest } from '../../src/platform/at-rest.js';

const SEALED_FRAME = 'PE1\0';
const SEALED_TEXT = /pe1:[0-9a-f]{8}:[\w-]{38,}(?::[^\n"\\]*)?/g;

/** Names and contents of all files below a folder. */
export async function bytesOfFiles(dir: string, atRest?: AtRest): Promise<string> {
  const found = await entriesBelow(dir);
  const texts = await Promise.all(
    found.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      // A lock, or a file that is being replaced, may be gone by now.
      return entry.isFile() ? `${path}\n${await open(await readFile(path).catch(() => Buffer.alloc(0)), atRest)}` : path;
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
export async function bytesOfRedis(url: string, atRest?: AtRest): Promise<string> {
  const redis = new Redis(url);
  try {
    const keys = await redis.keys('*');
    const values = await Promise.all(
      keys.map(async (key) => Promise.all((await valuesOf(redis, key)).map((value) => open(value, atRest)))),
    );
    return keys.map((key, i) => `${key}\n${values[i]?.join('\n')}`).join('\n');
  } finally {
    redis.disconnect();
  }
}

async function open(bytes: Buffer, atRest: AtRest | undefined): Promise<string> {
  if (atRest === undefined) return bytes.toString('latin1');
  if (bytes.toString('latin1', 0, SEALED_FRAME.length) === SEALED_FRAME) {
    // A piece of a value that has several is nothing by itself.
    const opened = await atRest.openBytes(bytes).catch(() => bytes);
    return opened.toString('latin1');
  }
  return bytes.toString('latin1').replace(SEALED_TEXT, (sealed) => atRest.openRecord(sealed));
}

/** Names of fields among them. */
async function valuesOf(redis: Redis, key: string): Promise<Buffer[]> {
  switch (await redis.type(key)) {
    case 'hash':
      return redis.callBuffer('HGETALL', key) as Promise<Buffer[]>;
    case 'set':
      return redis.smembersBuffer(key);
    case 'zset':
      return redis.zrangeBuffer(key, '0', '-1', 'WITHSCORES');
    case 'list':
      return redis.lrangeBuffer(key, 0, -1);
    case 'stream':
      return (await redis.xrangeBuffer(key, '-', '+')).flatMap(([id, fields]) => [id, ...fields]);
    case 'string':
      return [(await redis.getBuffer(key)) ?? Buffer.alloc(0)];
    case 'none':
      return [];
    default:
      throw new Error(`${key} is of a type that this does not read`);
  }
}
