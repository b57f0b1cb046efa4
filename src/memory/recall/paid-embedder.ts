/**
 * An embedder whose every request is bounded and written down as spent. One that does not answer is left alone for a while: a search must not
 * wait for it each time.
 */
import { randomUUID } from 'node:crypto';
import { EMBED_MS, MAX_DIMENSIONS, type Embedder } from '../../models/embedder.js';
import { addUsage, NO_USAGE, type Usage } from '../../records/message.js';
import type { ConversationKey, ScopeKey, Store } from '../../stores/store.js';
import { errorMessage } from '../../platform/errors.js';
import { lineName } from './indexed-texts.js';

/** Whose budget it counts to. */
export interface Payer {
  readonly key: ConversationKey;
  readonly agent: string;
}

export interface EmbedOptions {
  /** Absent: a person who searches, whom no budget holds. */
  readonly payer?: Payer | undefined;
  readonly of: ScopeKey;
  readonly totalMs?: number;
  readonly signal?: AbortSignal;
}

export interface PaidEmbedder {
  readonly name: string;
  /** One for each text, in their order, all of one size. Throws an error that says what to do. */
  embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]>;
  /** What a conversation's step has to report as used; it is told once. */
  takeOwed(key: ConversationKey): Usage | undefined;
}

/** Texts of one request. */
export const TEXTS_AT_ONCE = 64;
/** Milliseconds after a failure in which it is not called again. */
const REST_MS = 30_000;
/** Lives whose use is not reported yet; one that has no step any more reports nothing. */
const MAX_OWED = 10_000;

export interface PaidEmbedderOptions {
  readonly store: Pick<Store, 'effects'>;
  readonly embedder: Embedder;
  readonly now?: () => number;
  readonly log?: ((line: string) => void) | undefined;
}

export function createPaidEmbedder({ store, embedder, now = Date.now, log }: PaidEmbedderOptions): PaidEmbedder {
  const { name } = embedder;
  const owed = new Map<string, Usage>();
  let rests: { readonly until: number; readonly why: string } | undefined;

  const pay = async (tokens: number, { payer, of }: EmbedOptions): Promise<void> => {
    const costUsd = embedder.price === undefined ? null : (tokens * embedder.price) / 1e6;
    const usage: Usage = { inputTokens: tokens, cachedTokens: 0, outputTokens: 0, costUsd };
    // Of no conversation: it is booked with the workflow of the scope's memory, as its care does.
    const key = payer?.key ?? { ...of, conversation: `memory:${of.scope}`, life: 'search' };
    if (payer) {
      const life = lineName(key);
      // An unknown price must not make the price of all the rest unknown.
      owed.set(life, addUsage(owed.get(life) ?? NO_USAGE, { ...usage, costUsd: costUsd ?? 0 }));
      const [oldest] = owed.keys();
      if (owed.size > MAX_OWED && oldest !== undefined) owed.delete(oldest);
    }
    const { conversation, scope } = key;
    const spent = { at: now(), kind: 'embedding', conversation, agent: payer?.agent ?? '', scope, model: name, usage } as const;
    await store.effects.spend(key, `embedding/${randomUUID()}`, spent).catch((error: unknown) => {
      log?.(`what ${name} has cost could not be written: ${errorMessage(error)}`);
    });
  };

  return {
    name,

    async embed(texts, options) {
      if (texts.length === 0) return [];
      if (rests && now() < rests.until) throw new Error(rests.why);
      rests = undefined;
      const { totalMs = EMBED_MS, signal = new AbortController().signal } = options;
      try {
        const { vectors, tokens } = await embedder.embed(texts, { signal, totalMs });
        await pay(Number.isSafeInteger(tokens) && tokens > 0 ? tokens : 0, options);
        checkVectors(vectors, texts.length);
        return vectors;
      } catch (error) {
        if (!signal.aborted) rests = { until: now() + REST_MS, why: errorMessage(error) };
        throw error;
      }
    },

    takeOwed(key) {
      const usage = owed.get(lineName(key));
      owed.delete(lineName(key));
      return usage;
    },
  };

  /** Custom embedders are taken at their type's word no more than a provider is. */
  function checkVectors(vectors: readonly Float32Array[], count: number): void {
    const size = vectors[0]?.length ?? 0;
    const isRight = (one: Float32Array): boolean => one.length === size && one.every(Number.isFinite);
    if (vectors.length === count && size > 0 && size <= MAX_DIMENSIONS && vectors.every(isRight)) return;
    throw new Error(`cannot use what ${name} answered: ${count} vectors of one size, 1 to ${MAX_DIMENSIONS} numbers, were requested`);
  }
}
