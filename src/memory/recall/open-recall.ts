/** A search, and what makes vectors for it where there is an embedder. */
import type { Embedder } from '../../models/embedder.js';
import { createBackgroundEmbedding, type BackgroundEmbedding } from './background-embedding.js';
import { createPaidEmbedder } from './paid-embedder.js';
import { createRecall, type Recall, type RecallOptions } from './recall.js';

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
