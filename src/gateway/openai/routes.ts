/** OpenAI's API, for its clients: an agent is a model, and a conversation is what goes on behind it. */
import { type GatewayApp, signalOf, type GatewayContext } from '../context.js';
import { addResponses } from './responses.js';
import { GatewayError } from '../core/errors.js';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { JsonObject } from '../../records/message.js';
import { refuseWhileClientRuns, refuseWhileWaiting, submitted, type Going } from '../core/calls/client-answers.js';
import type { Conversations } from '../core/conversations.js';
import { answerNamed, submitSupplied, type Beside } from '../core/go-on.js';
import { createOneText } from '../core/turns/one-text.js';
import { workflowIdOf } from '../core/public-id.js';
import { agentOf, idempotencyKey, invalid, optional, readBody, unsupported } from '../core/read-body.js';
import { firstMessage } from '../core/supplied-history.js';
import { refuseFailed } from '../core/turns/turn-failure.js';
import { turnPieces, type TurnPiece, joined, type Whole } from '../core/turns/turn-texts.js';
import { sendEvents, type ServerEvent } from '../sse.js';
import { argumentsOf, content, readMessages } from './content.js';
import { openaiErrorOf } from './errors.js';
import { toolFields, toolsOf } from './tools.js';
import type { StopReason, TurnResult } from '../../conversation/protocol/contract.js';
import { publicCallId } from '../core/calls/client-calls.js';

export { answerOpenaiProblem } from './errors.js';

export function addOpenaiRoutes(app: GatewayApp): void {
  for (const add of [addModels, addChatCompletions, addResponses]) add(app);
}

/** `/v1/models`: the agents, as both OpenAI's and Anthropic's clients read them. */

/** When an agent was made is not known. */
const CREATED = 0;

function addModels(app: GatewayApp): void {
  app.get('/v1/models', async (context) => {
    const agents = await context.get('agents')();
    return context.json({
      object: 'list',
      data: agents.map(modelOf),
      has_more: false,
      first_id: agents[0] ?? null,
      last_id: agents.at(-1) ?? null,
    });
  });
  app.get('/v1/models/:model', async (context) => {
    const name = context.req.param('model').replace(/^agent:/, '');
    if (!(await context.get('agents')()).includes(name)) {
      throw new GatewayError({ status: 404, type: 'model-not-found', message: 'there is no agent of that name', param: 'model' });
    }
    return context.json(modelOf(name));
  });
}

function modelOf(name: string): object {
  return {
    id: name,
    object: 'model',
    created: CREATED,
    owned_by: 'perdura',
    type: 'model',
    display_name: name,
    created_at: new Date(CREATED).toISOString(),
  };
}

/** `POST /v1/chat/completions`. */

/** Names the conversation: then only the newest message of a request counts. */
const CONVERSATION_HEADER = 'x-perdura-conversation';

const toolCall = z.looseObject({ id: z.string(), function: optional(z.looseObject({ name: z.string(), arguments: z.string() })) });

const request = z.looseObject({
  model: z.string().min(1).max(128),
  messages: z
    .array(
      z.looseObject({
        role: z.string(),
        content: optional(content),
        tool_calls: optional(z.array(toolCall)),
        tool_call_id: optional(z.string()),
      }),
    )
    .min(1)
    .max(10_000),
  stream: optional(z.boolean()),
  stream_options: optional(z.looseObject({ include_usage: z.boolean().optional() })),
  user: optional(z.string().max(512)),
  n: optional(z.number()),
  ...toolFields,
  functions: optional(z.array(z.unknown())),
  response_format: optional(
    z.looseObject({ type: z.string(), json_schema: z.looseObject({ schema: z.record(z.string(), z.unknown()).optional() }).optional() }),
  ),
});

function addChatCompletions(app: GatewayApp): void {
  app.post('/v1/chat/completions', async (context) => {
    const body = await readBody(context, request);
    const core = context.get('conversations');
    const signal = signalOf(context);
    const going = await submit(context, body, signal);
    const { conversation, turn, after } = going;
    const id = `chatcmpl-${conversation}-${turn ?? 'reset'}${after?.replace(/^.*\//, '-') ?? ''}`;
    const of = { id, created: Math.floor(Date.now() / 1000), model: body.model, conversation };
    context.header(CONVERSATION_HEADER, conversation);
    const mayPause = after !== undefined || (body.tools ?? []).length > 0;
    const pieces = (gone: AbortSignal): AsyncGenerator<TurnPiece> => turnPieces(core, { ...going, mayPause }, going.follow(core, gone));
    if (body.stream === true) {
      const withUsage = body.stream_options?.include_usage === true;
      return sendEvents(
        context,
        (gone) => chunks(of, withUsage, pieces(gone)),
        (error) => ({ data: JSON.stringify({ error: openaiErrorOf(error) }) }),
      );
    }
    for await (const piece of pieces(signal)) {
      if (piece.kind !== 'whole') continue;
      refuseFailed(piece.result);
      return context.json(completion(of, piece));
    }
    throw signal.reason;
  });
}

async function submit(context: GatewayContext, body: z.output<typeof request>, signal: AbortSignal): Promise<Going> {
  const core: Conversations = context.get('conversations');
  if ((body.functions ?? []).length > 0) throw unsupported('functions (send them as tools)', 'functions');
  const tools = toolsOf(body);
  if ((body.n ?? 1) !== 1) throw unsupported('more than one answer', 'n');
  const messages = body.messages.map(({ role, content: given, tool_calls: calls = [], tool_call_id: callId }) => ({
    role,
    content: given ?? '',
    calls: calls.map(({ id, function: made }) => ({ id, name: made?.name ?? '', arguments: argumentsOf(made?.arguments ?? '') })),
    ...(callId !== undefined && { callId }),
  }));
  const { media, ...supplied } = readMessages(messages, 'messages');
  const agent = await agentOf(context, body.model);
  const output = outputOf(body.response_format);
  const beside: Beside = { ...media, ...(output && { output }), ...(tools.length > 0 && { tools }) };
  const key = idempotencyKey(context);
  const named = context.req.header(CONVERSATION_HEADER);
  if (named === undefined) {
    const asking = { principal: context.get('principal').name, user: body.user ?? '', agent };
    return submitSupplied(core, { ...asking, supplied, key, beside, signal });
  }
  if (named === '' || named.length > 512) throw invalid(`${CONVERSATION_HEADER} must have 1 to 512 characters`);
  const conversation = workflowIdOf(named);
  if (supplied.answers) return answerNamed(core, conversation, { supplied, key, beside, signal });
  const id = key ?? randomUUID();
  await (tools.length > 0 ? refuseWhileWaiting : refuseWhileClientRuns)(core, conversation, id);
  const newest = firstMessage({ said: supplied.said.slice(-1) });
  return submitted(await core.submit(conversation, { ...beside, id, text: newest }, { start: { agent }, signal }));
}

function outputOf(format: z.output<typeof request>['response_format']): JsonObject | undefined {
  if (format === undefined || format.type === 'text') return undefined;
  const schema = format.json_schema?.schema;
  if (format.type === 'json_schema' && schema !== undefined) return schema as JsonObject;
  throw unsupported(`the response format ${JSON.stringify(format.type.slice(0, 40))} without a schema`, 'response_format');
}

async function* chunks(of: Completion, withUsage: boolean, pieces: AsyncIterable<TurnPiece>): AsyncGenerator<ServerEvent> {
  const text = createOneText();
  const frame = (value: object): ServerEvent => ({ data: JSON.stringify(value) });
  const noUsage = withUsage ? { usage: null } : {};
  yield frame(chunk(of, { role: 'assistant', content: '', refusal: null }, null, noUsage));
  for await (const piece of pieces) {
    const more = text(piece);
    if (more !== '') yield frame(chunk(of, { content: more }, null, noUsage));
    if (piece.kind !== 'whole') continue;
    refuseFailed(piece.result);
    for (const delta of callDeltas(of, piece)) yield frame(chunk(of, delta, null, noUsage));
    yield frame(chunk(of, {}, finishReason(piece), noUsage));
    if (withUsage) yield frame(usageChunk(of, piece.result));
    yield { data: '[DONE]' };
  }
}

/** Chat Completions: a turn as frames. Pure. */

interface Completion {
  readonly id: string;
  /** Epoch seconds. */
  readonly created: number;
  readonly model: string;
  readonly conversation: string;
}

type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls';

const FINISH: Partial<Record<StopReason, FinishReason>> = { 'tool-limit': 'length', budget: 'length', refused: 'content_filter' };

function finishReason({ result: { stopReason }, calls }: Whole): FinishReason {
  if (calls.length > 0) return 'tool_calls';
  return FINISH[stopReason] ?? 'stop';
}

function completion(of: Completion, whole: Whole): object {
  const { id, created, model } = of;
  const { result, texts } = whole;
  const calls = toolCalls(of, whole);
  const content = calls.length > 0 && texts.length === 0 ? null : joined(texts);
  const message = { role: 'assistant', content, refusal: null, ...(calls.length > 0 && { tool_calls: calls }) };
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(whole) }],
    usage: usageOf(result),
  };
}

interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

function toolCalls({ conversation }: Completion, { calls }: Whole): readonly ToolCall[] {
  return calls.map(({ callId, name, input }) => ({
    id: publicCallId(conversation, callId),
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  }));
}

/** Each call begins with its name, and its arguments follow. */
function callDeltas(of: Completion, whole: Whole): readonly object[] {
  return toolCalls(of, whole).flatMap(({ id, type, function: { name, arguments: given } }, index) => [
    { tool_calls: [{ index, id, type, function: { name, arguments: '' } }] },
    { tool_calls: [{ index, function: { arguments: given } }] },
  ]);
}

function chunk(of: Completion, delta: object, finish: FinishReason | null = null, extra: object = {}): object {
  return {
    id: of.id,
    object: 'chat.completion.chunk',
    created: of.created,
    model: of.model,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...extra,
  };
}

function usageChunk(of: Completion, result: TurnResult): object {
  return { ...chunk(of, {}), choices: [], usage: usageOf(result) };
}

function usageOf({ usage }: TurnResult): object {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  };
}
