/** `/v1/responses`: create, stream, retrieve, come back to, cancel. */
import { z } from 'zod';
import { turnNumber, turnId } from '../../records/identity.js';
import type { JsonObject } from '../../records/message.js';
import { OLDEST } from '../../stores/feed-cursor.js';
import { requestSignal, type GatewayApp, type GatewayContext } from '../context.js';
import { refuseWhileClientRuns, refuseWhileWaiting, fromSubmitted, type AnswerSource } from '../core/answer-calls.js';
import type { Conversations, Submitted } from '../core/conversations.js';
import { toProblem, GatewayError, invalid, unsupported } from '../core/errors.js';
import { answerNamed, submitAfter, submitSupplied, type Beside, firstMessage, shortHash, type Supplied } from '../core/supplied-history.js';
import { toConversationId, readAgent, idempotencyKey, optional, readBody } from '../core/read-body.js';
import { END_PATIENCE_MS, waitForEnd, stopTurn } from '../core/turn-status.js';
import { findPause, answerSnapshots, finalAnswer, waitForAnswer, type Segment, type AnswerSnapshot } from '../core/answer.js';
import { idOfRequest } from '../core/repeated-requests.js';
import { sendEvents, type ServerEvent } from '../sse.js';
import { parseArguments, content, readMessages, schemaFormat, type Message, toolFields, readTools } from './request.js';
import { explainError, createResponseEvents, endedResponse, runningResponse, type ResponseHead } from './frames.js';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';

const item = z.looseObject({
  type: z.string().optional(),
  role: z.string().optional(),
  content: content.optional(),
  /** Id of a call, and of its answer. */
  call_id: z.string().max(500).optional(),
  name: z.string().max(500).optional(),
  arguments: z.string().optional(),
  output: content.optional(),
});

const request = z.looseObject({
  model: optional(z.string().min(1).max(128)),
  input: z.union([z.string(), z.array(item).min(1).max(10_000)]),
  instructions: optional(z.string()),
  previous_response_id: optional(z.string().max(512)),
  conversation: optional(z.union([z.string().min(1).max(512), z.looseObject({ id: z.string().min(1).max(512) })])),
  stream: optional(z.boolean()),
  background: optional(z.boolean()),
  store: optional(z.boolean()),
  user: optional(z.string().max(512)),
  ...toolFields,
  text: optional(z.looseObject({ format: schemaFormat.optional() })),
  metadata: optional(z.record(z.string(), z.string())),
});
type Request = z.output<typeof request>;

const DEFAULT_AGENT = 'default';

export function addResponses(app: GatewayApp): void {
  app.post('/v1/responses', async (context) => {
    const body = await readBody(context, request);
    const core = context.get('conversations');
    const signal = requestSignal(context);
    const source = await submit(context, body, signal);
    const { conversation, turn, after } = source;
    const head: ResponseHead = {
      id: responseId(conversation, turn, after),
      created_at: Math.floor(Date.now() / 1000),
      model: body.model ?? DEFAULT_AGENT,
      conversation,
      ...(body.previous_response_id !== undefined && { previous: body.previous_response_id }),
      background: body.background === true,
      store: body.store ?? true,
      ...(body.metadata !== undefined && { metadata: body.metadata }),
      ...(body.tools !== undefined && { tools: body.tools }),
      ...(body.tool_choice !== undefined && { toolChoice: body.tool_choice }),
    };
    const segment: Segment = { conversation, turn, after, mayPause: after !== undefined || (body.tools ?? []).length > 0 };
    if (body.stream === true) {
      // From the turn's first event on, as a client that comes back reads it.
      return streamed(context, head, segment, (gone) => fromItsBeginning(core, source, gone));
    }
    if (body.background === true) return context.json(runningResponse(head, source.position > 0 ? 'queued' : 'in_progress'));
    const answer = await waitForAnswer(answerSnapshots(core, segment, source.follow(core.whileWorked, signal)), signal);
    return context.json(endedResponse(head, answer));
  });

  app.get('/v1/responses/:id', async (context) => {
    const core = context.get('conversations');
    const name = readResponseId(context.req.param('id'), 'response_id');
    const head = await readHead(core, name);
    if (context.req.query('stream') !== 'true') return context.json(await look(core, name, head, requestSignal(context)));
    const after = z.coerce.number().int().min(-1).max(1e9).default(-1).safeParse(context.req.query('starting_after'));
    if (!after.success) throw invalid('starting_after must be a sequence_number', 'starting_after');
    await core.client.describe(name.conversation);
    return streamed(
      context,
      head,
      { ...name, mayPause: true },
      (gone) => core.attach({ id: name.conversation, turn: name.turn, after: OLDEST, signal: gone }),
      after.data,
    );
  });

  app.post('/v1/responses/:id/cancel', async (context) => {
    const core = context.get('conversations');
    const name = readResponseId(context.req.param('id'), 'response_id');
    const head = await readHead(core, name);
    const signal = requestSignal(context);
    await stopTurn(core.client, name, 'by a client of the Responses API');
    return context.json(await look(core, name, head, signal, END_PATIENCE_MS));
  });
}

/** As a client that comes back reads it. */
function fromItsBeginning(core: Conversations, source: AnswerSource, gone: AbortSignal): ReturnType<Conversations['attach']> {
  const { submitted: taken, turn } = source;
  return taken && turn !== null ? core.answer({ ...taken, after: OLDEST }, gone) : source.follow(core, gone);
}

async function submit(context: GatewayContext, body: Request, signal: AbortSignal): Promise<AnswerSource> {
  const core = context.get('conversations');
  const tools = readTools(body);
  if (body.previous_response_id !== undefined && body.conversation !== undefined) {
    throw invalid('previous_response_id and conversation cannot both be given', 'previous_response_id');
  }
  const { media, ...given } = readMessages(toMessages(body.input), 'input');
  const instructions = [body.instructions ?? '', given.instructions ?? ''].filter((text) => text !== '').join('\n\n');
  const supplied: Supplied = { ...given, ...(instructions !== '' && { instructions }) };
  const output = readOutput(body);
  const beside: Beside = { ...media, ...(output && { output }), ...(tools.length > 0 && { tools }) };
  const key = idempotencyKey(context);
  const agent = await readAgent(context, body.model ?? DEFAULT_AGENT);
  const fresh = await idOfRequest(context);
  const message = { ...beside, id: key ?? fresh, text: firstMessage(supplied) };
  const answering = supplied.answers && { supplied, key, beside, signal };
  if (body.previous_response_id !== undefined) {
    const before = readResponseId(body.previous_response_id, 'previous_response_id');
    if (answering) return answerNamed(core, before.conversation, answering, before.turn);
    return fromSubmitted(await submitFrom(core, before, message, signal));
  }
  if (body.conversation !== undefined) {
    const id = typeof body.conversation === 'string' ? body.conversation : body.conversation.id;
    const conversation = toConversationId(id);
    if (answering) return answerNamed(core, conversation, answering);
    await (tools.length > 0 ? refuseWhileWaiting : refuseWhileClientRuns)(core, conversation, message.id);
    return fromSubmitted(await core.submit(conversation, message, { start: { agent }, signal }));
  }
  const asking = { principal: context.get('principal').name, user: body.user ?? '', agent };
  return submitSupplied(core, { ...asking, supplied, key, fresh, beside, signal });
}

/** After the newest turn in the same conversation, after an earlier one in a fork that begins with it. */
async function submitFrom(
  core: Conversations,
  { conversation, turn }: ResponseName,
  message: Beside & { readonly id: string; readonly text: string },
  signal: AbortSignal,
): Promise<Submitted> {
  const { client } = core;
  const param = 'previous_response_id';
  const status = await client.status(conversation).catch((error: unknown) => {
    throw toProblem(error).type === 'not-found' ? noResponse(param) : error;
  });
  if (status.waiting?.kind === 'client-tool') await refuseWhileWaiting(core, conversation, message.id);
  if (turnNumber(turn) > status.turn + status.queued || turnNumber(turn) === 0) throw noResponse(param);
  if (turnNumber(turn) >= status.turn) {
    const submitted = await submitAfter(core, { conversation, turn, message, signal });
    if (submitted) return submitted;
  } else if ((await client.history(conversation)).some(({ messageId }) => messageId === message.id)) {
    return core.submit(conversation, message, { start: {}, signal });
  }
  const fork = `resp-${shortHash([conversation, turn, message.id])}`;
  await client.fork(conversation, { at: turn, id: fork }).catch(async (error: unknown) => {
    // The same request, once more.
    if (
      !(await client.describe(fork).then(
        () => true,
        () => false,
      ))
    )
      throw error;
  });
  return core.submit(fork, message, { start: {}, signal });
}

function toMessages(input: Request['input']): readonly Message[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  return input.map(({ type = 'message', role, content: given, call_id: callId, name = '', arguments: args = '', output }, at) => {
    if (type === 'function_call' && callId !== undefined) {
      return { role: 'assistant', content: '', calls: [{ id: callId, name, arguments: parseArguments(args) }] };
    }
    if (type === 'function_call_output' && callId !== undefined) return { role: 'tool', content: output ?? '', callId };
    if (type !== 'message') throw unsupported(`an item of the type ${JSON.stringify(type.slice(0, 40))}`, `input.${at}`);
    if (role === undefined || given === undefined) throw invalid('a message needs a role and content', `input.${at}`);
    return { role, content: given };
  });
}

function readOutput({ text }: Request): JsonObject | undefined {
  const format = text?.format;
  if (format === undefined || format.type === 'text') return undefined;
  if (format.type === 'json_schema' && format.schema !== undefined) return format.schema as JsonObject;
  throw unsupported(`the format ${JSON.stringify(format.type.slice(0, 40))} without a schema`, 'text.format');
}

async function readHead({ client }: Conversations, { conversation, turn, after }: ResponseName): Promise<ResponseHead> {
  const { agent, startedAt } = await client.describe(conversation).catch((error: unknown) => {
    throw toProblem(error).type === 'not-found' ? noResponse('response_id') : error;
  });
  const created_at = Math.floor(new Date(startedAt).getTime() / 1000);
  return { id: responseId(conversation, turn, after), created_at, model: agent ?? DEFAULT_AGENT, conversation };
}

async function look(
  core: Conversations,
  name: ResponseName,
  head: ResponseHead,
  signal: AbortSignal,
  patienceMs?: number,
): Promise<object> {
  const segment: Segment = { ...name, mayPause: true };
  try {
    const result = await waitForEnd(core, name, signal, patienceMs);
    if (result !== undefined) return endedResponse(head, await finalAnswer(core, segment, result));
    // A turn that goes on may wait for its client.
    const paused = patienceMs === undefined ? await findPause(core, segment) : undefined;
    return paused === undefined ? runningResponse(head) : endedResponse(head, paused);
  } catch (error) {
    throw toProblem(error).type === 'not-found' ? noResponse('response_id') : error;
  }
}

function streamed(
  context: GatewayContext,
  head: ResponseHead,
  segment: Segment,
  follow: (gone: AbortSignal) => ReturnType<Conversations['attach']>,
  after = -1,
): Promise<Response> {
  const core = context.get('conversations');
  let last = after;
  return sendEvents(
    context,
    async function* (gone) {
      for await (const event of eventsAfter(head, answerSnapshots(core, segment, follow(gone)), after)) {
        last = event.sequence_number;
        yield { event: event.type, data: JSON.stringify(event) };
      }
    },
    (error): ServerEvent => {
      const { code, message, param } = explainError(error);
      return { event: 'error', data: JSON.stringify({ type: 'error', code, message, param, sequence_number: last + 1 }) };
    },
  );
}

/** The last event comes in any case, also to who has a number that is too high: it has the whole answer. */
async function* eventsAfter(
  head: ResponseHead,
  snapshots: AsyncIterable<AnswerSnapshot>,
  after: number,
): AsyncGenerator<{ readonly type: string; readonly sequence_number: number }> {
  const events = createResponseEvents(head);
  for (const event of events.begin()) if (event.sequence_number > after) yield event;
  for await (const snapshot of snapshots) {
    const made = events.take(snapshot);
    for (const [at, event] of made.entries()) {
      const isLast = snapshot.kind === 'final' && at === made.length - 1;
      if (event.sequence_number > after) yield event;
      else if (isLast) yield { ...event, sequence_number: after + 1 };
    }
  }
}

// Ids of responses: the conversation and the turn are in them, so that any gateway finds both.

interface ResponseName {
  readonly conversation: string;
  readonly turn: string;
  /** The last of the calls that the client had answered before it. */
  readonly after?: string;
}

const NAME = /^(.{1,64}):turn_(\d{1,15})(\/c\d{1,6})?$/;

/** A message that cleared the session has no turn: its id names `turn_0000`, which there never is. */
export function responseId(conversation: string, turn: string | null, after?: string): string {
  return `resp_${Buffer.from(`${conversation}:${after ?? turn ?? turnId(0)}`).toString('base64url')}`;
}

/** Throws `not-found` for what this gateway cannot have given out. */
export function readResponseId(id: string, param: string): ResponseName {
  const [, conversation = '', number = '', call] =
    NAME.exec(id.startsWith('resp_') && id.length < 200 ? Buffer.from(id.slice(5), 'base64url').toString() : '') ?? [];
  const turn = turnId(Number(number));
  if (ID_PATTERN.test(conversation)) return { conversation, turn, ...(call !== undefined && { after: `${turn}${call}` }) };
  throw noResponse(param);
}

function noResponse(param: string): GatewayError {
  return new GatewayError({ status: 404, type: 'response-not-found', message: 'there is no response of that id', param });
}
