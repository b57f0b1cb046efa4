import { CliError, EXIT, messageOf } from '../exit.js';

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
    throw new CliError(
      `cannot reach Redis at ${address}, which REDIS_URL names: ${messageOf(reason ?? error)}; start it, or unset REDIS_URL to keep memory in files`,
      EXIT.unreachable,
      { cause: error },
    );
  } finally {
    redis.disconnect();
  }
}
