/** The requests of `useChat`, and their meaning here. Pure. */
import { z } from '@hono/zod-openapi';
import type { Message, StartOptions } from '../../conversation/protocol/contract.js';
import type { ClientTool, JsonObject, JsonValue } from '../../records/message.js';
import type { CallAnswer } from '../core/answer-calls.js';
import { checkTools } from '../core/client-calls.js';
import { toMedia, type SuppliedFile } from '../core/attachments.js';
import { optional } from '../core/read-body.js';
import { invalid } from '../core/errors.js';
import { start } from '../native/schemas.js';

/** Pages send all of their messages each time; only one of them counts here. */
const MAX_MESSAGES = 10_000;
const MAX_PARTS = 2_000;
const MAX_ID = 200;

const part = z.looseObject({ type: z.string().max(300) });
const uiMessage = z.looseObject({
  id: z.string().max(MAX_ID),
  role: z.enum(['system', 'user', 'assistant']),
  parts: z.array(part).max(MAX_PARTS),
});
type UiMessage = z.output<typeof uiMessage>;

const schema = z.record(z.string(), z.unknown());
/** `parameters` is what some libraries of pages call it. */
const tool = z.looseObject({ description: optional(z.string()), inputSchema: optional(schema), parameters: optional(schema) });

export const chatRequest = z.looseObject({
  id: z.string().min(1).max(MAX_ID),
  messages: z.array(uiMessage).min(1).max(MAX_MESSAGES),
  trigger: z.enum(['submit-message', 'regenerate-message']).default('submit-message'),
  messageId: z.string().max(MAX_ID).nullish(),
  /** Tools that the page runs: a list with their names, or an object by name. */
  tools: optional(z.union([z.array(z.looseObject({ name: z.string(), ...tool.shape })), z.record(z.string(), tool)])),
  ...start.pick({ agent: true, scope: true, title: true, model: true }).shape,
});
export type ChatRequest = z.output<typeof chatRequest>;

export type Wish =
  | { readonly kind: 'submit'; readonly message: Message & { readonly id: string } }
  /** In place of what was answered before to the message of this id, and of all after it. */
  | { readonly kind: 'again'; readonly message: Message & { readonly id: string } }
  | { readonly kind: 'answer'; readonly messageId: string; readonly answers: readonly CallAnswer[] };

/** Throws a refusal. */
export function readWish({ messages, trigger, messageId, tools: brought = [] }: ChatRequest): Wish {
  const tools = readTools(brought);
  const named = messages.find(({ id }) => id === messageId);
  const last = messages.at(-1);
  if (trigger === 'submit-message') {
    const answered = named?.role === 'assistant' ? named : last?.role === 'assistant' ? last : undefined;
    if (answered) {
      const answers = answersIn(answered);
      if (answers.length === 0)
        throw invalid('the last message is the assistant’s, and answers none of its calls: send a message of the user');
      return { kind: 'answer', messageId: answered.id, answers };
    }
  }
  const user = messages.findLast(({ role }) => role === 'user');
  if (!user) throw invalid('there is no message of the user to answer');
  const isEdit = messageId === user.id;
  const message = { ...toMessage(user), ...(tools.length > 0 && { tools }) };
  return { kind: trigger === 'regenerate-message' || isEdit ? 'again' : 'submit', message };
}

function readTools(given: NonNullable<ChatRequest['tools']>): readonly ClientTool[] {
  const named = Array.isArray(given) ? given : Object.entries(given).map(([name, one]) => ({ ...one, name }));
  return checkTools(
    named.map(({ name, description, inputSchema, parameters = {} }) => ({
      name,
      ...(description !== undefined && { description }),
      inputSchema: (inputSchema ?? parameters) as JsonObject,
    })),
  );
}

export function readStart({ agent, scope, title, model }: ChatRequest): StartOptions {
  return Object.fromEntries(Object.entries({ agent, scope, title, model }).filter(([, value]) => value !== undefined));
}

const textPart = z.looseObject({ type: z.literal('text'), text: z.string() });
const filePart = z.looseObject({
  type: z.literal('file'),
  mediaType: z.string().max(200),
  url: z.string(),
  filename: optional(z.string().max(500)),
});

function toMessage({ id, parts }: UiMessage): Message & { readonly id: string } {
  const texts = parts.flatMap((one) => textPart.safeParse(one).data?.text ?? []);
  const files = parts.filter(({ type }) => type === 'file').map(readFile);
  return { id, text: texts.join('\n\n'), ...toMedia(files) };
}

function readFile(given: unknown): SuppliedFile {
  const file = filePart.safeParse(given);
  if (!file.success) throw invalid('a file needs a mediaType and a url');
  const { mediaType, url, filename: name } = file.data;
  return { mediaType, url, name };
}

const toolPart = z.looseObject({
  type: z.string(),
  toolName: z.string().optional(),
  toolCallId: z.string().max(64),
  state: z.string(),
  input: z.unknown().optional(),
  output: z.unknown().optional(),
  errorText: z.string().optional(),
  providerExecuted: z.boolean().optional(),
  approval: z.looseObject({ approved: z.boolean().optional(), reason: z.string().optional() }).optional(),
});

function answersIn({ parts }: UiMessage): CallAnswer[] {
  return parts.flatMap((one): CallAnswer[] => {
    const tool = toolPart.safeParse(one).data;
    if (!tool) return [];
    const { toolCallId: callId, state, approval, output, errorText } = tool;
    if (state === 'approval-responded' && approval?.approved !== undefined) {
      const note = approval.reason === undefined ? {} : { note: approval.reason };
      return [{ callId, to: 'approval', decision: approval.approved ? 'approve' : 'deny', ...note, ...shownCall(tool) }];
    }
    // A tool that ran here is no answer (ai-sdk/tools-run-here).
    if (tool.providerExecuted === true) return [];
    if (state === 'output-available') {
      const json = (output ?? null) as JsonValue;
      return [{ callId, to: 'answer', decision: 'approve', note: typeof json === 'string' ? json : JSON.stringify(json), output: json }];
    }
    if (state !== 'output-error') return [];
    return [{ callId, to: 'answer', decision: 'deny', note: errorText ?? '', output: errorText ?? '', isError: true }];
  });
}

function shownCall({ type, toolName, input }: z.output<typeof toolPart>): Pick<CallAnswer, 'shown'> {
  if (typeof input !== 'object' || input === null) return {};
  return { shown: { name: toolName ?? type.slice('tool-'.length), input: input as JsonValue } };
}
