/** What the worker says of itself: Temporal's runtime with our log on stderr, metrics where they are asked for, and observers. */
import type { Logger } from '@temporalio/common';
import { Runtime, makeTelemetryFilterString, type InjectedSinks } from '@temporalio/worker';
import pino from 'pino';
import { ConfigError, type LogLevel } from './config.js';
import { createLog } from './telemetry/log.js';
import { createRedactor } from './telemetry/redact.js';
import type { Observer } from './user-config.js';
import type { ConversationSinks } from './workflows/observe.js';

export interface TelemetryOptions {
  readonly logLevel: LogLevel;
  /** Values that no line of the log shows. */
  readonly secrets?: readonly string[];
  /** Where Prometheus scrapes; nothing is measured without it. */
  readonly metricsAddress?: string;
}

const redactor = createRedactor();
const installed = new Set<'runtime'>();

/** Once per process: Temporal's runtime cannot be installed twice. Later calls only add their secrets. */
export function installTelemetry({ logLevel, secrets = [], metricsAddress }: TelemetryOptions): void {
  redactor.add(secrets);
  if (installed.has('runtime')) return;
  // Synchronous: the last lines before a crash are the ones that are needed.
  const stream = pino.destination({ dest: 2, sync: true });
  const logger = createLog({ level: logLevel, redactor, stream, readable: process.stderr.isTTY });
  try {
    Runtime.install({
      logger,
      telemetryOptions: {
        logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN' }) },
        ...(metricsAddress === undefined ? {} : { metrics: { prometheus: { bindAddress: metricsAddress } } }),
      },
    });
    installed.add('runtime');
  } catch (cause) {
    const { name, message } = cause as Error;
    if (name === 'IllegalStateError') return withForeignRuntime(metricsAddress);
    if (metricsAddress === undefined) throw cause;
    throw new ConfigError(`PERDURA_METRICS_ADDRESS is ${metricsAddress}, where no metrics can be served: ${message}`, { cause });
  }
}

export function installLog(logLevel: LogLevel): void {
  installTelemetry({ logLevel });
}

/** Who has installed Temporal's runtime before us has chosen where its log and its metrics go. */
function withForeignRuntime(metricsAddress: string | undefined): void {
  if (metricsAddress === undefined) return;
  Runtime.instance().logger.warn('PERDURA_METRICS_ADDRESS is not used: this program has installed a Temporal runtime of its own');
}

export function runtimeLog(): Logger {
  return Runtime.instance().logger;
}

/** Conversations tell what happens to them (workflows/observe.ts). Nothing is awaited: an observer that hangs holds nobody up. */
export function toSinks(observers: readonly Observer[]): InjectedSinks<ConversationSinks> {
  const faulty = new Set<Observer>();
  const failed = (observer: Observer, conversation: string, error: unknown): void => {
    if (faulty.has(observer)) return;
    faulty.add(observer);
    runtimeLog().warn('an observer failed; it is told on, and its further failures are not logged', { conversation, error });
  };
  return {
    conversation: {
      opened: { fn: () => undefined, callDuringReplay: false },
      event: {
        fn({ namespace, workflowId: conversation, runId }, event) {
          for (const observer of observers) {
            // A copy each, so that what one does to its event is not seen by the next.
            void (async () => observer(structuredClone(event), { namespace, conversation, runId }))().catch((error: unknown) =>
              failed(observer, conversation, error),
            );
          }
        },
        callDuringReplay: false,
      },
    },
  };
}
