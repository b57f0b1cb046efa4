/** OpenTelemetry's SDK, set up by its OTEL_* settings. The only file that loads it. */
import { diag, DiagLogLevel } from '@opentelemetry/api';
import { NodeSDK, resources } from '@opentelemetry/sdk-node';
import type { DeliveryLog } from '../delivery.js';
import { createTracing, type Tracing, type TracingOptions } from './tracing.js';
import { createGivenIds } from './turn-trace.js';
import { orUndefinedAfter } from '../../platform/promises.js';

const SAID_EVERY_MS = 60_000;

export interface StartedTracing extends Tracing {
  /** Sends what is left, for at most `ms`. */
  close(ms: number): Promise<void>;
}

export function startTracing(options: Omit<TracingOptions, 'ids'> & { readonly log: () => DeliveryLog }): StartedTracing {
  const ids = createGivenIds();
  let saidAt = -Infinity;
  const quiet = (): void => undefined;
  const warn = (message: string): void => {
    if (Date.now() - saidAt < SAID_EVERY_MS) return;
    saidAt = Date.now();
    options.log().warn(`OpenTelemetry: ${message}`);
  };
  // Its first lines, before its logger, which OTEL_LOG_LEVEL turns on, may take over.
  diag.setLogger(
    { error: warn, warn, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
  const sdk = new NodeSDK({
    idGenerator: ids,
    resource: new resources.Resource({ 'service.name': 'perdura', 'service.version': options.version }),
  });
  sdk.start();
  return {
    ...createTracing({ ...options, ids }),
    async close(ms) {
      await orUndefinedAfter(
        ms,
        sdk.shutdown().catch((error: unknown) => warn(String(error))),
      );
    },
  };
}
