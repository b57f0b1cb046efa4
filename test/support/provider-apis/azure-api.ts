/**
 * The scripted Azure OpenAI, as `@ai-sdk/azure` asks it: the Responses API under `/openai/v1`, and Chat Completions under a deployment of
 * one's own name with the version of the API in the address. What it refuses: a key that is no `api-key`, a version that is not there, the
 * wrong name of the limit for the model behind a deployment (openai/openai-python#1724, anomalyco/opencode#37964), and items of a response
 * that it has not kept (vercel/ai#7543, openclaw/openclaw#21782).
 */
import type { ApiError } from './api-error.js';
import { chat, type ChatRequest } from './chat-api.js';
import { checkChat } from './check-chat.js';
import { isRecord } from './check-fields.js';
import { checkResponses } from './check-responses.js';
import { openAIError } from './openai-error.js';
import type { Incoming, Protocol } from './protocol.js';
import { responses, type ResponsesRequest } from './responses-api.js';
import { startScriptedApi, type ScriptedApi, type ScriptedApiOptions } from './scripted-api.js';

/** The host of its `url` stands for `<resource>.openai.azure.com`. */
export function startAzureResponsesApi(options: ScriptedApiOptions<ResponsesRequest> = {}): Promise<ScriptedApi<ResponsesRequest>> {
  const protocol: Protocol<ResponsesRequest> = {
    ...responses,
    name: 'Azure Responses API',
    route: (incoming) => (incoming.path === '/openai/v1/responses' ? findVersion(incoming, ['v1', 'preview']) : noResource),
    checkHeaders,
    checkRequest: ({ body }) => checkStored(body) ?? checkResponses(body),
  };
  return startScriptedApi(protocol, options);
}

export function startAzureChatApi(options: ScriptedApiOptions<ChatRequest> = {}): Promise<ScriptedApi<ChatRequest>> {
  const protocol: Protocol<ChatRequest> = {
    ...chat,
    name: 'Azure Chat Completions API',
    route(incoming) {
      if (deployment(incoming.path) === undefined) return noResource;
      return deployment(incoming.path) === 'none'
        ? { ...openAIError(404, 'The API deployment for this resource does not exist.'), code: 'DeploymentNotFound' }
        : findVersion(incoming, ['2024-10-21', '2025-01-01-preview']);
    },
    checkHeaders,
    checkRequest: ({ body, path }) => checkLimit(body, deployment(path) ?? '') ?? checkChat(body),
  };
  return startScriptedApi(protocol, options);
}

const noResource: ApiError = { ...openAIError(404, 'Resource not found'), code: '404' };

function findVersion({ query, method }: Incoming, known: readonly string[]): 'answer' | ApiError {
  if (method !== 'POST') return openAIError(405, 'Method not allowed');
  const version = query.get('api-version');
  if (version === null) return { ...openAIError(400, 'Missing required query parameter: api-version'), code: 'BadRequest' };
  return known.includes(version) ? 'answer' : noResource;
}

function checkHeaders({ headers }: Incoming, apiKey?: string): ApiError | undefined {
  const key = headers['api-key'];
  if (key !== undefined && (apiKey === undefined || key === apiKey)) return undefined;
  return {
    ...openAIError(
      401,
      'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription.',
    ),
    code: '401',
  };
}

function deployment(path: string): string | undefined {
  return /^\/openai\/deployments\/([\w.-]+)\/chat\/completions$/.exec(path)?.[1];
}

/** Reasoning models know the newer name alone; others, in the versions of the API that are usual, the older. */
function checkLimit(body: unknown, model: string): ApiError | undefined {
  if (!isRecord(body)) return undefined;
  const isReasoning = /^(o\d|gpt-5)/.test(model);
  if (isReasoning && body.max_tokens !== undefined) {
    const words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    return { ...openAIError(400, words), code: 'unsupported_parameter' };
  }
  const isUnknown = !isReasoning && body.max_completion_tokens !== undefined;
  return isUnknown ? openAIError(400, 'Unrecognized request argument supplied: max_completion_tokens') : undefined;
}

/** Nothing was kept: an item that is only named is not there. */
function checkStored(body: unknown): ApiError | undefined {
  const items = isRecord(body) && Array.isArray(body.input) ? (body.input as readonly Record<string, unknown>[]) : [];
  const named = items.find(({ type }) => type === 'item_reference');
  return named && openAIError(400, `Item with id '${String(named.id)}' not found.`);
}
