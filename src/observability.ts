/** What the worker says of itself: Temporal's own runtime and logger, at our level, on stderr. */
import { DefaultLogger, Runtime, makeTelemetryFilterString, type LogLevel } from '@temporalio/worker';
import type { LogLevel as Level } from './config.js';

let installed = false;

/** Once per process: Temporal's runtime cannot be installed twice. */
export function installLog(level: Level): void {
  if (installed) return;
  installed = true;
  const temporalLevel = level.toUpperCase() as LogLevel;
  Runtime.install({
    logger: new DefaultLogger(temporalLevel),
    telemetryOptions: { logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN' }) } },
  });
}
