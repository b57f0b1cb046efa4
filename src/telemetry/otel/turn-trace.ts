/**
 * One trace per turn, whichever workers run its parts: the ids follow from the turn itself. So nothing has to travel with a task, the
 * histories stay as they are, and a turn that goes on elsewhere after a crash goes on in the same trace. The span of a call that waits for
 * a sub-agent has such an id too, so that the sub-agent's trace can link to it.
 */
import { createHash, randomBytes } from 'node:crypto';
import { ROOT_CONTEXT, trace, TraceFlags, type Context, type Link, type SpanContext, type Tracer } from '@opentelemetry/api';

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
  const hash = hashParts([namespace, conversation, life, turn]);
  return { traceId: hash.slice(0, 32), spanId: hash.slice(32, 48) };
}

/** Of a call that a sub-agent answers: `callId` begins with its turn. */
export function deriveCallIds(place: Omit<TurnPlace, 'turn'>, callId: string): TurnIds {
  const turn = callId.split('/', 1)[0] ?? '';
  const { namespace, conversation, life } = place;
  return { ...deriveIds({ ...place, turn }), spanId: hashParts([namespace, conversation, life, callId]).slice(0, 16) };
}

function hashParts(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

export function toLink(ids: TurnIds): Link {
  return { context: { ...ids, traceFlags: TraceFlags.SAMPLED, isRemote: true } };
}

/** Of a client: the W3C's header. Undefined where it is none. */
export function readTraceparent(traceparent: string): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/.exec(traceparent) ?? [];
  const read = { traceId, spanId, traceFlags: parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
  return trace.isSpanContextValid(read) ? read : undefined;
}

/** Random, but for one span whose ids are given: `startSpan` asks for them before it returns. */
export interface GivenIds {
  generateTraceId(): string;
  generateSpanId(): string;
  during<T>(ids: TurnIds, start: () => T): T;
}

export function createGivenIds(): GivenIds {
  let given: TurnIds | undefined;
  return {
    generateTraceId: () => given?.traceId ?? randomBytes(16).toString('hex'),
    generateSpanId: () => given?.spanId ?? randomBytes(8).toString('hex'),
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
