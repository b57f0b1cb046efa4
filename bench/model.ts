import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface BenchModel {
  readonly url: string;
  close(): Promise<void>;
}

export async function startModel(): Promise<BenchModel> {
  const child = fork(join(__dirname, 'model-process.js'), { execArgv: [] });
  const [url] = (await once(child, 'message')) as [string];
  const exited = once(child, 'exit');
  return {
    url,
    async close() {
      child.disconnect();
      await exited;
    },
  };
}
