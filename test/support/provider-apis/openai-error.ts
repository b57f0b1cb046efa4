/** A refusal in the words and the shape of OpenAI's APIs, and what both of them look at before they read a request. */
import type { IncomingHttpHeaders } from 'node:http';
import type { ApiError } from './api-error.js';
import { checkBody } from './check-body.js';

/** Type and code. */
const wordsOfStatus: ReadonlyMap<number, readonly [string, string | undefined]> = new Map([
  [401, ['invalid_request_error', 'invalid_api_key']],
  [403, ['request_forbidden', 'unsupported_country_region_territory']],
  [404, ['invalid_request_error', 'model_not_found']],
  [429, ['requests', 'rate_limit_exceeded']],
  [500, ['server_error', undefined]],
  [503, ['server_error', undefined]],
  [529, ['server_error', 'server_is_overloaded']],
]);

const messageOfStatus: ReadonlyMap<number, string> = new Map([
  [401, 'Incorrect API key provided: sk-wrong. You can find your API key at https://platform.openai.com/account/api-keys.'],
  [403, 'Country, region, or territory not supported'],
  [404, 'The model `gpt-none` does not exist or you do not have access to it.'],
  [413, 'Request body too large'],
  [429, 'Rate limit reached for gpt-test in organization org-test on requests per min (RPM): Limit 3, Used 3, Requested 1.'],
  [500, 'The server had an error while processing your request. Sorry about that!'],
  [503, 'The service is temporarily unavailable.'],
  [529, 'Our servers are currently overloaded. Please try again later.'],
]);

export function openAIError(status: number, message?: string, type?: string): ApiError {
  const [usual, code] = wordsOfStatus.get(status) ?? [status < 500 ? 'invalid_request_error' : 'server_error', undefined];
  return { status, type: type ?? usual, message: message ?? messageOfStatus.get(status) ?? `HTTP ${status}`, ...(code && { code }) };
}

export function openAIErrorBody({ message, type, code }: ApiError): object {
  return { error: { message, type, param: null, code: code ?? null } };
}

export function checkOpenAIHeaders(headers: IncomingHttpHeaders, apiKey?: string): ApiError | undefined {
  const key = /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1];
  if (key === undefined) return openAIError(401, "You didn't provide an API key.");
  return apiKey !== undefined && key !== apiKey ? openAIError(401) : undefined;
}

export function checkOpenAIBody(text: string): ApiError | undefined {
  return checkBody(text) && openAIError(400, 'We could not parse the JSON body of your request.');
}
