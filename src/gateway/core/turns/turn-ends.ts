/**
 * How turns end, for any number of readers.
 *
 * - Temporal lets ten updates of a conversation wait at once, so the readers of one turn share one.
 * - A reader may wait without a limit: it waits out a missing worker, a missing Temporal and a hand-over.
 * - If Temporal no longer answers for a turn, the store says how it ended.
 * - The answer is whole: of a long one only the beginning travels through Temporal.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PerduraClient } from '../../../client.js';
import { ClientError } from '../../../client/errors.js';
import { wholeAnswer } from '../../../client/whole-answer.js';
import type { TurnResult } from '../../../conversation/protocol/contract.js';
import { answerText, NO_USAGE } from '../../../records/message.js';

const BETWEEN_TRIES_MS = 1_000;

export interface TurnEnds {
  /** Rejects with `not-found` where there is no such turn, and with the signal's reason. */
  of(id: string, turn: string, signal: AbortSignal): Promise<TurnResult>;
  /** With the text in full. */
  whole(id: string, result: TurnResult): Promise<TurnResult>;
}

interface Waiting {
  readonly end: Promise<TurnResult>;
  readonly stop: AbortController;
  readers: number;
}

export function createTurnEnds(client: Pick<PerduraClient, 'turn' | 'history' | 'turnEnds'>): TurnEnds {
  const waiting = new Map<string, Waiting>();

  const wait = async (id: string, turn: string, signal: AbortSignal): Promise<TurnResult> => {
    for (;;) {
      try {
        return await client.turn(id, turn, { signal });
      } catch (error) {
        signal.throwIfAborted();
        const { kind } = error as Partial<ClientError>;
        if (kind === 'not-found') return recorded(id, turn);
        if (kind !== 'no-worker' && kind !== 'unreachable' && kind !== 'queue-full') throw error;
        await sleep(BETWEEN_TRIES_MS, undefined, { signal });
      }
    }
  };

  const recorded = async (id: string, turn: string): Promise<TurnResult> => {
    const [entries, ends] = await Promise.all([client.history(id), client.turnEnds(id)]);
    const own = entries.filter((entry) => entry.turn === turn);
    const end = ends.findLast((one) => one.turn === turn);
    if (own.length === 0 && end === undefined) throw new ClientError('not-found', `${id} has no ${turn}`);
    const last = own.findLast(({ message }) => message.role === 'assistant');
    return {
      turnId: turn,
      text: last === undefined ? '' : answerText(last.message),
      stopReason: end?.stopReason ?? 'end',
      usage: NO_USAGE,
      toolCalls: own.filter(({ message }) => message.role === 'tool').length,
      ...(end?.error && { error: end.error }),
    };
  };

  const shared = (id: string, turn: string): Waiting => {
    const key = `${id} ${turn}`;
    const known = waiting.get(key);
    if (known) return known;
    const stop = new AbortController();
    const end = wait(id, turn, stop.signal).finally(() => waiting.delete(key));
    end.catch(() => undefined);
    const own = { end, stop, readers: 0 };
    waiting.set(key, own);
    return own;
  };

  const whole = async (id: string, { textRef, ...result }: TurnResult): Promise<TurnResult> =>
    textRef === undefined ? result : { ...result, text: await wholeAnswer(client, id, { ...result, textRef }) };

  return {
    async of(id, turn, signal) {
      signal.throwIfAborted();
      const own = shared(id, turn);
      own.readers += 1;
      let leave!: () => void;
      const left = new Promise<never>((_resolve, reject) => {
        leave = () => reject(signal.reason as Error);
        signal.addEventListener('abort', leave, { once: true });
      });
      left.catch(() => undefined);
      try {
        return await Promise.race([own.end, left]);
      } finally {
        signal.removeEventListener('abort', leave);
        own.readers -= 1;
        if (own.readers === 0) {
          own.stop.abort();
          if (waiting.get(`${id} ${turn}`) === own) waiting.delete(`${id} ${turn}`);
        }
      }
    },
    whole,
  };
}
