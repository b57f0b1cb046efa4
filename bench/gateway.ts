import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface GatewayPlace {
  readonly temporal: string;
  readonly token: string;
  readonly taskQueue: string;
  readonly redisUrl?: string;
  readonly memoryDir: string;
}

export interface BenchGateway {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds from its first line of code to the open port. */
  readonly startMs: number;
  /** Mebibytes that it has now. */
  rss(): Promise<number>;
  close(): Promise<void>;
}

export async function startGateway(place: Omit<GatewayPlace, 'token'>): Promise<BenchGateway> {
  const token = 'a-token-for-the-bench-alone';
  const child: ChildProcess = fork(join(__dirname, 'gateway-process.js'), [JSON.stringify({ ...place, token })], { execArgv: [] });
  const [{ url, startMs }] = (await once(child, 'message')) as [{ url: string; startMs: number }];
  const exited = once(child, 'exit');
  return {
    url,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'text/event-stream' },
    startMs,
    async rss() {
      const answer = once(child, 'message') as Promise<[{ rss: number }]>;
      child.send({});
      const [{ rss }] = await answer;
      return rss / 1024 / 1024;
    },
    async close() {
      child.disconnect();
      await exited;
    },
  };
}
