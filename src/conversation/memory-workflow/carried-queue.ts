/** What a run of a memory is handed by the one before it, looked at before it is used (state/carried-state.ts says why). */
import * as v from 'valibot';
import { readConsolidationRequest } from '../protocol/memory-contract.js';
import { LIMITS } from '../protocol/limits.js';
import { bool, flag, is, json, list, object, part, read, refuse, text, time, usage, type Checked } from '../protocol/schema.js';
import type { MemoryQueue } from './memory-queue.js';

const MOST = { depth: LIMITS.depth, values: 500_000 };

const number = is<number>('a number', Number.isFinite);
const failure = part({ type: text, message: text, transient: bool });
const queueSchema = part({
  v: v.literal(1, 'must be 1'),
  scope: text,
  requests: list(
    part({ request: json, running: bool, retry: v.nullable(part({ until: time, attempts: number, failure })), dropped: flag }),
  ),
  done: list(text),
  consolidated: number,
  fallbacks: number,
  usage,
  last: list(part({ at: time, what: text })),
  written: v.optional(object),
});

/** A request that is none is left out: the others go on. */
export function readCarriedQueue(value: unknown, scope: string): Checked<MemoryQueue> {
  const queue = read(queueSchema, value, 'carried', MOST);
  if (!queue.ok) return queue;
  if (queue.value.scope !== scope) return refuse(`carried.scope must be ${scope}`);
  const carried = value as MemoryQueue;
  const requests = carried.requests.flatMap((one) => {
    const request = readConsolidationRequest(one.request);
    return request.ok ? [{ ...one, request: request.value }] : [];
  });
  return { ok: true, value: { ...carried, requests } };
}
