/** The AI SDK's chat protocol: `useChat` of any framework, unchanged, with conversations that outlive page, gateway and worker. */
import { start } from '../native/schemas.js';
import { toMedia, type SuppliedFile } from '../core/attachments.js';
import { checkTools } from '../core/client-calls.js';
import { choices, choicesForRest, readChoices, readToolOutput, withAnsweredFiles, type AnsweredFiles } from '../core/page-requests.js';
import type { Context } from 'hono';
import { z } from '@hono/zod-openapi';
import { requestSignal, type GatewayApp, type GatewayContext } from '../context.js';
import { answerCalls, refuseWhileClientRuns, type CallAnswer } from '../core/answer-calls.js';
import type { Conversations } from '../core/conversations.js';
import { toProblem, type Problem, invalid } from '../core/errors.js';
import { toConversationId, readAs, readBody, optional } from '../core/read-body.js';
import { findRunningTurn, findTurn } from '../../client/turns/turn-status.js';
import { interactiveTurn, openTurn, openSubmitted, type TurnSource, type AnsweredCall } from '../core/interactive-turn.js';
import { sendEvents, type ServerEvent } from '../sse.js';
import { createChunks, toOutput, type Chunk, type Metadata } from './chunks.js';
import { partSchema, isClientTool, withoutPrefix } from '../../conversation/protocol/message.js';
import {
  isFromPerson,
  shownText,
  sourcesIn,
  type Entry,
  type JsonValue,
  type MediaSource,
  type ClientTool,
  type JsonObject,
} from '../../records/message.js';
import type { TurnEnd } from '../../records/turn-end.js';
import type { PerduraClient } from '../../client.js';
import type { Message, StartOptions } from '../../conversation/protocol/contract.js';

const CHAT_PATH = '/api/chat';
const MAX_HISTORY = 200;

export function addAiSdkRoutes(app: GatewayApp): void {
  app.post(CHAT_PATH, async (context) => {
    const core = context.get('conversations');
    const request = await readBody(context, chatRequest);
    const id = toConversationId(request.id);
    const wish = readWish(request);
    return streamed(context, (gone) => fulfil(core, { id, wish, start: readStart(request), gone }));
  });

  app.get(`${CHAT_PATH}/:id/stream`, async (context) => {
    const core = context.get('conversations');
    const id = toConversationId(context.req.param('id'));
    const turn = await findRunningTurn(core.client, id, requestSignal(context));
    if (turn === undefined) return context.body(null, 204);
    return streamed(context, async function* (gone) {
      yield* streamTurn(core, await openTurn(core, id, turn), { gone });
    });
  });

  app.post(`${CHAT_PATH}/:id/stop`, async (context) => {
    await context.get('conversations').client.interrupt(toConversationId(context.req.param('id')));
    return context.body(null, 204);
  });

  app.get(`${CHAT_PATH}/:id/messages`, async (context) => {
    const { client } = context.get('conversations');
    const id = toConversationId(context.req.param('id'));
    const limit = readAs(z.coerce.number().int().min(1).max(1_000).default(MAX_HISTORY), context.req.query('limit'));
    const [entries, ends] = await Promise.all([client.history(id), client.turnEnds(id)]);
    return context.json(toUiMessages(entries, ends).slice(-limit));
  });
}

/** A page shows the body of a refusal as it is: words alone. */
export function answerChatProblem(context: Context, { status, message, retryAfter }: Problem): Response {
  if (retryAfter !== undefined) context.header('retry-after', String(retryAfter));
  return context.text(message, status);
}

interface Fulfilling {
  readonly id: string;
  readonly wish: Wish;
  readonly start: ReturnType<typeof readStart>;
  readonly gone: AbortSignal;
}

async function* fulfil(core: Conversations, { id, wish, start, gone }: Fulfilling): AsyncGenerator<Chunk, void> {
  if (wish.kind === 'answer') {
    const { turn, decided } = await answerCalls(core.client, id, wish.answers, wish);
    const answered = wish.answers.map(({ callId, to }) => ({ callId, isApproval: to === 'approval' }));
    const given = new Set(decided.flatMap(({ callId, kind }) => (kind === 'client-tool' ? [callId] : [])));
    return yield* streamTurn(core, await openTurn(core, id, turn), { gone, messageId: wish.messageId, answered, given });
  }
  if (wish.kind === 'again') {
    const again = await answerAgain(core, id, wish.message, gone);
    if (again)
      return yield* streamTurn(core, { id, turn: again.turn, follow: (signal) => core.attach({ id, ...again, signal }) }, { gone });
  }
  await refuseWhileClientRuns(core, id, wish.message.id);
  const taken = await core.submit(id, wish.message, { start, signal: gone });
  yield* streamTurn(core, await openSubmitted(core, taken), { gone, messageId: taken.turn ?? `${taken.messageId}-reset` });
}

interface Streamed {
  readonly gone: AbortSignal;
  /** Id of the answer's message; default: the turn's id. */
  readonly messageId?: string;
  /** Calls that the page has answered: it has all of the turn up to the requests for their answers. */
  readonly answered?: readonly AnsweredCall[];
  /** Calls whose result the page has, because the page gave it. */
  readonly given?: ReadonlySet<string>;
}

async function* streamTurn(
  core: Conversations,
  source: TurnSource,
  { messageId, given, ...reader }: Streamed,
): AsyncGenerator<Chunk, void> {
  const chunks = createChunks({ turn: source.turn, messageId: messageId ?? source.turn ?? source.id, ...(given && { given }) });
  yield* chunks.start();
  for await (const one of interactiveTurn(core, source, reader)) {
    const made = one.kind === 'pause' ? chunks.pause(one.waiting) : chunks.take(one.change);
    if (one.kind === 'pause' || !one.isKnown) yield* made;
  }
}

function streamed(context: GatewayContext, chunks: (gone: AbortSignal) => AsyncGenerator<Chunk, void>): Promise<Response> {
  context.header('x-vercel-ai-ui-message-stream', 'v1');
  return sendEvents(
    context,
    async function* (gone): AsyncGenerator<ServerEvent> {
      for await (const chunk of chunks(gone)) yield { data: JSON.stringify(chunk) };
      yield { data: '[DONE]' };
    },
    (error) => ({ data: JSON.stringify({ type: 'error', errorText: toProblem(error).message }) }),
  );
}

// The history as the UI messages with which a page begins. Pure. A turn is one answer, with the id that its stream has.

type ShownPart =
  | { readonly type: 'step-start' }
  | { readonly type: 'text' | 'reasoning'; readonly text: string; readonly state: 'done' }
  | { readonly type: 'file'; readonly mediaType: string; readonly url: string }
  | {
      readonly type: `tool-${string}`;
      readonly toolCallId: string;
      readonly state: 'input-available' | 'output-available' | 'output-error';
      readonly input: JsonValue;
      readonly output?: JsonValue;
      readonly errorText?: string;
      readonly providerExecuted: boolean;
    };

interface ShownMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: readonly ShownPart[];
  readonly metadata: Metadata;
}

function toUiMessages(entries: readonly Entry[], ends: readonly TurnEnd[]): ShownMessage[] {
  const turns = new Map<string, Entry[]>();
  for (const entry of entries) turns.set(entry.turn, [...(turns.get(entry.turn) ?? []), entry]);
  return [...turns].flatMap(([turn, ofTurn]) => {
    const end = ends.findLast((one) => one.turn === turn);
    const metadata: Metadata = { turn, ...(end && { stopReason: end.stopReason, ...(end.error && { error: end.error }) }) };
    const sent = ofTurn.filter(({ message }) => isFromPerson(message)).map((entry) => userMessage(entry));
    const parts = answerParts(ofTurn);
    return parts.length === 0 && end === undefined ? sent : [...sent, { id: turn, role: 'assistant' as const, parts, metadata }];
  });
}

function userMessage({ message, messageId, turn, slot }: Entry): ShownMessage {
  const text = message.role === 'user' ? partSchema(shownText(message.text)).text : '';
  const media = message.role === 'user' ? sourcesIn(message).flatMap(({ source }) => filePart(source)) : [];
  const parts: ShownPart[] = [...media, ...(text === '' ? [] : [{ type: 'text', text, state: 'done' } as const])];
  return { id: messageId === undefined ? `${turn}-${slot}` : toPageId(messageId), role: 'user', parts, metadata: { turn } };
}

function filePart(source: MediaSource): ShownPart[] {
  const { mediaType } = source;
  if ('ref' in source) return [];
  return [{ type: 'file', mediaType, url: 'url' in source ? source.url : `data:${mediaType};base64,${source.base64}` }];
}

function answerParts(entries: readonly Entry[]): ShownPart[] {
  return entries.flatMap(({ message }): ShownPart[] => {
    if (message.role !== 'assistant') return [];
    const parts = message.blocks.flatMap((block): ShownPart[] => {
      if (block.kind === 'text') return [{ type: 'text', text: shownText(block.text), state: 'done' }];
      if (block.kind === 'thinking') return block.text === '' ? [] : [{ type: 'reasoning', text: block.text, state: 'done' }];
      return block.kind === 'tool-call' ? [toolPart(block, entries)] : [];
    });
    return [{ type: 'step-start' }, ...parts];
  });
}

function toolPart(
  { callId, name, input }: { readonly callId: string; readonly name: string; readonly input: JsonValue },
  entries: readonly Entry[],
): ShownPart {
  const found = entries.findLast(({ message }) => message.role === 'tool' && message.callId === callId)?.message;
  const call = { type: `tool-${withoutPrefix(name)}`, toolCallId: callId, input, providerExecuted: true } as const;
  // The page answers the calls of the tools that it brought.
  if (found?.role !== 'tool') return { ...call, state: 'input-available', providerExecuted: !isClientTool(name) };
  const text = shownText(found.text);
  return found.outcome === 'ok'
    ? { ...call, state: 'output-available', output: isClientTool(name) ? toOutput(text) : text }
    : { ...call, state: 'output-error', errorText: text || found.outcome };
}

// A message that is answered anew, or sent with another text. The page keeps the id that it gave the message; here each attempt is a new
// message, `<id>~again-<n>`, which the history shows with the id of the page.

const AGAIN = /~again-(\d{1,6})$/;

function toPageId(messageId: string): string {
  return messageId.replace(AGAIN, '');
}

interface Again {
  readonly turn: string;
  /** Its events begin after it. */
  readonly after: string;
}

/** Undefined where no message of this id was taken yet. */
async function answerAgain(
  { client }: Conversations,
  id: string,
  message: Message & { readonly id: string },
  signal: AbortSignal,
): Promise<Again | undefined> {
  const sent = await personEntries(client, id);
  const known = sent.findLast(({ messageId }) => toPageId(messageId ?? '') === message.id);
  if (known === undefined) return undefined;
  const times = Number(AGAIN.exec(known.messageId ?? '')?.[1] ?? 0);
  const messageId = `${message.id}~again-${times + 1}`;
  const after = await client.newestCursor(id);
  const options = { messageId, signal };
  const again =
    known.turn === sent.at(-1)?.turn && textIn(known) === message.text
      ? client.retry(id, options)
      : client.edit(id, message.text, { ...options, turn: known.turn });
  const answered = again.then(({ turnId }) => turnId ?? '');
  return { turn: await findTurn(client, id, { messageId, after, signal, answered }), after };
}

async function personEntries(client: PerduraClient, id: string): Promise<readonly Entry[]> {
  const entries = await client.history(id).catch((error: unknown) => {
    if ((error as { kind?: string }).kind === 'not-found') return [];
    throw error;
  });
  return entries.filter(({ message }) => isFromPerson(message));
}

function textIn({ message }: Entry): string | undefined {
  return message.role === 'user' && typeof message.text === 'string' ? message.text : undefined;
}

// The requests of `useChat`, and their meaning here: pure.

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
  ...choices,
});
export type ChatRequest = z.output<typeof chatRequest>;

export type Wish =
  | { readonly kind: 'submit'; readonly message: Message & { readonly id: string } }
  /** In place of what was answered before to the message of this id, and of all after it. */
  | { readonly kind: 'again'; readonly message: Message & { readonly id: string } }
  | {
      readonly kind: 'answer';
      readonly messageId: string;
      readonly answers: readonly CallAnswer[];
      /** With the files of the answers. */
      readonly words?: (Message & { readonly id: string }) | undefined;
      /** For the rest of the turn. */
      readonly wishes?: Pick<Message, 'tools' | 'output'> | undefined;
    };

/** Throws a refusal. */
export function readWish({ messages, trigger, messageId, tools: brought = [], ...chosen }: ChatRequest): Wish {
  const wanted = readChoices(chosen, readTools(brought));
  const named = messages.find(({ id }) => id === messageId);
  const last = messages.at(-1);
  if (trigger === 'submit-message') {
    const answered = named?.role === 'assistant' ? named : last?.role === 'assistant' ? last : undefined;
    if (answered) {
      const found = answersIn(answered);
      if (found.length === 0)
        throw invalid('the last message is the assistant’s, and answers none of its calls: send a message of the user');
      const words = withAnsweredFiles(found.flatMap(({ files }) => files ?? []));
      return {
        kind: 'answer',
        messageId: answered.id,
        answers: found.map(({ answer }) => answer),
        words,
        wishes: choicesForRest(chosen, wanted),
      };
    }
  }
  const user = messages.findLast(({ role }) => role === 'user');
  if (!user) throw invalid('there is no message of the user to answer');
  const isEdit = messageId === user.id;
  const message = { ...toMessage(user), ...wanted };
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
const filePartSchema = z.looseObject({
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
  const file = filePartSchema.safeParse(given);
  if (!file.success) throw invalid('a file needs a mediaType and a url');
  const { mediaType, url, filename: name } = file.data;
  return { mediaType, url, name };
}

const toolPartSchema = z.looseObject({
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

function answersIn({ parts }: UiMessage): readonly { readonly answer: CallAnswer; readonly files?: AnsweredFiles }[] {
  return parts.flatMap((one): readonly { readonly answer: CallAnswer; readonly files?: AnsweredFiles }[] => {
    const tool = toolPartSchema.safeParse(one).data;
    if (!tool) return [];
    const { toolCallId: callId, state, approval, output, errorText } = tool;
    if (state === 'approval-responded' && approval?.approved !== undefined) {
      const note = approval.reason === undefined ? {} : { note: approval.reason };
      return [{ answer: { callId, to: 'approval', decision: approval.approved ? 'approve' : 'deny', ...note, ...shownCall(tool) } }];
    }
    // A tool that ran here is no answer (ai-sdk/tools-run-here).
    if (tool.providerExecuted === true) return [];
    if (state === 'output-available') {
      const { json, media } = readToolOutput((output ?? null) as JsonValue);
      const note = typeof json === 'string' ? json : JSON.stringify(json);
      const answer: CallAnswer = { callId, to: 'answer', decision: 'approve', note, output: json };
      return [{ answer, files: { callId, name: toolName(tool), media } }];
    }
    if (state !== 'output-error') return [];
    return [{ answer: { callId, to: 'answer', decision: 'deny', note: errorText ?? '', output: errorText ?? '', isError: true } }];
  });
}

function toolName({ type, toolName: name }: z.output<typeof toolPartSchema>): string {
  return name ?? type.slice('tool-'.length);
}

function shownCall(tool: z.output<typeof toolPartSchema>): Pick<CallAnswer, 'shown'> {
  const { input } = tool;
  if (typeof input !== 'object' || input === null) return {};
  return { shown: { name: toolName(tool), input: input as JsonValue } };
}
