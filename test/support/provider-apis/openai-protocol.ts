/** What both of OpenAI's APIs have in common: headers, errors, one address each that takes POST alone. */
import type { ApiError } from './api-error.js';
import { maxBodyBytes } from './check-body.js';
import { checkOpenAIBody, checkOpenAIHeaders, openAIError, openAIErrorBody } from './openai-error.js';
import type { Protocol } from './protocol.js';

type Shared = 'contentType' | 'maxBodyBytes' | 'route' | 'checkHeaders' | 'checkRequest' | 'read' | 'wantsStream' | 'error' | 'errorBody';

export interface OpenAIEndpoint {
  readonly path: string;
  /** What it says to a GET. */
  readonly notAllowed: string;
  readonly check: (body: unknown) => ApiError | undefined;
}

export function openAIProtocol<Request extends { readonly stream?: boolean }>({
  path: own,
  notAllowed,
  check,
}: OpenAIEndpoint): Pick<Protocol<Request>, Shared> {
  return {
    contentType: 'text/event-stream; charset=utf-8',
    maxBodyBytes,
    route({ method, path }) {
      if (path !== own) return openAIError(404, `Invalid URL (${method} ${path})`);
      return method === 'POST' ? 'answer' : openAIError(405, notAllowed);
    },
    checkHeaders: ({ headers }, apiKey) => checkOpenAIHeaders(headers, apiKey),
    checkRequest: ({ text, body }) => checkOpenAIBody(text) ?? check(body),
    read: ({ body }) => body as Request | undefined,
    wantsStream: ({ stream }) => stream === true,
    error: openAIError,
    errorBody: openAIErrorBody,
  };
}
