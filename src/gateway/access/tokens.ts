/**
 * Tokens that open the gateway. One is enough for the machine of one person: the first start makes it and keeps it in a file that only its
 * owner reads. Compared by hash, in constant time.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { chmod, link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Principal } from './principal.js';
import { errorCode } from '../../platform/errors.js';

/** The principal of a token; undefined for one that opens nothing. */
export type Authenticate = (presented: string) => Promise<Principal | undefined>;

/** A text that a client can put into a header, long enough not to be guessed. */
export const TOKEN_PATTERN = /^[\x21-\x7e]{24,512}$/;

/** The holder of a gateway's one token may do everything. */
export const OWNER: Principal = { name: 'the token of this gateway', role: 'admin' };

/** Lets in who has this token, with all rights. */
export function oneToken(token: string): Authenticate {
  const expected = digest(token);
  return (presented) => Promise.resolve(timingSafeEqual(digest(presented), expected) ? OWNER : undefined);
}

/** The token in `path`, made where there is none; the first of two that start at once wins. */
export async function keptToken(path: string): Promise<string> {
  const read = async (): Promise<string> => {
    const token = (await readFile(path, 'utf8')).trim();
    if (!TOKEN_PATTERN.test(token)) throw new Error(`${path} holds no token of 24 to 512 visible characters: remove it, and one is made`);
    await chmod(path, 0o600);
    return token;
  };
  await mkdir(dirname(path), { recursive: true });
  const token = `pk_${randomBytes(24).toString('base64url')}`;
  // Written whole before it has its name: another start never reads half of it.
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(temporary, `${token}\n`, { mode: 0o600, flag: 'wx' });
    await link(temporary, path);
    return token;
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    return await read();
  } finally {
    await rm(temporary, { force: true });
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
