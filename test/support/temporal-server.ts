/** The server that people's tests get (src/testing), with the program that this machine's tests are told to use. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { startTemporalServer, type TestServer } from '../../src/testing/temporal-server.js';

export type TemporalServer = TestServer;

export interface TemporalServerOptions {
  readonly port?: number;
  /** Without it everything is in memory. */
  readonly dbFile?: string;
  /** Without the server's own long waits (IMPATIENCE). */
  readonly impatient?: boolean;
}

export const IMPATIENCE = {
  // Runs of one conversation may begin sooner than a second apart.
  'history.workflowIdReuseMinimalInterval': '0s',
  // What is deleted is gone once the server has noted how far it got: else only every 30 s.
  'history.transferProcessorUpdateAckInterval': '1s',
  'history.visibilityProcessorUpdateAckInterval': '1s',
};
const IMPATIENT = Object.entries(IMPATIENCE).flatMap(([name, value]) => ['--dynamic-config-value', `${name}=${JSON.stringify(value)}`]);

export function startTemporal({ port, dbFile, impatient }: TemporalServerOptions = {}): Promise<TemporalServer> {
  return startTemporalServer({ port, dbFile, program: temporalProgram(), flags: impatient ? IMPATIENT : [] });
}

export function temporalProgram(): string {
  const named = process.env['PERDURA_TEST_TEMPORAL'];
  const built = join(homedir(), 'go', 'bin', 'temporal');
  return named ?? (existsSync(built) ? built : 'temporal');
}
