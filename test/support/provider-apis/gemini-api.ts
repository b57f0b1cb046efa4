/** The scripted Gemini API of Google. */
import { checkBody, maxBodyBytes } from './check-body.js';
import { isRecord } from './check-fields.js';
import { checkGemini } from './check-gemini.js';
import { geminiError, geminiErrorBody } from './gemini-error.js';
import { frame, toSse, type Frame, type Incoming, type Landmark, type OddFrame, type Protocol } from './protocol.js';
import type { Reply } from './reply.js';
import { startScriptedApi, type ScriptedApi, type ScriptedApiOptions } from './scripted-api.js';
import { allInput, freshId, inputOf, pieces, stopWordOf, textsOf, usageOf } from './words-of.js';

/** As it stands on the wire, as far as tests read it, and what stands in the address. */
export interface GeminiRequest {
  readonly model: string;
  readonly method: string;
  readonly contents: readonly { readonly role: string; readonly parts: readonly Readonly<Record<string, unknown>>[] }[];
  readonly [field: string]: unknown;
}

/** Its `url` is the SDK's `baseUrl`. */
export function startGeminiApi(options: ScriptedApiOptions<GeminiRequest> = {}): Promise<ScriptedApi<GeminiRequest>> {
  return startScriptedApi(gemini, options);
}

const finishWords = { end_turn: 'STOP', stop_sequence: 'STOP', tool_use: 'STOP', max_tokens: 'MAX_TOKENS', refusal: 'SAFETY' };

export const gemini: Protocol<GeminiRequest> = {
  name: 'Gemini API',
  contentType: 'text/event-stream',
  maxBodyBytes,
  route({ method, path }) {
    if (!target(path)) return geminiError(404, `The requested URL ${path} was not found on this server.`);
    return method === 'POST' ? 'answer' : geminiError(405, 'Method Not Allowed');
  },
  checkHeaders({ headers }, apiKey) {
    const key = headers['x-goog-api-key'];
    if (key === undefined) return geminiError(403, "Method doesn't allow unregistered callers (callers without established identity).");
    if (apiKey === undefined || key === apiKey) return undefined;
    return { ...geminiError(400, 'API key not valid. Please pass a valid API key.'), code: 'API_KEY_INVALID' };
  },
  checkRequest: ({ text, body, path }) =>
    (checkBody(text) && geminiError(400, 'Invalid JSON payload received.')) ?? checkGemini(body, target(path)?.model ?? ''),
  read: ({ body, path }: Incoming) => (isRecord(body) ? ({ ...body, ...target(path) } as unknown as GeminiRequest) : undefined),
  wantsStream: ({ method }) => method === 'streamGenerateContent',
  toFrames,
  toWhole: (reply, request) => toChunk({ reply, request, id: freshId('resp'), parts: toParts(reply).flat(), finish: true }),
  toOddFrame,
  error: geminiError,
  errorBody: geminiErrorBody,
};

function target(path: string): { readonly model: string; readonly method: string } | undefined {
  const [, model, method] = /^\/v1beta\/models\/([^/:]+):(streamGenerateContent|generateContent)$/.exec(path) ?? [];
  return model === undefined || method === undefined ? undefined : { model, method };
}

type Part = Readonly<Record<string, unknown>>;

function toFrames(reply: Reply, request: GeminiRequest): Frame[] {
  const id = freshId('resp');
  const send = (parts: readonly Part[], finish: boolean, content: string, ...landmarks: readonly Landmark[]): Frame =>
    frame(toSse(toChunk({ reply, request, id, parts, finish })), content.length, ...landmarks);
  // A signature that is on no call comes at the end, on a part without words.
  const last = reply.thinking && !reply.toolCalls?.length ? { text: '', thoughtSignature: reply.thinking.signature } : { text: '' };
  return [
    ...toParts(reply).map((part) => send([part], false, textOfPart(part), 'content')),
    send([last], true, '', 'block-stop', 'message-delta', 'message-stop'),
  ];
}

function textOfPart(part: Part): string {
  return typeof part.text === 'string' ? part.text : JSON.stringify(part.functionCall);
}

/** One for each piece of text; calls come whole, the first of them signed. */
function toParts(reply: Reply): Part[] {
  const signature = reply.thinking?.signature ?? freshId('sig');
  return [
    ...pieces(reply.thinking?.text ?? '', reply).map((text) => ({ text, thought: true })),
    ...textsOf(reply).flatMap((text) => pieces(text, reply).map((piece) => ({ text: piece }))),
    ...(reply.toolCalls ?? []).map((call, index) => ({
      functionCall: { id: call.id ?? freshId('fc'), name: call.name, args: inputOf(call) },
      ...(index === 0 && { thoughtSignature: signature }),
    })),
  ];
}

interface Chunk {
  readonly reply: Reply;
  readonly request: GeminiRequest;
  readonly id: string;
  readonly parts: readonly Part[];
  readonly finish: boolean;
}

function toChunk({ reply, request, id, parts, finish }: Chunk): object {
  const explanation = reply.stopReason === 'refusal' ? reply.stopDetails?.explanation : undefined;
  const ending = { finishReason: stopWordOf(reply, finishWords), ...(explanation && { finishMessage: explanation }) };
  return {
    candidates: [{ content: { role: 'model', parts }, index: 0, ...(finish && ending) }],
    usageMetadata: toUsage(reply, request),
    modelVersion: request.model,
    responseId: id,
  };
}

/** Thoughts are counted apart. */
function toUsage(reply: Reply, { contents, tools, systemInstruction }: GeminiRequest): object {
  const usage = usageOf(reply, [contents, tools, systemInstruction]);
  const input = allInput(usage);
  const thoughts = reply.thinking ? 1 : 0;
  return {
    promptTokenCount: input,
    ...(usage.cache_read_input_tokens > 0 && { cachedContentTokenCount: usage.cache_read_input_tokens }),
    candidatesTokenCount: usage.output_tokens - thoughts,
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: input + usage.output_tokens,
  };
}

function toOddFrame(odd: OddFrame): string {
  switch (odd.kind) {
    case 'error':
      return toSse(geminiErrorBody(odd.error));
    case 'malformed':
      return toSse('{"candidates":[{"content":{"parts":[{"te');
    case 'unknown':
      return toSse({ sparkle: { shade: 'blue' } });
    case 'ping':
      return toSse({ responseId: 'still-there' });
    case 'half':
      return 'data: ';
    default:
      return odd satisfies never;
  }
}
