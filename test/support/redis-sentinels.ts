/** A primary, its replica, and three Sentinels that watch them, all real processes. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../src/testing/temporal-server.js';
import { askRedis, startRedis, untilDone, type RedisServer } from './redis-server.js';

const PRIMARY_NAME = 'conversations';
const HOST = '127.0.0.1';
const ENOUGH = 2;

interface Sentinels {
  readonly url: string;
  /** The one that the Sentinels name now. */
  primary(): Promise<RedisServer>;
  /** The other one. */
  replica(): Promise<RedisServer>;
  askPrimary(...command: string[]): Promise<unknown>;
  /** SIGKILL of the primary. Answers with what resolves when the Sentinels name the other one, and that takes writes. */
  killPrimary(): Promise<{ readonly replaced: Promise<void> }>;
  stop(): Promise<void>;
}

export async function startSentinels({
  args = [],
  downAfterMs = 500,
}: { args?: readonly string[]; downAfterMs?: number } = {}): Promise<Sentinels> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-sentinels-'));
  const servers: RedisServer[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.kill()));
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  };
  const start = async (name: string, options: Parameters<typeof startRedis>[0]): Promise<RedisServer> => {
    await mkdir(join(dir, name), { recursive: true });
    const server = await startRedis({ dir: join(dir, name), ...options });
    servers.push(server);
    return server;
  };
  const until = (attempt: string, look: () => Promise<boolean>): Promise<void> => untilDone(`the Sentinels do not ${attempt}`, look);
  try {
    const quick = ['--repl-diskless-sync-delay', '0', ...args];
    const first = await start('one', { appendonly: true, args: quick });
    const other = await start('other', { appendonly: true, args: [...quick, '--replicaof', HOST, String(first.port)] });
    const ports = await Promise.all([1, 2, 3].map(() => freePort()));
    const watching = await Promise.all(
      ports.map(async (port, i) => {
        await mkdir(join(dir, `sentinel-${i}`));
        const file = join(dir, `sentinel-${i}`, 'sentinel.conf');
        const lines = [
          ...[`port ${port}`, `bind ${HOST}`, `sentinel monitor ${PRIMARY_NAME} ${HOST} ${first.port} ${ENOUGH}`],
          ...[`sentinel down-after-milliseconds ${PRIMARY_NAME} ${downAfterMs}`, `sentinel failover-timeout ${PRIMARY_NAME} 3000`],
        ];
        await writeFile(file, `${lines.join('\n')}\n`);
        return start(`sentinel-${i}`, { port, sentinelFile: file });
      }),
    );
    await until('know each other', async () => {
      const seen = (await Promise.all(watching.map(({ port }) => askRedis(port, 'SENTINEL', 'CKQUORUM', PRIMARY_NAME)))) as string[];
      const replicas = (await Promise.all(watching.map(({ port }) => askRedis(port, 'SENTINEL', 'REPLICAS', PRIMARY_NAME)))) as unknown[][];
      return seen.every((text) => text.startsWith('OK 3')) && replicas.every((list) => list.length === 1);
    });
    const primary = async (): Promise<RedisServer> => {
      const [, port] = (await askRedis(ports[0] ?? 0, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY_NAME)) as string[];
      const found = servers.find((server) => server.port === Number(port));
      if (!found) throw new Error(`no server has the port ${port}`);
      return found;
    };
    return {
      url: `redis+sentinel://${ports.map((port) => `${HOST}:${port}`).join(',')}?name=${PRIMARY_NAME}`,
      primary,
      replica: async () => ((await primary()) === first ? other : first),
      askPrimary: async (...command) => askRedis((await primary()).port, ...command),
      async killPrimary() {
        const old = await primary();
        await old.kill();
        const replaced = until('name another primary', async () => {
          const now = await primary();
          return now !== old && String(await askRedis(now.port, 'ROLE')).startsWith('master');
        });
        return { replaced };
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
