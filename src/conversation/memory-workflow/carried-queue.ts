/** What a run of a memory is handed by the one before it, looked at before it is used (state/carried-state.ts says why). */
import { LIMITS } from '../protocol/contract.js';
import { excessOf, refuse, type Checked } from '../protocol/fields.js';
import { readConsolidationRequest } from '../protocol/memory-input.js';
import { bool, fields, list, maybe, number, object, oneOf, orNull, text, time, usage, type Check } from '../protocol/shape.js';
import type { MemoryQueue } from './memory-queue.js';

const MAX_VALUES = 500_000;

/** A request that is none is left out: the others go on. */
export function readCarriedQueue(value: unknown, scope: string): Checked<MemoryQueue> {
  const excess = excessOf(value, LIMITS.depth, MAX_VALUES);
  if (excess !== undefined) return refuse(`carried ${excess}`);
  const problem = carriedQueue(scope)(value);
  if (problem !== undefined) return refuse(`carried${problem}`);
  const queue = value as MemoryQueue;
  const requests = queue.requests.flatMap((one) => {
    const request = readConsolidationRequest(one.request);
    return request.ok ? [{ ...one, request: request.value }] : [];
  });
  return { ok: true, value: { ...queue, requests } };
}

const retry = fields({ until: time, attempts: number, failure: fields({ type: text, message: text, transient: bool }) });

function carriedQueue(scope: string): Check {
  return fields({
    v: oneOf(1),
    scope: oneOf(scope),
    requests: list(fields({ request: object, running: bool, retry: orNull(retry), dropped: maybe(bool) })),
    done: list(text),
    consolidated: number,
    fallbacks: number,
    usage,
    last: list(fields({ at: time, what: text })),
    written: maybe(fields({ version: text, summary: bool })),
  });
}
