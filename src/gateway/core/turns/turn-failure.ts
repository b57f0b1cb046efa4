/** A failed turn, for protocols that answer it with an error. */
import type { TurnResult } from '../../../conversation/protocol/contract.js';
import { GatewayError, type Problem } from '../errors.js';

const STATUS: Readonly<Record<string, Problem['status']>> = { 'unknown-agent': 404, 'rate-limit': 429, overloaded: 503 };

/** Throws where it has failed. Where a limit ended it there is an answer, and the protocol has a reason for that. */
export function refuseFailed({ stopReason, error }: TurnResult): void {
  if (stopReason !== 'failed') return;
  const { type, message } = error ?? { type: 'failed', message: 'the turn failed' };
  throw new GatewayError({ status: STATUS[type] ?? 500, type, message });
}
