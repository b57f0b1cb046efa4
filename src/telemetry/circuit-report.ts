/** Which models a worker does not ask now, for people: a gauge, and a line in the log for each change. */
import { Runtime, type Logger } from '@temporalio/worker';
import type { OpenCircuit } from '../models/circuit-breaker.js';

/** To be called with all that are open, and the one that has changed. */
export function createCircuitReport(log: Pick<Logger, 'warn' | 'info'>): (open: readonly OpenCircuit[], of: string) => void {
  const name = 'perdura_circuit_open';
  const gauge = Runtime.instance().metricMeter.createGauge(name, 'int', undefined, '1 for a model or provider that is not asked now');
  return (open, of) => {
    const found = open.find((one) => one.of === of);
    gauge.set(found ? 1 : 0, { of });
    if (found) log.warn('a model is not asked for a while', { of, reason: found.reason, until: new Date(found.until).toISOString() });
    else log.info('a model answers again', { of });
  };
}
