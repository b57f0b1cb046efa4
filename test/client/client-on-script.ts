/** Our client on a scripted Temporal, with a store that nothing is to reach. */
import { createClientWith, type ClientError, type ClientOptions, type PerduraClient } from '../../src/client.js';
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import { scriptedTemporal, type ScriptedTemporal } from '../support/scripted-temporal.js';

export interface OnScript {
  readonly temporal: ScriptedTemporal;
  readonly client: PerduraClient;
}

export function onScript(more: Partial<ClientOptions> = {}): OnScript {
  const temporal = scriptedTemporal();
  const store = (): never => {
    throw new Error('nothing was to reach the store');
  };
  return { temporal, client: createClientWith({ client: temporal.client, namespace: 'default', taskQueue: 'perdura', store, ...more }) };
}

const USAGE = { inputTokens: 1, cachedTokens: 0, outputTokens: 1, costUsd: null };

export function turnResult(stopReason: TurnResult['stopReason'], turnId: string | null = 'turn_0001', text = 'hi'): TurnResult {
  return { turnId, text, stopReason, usage: USAGE, toolCalls: 0 };
}

/** What a call ended with, where it was to fail. */
export async function failureOf(doing: Promise<unknown>): Promise<Pick<ClientError, 'kind' | 'message'>> {
  const error = await doing.then(
    (value) => new Error(`it did not fail: ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown as ClientError,
  );
  return { kind: (error as ClientError).kind, message: error.message };
}
