/** What Temporal's events carry, as JSON and in words. */
import type { HistoryEvent } from '../../heal/fetch-runs.js';
import { truncate, oneLine } from '../../records/text.js';

const MAX_WORDS = 300;

type Payloads = { readonly payloads?: readonly { readonly data?: Uint8Array | null }[] | null } | null | undefined;

/** Undefined for what is no JSON: what is in history may be from another program. */
export function decode(payloads: Payloads): unknown {
  const data = payloads?.payloads?.[0]?.data;
  if (!data || data.length === 0) return undefined;
  try {
    return JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8'));
  } catch {
    return undefined;
  }
}

type Failure = { readonly message?: string | null; readonly cause?: Failure | null } | null | undefined;

export function describeFailure(failure: Failure): string {
  const parts: string[] = [];
  for (let at: Failure = failure, depth = 0; at && depth < 5; at = at.cause, depth++) if (at.message) parts.push(at.message);
  return words(parts.join(': ') || 'no reason was given');
}

export function titleIn(input: unknown): string {
  const { title } = (input ?? {}) as { readonly title?: unknown };
  return typeof title === 'string' ? title : '';
}

export function words(text: string): string {
  return truncate(oneLine(text), MAX_WORDS);
}

export function timeOf({ eventTime }: HistoryEvent): number {
  return Number(eventTime?.seconds ?? 0) * 1000 + Math.floor((eventTime?.nanos ?? 0) / 1e6);
}
