/** The scripted Anthropic Messages API. */
import { apiError, errorBody } from './api-error.js';
import type { ApiRequest } from './api-request.js';
import { consolidationReply } from './consolidation-reply.js';
import { checkBody, checkHeaders, maxBodyBytes } from './check-body.js';
import { checkRequest } from './check-request.js';
import { toSse, type OddFrame, type Protocol } from './protocol.js';
import * as scripted from './scripted-api.js';
import { toFrames, toMessage } from './to-events.js';
import { estimateTokens, freshId } from './words-of.js';

export type MessagesApiOptions = scripted.ScriptedApiOptions<ApiRequest>;
/** Its `url` is the SDK's `baseURL`. */
export type MessagesApi = scripted.ScriptedApi<ApiRequest>;

/** Consolidations of long-term memory are answered beside the script, unless `aside` says otherwise. */
export function startMessagesApi(options: MessagesApiOptions = {}): Promise<MessagesApi> {
  return scripted.startScriptedApi(messages, { aside: consolidationReply, ...options });
}

const counting = '/v1/messages/count_tokens';

const messages: Protocol<ApiRequest> = {
  name: 'Messages API',
  contentType: 'text/event-stream; charset=utf-8',
  maxBodyBytes,
  route({ method, path }) {
    if (path !== '/v1/messages' && path !== counting) return apiError(404, 'Not Found');
    if (method !== 'POST') return apiError(405, 'Method Not Allowed');
    return path === counting ? 'count' : 'answer';
  },
  checkHeaders: ({ headers }, apiKey) => checkHeaders(headers, apiKey),
  checkRequest: ({ text, body, headers, path }) =>
    checkBody(text) ?? checkRequest(body, { counting: path === counting, version: String(headers['anthropic-version']) }),
  read: ({ body }) => body as ApiRequest | undefined,
  wantsStream: ({ stream }) => stream === true,
  toFrames,
  toWhole: toMessage,
  count: ({ system, tools, messages: said }) => ({ input_tokens: estimateTokens([system, tools, said]) }),
  toOddFrame,
  error: apiError,
  errorBody,
};

function toOddFrame(odd: OddFrame): string {
  switch (odd.kind) {
    case 'error': {
      const { type, message } = odd.error;
      return toSse({ type: 'error', error: { type, message }, request_id: freshId('req') }, 'error');
    }
    case 'malformed':
      return toSse('{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","te', 'content_block_delta');
    case 'unknown':
      return toSse({ type: 'content_block_sparkle', index: 0, sparkle: { shade: 'blue' } }, 'content_block_sparkle');
    case 'ping':
      return toSse({ type: 'ping' }, 'ping');
    case 'half':
      return 'event: ping\ndata: ';
    default:
      return odd satisfies never;
  }
}
