/** OpenAI's API, for its clients: an agent is a model, and a conversation is what goes on behind it. */
import { z } from 'zod';
import { type GatewayApp, requestSignal, type GatewayContext } from '../context.js';
import { addResponses } from './responses.js';
import { GatewayError, invalid, unsupported } from '../core/errors.js';
import { refuseWhileClientRuns, refuseWhileWaiting, fromSubmitted, type AnswerSource } from '../core/answer-calls.js';
import type { Conversations } from '../core/conversations.js';
import { answerNamed, firstMessage, newestMedia, submitSupplied, type Beside } from '../core/supplied-history.js';
import { createTextDeltas, answerSnapshots, refuseFailed, waitForAnswer, type AnswerSnapshot } from '../core/answer.js';
import { toConversationId, readAgent, idempotencyKey, optional, readBody, idOfRequest } from '../core/read-body.js';
import { sendEvents, type ServerEvent } from '../sse.js';
import { callDeltas, chunk, completion, finishReason, usageChunk, type Completion, explainError } from './frames.js';
import { answerFormat, content, parseArguments, readMessages, readOutput, readStop, readTools, stopFields, toolFields } from './request.js';

export function addOpenaiRoutes(app: GatewayApp): void {
  for (const add of [addModels, addChatCompletions, addResponses]) add(app);
}

/** When an agent was made is not known. */
const CREATED = 0;

/** The agents, as both OpenAI's and Anthropic's clients read them. */
function addModels(app: GatewayApp): void {
  app.get('/v1/models', async (context) => {
    const agents = await context.get('agents')();
    return context.json({
      object: 'list',
      data: agents.map(toModel),
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
    return context.json(toModel(name));
  });
}

function toModel(name: string): object {
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
        name: optional(z.string().max(200)),
        refusal: optional(z.string()),
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
  ...stopFields,
  functions: optional(z.array(z.unknown())),
  logprobs: optional(z.boolean()),
  modalities: optional(z.array(z.string())),
  response_format: answerFormat,
});

function addChatCompletions(app: GatewayApp): void {
  app.post('/v1/chat/completions', async (context) => {
    const body = await readBody(context, request);
    const core = context.get('conversations');
    const signal = requestSignal(context);
    const source = await submit(context, body, signal);
    const { conversation, turn, after } = source;
    const id = `chatcmpl-${conversation}-${turn ?? 'reset'}${after?.replace(/^.*\//, '-') ?? ''}`;
    const of = { id, created: Math.floor(Date.now() / 1000), model: body.model, conversation };
    context.header(CONVERSATION_HEADER, conversation);
    const mayPause = after !== undefined || (body.tools ?? []).length > 0;
    // Of a turn that goes on, its first message has set what the answer has to fit.
    const wantsData = after === undefined ? (body.response_format?.type ?? 'text') !== 'text' : undefined;
    const snapshots = (gone: AbortSignal, reading = core): AsyncGenerator<AnswerSnapshot> =>
      answerSnapshots(core, { ...source, mayPause, wantsData }, source.follow(reading, gone));
    if (body.stream === true) {
      const withUsage = body.stream_options?.include_usage === true;
      return sendEvents(
        context,
        (gone) => chunks(of, withUsage, snapshots(gone)),
        (error) => ({ data: JSON.stringify({ error: explainError(error) }) }),
      );
    }
    const answer = await waitForAnswer(snapshots(signal, core.whileWorked), signal);
    refuseFailed(conversation, answer);
    return context.json(completion(of, answer));
  });
}

async function submit(context: GatewayContext, body: z.output<typeof request>, signal: AbortSignal): Promise<AnswerSource> {
  const core: Conversations = context.get('conversations');
  if ((body.functions ?? []).length > 0) throw unsupported('functions (send them as tools)', 'functions');
  const tools = readTools(body);
  if ((body.n ?? 1) !== 1) throw unsupported('more than one answer', 'n');
  if (body.logprobs === true) throw unsupported('a wish for the probabilities of tokens', 'logprobs');
  if (body.modalities?.some((one) => one !== 'text')) throw unsupported('an answer other than text', 'modalities');
  const messages = body.messages.map(({ role, content: given, name, refusal, tool_calls: calls = [], tool_call_id: callId }) => ({
    role,
    content: given ?? refusal ?? '',
    name,
    calls: calls.map(({ id, function: made }) => ({ id, name: made?.name ?? '', arguments: parseArguments(made?.arguments ?? '') })),
    ...(callId !== undefined && { callId }),
  }));
  const supplied = readMessages(messages, 'messages');
  const agent = await readAgent(context, body.model);
  const output = readOutput(body.response_format, 'response_format');
  const stop = readStop(body);
  const beside: Beside = { ...(output && { output }), ...(tools && { tools }), ...(stop && { stop }) };
  const key = idempotencyKey(context);
  const fresh = await idOfRequest(context);
  const named = context.req.header(CONVERSATION_HEADER);
  if (named === undefined) {
    const asking = { principal: context.get('principal').name, user: body.user ?? '', agent };
    return submitSupplied(core, { ...asking, supplied, key, fresh, beside, signal });
  }
  if (named === '' || named.length > 512) throw invalid(`${CONVERSATION_HEADER} must have 1 to 512 characters`);
  const conversation = toConversationId(named);
  if (supplied.answers) return answerNamed(core, conversation, { supplied, key, beside, signal });
  const id = key ?? fresh;
  await (tools?.length ? refuseWhileWaiting : refuseWhileClientRuns)(core, conversation, id);
  const newest = firstMessage({ messages: supplied.messages.slice(-1) });
  const message = { ...beside, ...newestMedia(supplied), id, text: newest };
  return fromSubmitted(await core.submit(conversation, message, { start: { agent }, signal }));
}

async function* chunks(of: Completion, withUsage: boolean, snapshots: AsyncIterable<AnswerSnapshot>): AsyncGenerator<ServerEvent> {
  const textDelta = createTextDeltas();
  const frame = (value: object): ServerEvent => ({ data: JSON.stringify(value) });
  const noUsage = withUsage ? { usage: null } : {};
  yield frame(chunk(of, { role: 'assistant', content: '', refusal: null }, null, noUsage));
  for await (const snapshot of snapshots) {
    const content = textDelta(snapshot);
    if (content !== '') yield frame(chunk(of, { content }, null, noUsage));
    if (snapshot.kind !== 'final') continue;
    refuseFailed(of.conversation, snapshot);
    for (const delta of callDeltas(of, snapshot)) yield frame(chunk(of, delta, null, noUsage));
    yield frame(chunk(of, {}, finishReason(snapshot), noUsage));
    if (withUsage) yield frame(usageChunk(of, snapshot.result));
    yield { data: '[DONE]' };
  }
}
