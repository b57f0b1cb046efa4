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
import { KEY, type Api } from './subjects.js';

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

export const makers = {
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
} satisfies Readonly<Record<string, Maker>>;

export type MakerName = keyof typeof makers;

/** As a config has it: under the name that stands before the slash. */
export function modelOf(name: MakerName, url: string, key?: string) {
  const model = aiSdk(makers[name].create(url, key));
  return model.named?.(name) ?? model;
}
