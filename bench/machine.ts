import { execFileSync } from 'node:child_process';
import { cpus, loadavg } from 'node:os';

export interface Machine {
  readonly date: string;
  readonly cores: number;
  /** Of the last 1, 5 and 15 minutes. */
  readonly load: readonly number[];
  readonly versions: Readonly<Record<'node' | 'temporal server' | 'temporal sdk' | 'redis', string>>;
}

export function describeMachine(serverVersion: string): Machine {
  return {
    date: new Date().toISOString(),
    cores: cpus().length,
    load: loadavg().map((load) => Math.round(load * 100) / 100),
    versions: { node: process.version, 'temporal server': serverVersion, 'temporal sdk': sdkVersion(), redis: redisVersion() },
  };
}

function sdkVersion(): string {
  return (require('@temporalio/worker/package.json') as { version: string }).version;
}

function redisVersion(): string {
  const said = execFileSync('redis-server', ['--version'], { encoding: 'utf8' });
  return /v=(\S+)/.exec(said)?.[1] ?? 'unknown';
}
