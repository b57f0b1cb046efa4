/** A client of the gateway that never gives up: the same message id again until there is an answer, whatever dies meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Message, TurnResult } from '../../src/conversation/protocol/contract.js';
import { timeoutSignal } from '../../src/platform/promises.js';

export interface GatewayPlace {
  readonly url: string;
  readonly token: string;
}

const WAIT_S = 20;
/** Longer than the gateway waits: one that is stopped answers nothing. */
const PATIENCE_MS = 40_000;

export async function sendThroughGateway(
  { url, token }: GatewayPlace,
  conversation: string,
  message: Message & { readonly id: string },
  leaving: AbortSignal,
): Promise<TurnResult> {
  const path = `${url}/v1/conversations/${encodeURIComponent(conversation)}`;
  const ask = async (to: string, init: RequestInit): Promise<{ readonly status: number; readonly body: unknown }> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(to, { ...init, headers, signal: AbortSignal.any([leaving, timeoutSignal(PATIENCE_MS)]) });
    return { status: response.status, body: await response.json() };
  };
  for (let turn: string | undefined; ;) {
    try {
      const { status, body } =
        turn === undefined
          ? await ask(`${path}/messages?wait=${WAIT_S}`, { method: 'POST', body: JSON.stringify(message) })
          : await ask(`${path}/turns/${turn}?wait=${WAIT_S}`, { method: 'GET' });
      if (status === 200) return body as TurnResult;
      if (status === 202) turn = (body as { readonly turn?: string | null }).turn ?? turn;
      // Refused for good, which no fault of a storm is.
      if (status >= 400 && status < 500 && status !== 429 && status !== 409) throw new Refused(`${status} ${JSON.stringify(body)}`);
    } catch (error) {
      if (leaving.aborted || error instanceof Refused) throw error;
    }
    await sleep(200);
  }
}

class Refused extends Error {}
