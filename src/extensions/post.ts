/** One POST of JSON to an address that an operator has named. Redirects are not followed, and what is answered is not read. */
import { timeoutSignal } from '../platform/timeout-signal.js';
import { firstErrorCode } from '../platform/errors.js';

export interface PostAnswer {
  readonly status: number;
  readonly retryAfter: string | null;
}

/** Rejects in words without the address, which may be a secret. */
export async function postJson(
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
export function refusalIn({ status }: PostAnswer): string | undefined {
  if (status >= 300 && status < 400) return `it answered ${status}, and redirects are not followed`;
  return status >= 400 ? `it answered ${status}` : undefined;
}
