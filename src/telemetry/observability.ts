/** What the worker says of itself: Temporal's runtime with our log on stderr, metrics where a setting turns them on, and observers. */
import type { Logger } from '@temporalio/common';
import { Runtime, makeTelemetryFilterString, type ActivityInterceptorsFactory, type InjectedSinks } from '@temporalio/worker';
import pino from 'pino';
import { ConfigError, offerOtelSettings, otelProblems, type Config, type LogLevel, type OtelSettings } from '../config.js';
import type { ConversationEvent } from '../conversation/event.js';
import type { ConversationListener } from '../conversation/views/observation.js';
import { createDelivery, toNotifications, type Observed, type Observer } from './observer.js';
import { createLog, createRedactor } from './log.js';
import type { KnownSecrets } from '../platform/known-secrets.js';
import type { StartedTracing } from './otel/tracing.js';
import { loadOptional, MissingPackage, OTEL_PACKAGE, packageVersion } from '../platform/optional-package.js';

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

/** Secrets that the log of this process does not show; code that learns another secret adds it. */
export function secretsOfProcess(): KnownSecrets {
  return redactor;
}

export function installLog(logLevel: LogLevel): void {
  installTelemetry({ logLevel });
}

/** A program that installed Temporal's runtime before us has chosen where its log and its metrics go. */
function withForeignRuntime(metricsAddress: string | undefined): void {
  if (metricsAddress === undefined) return;
  Runtime.instance().logger.warn('PERDURA_METRICS_ADDRESS is not used: this program has installed a Temporal runtime of its own');
}

export function runtimeLog(): Logger {
  return Runtime.instance().logger;
}

/** What notifies observers, and what wraps calls: closed when the worker has ended. */
export interface Observation {
  /** False: there is no listener, and workflows need not tell. */
  readonly isObserved: boolean;
  readonly sinks: InjectedSinks<{ conversation: ConversationListener }>;
  readonly activityInterceptors: readonly ActivityInterceptorsFactory[];
  /** What shows the inside of activities; undefined where no setting wants traces. */
  readonly tracing?: Pick<StartedTracing, 'traced' | 'toolCalled'>;
  /** Delivers what is left, and says what could not be delivered. */
  close(): Promise<void>;
}

/** Milliseconds for what is left when a worker ends. */
const CLOSING_MS = 3_000;
/** Characters of events that wait for one observer. */
const WAITING_CHARACTERS = 16 * 1024 * 1024;

/** Observers of the user's code, and those that the settings turn on: the audit file and OpenTelemetry. */
export async function createObservationFor(
  config: Pick<Config, 'auditFile' | 'otel'>,
  custom: readonly Observer[] = [],
): Promise<Observation> {
  const log = runtimeLog;
  if (config.auditFile === undefined && config.otel === undefined) return createObservation(custom);
  const { createAudit } = await import('./audit.js');
  const audit =
    config.auditFile === undefined ? undefined : createAudit({ file: config.auditFile, redactor, log, onLost: countLost('audit-file') });
  const tracing = config.otel && (await startOtel(config.otel));
  const observation = createObservation(custom, [...(audit ? [audit.observer] : []), ...(tracing ? [tracing.observer] : [])]);
  return {
    ...observation,
    activityInterceptors: tracing ? [tracing.activities] : [],
    ...(tracing && { tracing }),
    async close() {
      await Promise.all([observation.close(), audit?.delivery.close(CLOSING_MS)]);
      await tracing?.close(CLOSING_MS);
    },
  };
}

async function startOtel(otel: OtelSettings): Promise<StartedTracing> {
  const problems = otelProblems(otel);
  if (problems.length > 0) throw new ConfigError(`cannot start OpenTelemetry: ${problems.join('; ')}`);
  offerOtelSettings(otel, packageVersion());
  const startTracing = await loadOptional([OTEL_PACKAGE], async () => (await import('./otel/tracing.js')).startTracing).catch(
    (cause: unknown) => {
      if (cause instanceof MissingPackage) {
        throw new ConfigError(`cannot start OpenTelemetry, which an OTEL_* setting asks for: ${cause.message}`, { cause });
      }
      throw cause;
    },
  );
  return startTracing({ version: packageVersion(), redactor, captureContent: otel.captureContent, log: runtimeLog });
}

/**
 * Conversations report what happens to them (workflows/conversation.ts), not on replay. Each of `custom` has a queue, so that a hanging one
 * holds up no other; `quick` are the built-in ones, which take an event and return.
 */
export function createObservation(
  custom: readonly Observer[],
  quick: readonly ((event: ConversationEvent, of: Observed) => void)[] = [],
): Observation {
  const deliveries = custom.map((observer, i) =>
    createDelivery<readonly [ConversationEvent, Observed]>({
      to: `observers[${i}]`,
      log: runtimeLog,
      sizeOf: ([event]) => JSON.stringify(event).length,
      sizeLimit: WAITING_CHARACTERS,
      onLost: countLost(`observers[${i}]`),
      deliver: async (batch) => {
        // A copy each, so that what one does to its event is not seen by the next.
        for (const one of batch) await observer(...(structuredClone(one) as [ConversationEvent, Observed]));
      },
    }),
  );
  const delivered = createDelivered();
  const isObserved = deliveries.length + quick.length > 0;
  return {
    isObserved,
    activityInterceptors: [],
    sinks: {
      conversation: {
        opened: { fn: () => undefined, callDuringReplay: false },
        event: {
          fn({ namespace, workflowId: conversation, runId }, event, change, mark) {
            if (!isObserved || !delivered.isNew(runId, mark)) return;
            const of: Observed = { namespace, conversation, runId, change, notifications: toNotifications(event, change ?? undefined) };
            for (const delivery of deliveries) delivery.take([event, of]);
            for (const observe of quick) notifyQuickly(observe, event, of);
          },
          callDuringReplay: false,
        },
      },
    },
    close: async () => void (await Promise.all(deliveries.map((delivery) => delivery.close(CLOSING_MS)))),
  };
}

function notifyQuickly(observe: (event: ConversationEvent, of: Observed) => void, event: ConversationEvent, of: Observed): void {
  try {
    observe(event, of);
  } catch (error) {
    runtimeLog().warn('an event could not be noted', { conversation: of.conversation, kind: event.kind, error });
  }
}

function countLost(observer: string): (count: number) => void {
  return (count) =>
    Runtime.instance()
      .metricMeter.createCounter('perdura_observer_events_lost_total', undefined, 'Events that an observer or the audit file did not take')
      .add(count, { observer });
}

// What was reported lately, so that a workflow task that is done again on this worker reports nothing twice.

interface Delivered {
  /** False for a mark that this run has reported already. */
  isNew(runId: string, mark: string): boolean;
}

/** Of one run: more than a workflow task reports. */
const MARKS = 256;
const RUNS = 1_000;

export function createDelivered(): Delivered {
  const runs = new Map<string, Set<string>>();
  return {
    isNew(runId, mark) {
      const marks = runs.get(runId) ?? new Set<string>();
      // Last in the map: reported last.
      runs.delete(runId);
      runs.set(runId, marks);
      if (runs.size > RUNS) dropFirst(runs);
      if (marks.has(mark)) return false;
      marks.add(mark);
      if (marks.size > MARKS) dropFirst(marks);
      return true;
    },
  };
}

function dropFirst(of: Map<string, unknown> | Set<string>): void {
  const [first] = of.keys();
  if (first !== undefined) of.delete(first);
}
