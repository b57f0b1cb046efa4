/** Providers of the AI SDK, the real packages, each before its strict server on loopback. */
import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock';
import { createAzure } from '@ai-sdk/azure';
import { createVertex } from '@ai-sdk/google-vertex';
import { createMistral } from '@ai-sdk/mistral';
import { createMistral as createMistralOfV2 } from 'ai-sdk-mistral-v2';
import { aiSdk, type AiSdkProvider } from '../../src/models/ai-sdk/provider.js';
import { startAzureChatApi, startAzureResponsesApi } from '../support/provider-apis/azure-api.js';
import { startBedrockApi } from '../support/provider-apis/bedrock-api.js';
import { startMistralApi } from '../support/provider-apis/mistral-api.js';
import { startVertexApi } from '../support/provider-apis/vertex-api.js';
import { KEY, type Api, type Subject } from './subjects.js';

/** Sends what is for the maker's host to the server on loopback. */
function redirected(url: string): typeof fetch {
  return (input, init) => {
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    return fetch(`${url}${pathname}${search}`, init);
  };
}

export interface Maker {
  /** Under which it is configured. */
  readonly name: string;
  readonly model: string;
  readonly start: (options?: { readonly apiKey?: string }) => Promise<Api>;
  readonly create: (url: string, key?: string) => AiSdkProvider;
}

export type MakerName = 'bedrock' | 'azure' | 'azure-chat' | 'vertex' | 'vertex-express' | 'mistral' | 'mistral-v2';

export const makers: Readonly<Record<MakerName, Maker>> = {
  bedrock: {
    name: 'bedrock',
    model: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
    start: startBedrockApi,
    create: (url, apiKey = KEY) => createAmazonBedrock({ region: 'us-east-1', apiKey, fetch: redirected(url) }),
  },
  azure: {
    name: 'azure',
    model: 'gpt-5-mini',
    start: startAzureResponsesApi,
    create: (url, apiKey = KEY) => createAzure({ resourceName: 'ours', apiKey, fetch: redirected(url) }),
  },
  'azure-chat': {
    name: 'azure-chat',
    model: 'gpt-4.1',
    start: startAzureChatApi,
    create: (url, apiKey = KEY) => {
      const azure = createAzure({
        resourceName: 'ours',
        apiKey,
        apiVersion: '2024-10-21',
        useDeploymentBasedUrls: true,
        fetch: redirected(url),
      });
      return (deployment: string) => azure.chat(deployment);
    },
  },
  vertex: {
    name: 'vertex',
    model: 'gemini-3-pro-preview',
    start: startVertexApi,
    create: (url, token = KEY) => {
      // The credentials of the machine, without the machine.
      const authClient = { getAccessToken: () => Promise.resolve({ token }) };
      return createVertex({
        project: 'ours',
        location: 'global',
        googleAuthOptions: { authClient } as unknown as NonNullable<Parameters<typeof createVertex>[0]>['googleAuthOptions'],
        fetch: redirected(url),
      });
    },
  },
  'vertex-express': {
    name: 'vertex-express',
    model: 'gemini-2.5-flash',
    start: startVertexApi,
    create: (url, apiKey = KEY) => createVertex({ apiKey, fetch: redirected(url) }),
  },
  mistral: {
    name: 'mistral',
    model: 'magistral-medium-latest',
    start: startMistralApi,
    create: (url, apiKey = KEY) => createMistral({ apiKey, baseURL: `${url}/v1` }),
  },
  'mistral-v2': {
    name: 'mistral-v2',
    model: 'mistral-large-latest',
    start: startMistralApi,
    create: (url, apiKey = KEY) => createMistralOfV2({ apiKey, baseURL: `${url}/v1` }),
  },
};

/** As a config has it: under the name that stands before the slash. */
export function modelOf(name: MakerName, url: string, key?: string) {
  const model = aiSdk(makers[name].create(url, key));
  return model.named?.(name) ?? model;
}

const refusing =
  (word: string): Subject['refusal'] =>
  () =>
    `The provider gave no answer: ${word}.`;

const subjectOf = (name: MakerName, parts: Partial<Subject>): Subject => ({
  provider: name,
  model: makers[name].model,
  schemaModel: makers[name].model,
  start: makers[name].start,
  create: ({ apiKey, url = '' }) => modelOf(name, url, apiKey),
  publicUrl: '',
  wrongKeyStatus: 401,
  tooLong: 'prompt is too long: 210000 tokens > 200000 maximum',
  kindOf503: 'server',
  signsThinking: true,
  countsCache: true,
  countsCacheWrites: false,
  countsThinking: true,
  streamsInputs: true,
  fetchesImages: false,
  takesRecordings: false,
  readsDocuments: true,
  isRead: true,
  ...parts,
});

export const bedrock = subjectOf('bedrock', {
  countsCacheWrites: true,
  countsThinking: false,
  wrongKeyStatus: 403,
  refusal: refusing('guardrail_intervened'),
  mustCall: expect.objectContaining({ toolChoice: { any: {} } }),
});

export const otherSubjects = [
  subjectOf('mistral', { signsThinking: false, countsThinking: false, mustCall: 'any', refusal: refusing('content_filter') }),
  subjectOf('vertex', {
    kindOf503: 'overloaded',
    streamsInputs: false,
    takesRecordings: true,
    fetchesImages: true,
    refusal: refusing('SAFETY'),
    mustCall: { functionCallingConfig: { mode: 'ANY' } },
  }),
  // Its package passes the words of a refusal over.
  subjectOf('azure', { countsCacheWrites: true, fetchesImages: true, mustCall: 'required' }),
];
