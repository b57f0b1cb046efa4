/**
 * Posts events to the endpoints in a worker's settings, signed as Standard Webhooks say. The operator has named the addresses, so they may
 * be in the operator's network; where an answer leads elsewhere is not followed.
 *
 * @rule extensions/posted-once: A worker does not post an acknowledged id again, also if Temporal did not hear of the acknowledgement.
 *   (test: test/extensions/webhooks.test.ts)
 * @rule extensions/hanging-endpoint-bounded: Endpoints that hang take a bounded share of the worker: conversations have the rest. (test:
 *   test/extensions/webhooks.test.ts)
 */
import { Webhook } from 'standardwebhooks';
import type { Posted, PostOutcome, Webhooks } from '../activities/dependencies.js';
import type { WebhookEndpoint } from '../config/webhooks.js';
import { packageVersion } from '../platform/optional-package.js';
import { scopeParts } from '../records/identity.js';
import { errorMessage, firstErrorCode } from '../platform/errors.js';
import { timeoutSignal } from '../platform/promises.js';

export interface WebhookOptions {
  /** Milliseconds that a receiver has; tests shorten them. */
  readonly ms?: number;
  readonly now?: () => number;
}

const POST_MS = 15_000;
const MAX_AT_ONCE = 20;
const BUSY_MS = 5_000;
const REMEMBERED = 1_000;
const GONE = 410;
/** A receiver that asks for a longer wait gets the next attempt after an hour. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** Of a scope by its whole name. A rule that names a scope and no tenant is not about what a tenant calls so. */
export function endpointFor(
  endpoints: readonly WebhookEndpoint[],
  { scope: whole }: Pick<Posted['identity'], 'scope'>,
): (WebhookEndpoint & { url: string }) | undefined {
  const { tenant, scope } = scopeParts(whole);
  const isAll = (one: WebhookEndpoint): boolean => one.tenant === undefined && one.scope === undefined;
  const found = endpoints.find((one) => isAll(one) || (one.tenant === tenant && (one.scope === undefined || one.scope === scope)));
  return found === undefined || found.url === null ? undefined : { ...found, url: found.url };
}

/** Undefined where no endpoint is set. */
export function createWebhooks(endpoints: readonly WebhookEndpoint[], options: WebhookOptions = {}): Webhooks | undefined {
  if (endpoints.every(({ url }) => url === null)) return undefined;
  const { ms = POST_MS, now = Date.now } = options;
  const acknowledged = new Map<string, PostOutcome>();
  let posting = 0;

  const post = async (posted: Posted, signal: AbortSignal): Promise<PostOutcome> => {
    const { id, identity, body } = posted;
    const known = acknowledged.get(id);
    if (known) return known; // (extensions/posted-once)
    const endpoint = endpointFor(endpoints, identity);
    if (!endpoint) return { kind: 'failed', message: `this worker has no webhook for scope "${identity.scope}"` };
    // (extensions/hanging-endpoint-bounded)
    if (posting >= MAX_AT_ONCE) return { kind: 'failed', message: `${posting} others are being posted`, retryAfterMs: BUSY_MS };
    posting += 1;
    try {
      const answer = await postJson(endpoint.url, { body, headers: signed(endpoint, { id, body, at: now() }), ms, signal });
      const outcome = toOutcome(answer, now());
      if (outcome.kind !== 'failed') acknowledged.set(id, outcome);
      for (const oldest of acknowledged.keys()) if (acknowledged.size > REMEMBERED) acknowledged.delete(oldest);
      return outcome;
    } catch (error) {
      return { kind: 'failed', message: errorMessage(error) };
    } finally {
      posting -= 1;
    }
  };
  return { eventsFor: (identity) => endpointFor(endpoints, identity)?.events ?? [], post };
}

/** https://www.standardwebhooks.com: each attempt has a new time, so that a receiver can refuse an old one. */
function signed({ secrets }: WebhookEndpoint, { id, body, at }: { readonly id: string; readonly body: string; readonly at: number }) {
  const signatures = secrets.map((secret) => new Webhook(secret).sign(id, new Date(at), body));
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at / 1000)),
    'webhook-signature': signatures.join(' '),
    'user-agent': `perdura/${packageVersion()}`,
  };
}

function toOutcome(answer: { readonly status: number; readonly retryAfter: string | null }, now: number): PostOutcome {
  const { status, retryAfter } = answer;
  if (status === GONE) return { kind: 'gone', status };
  const refusal = refusalIn(answer);
  if (refusal === undefined) return { kind: 'delivered', status };
  const requestedMs = retryAfterMs(retryAfter, now);
  return { kind: 'failed', message: refusal, ...(requestedMs !== undefined && { retryAfterMs: requestedMs }) };
}

/** Seconds, or a date. */
function retryAfterMs(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now;
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : undefined;
}

// One POST of JSON to an address that an operator has named. Redirects are not followed, and what is answered is not read.

interface PostAnswer {
  readonly status: number;
  readonly retryAfter: string | null;
}

/** Rejects in words without the address, which may be a secret. */
async function postJson(
  url: string,
  { body, headers = {}, ms, signal }: { body: string; headers?: Readonly<Record<string, string>>; ms: number; signal: AbortSignal },
): Promise<PostAnswer> {
  const limit = timeoutSignal(ms);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      redirect: 'manual',
      signal: AbortSignal.any([signal, limit]),
    });
    await response.body?.cancel();
    return { status: response.status, retryAfter: response.headers.get('retry-after') };
  } catch (error) {
    throw new Error(limit.aborted ? `no answer within ${ms} ms` : `it cannot be reached (${firstErrorCode(error) ?? 'failed'})`);
  }
}

/** Undefined for an answer that accepts. */
function refusalIn({ status }: PostAnswer): string | undefined {
  if (status >= 300 && status < 400) return `it answered ${status}, and redirects are not followed`;
  return status >= 400 ? `it answered ${status}` : undefined;
}
