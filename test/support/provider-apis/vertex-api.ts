/**
 * The scripted Vertex AI, as `@ai-sdk/google-vertex` asks it: Gemini's API under a project's address with a bearer token, or in express mode
 * with a key. It refuses what Gemini's does (check-gemini.ts), and the first call of a step that lost its signature in its own words too
 * (vercel/ai#10344, openclaw/openclaw#63397, langgenius/dify#30729).
 */
import { checkGemini } from './check-gemini.js';
import { gemini, type GeminiRequest } from './gemini-api.js';
import { geminiError } from './gemini-error.js';
import { isRecord } from './check-fields.js';
import type { Incoming, Protocol } from './protocol.js';
import { startScriptedApi, type ScriptedApi, type ScriptedApiOptions } from './scripted-api.js';

/** The host of its `url` stands for `aiplatform.googleapis.com`. */
export function startVertexApi(options: ScriptedApiOptions<GeminiRequest> = {}): Promise<ScriptedApi<GeminiRequest>> {
  return startScriptedApi(vertex, options);
}

const vertex: Protocol<GeminiRequest> = {
  ...gemini,
  name: 'Vertex AI',
  route: ({ method, path, query }) =>
    method === 'POST' && target(path) && query.get('alt') === 'sse'
      ? 'answer'
      : geminiError(404, `The requested URL ${path} was not found on this server.`),
  checkHeaders({ headers, path }, apiKey) {
    const isExpress = path.startsWith('/v1/');
    const key = isExpress ? headers['x-goog-api-key'] : /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
    if (key === undefined) return geminiError(401, 'Request is missing required authentication credential.');
    if (apiKey === undefined || key === apiKey) return undefined;
    return geminiError(401, 'Request had invalid authentication credentials. Expected OAuth 2 access token.');
  },
  checkRequest: ({ body, path }) => checkGemini(body, target(path)?.model ?? ''),
  read: ({ body, path }: Incoming) => (isRecord(body) ? ({ ...body, ...target(path) } as unknown as GeminiRequest) : undefined),
};

function target(path: string): { readonly model: string; readonly method: string } | undefined {
  const [, model, method] =
    /^\/(?:v1beta1\/projects\/[\w-]+\/locations\/[\w-]+|v1)\/publishers\/google\/models\/([^/:]+):(streamGenerateContent)$/.exec(path) ??
    [];
  return model === undefined || method === undefined ? undefined : { model, method };
}
