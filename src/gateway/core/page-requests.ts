/**
 * What pages send beside their words (AG-UI, AI SDK): which tool is called next, what the answer has to fit and where it ends, for which
 * their protocols have no fields, so that it has one form in both; and files that their tools have answered.
 */
import { z } from 'zod';
import { LIMITS } from '../../conversation/protocol/limits.js';
import type { Message } from '../../conversation/protocol/contract.js';
import { sourcesIn, type ClientTool, type JsonObject, type JsonValue, type Media } from '../../records/message.js';
import { joinTexts } from './answer.js';
import { toMedia, type SuppliedFile } from './attachments.js';
import { checkTools, describeFiles, toAnswer } from './client-calls.js';
import { invalid } from './errors.js';
import { optional } from './read-body.js';
import { joinMedia, shortHash } from './supplied-history.js';

const name = optional(z.string().max(200));

export const choices = {
  /** As the AI SDK has it; a function, as OpenAI's clients name it, is the same. */
  toolChoice: optional(
    z.union([z.enum(['auto', 'none', 'required']), z.looseObject({ toolName: name, function: optional(z.looseObject({ name })) })]),
  ),
  parallelToolCalls: optional(z.boolean()),
  output: optional(z.record(z.string(), z.json())),
  stop: optional(
    z.looseObject({
      at: optional(z.array(z.string().min(1).max(LIMITS.stopLength)).max(LIMITS.stops)),
      tokens: optional(z.int().min(1).max(LIMITS.tokens)),
    }),
  ),
};
type Choices = z.output<z.ZodObject<typeof choices>>;

type Chosen = Pick<Message, 'tools' | 'output' | 'stop'>;

/** `brought`: the tools of the request. Throws a refusal. */
export function readChoices(
  { toolChoice = 'auto', parallelToolCalls: parallel = true, output, stop }: Choices,
  brought: readonly ClientTool[],
): Chosen {
  const named = typeof toolChoice === 'string' ? undefined : (toolChoice.toolName ?? toolChoice.function?.name);
  if (typeof toolChoice !== 'string' && named === undefined) throw invalid('toolChoice names no tool', 'toolChoice');
  const mustCall = named !== undefined || toolChoice === 'required';
  const tools = checkTools(brought, { mustCall, single: !parallel, ...(named !== undefined && { names: [named] }) });
  const { at, tokens } = stop ?? {};
  return {
    ...(toolChoice !== 'none' && tools.length > 0 && { tools }),
    ...(output && { output: output as JsonObject }),
    ...(stop && { stop: { ...(at && { at }), ...(tokens !== undefined && { tokens }) } }),
  };
}

/** Of a request that answers calls, for the rest of their turn; undefined: it says nothing of that, and all stays as it was. */
export function choicesForRest(
  { toolChoice, parallelToolCalls: parallel }: Choices,
  chosen: Chosen,
): Pick<Message, 'tools' | 'output'> | undefined {
  const saysTools = toolChoice !== undefined || parallel !== undefined;
  if (!saysTools && chosen.output === undefined) return undefined;
  return { ...(saysTools && { tools: chosen.tools ?? [] }), ...(chosen.output && { output: chosen.output }) };
}

type Sent = Message & { readonly id: string };

export interface AnsweredFiles {
  readonly callId: string;
  /** Of the tool, as its client calls it. */
  readonly name: string;
  readonly media: Media;
}

/** Files of results reach the model in a message after them, which says whose they are; `message`: words that the client sends beside them. */
export function withAnsweredFiles(answered: readonly AnsweredFiles[], message?: Sent): Sent | undefined {
  const files = answered.filter(({ media }) => sourcesIn(media).length > 0);
  if (files.length === 0) return message;
  const words = files.map(({ name: tool, media }) => `[What the tool ${tool} has answered: ${describeFiles(media)}]`);
  return {
    ...message,
    ...[...files.map(({ media }) => media), message ?? {}].reduce<Media>(joinMedia, {}),
    // The same answers once more bring no second message.
    id: message?.id ?? `files-${shortHash(files.map(({ callId }) => callId))}`,
    text: joinTexts([...words, message?.text ?? '']),
  };
}

const contents = z
  .array(
    z.looseObject({
      type: z.string(),
      text: optional(z.string()),
      data: optional(z.string()),
      url: optional(z.string()),
      mediaType: optional(z.string().max(200)),
      mimeType: optional(z.string().max(200)),
    }),
  )
  .max(2_000);
/** Results with files, as the AI SDK has them for models, and as tools of MCP servers answer, which its client passes on. */
const resultWithFiles = z.union([
  z.looseObject({ type: z.literal('content'), value: contents }).transform(({ value }) => value),
  z.looseObject({ content: contents }).transform(({ content }) => content),
]);

/** Any JSON that a tool of a page has answered; one without files stays as it is. */
export function readToolOutput(json: JsonValue): { readonly json: JsonValue; readonly media: Media } {
  const parts = resultWithFiles.safeParse(json).data ?? [];
  const files = parts.flatMap(({ type, data, url, mediaType: stated, mimeType }): SuppliedFile[] => {
    const mediaType = stated ?? mimeType;
    if (data !== undefined && mediaType !== undefined) return [{ mediaType, url: `data:${mediaType};base64,${data}` }];
    if (url === undefined || !/^(image|file)-url$/.test(type)) return [];
    return [{ mediaType: mediaType ?? (type === 'image-url' ? 'image/jpeg' : 'application/pdf'), url }];
  });
  if (files.length === 0) return { json, media: {} };
  const media = toMedia(files);
  const output = parts.flatMap(({ text }) => text ?? []).join('\n');
  return { json: toAnswer({ id: '', output, isError: false, media }).output, media };
}
