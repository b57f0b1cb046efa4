/** Google's Gemini models over the Gemini API, streaming. */
import type { GoogleGenAI } from '@google/genai' with { 'resolution-mode': 'import' };
import { loadOptional } from '../../platform/optional-package.js';
import { keyAdvice, missingKey, type Provider } from '../failure.js';
import { guardedCall, type KeyedOptions, type Line } from '../guarded-call.js';
import type { Model, ModelRequest } from '../model.js';
import { toRefusal } from '../refusal.js';
import { createAnswer } from './answer.js';
import { renderRequest } from './render.js';

const NAME = 'gemini';
const PUBLIC_API = 'https://generativelanguage.googleapis.com';

export function createGeminiModel({ apiKey: written, baseURL, fetch }: KeyedOptions): Model {
  const apiKey = written?.trim() ?? '';
  const provider: Provider = { name: NAME, secrets: [apiKey], advice: keyAdvice('GEMINI_API_KEY') };
  return {
    provider: NAME,
    takesMustCall: true,
    async stream(request, options) {
      if (apiKey === '') throw missingKey(provider, request.model);
      const toolNames = request.tools.map(({ name }) => name);
      const answer = createAnswer(NAME, options.onDelta, toolNames);
      return await guardedCall({ provider, request, options, answer, fetch, ask: (line) => ask(apiKey, baseURL, request, line) });
    },
  };
}

async function* ask(apiKey: string, baseURL: string | undefined, request: ModelRequest, line: Line): AsyncIterable<unknown> {
  const client = await createClient(apiKey, baseURL, line);
  const { config, ...rest } = renderRequest(request);
  try {
    yield* await client.models.generateContentStream({ ...rest, config: { ...config, abortSignal: line.signal } });
  } catch (error) {
    throw refusalIn(error) ?? error;
  }
}

/** One for each call, as its line is: it holds nothing, and connections are the platform's. Loaded by the first call. */
async function createClient(apiKey: string, baseURL: string | undefined, line: Line): Promise<GoogleGenAI> {
  const { GoogleGenAI: Client } = await loadOptional(['@google/genai'], () => import('@google/genai'));
  return new Client({
    apiKey,
    // Said, not left out: the SDK would look into the environment, which is `config.ts`'s to read.
    enterprise: false,
    // Without `retryOptions` the SDK asks once.
    httpOptions: { baseUrl: baseURL ?? PUBLIC_API, fetch: line.fetch },
  });
}

/** An error in the middle of a stream: the SDK throws its JSON as the message, behind some words of its own. */
function refusalIn(error: unknown): Error | undefined {
  if (!(error instanceof Error) || error.name !== 'ApiError') return undefined;
  const json = error.message.slice(error.message.indexOf('{'));
  return toRefusal(json);
}
