/**
 * One trace per turn, whichever workers run its parts: the ids follow from the turn itself. So nothing has to travel with a task, the
 * histories stay as they are, and a turn that goes on elsewhere after a crash goes on in the same trace.
 */
import { createHash } from 'node:crypto';
import { ROOT_CONTEXT, trace, TraceFlags, type Context, type Tracer } from '@opentelemetry/api';
import { tracing } from '@opentelemetry/sdk-node';

export interface TurnPlace {
  readonly namespace: string;
  readonly conversation: string;
  readonly life: string;
  readonly turn: string;
}

export interface TurnIds {
  readonly traceId: string;
  /** Of the turn's span. */
  readonly spanId: string;
}

export function deriveIds({ namespace, conversation, life, turn }: TurnPlace): TurnIds {
  const hash = createHash('sha256')
    .update(JSON.stringify([namespace, conversation, life, turn]))
    .digest('hex');
  return { traceId: hash.slice(0, 32), spanId: hash.slice(32, 48) };
}

/** Random, but for one span whose ids are given: `startSpan` asks for them before it returns. */
export interface GivenIds extends tracing.IdGenerator {
  during<T>(ids: TurnIds, start: () => T): T;
}

export function createGivenIds(): GivenIds {
  const random = new tracing.RandomIdGenerator();
  let given: TurnIds | undefined;
  return {
    generateTraceId: () => given?.traceId ?? random.generateTraceId(),
    generateSpanId: () => given?.spanId ?? random.generateSpanId(),
    during(ids, start) {
      given = ids;
      try {
        return start();
      } finally {
        given = undefined;
      }
    },
  };
}

/** The parent of the parts of a turn, sampled as the turn's span will be. */
export function createTurnContext(tracer: Tracer, ids: GivenIds, of: TurnIds): Context {
  // Never ended, so never exported: it serves only to call the sampler.
  const probe = ids.during(of, () => tracer.startSpan('probe', { root: true }, ROOT_CONTEXT));
  const traceFlags = probe.spanContext().traceFlags & TraceFlags.SAMPLED;
  return trace.setSpanContext(ROOT_CONTEXT, { ...of, traceFlags, isRemote: true });
}
