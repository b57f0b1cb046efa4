/** OpenAI's embeddings, and those of servers that speak as OpenAI does. */
import { cutText, EMBED_MS, readVectors, type Embedder } from '../embedder.js';
import { keyAdvice, missingKey, type Provider } from '../failure.js';
import { guardedRequest, type KeyedOptions } from '../guarded-call.js';
import { createClient } from './client.js';

/** US dollars per million tokens, as published in November 2026. */
const PRICES: Readonly<Record<string, number>> = {
  'text-embedding-3-small': 0.02,
  'text-embedding-3-large': 0.13,
  'text-embedding-ada-002': 0.1,
};

/** `openai/<model>` */
export function createOpenAIEmbedder(model: string, { apiKey: written, baseURL, fetch }: KeyedOptions): Embedder {
  const apiKey = written?.trim() ?? '';
  const provider: Provider = { name: 'openai', secrets: [apiKey], advice: keyAdvice('OPENAI_API_KEY') };
  const name = `openai/${model}`;
  const price = PRICES[model];
  return {
    name,
    ...(price !== undefined && baseURL === undefined && { price }),
    async embed(texts, { signal, totalMs = EMBED_MS }) {
      if (apiKey === '') throw missingKey(provider, model);
      return await guardedRequest({ provider, model, signal, totalMs, fetch }, async (line) => {
        const client = await createClient(apiKey, baseURL, line);
        const input = texts.map(cutText);
        const { data, usage } = await client.embeddings.create({ model, input, encoding_format: 'float' }, { signal: line.signal });
        const came: unknown = data;
        const inOrder = Array.isArray(came) ? data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding) : came;
        return { vectors: readVectors(name, inOrder, texts.length), tokens: readTokenCount(usage?.total_tokens) };
      });
    },
  };
}

function readTokenCount(counted: unknown): number {
  return typeof counted === 'number' && Number.isSafeInteger(counted) && counted >= 0 ? counted : 0;
}
