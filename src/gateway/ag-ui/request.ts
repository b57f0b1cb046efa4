/** The request of an AG-UI client, and its meaning here. Pure. */
import { z } from '@hono/zod-openapi';
import type { Message, StartOptions } from '../../conversation/protocol/contract.js';
import type { ClientTool, JsonObject, JsonValue, Media } from '../../records/message.js';
import { CONTEXT_MARK } from '../../records/message-parts.js';
import { isCallId, type CallAnswer } from '../core/answer-calls.js';
import { attachmentIn, toMedia, type SuppliedFile } from '../core/attachments.js';
import { checkTools, toAnswer } from '../core/client-calls.js';
import { choices, choicesForRest, readChoices, withAnsweredFiles, type AnsweredFiles } from '../core/page-requests.js';
import { isReset } from '../../client/turns/stream.js';
import { optional } from '../core/read-body.js';
import { invalid, unsupported } from '../core/errors.js';
import { start } from '../native/schemas.js';

/**
 * Clients send all of their messages each time; only the newest of the user, and what tools have answered after the assistant's last, count
 * here.
 */
const MAX_MESSAGES = 10_000;
const MAX_PARTS = 2_000;
const MAX_ID = 200;
const MAX_ANSWERS = 100;
const MAX_CONTEXT = 100;

const id = z.string().min(1).max(MAX_ID);
const part = z.looseObject({ type: z.string().max(100) });
/** Messages of other roles go back to the client unchanged, and are not checked otherwise. */
const message = z.looseObject({ id: z.string().max(MAX_ID), role: z.string().max(40) });
export type ClientMessage = z.output<typeof message>;

const resumeEntry = z.looseObject({ interruptId: id, status: z.enum(['resolved', 'cancelled']), payload: z.unknown().optional() });
type ResumeEntry = z.output<typeof resumeEntry>;

const tool = z.looseObject({
  name: z.string(),
  description: optional(z.string()),
  parameters: optional(z.record(z.string(), z.unknown())),
});

const context = z.looseObject({ description: z.string(), value: z.string() });
const settings = z.strictObject({ ...start.pick({ agent: true, scope: true, title: true, model: true }).shape, ...choices });

export const runRequest = z.looseObject({
  threadId: id,
  runId: id,
  messages: z.array(message).max(MAX_MESSAGES),
  tools: optional(z.array(tool)),
  context: optional(z.array(context).max(MAX_CONTEXT)),
  state: z.unknown().optional(),
  /** Any JSON of the application; `perdura` in it has the settings with which a conversation begins, and what the request chooses. */
  forwardedProps: z.unknown().optional(),
  resume: optional(z.array(resumeEntry).max(MAX_ANSWERS)),
});
export type RunRequest = z.output<typeof runRequest>;

type Submitted = Message & { readonly id: string };

export type Wish =
  | { readonly kind: 'submit'; readonly message: Submitted }
  | {
      readonly kind: 'answer';
      readonly answers: readonly CallAnswer[];
      /** Sent beside the answers of tools. */
      readonly message?: Submitted;
      /** The same, with the files of the answers. */
      readonly words?: Submitted | undefined;
      /** For the rest of the turn. */
      readonly wishes?: Pick<Message, 'tools' | 'output'> | undefined;
    };

/** Throws a refusal. */
export function readWish({ messages, tools: brought = [], context: given = [], resume = [], forwardedProps }: RunRequest): Wish {
  const chosen = readSettings(forwardedProps);
  const wanted = readChoices(chosen, readTools(brought));
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const newest = messages[at];
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const toMessage = (one: ClientMessage): Submitted => ({
    ...withContext(userMessage(one, `messages.${at}`), given),
    ...wanted,
  });
  const results = messages.flatMap((one, i) => (i > last && one.role === 'tool' ? readResult(one, `messages.${i}`) : []));
  if (resume.length > 0 || results.length > 0) {
    const answers = [...resume.map((entry, i) => readAnswer(entry, messages, `resume.${i}`)), ...results.map(({ answer }) => answer)];
    const isBeside = results.length > 0 && newest !== undefined && at > last;
    const beside = isBeside ? toMessage(newest) : undefined;
    const nameIn = (callId: string): string => toolCallsIn(messages).findLast((call) => call.id === callId)?.function.name ?? '';
    const files = results.map(({ answer: { callId }, media }): AnsweredFiles => ({ callId, name: nameIn(callId), media }));
    const words = withAnsweredFiles(files, beside);
    return { kind: 'answer', answers, ...(beside && { message: beside }), words, wishes: choicesForRest(chosen, wanted) };
  }
  if (newest === undefined) throw invalid('there is no message of the user to answer', 'messages');
  return { kind: 'submit', message: toMessage(newest) };
}

function readTools(given: readonly z.output<typeof tool>[]): readonly ClientTool[] {
  return checkTools(
    given.map(({ name, description, parameters = {} }) => ({
      name,
      ...(description !== undefined && description !== '' && { description }),
      inputSchema: parameters as JsonObject,
    })),
  );
}

const toolMessage = z.looseObject({
  toolCallId: z.string(),
  content: z.union([z.string(), z.array(part).max(MAX_PARTS)]),
  error: optional(z.string()),
});

/** The result of a tool of the client; not a result of a tool that ran here, nor an answer to a call of another server. */
function readResult(given: ClientMessage, where: string): readonly { readonly answer: CallAnswer; readonly media: Media }[] {
  const read = toolMessage.safeParse(given);
  if (!read.success) throw invalid('a message of a tool has toolCallId and content, a text or a list of parts', where);
  const { toolCallId: callId, content, error } = read.data;
  if (given.id === resultId(callId) || !isCallId(callId)) return [];
  const { texts, media } = readParts(content, `${where}.content`);
  const words = [...texts, ...(error === undefined || texts.includes(error) ? [] : [error])].filter((text) => text !== '').join('\n');
  const { output } = toAnswer({ id: callId, output: words, isError: error !== undefined, media });
  return [{ answer: { callId, to: 'client-tool', decision: 'approve', output, ...(error !== undefined && { isError: true }) }, media }];
}

/** The id of the message with the result of a call. */
export function resultId(callId: string): string {
  return `${callId}/result`;
}

export function readStart({ forwardedProps: props }: RunRequest): StartOptions {
  const { agent, scope, title, model } = readSettings(props);
  return Object.fromEntries(Object.entries({ agent, scope, title, model }).filter(([, value]) => value !== undefined));
}

function readSettings(props: unknown): z.output<typeof settings> {
  const given = z.looseObject({ perdura: z.unknown() }).safeParse(props).data?.perdura;
  const read = settings.safeParse(given ?? {});
  if (read.success) return read.data;
  throw invalid('it takes agent, scope, title and model, and toolChoice, parallelToolCalls, output and stop', 'forwardedProps.perdura');
}

/** Adds the page's context for the model. A message that clears the session stays unchanged. */
function withContext(
  one: Message & { readonly id: string },
  given: readonly z.output<typeof context>[],
): Message & { readonly id: string } {
  if (given.length === 0 || isReset(one)) return one;
  const lines = given.map(({ description, value }) => JSON.stringify({ description, value }));
  return { ...one, text: [CONTEXT_MARK, ...lines, '', one.text].join('\n') };
}

const userContent = z.union([z.string(), z.array(part).max(MAX_PARTS)]);
const textPart = z.looseObject({ type: z.literal('text'), text: z.string() });
const mediaPart = z.looseObject({
  type: z.enum(['image', 'audio', 'video', 'document']),
  source: z.union([
    z.looseObject({ type: z.literal('data'), value: z.string(), mimeType: z.string().max(200) }),
    z.looseObject({ type: z.literal('url'), value: z.string(), mimeType: optional(z.string().max(200)) }),
  ]),
});

function userMessage(given: ClientMessage, where: string): Message & { readonly id: string } {
  const content = userContent.safeParse(given['content']);
  if (!content.success) throw invalid('the content of a message of the user is a text or a list of parts', `${where}.content`);
  const { texts, media } = readParts(content.data, `${where}.content`);
  return { id: given.id, text: texts.join('\n\n'), ...media };
}

function readParts(content: z.output<typeof userContent>, where: string): { readonly texts: readonly string[]; readonly media: Media } {
  if (typeof content === 'string') return { texts: [content], media: {} };
  const texts: string[] = [];
  const files: SuppliedFile[] = [];
  for (const [at, one] of content.entries()) {
    const text = textPart.safeParse(one).data?.text;
    if (text === undefined) files.push(readFile(one, `${where}.${at}`));
    else texts.push(text);
  }
  return { texts, media: toMedia(files) };
}

function readFile(given: z.output<typeof part>, where: string): SuppliedFile {
  const media = mediaPart.safeParse(given).data;
  if (!media) throw unsupported(`content of the type ${JSON.stringify(given.type.slice(0, 40))}, or its source,`, where);
  const { source, type } = media;
  if (source.type === 'data') return { mediaType: source.mimeType, url: `data:${source.mimeType};base64,${source.value}` };
  if (attachmentIn(source.value) !== undefined) return { mediaType: type, url: source.value };
  const mediaType = source.mimeType ?? /^data:([\w/.+-]+);/.exec(source.value)?.[1];
  if (mediaType === undefined) throw invalid(`an address of ${type} needs its mimeType`, `${where}.source`);
  return { mediaType, url: source.value };
}

const choice = z.looseObject({
  approved: z.boolean().optional(),
  answer: z.string().optional(),
  reason: z.string().optional(),
  editedArgs: z.record(z.string(), z.unknown()).optional(),
});
type Choice = z.output<typeof choice>;
const payload = z.union([z.boolean(), z.string(), choice]);

/** The choice of a person matches the interrupt's `responseSchema`; a bare boolean or text means the same. */
function readAnswer(
  { interruptId: callId, status, payload: given }: ResumeEntry,
  messages: readonly ClientMessage[],
  where: string,
): CallAnswer {
  if (status === 'cancelled') return { callId, decision: 'deny', note: 'the question was dismissed without an answer' };
  const read = payload.safeParse(given).data;
  const chosen: Choice = typeof read === 'object' ? read : typeof read === 'string' ? { answer: read } : { approved: read };
  const call = { callId, ...shownCall(callId, messages) };
  if (chosen.approved !== undefined) {
    const { approved, reason, editedArgs } = chosen;
    return {
      ...call,
      to: 'approval',
      decision: approved ? 'approve' : 'deny',
      ...(reason !== undefined && { note: reason }),
      ...(approved && editedArgs !== undefined && { input: editedArgs as JsonValue }),
    };
  }
  if (chosen.answer !== undefined) return { ...call, to: 'question', decision: 'approve', note: chosen.answer };
  throw invalid('the payload of an approval is { approved }, and that of a question { answer }', `${where}.payload`);
}

const assistantCalls = z.looseObject({
  toolCalls: z.array(z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) })),
});

/** Those that the assistant's messages have. */
export function toolCallsIn(messages: readonly ClientMessage[]): z.output<typeof assistantCalls>['toolCalls'] {
  return messages.filter(({ role }) => role === 'assistant').flatMap((one) => assistantCalls.safeParse(one).data?.toolCalls ?? []);
}

/** As the client has it. */
function shownCall(callId: string, messages: readonly ClientMessage[]): Pick<CallAnswer, 'shown'> {
  const call = toolCallsIn(messages).findLast(({ id: known }) => known === callId);
  if (!call) return {};
  try {
    return { shown: { name: call.function.name, input: JSON.parse(call.function.arguments) as JsonValue } };
  } catch {
    throw invalid(`the arguments of ${JSON.stringify(callId.slice(0, 64))} in messages are no JSON`, 'messages');
  }
}
