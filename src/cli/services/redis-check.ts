import { CliError, EXIT, messageOf } from '../terminal/exit.js';

/** It is there, and does not let us in. */
const REFUSED = /^(NOAUTH|WRONGPASS|NOPERM)|invalid password/i;

/** Asks Redis whether it is there. Answers its address without the password. */
export async function checkRedis(url: string): Promise<string> {
  const { Redis } = await import('ioredis');
  const { host, pathname, protocol } = new URL(url);
  const address = `${protocol}//${host}${pathname}`;
  const redis = new Redis(url, { lazyConnect: true, connectTimeout: 3000, commandTimeout: 3000, retryStrategy: () => null });
  let reason: unknown;
  // ioredis tells the reason of a failed connection here, and to the caller only that it is closed.
  redis.on('error', (error) => (reason = error));
  try {
    await redis.connect();
    await redis.ping();
    return address;
  } catch (error) {
    const why = [error, reason].map(messageOf).find((text) => REFUSED.test(text)) ?? messageOf(reason ?? error);
    const advice = REFUSED.test(why)
      ? 'put the right user and password into REDIS_URL'
      : 'start it, or unset REDIS_URL to keep memory in files';
    throw new CliError(
      `cannot ${REFUSED.test(why) ? 'use' : 'reach'} Redis at ${address}, which REDIS_URL names: ${why}; ${advice}`,
      EXIT.unreachable,
      { cause: error },
    );
  } finally {
    redis.disconnect();
  }
}
