/** Embeddings of models that run in Ollama (`/api/embed`). */
import { cutText, EMBED_MS, readVectors, type Embedder } from '../embedder.js';
import { guardedRequest } from '../guarded-call.js';
import { createClient, THIS_MACHINE, toPlace, toProvider, type OllamaOptions } from './client.js';

/** `ollama/<model>`; it costs nothing. */
export function createOllamaEmbedder(model: string, { host: written = THIS_MACHINE, fetch }: OllamaOptions): Embedder {
  const place = toPlace(written);
  const provider = toProvider(place);
  const name = `ollama/${model}`;
  return {
    name,
    price: 0,
    embed: (texts, { signal, totalMs = EMBED_MS }) =>
      guardedRequest({ provider, model, signal, totalMs, fetch }, async (line) => {
        const client = await createClient(place, line);
        const { embeddings, prompt_eval_count: tokens } = await client.embed({ model, input: texts.map(cutText), truncate: true });
        return { vectors: readVectors(name, embeddings, texts.length), tokens: Number.isSafeInteger(tokens) ? tokens : 0 };
      }),
  };
}
