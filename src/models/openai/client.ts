/** OpenAI's models, and those of servers that speak as OpenAI does: over Chat Completions and over the Responses API, streaming. */
import type OpenAI from 'openai' with { 'resolution-mode': 'import' };
import { loadOptional } from '../../platform/optional-package.js';
import type { Answer } from '../answer.js';
import { keyAdvice, missingKey, type Provider } from '../failure.js';
import { guardedCall, type KeyedOptions, type Line } from '../guarded-call.js';
import type { Model, ModelDelta, ModelRequest } from '../model.js';
import { toRefusal } from '../refusal.js';
import { createChatAnswer } from './chat-answer.js';
import { renderChat } from './render-chat.js';
import { renderResponses } from './render-responses.js';
import { createResponsesAnswer } from './responses-answer.js';
import { isRecord } from '../../platform/json.js';

const PUBLIC_API = 'https://api.openai.com/v1';
/** The watchdog has the say on time; this is the longest that the SDK takes. */
const NEVER_MS = 2 ** 31 - 1;

/** `openai/…` */
export function createOpenAIModel(options: KeyedOptions): Model {
  return createModel(options, {
    name: 'openai',
    answer: createChatAnswer,
    ask: (client, request, signal) => client.chat.completions.create(renderChat(request), { signal }),
  });
}

/** `openai-responses/…` */
export function createOpenAIResponsesModel(options: KeyedOptions): Model {
  return createModel(options, {
    name: 'openai-responses',
    answer: createResponsesAnswer,
    ask: (client, request, signal) => client.responses.create(renderResponses(request), { signal }),
  });
}

/** What the two APIs differ in. */
interface Api {
  readonly name: string;
  readonly answer: (provider: string, onDelta: (delta: ModelDelta) => void) => Answer<unknown>;
  readonly ask: (client: OpenAI, request: ModelRequest, signal: AbortSignal) => PromiseLike<AsyncIterable<unknown>>;
}

function createModel({ apiKey: written, baseURL, fetch }: KeyedOptions, api: Api): Model {
  const apiKey = written?.trim() ?? '';
  const provider: Provider = { name: api.name, secrets: [apiKey], advice: keyAdvice('OPENAI_API_KEY') };

  async function* ask(request: ModelRequest, line: Line): AsyncIterable<unknown> {
    const client = await createClient(apiKey, baseURL, line);
    try {
      yield* await api.ask(client, request, line.signal);
    } catch (error) {
      // An error in the middle of a stream: the SDK throws it, and keeps what came.
      throw isRecord(error) && isRecord(error.error) ? toRefusal({ error: error.error }) : error;
    }
  }

  return {
    provider: api.name,
    takesMustCall: true,
    async stream(request, options) {
      if (apiKey === '') throw missingKey(provider, request.model);
      const answer = api.answer(api.name, options.onDelta);
      return await guardedCall({ provider, request, options, answer, fetch, ask: (line) => ask(request, line) });
    },
  };
}

/** One for each call, as its line is: it holds nothing, and connections are the platform's. Loaded by the first call. */
export async function createClient(apiKey: string, baseURL: string | undefined, line: Line): Promise<OpenAI> {
  const { default: Client } = await loadOptional(['openai'], () => import('openai'));
  return new Client({
    apiKey,
    // Said, not left out: the SDK would look into the environment, which is `config.ts`'s to read.
    baseURL: baseURL ?? PUBLIC_API,
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    maxRetries: 0,
    timeout: NEVER_MS,
    // Its log has bodies of answers in it.
    logLevel: 'off',
    fetch: line.fetch,
  });
}
