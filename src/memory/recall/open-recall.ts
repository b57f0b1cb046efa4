/** A search, and what makes vectors for it where there is an embedder. */
import type { Embedder } from '../../models/embedder.js';
import { lineName } from './indexed-texts.js';
import { createPaidEmbedder, type PaidEmbedder, type Payer } from './paid-embedder.js';
import { createRecall, type Recall, type RecallOptions } from './recall.js';
import type { ConversationKey } from '../../stores/store.js';
import { timeoutSignal } from '../../platform/promises.js';
import type { Usage } from '../../records/message.js';
import { errorMessage } from '../../platform/errors.js';

export interface OpenedRecall {
  readonly recall: Recall;
  /** Absent without an embedder. */
  readonly embedding?: BackgroundEmbedding;
}

export function openRecall({
  embedder,
  ...options
}: Omit<RecallOptions, 'embedder'> & { readonly embedder?: Embedder | undefined }): OpenedRecall {
  if (!embedder) return { recall: createRecall(options) };
  const { store, log = () => undefined } = options;
  const paid = createPaidEmbedder({ store, embedder, log });
  const recall = createRecall({ ...options, embedder: paid });
  return { recall, embedding: createBackgroundEmbedding({ recall, embedder: paid, log }) };
}

// Vectors are made beside the work of a worker, after the steps that have written something: a turn never waits for them. What a step's
// conversation may no longer spend it spends on no vectors either, since it has no more steps; what they cost its next step reports.
//
// One part at a time, in the whole worker; each is bounded in texts and in time (scope-vectors.ts). A failed part is retried after the next
// write, after a pause that doubles. Nothing is lost: words find a text without a vector.

export interface BackgroundEmbedding {
  /** After a step that has written something. Returns at once. */
  note(payer: Payer): void;
  /** What vectors have cost a conversation since its last step; told once. */
  takeOwed(key: ConversationKey): Usage | undefined;
  /** Ends what runs, and waits for it. */
  close(): Promise<void>;
}

/** Milliseconds of one part. */
const PART_MS = 60_000;
const [FIRST_PAUSE_MS, LAST_PAUSE_MS] = [10_000, 600_000];
/** Conversations that wait for their part; more are remembered by what they say next. */
const MAX_WAITING = 1_000;

export function createBackgroundEmbedding({
  recall,
  embedder,
  log,
  now = Date.now,
}: {
  readonly recall: Pick<Recall, 'fill'>;
  readonly embedder: Pick<PaidEmbedder, 'name' | 'takeOwed'>;
  readonly log: (line: string) => void;
  readonly now?: () => number;
}): BackgroundEmbedding {
  const stop = new AbortController();
  /** By life. */
  const waiting = new Map<string, Payer>();
  let running: Promise<void> | undefined;
  let pauseMs = 0;
  let pausedUntil = 0;

  const fillOne = async (payer: Payer): Promise<void> => {
    try {
      await recall.fill(payer, AbortSignal.any([stop.signal, timeoutSignal(PART_MS)]));
      pauseMs = 0;
    } catch (error) {
      if (stop.signal.aborted) return;
      // Logged once in each outage.
      if (pauseMs === 0) log(`${embedder.name} makes no vectors now, and searches go by words: ${errorMessage(error)}`);
      pauseMs = Math.min(LAST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, 2 * pauseMs));
      pausedUntil = now() + pauseMs;
      waiting.clear();
    }
  };
  const work = async (): Promise<void> => {
    for (let [first] = waiting; first !== undefined && !stop.signal.aborted; [first] = waiting) {
      const [life, payer] = first;
      waiting.delete(life);
      await fillOne(payer);
    }
  };

  return {
    note(payer) {
      if (stop.signal.aborted || now() < pausedUntil || waiting.size >= MAX_WAITING) return;
      waiting.set(lineName(payer.key), payer);
      running ??= work().finally(() => {
        running = undefined;
      });
    },
    takeOwed: (key) => embedder.takeOwed(key),
    async close() {
      stop.abort();
      await running;
    },
  };
}
