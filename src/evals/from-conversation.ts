/** From a conversation of an installation to what evals keep of it: without secrets, and without what was forgotten since. */
import { ConfigError } from '../platform/errors.js';
import type { KnownSecrets } from '../platform/known-secrets.js';
import { turnNumber } from '../records/identity.js';
import { redactor } from '../memory/documents/forgetting.js';
import type { PerduraClient } from '../client.js';
import type { Store } from '../stores/store.js';
import type { DatasetCase } from './index.js';
import { takeTurns, type RecordedTurn, type Taken } from './recorded.js';

export interface Source {
  readonly client: Pick<PerduraClient, 'describe' | 'history' | 'turnEnds' | 'key'>;
  readonly store: Pick<Store, 'documents'>;
  readonly secrets: Pick<KnownSecrets, 'redact'>;
}

export interface TakenConversation extends Taken {
  readonly id: string;
  readonly agent: string;
  /** Epoch milliseconds of its first message. */
  readonly beganAt: number;
  /** MEMORY.md of its scope as it stands now; absent where that does not go along. */
  readonly memory?: string;
}

/** Earlier turns of a case, where the call does not say how many. */
export const TURNS_BEFORE = 50;

/** Throws `ConfigError` where nothing of it can be kept. */
export async function takeConversation(
  { client, store, secrets }: Source,
  id: string,
  { withMemory }: { readonly withMemory: boolean },
): Promise<TakenConversation> {
  const [{ agent }, entries, ends, key] = await Promise.all([client.describe(id), client.history(id), client.turnEnds(id), client.key(id)]);
  const forget = redactor(await store.documents.forgotten(key), key.scope);
  const redact = (text: string): string => secrets.redact(forget(text));
  const taken = takeTurns({ entries, ends, redact, withMemory });
  if (taken.turns.length === 0)
    throw new ConfigError(
      `nothing of ${id} can be kept: ${taken.gaps.join('; ') || 'it has no turn yet'}; \`perdura show ${id}\` has what there is`,
    );
  const memory = withMemory ? redact((await store.documents.memory(key)).text) : undefined;
  return { ...taken, id, agent: agent ?? 'default', beganAt: (entries[0]?.ts ?? 0) * 1000, ...(memory !== undefined && { memory }) };
}

/** A turn of it with those before it in its session. Throws `ConfigError` where it has no such turn. */
export function toCase(
  { id, agent, turns, gaps }: TakenConversation,
  wanted: { readonly turn: string; readonly labels: readonly string[]; readonly before?: number },
): DatasetCase {
  const at = turns.findIndex(({ turn }) => turnNumber(turn) === turnNumber(wanted.turn));
  const turn = turns[at];
  if (turn === undefined) {
    const why = gaps.find((gap) => gap.startsWith(`${wanted.turn} `));
    throw new ConfigError(
      `${id} has no ${wanted.turn} that a dataset can take: ${
        why ??
        `it has ${turns
          .map((one) => one.turn)
          .slice(-5)
          .join(', ')}`
      }`,
    );
  }
  const begins = turns.slice(0, at + 1).findLastIndex(({ newSession }) => newSession);
  const earlier = turns.slice(Math.max(begins, 0, at - (wanted.before ?? TURNS_BEFORE)), at);
  return { id: `${id}/${turn.turn}`, agent, labels: [...wanted.labels], before: earlier.map(withoutSession), turn: withoutSession(turn) };
}

function withoutSession({ newSession: _, ...turn }: RecordedTurn): RecordedTurn {
  return turn;
}
