/** The five providers, each with its scripted server and what it can and cannot say. */
import { createAnthropicModel } from '../../src/models/anthropic/client.js';
import { createGeminiModel } from '../../src/models/gemini/client.js';
import type { Model } from '../../src/models/model.js';
import { createOllamaModel } from '../../src/models/ollama/client.js';
import { createOpenAIModel, createOpenAIResponsesModel } from '../../src/models/openai/client.js';
import { startChatApi } from '../support/provider-apis/chat-api.js';
import { startGeminiApi } from '../support/provider-apis/gemini-api.js';
import { startMessagesApi } from '../support/provider-apis/messages-api.js';
import { startOllamaApi } from '../support/provider-apis/ollama-api.js';
import { startResponsesApi } from '../support/provider-apis/responses-api.js';
import type { Reply } from '../support/provider-apis/reply.js';

/** It looks like no key, so that only knowing it can hide it. */
export const KEY = 'very_secret-of-ours';

/** A scripted server, whatever its protocol. */
export interface Api {
  readonly url: string;
  readonly hits: readonly {
    readonly body: unknown;
    readonly headers: object;
    readonly path: string;
    readonly aborted?: boolean;
    readonly ended: Promise<void>;
  }[];
  readonly problems: readonly string[];
  play(exchange: { readonly reply: Reply }): void;
  waitForHit(n: number): Promise<unknown>;
  close(): Promise<void>;
}

export interface Subject {
  readonly provider: string;
  /** The model's own name in requests. */
  readonly model: string;
  /** One that is known to hold its answer to a schema, and, save where all do, one that is not. */
  readonly schemaModel: string;
  readonly plainModel?: string;
  readonly start: (options?: { readonly apiKey?: string }) => Promise<Api>;
  readonly create: (options: { readonly apiKey?: string; readonly url?: string; readonly fetch?: typeof fetch }) => Model;
  /** Where requests go by themselves. */
  readonly publicUrl: string;
  /** The setting that holds the key; none where there are no keys. */
  readonly keySetting?: string;
  /** What the real server says of a wrong key. */
  readonly wrongKeyStatus: number;
  /** What it says when the prompt is too long. */
  readonly tooLong: string;
  /** A 503 is an overload here, or just a fault. */
  readonly kindOf503: 'server' | 'overloaded';
  /** Thinking comes with something to be sent back. */
  readonly signsThinking: boolean;
  readonly countsCache: boolean;
  readonly countsCacheWrites: boolean;
  readonly countsThinking: boolean;
  /** How a refusal reads that has this explanation; absent where there are no refusals. */
  readonly refusal?: (explanation: string | null) => string | undefined;
  /** Inputs of tools stream as text, which may be cut. */
  readonly streamsInputs: boolean;
  readonly fetchesImages: boolean;
  /** What stands in a request in which a call must be made. Absent: no such wish is taken. */
  readonly mustCall?: unknown;
  /**
   * A package reads the stream, and shows parts: what is no event is not seen, its end comes with that of the connection, and the
   * environment is its own matter.
   */
  readonly isRead?: true;
  /** Audio and video go as they are. */
  readonly takesRecordings: boolean;
  readonly readsDocuments: boolean;
}

const asSaid = (explanation: string | null): string | undefined => explanation ?? undefined;

export const subjects: readonly Subject[] = [
  {
    provider: 'anthropic',
    mustCall: { type: 'any' },
    model: 'claude-test',
    schemaModel: 'claude-opus-4-8',
    plainModel: 'claude-test',
    start: startMessagesApi,
    create: ({ apiKey, url, fetch }) => createAnthropicModel({ apiKey, baseURL: url, fetch }),
    publicUrl: 'https://api.anthropic.com/v1/messages',
    keySetting: 'ANTHROPIC_API_KEY',
    wrongKeyStatus: 401,
    tooLong: 'prompt is too long: 210000 tokens > 200000 maximum',
    kindOf503: 'server',
    signsThinking: true,
    countsCache: true,
    countsCacheWrites: true,
    countsThinking: false,
    refusal: asSaid,
    streamsInputs: true,
    fetchesImages: true,
    takesRecordings: false,
    readsDocuments: true,
  },
  {
    provider: 'openai',
    mustCall: 'required',
    model: 'gpt-test',
    schemaModel: 'gpt-5.5',
    plainModel: 'gpt-test',
    start: startChatApi,
    create: ({ apiKey, url, fetch }) => createOpenAIModel({ apiKey, baseURL: url && `${url}/v1`, fetch }),
    publicUrl: 'https://api.openai.com/v1/chat/completions',
    keySetting: 'OPENAI_API_KEY',
    wrongKeyStatus: 401,
    tooLong: "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    kindOf503: 'server',
    signsThinking: false,
    countsCache: true,
    countsCacheWrites: true,
    countsThinking: true,
    refusal: asSaid,
    streamsInputs: true,
    fetchesImages: true,
    takesRecordings: false,
    readsDocuments: true,
  },
  {
    provider: 'openai-responses',
    mustCall: 'required',
    model: 'gpt-test',
    schemaModel: 'gpt-5.5',
    plainModel: 'gpt-test',
    start: startResponsesApi,
    create: ({ apiKey, url, fetch }) => createOpenAIResponsesModel({ apiKey, baseURL: url && `${url}/v1`, fetch }),
    publicUrl: 'https://api.openai.com/v1/responses',
    keySetting: 'OPENAI_API_KEY',
    wrongKeyStatus: 401,
    tooLong: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
    kindOf503: 'server',
    signsThinking: true,
    countsCache: true,
    countsCacheWrites: true,
    countsThinking: true,
    refusal: asSaid,
    streamsInputs: true,
    fetchesImages: true,
    takesRecordings: false,
    readsDocuments: true,
  },
  {
    provider: 'gemini',
    mustCall: { functionCallingConfig: { mode: 'ANY' } },
    model: 'gemini-3-test',
    schemaModel: 'gemini-3.8-flash',
    plainModel: 'gemini-3-test',
    start: startGeminiApi,
    create: ({ apiKey, url, fetch }) => createGeminiModel({ apiKey, baseURL: url, fetch }),
    publicUrl: 'https://generativelanguage.googleapis.com/v1beta/models/gemini-3-test:streamGenerateContent?alt=sse',
    keySetting: 'GEMINI_API_KEY',
    wrongKeyStatus: 400,
    tooLong: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    kindOf503: 'overloaded',
    signsThinking: true,
    countsCache: true,
    countsCacheWrites: false,
    countsThinking: true,
    refusal: () => 'Gemini gave no answer: SAFETY.',
    streamsInputs: false,
    fetchesImages: true,
    takesRecordings: true,
    readsDocuments: true,
  },
  {
    provider: 'ollama',
    model: 'llama-test',
    schemaModel: 'llama-test',
    start: startOllamaApi,
    create: ({ url, fetch }) => createOllamaModel({ host: url, fetch }),
    publicUrl: 'http://127.0.0.1:11434/api/chat',
    wrongKeyStatus: 401,
    tooLong: 'the input length exceeds the context length',
    kindOf503: 'overloaded',
    signsThinking: false,
    countsCache: false,
    countsCacheWrites: false,
    countsThinking: false,
    streamsInputs: false,
    fetchesImages: false,
    takesRecordings: false,
    readsDocuments: false,
  },
];
