/** Embeddings of OpenAI (`/v1/embeddings`) and of Ollama (`/api/embed`) on loopback: a vector counts words, or what a test says they mean. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

export interface EmbeddingsApi {
  readonly url: string;
  readonly requests: readonly { readonly path: string; readonly authorization: string | undefined; readonly texts: readonly string[] }[];
  close(): Promise<void>;
}

const DIMENSIONS = 64;

/**
 * `means`: what a word stands for, so that two words can have one meaning. `answer`: in place of what is right; a string is the body as it is.
 */
export async function startEmbeddingsApi({
  means = (word) => word,
  answer,
  status = 200,
}: {
  readonly means?: (word: string) => string;
  readonly answer?: (texts: readonly string[], path: string) => unknown;
  readonly status?: number;
} = {}): Promise<EmbeddingsApi> {
  const requests: EmbeddingsApi['requests'][number][] = [];
  const vectorOf = (text: string): number[] => {
    const vector = new Array<number>(DIMENSIONS).fill(0);
    for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
      const [at = 0] = createHash('sha256').update(means(word)).digest();
      vector[at % DIMENSIONS] = (vector[at % DIMENSIONS] ?? 0) + 1;
    }
    return vector;
  };
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const path = request.url ?? '';
      const texts = (JSON.parse(body) as { input: string[] }).input;
      requests.push({ path, authorization: request.headers.authorization, texts });
      const vectors = texts.map(vectorOf);
      const right =
        path === '/api/embed'
          ? { model: 'm', embeddings: vectors, prompt_eval_count: texts.length }
          : {
              object: 'list',
              // In any order: the index counts.
              data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })).reverse(),
              usage: { prompt_tokens: texts.length, total_tokens: texts.length },
            };
      const said = answer?.(texts, path) ?? right;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(typeof said === 'string' ? said : JSON.stringify(said));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
