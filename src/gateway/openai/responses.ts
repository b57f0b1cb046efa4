/** `/v1/responses`: create, stream, retrieve, come back to, cancel. */
import { z } from 'zod';
import { turnNumber, turnId } from '../../records/identity.js';
import { OLDEST } from '../../stores/feed-cursor.js';
import { requestSignal, type GatewayApp, type GatewayContext } from '../context.js';
import { refuseWhileClientRuns, refuseWhileWaiting, fromSubmitted, type AnswerSource } from '../core/answer-calls.js';
import type { Conversations } from '../core/conversations.js';
import type { Submitted } from '../../client/turns/stream.js';
import { toProblem, GatewayError, invalid, unsupported } from '../core/errors.js';
import {
  answerNamed,
  submitAfter,
  submitSupplied,
  type Beside,
  firstMedia,
  firstMessage,
  shortHash,
  type Supplied,
} from '../core/supplied-history.js';
import { toConversationId, readAgent, idempotencyKey, optional, readBody, idOfRequest } from '../core/read-body.js';
import { END_PATIENCE_MS, waitForEnd, stopTurn } from '../../client/turns/turn-status.js';
import { findPause, answerSnapshots, finalAnswer, schemaIn, waitForAnswer, type Segment, type AnswerSnapshot } from '../core/answer.js';
import { timeoutSignal } from '../../platform/promises.js';
import { readSettings, toEcho } from './settings.js';
import { sendEvents, type ServerEvent } from '../sse.js';
import {
  answerFormat,
  content,
  parseArguments,
  readMessages,
  readOutput,
  readStop,
  readTools,
  stopFields,
  toolFields,
  type Message,
} from './request.js';
import { explainError, createResponseEvents, endedResponse, runningResponse, type ResponseHead } from './frames.js';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';

const id = optional(z.string().max(500));
const item = z.looseObject({
  type: optional(z.string()),
  id,
  role: optional(z.string()),
  content: optional(content),
  /** Id of a call, and of its answer. */
  call_id: id,
  name: id,
  arguments: optional(z.string()),
  output: optional(content),
});
type Item = Partial<z.output<typeof item>>;

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
  ...stopFields,
  text: optional(z.looseObject({ format: answerFormat })),
  top_logprobs: optional(z.number()),
  prompt: z.unknown().optional(),
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
      settings: readSettings(body),
    };
    // Of a turn that goes on, its first message has set what the answer has to fit.
    const wantsData = after === undefined ? wantsSchema(body) : undefined;
    const segment: Segment = { conversation, turn, after, mayPause: after !== undefined || (body.tools ?? []).length > 0, wantsData };
    if (body.stream === true) {
      // From the turn's first event on, as a client that comes back reads it.
      return streamed(context, head, segment, (gone) => fromItsBeginning(core, source, gone));
    }
    if (body.background === true) return context.json(runningResponse(head, source.position > 0 ? 'queued' : 'in_progress'));
    const answer = await waitForAnswer(answerSnapshots(core, segment, source.follow(core.whileWorked, signal)), signal);
    return context.json(endedResponse(head, answer, { endedAt: Math.floor(Date.now() / 1000) }));
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
  if (body.prompt !== undefined && body.prompt !== null) throw unsupported('a prompt that is kept by OpenAI', 'prompt');
  if ((body.top_logprobs ?? 0) > 0) throw unsupported('a wish for the probabilities of tokens', 'top_logprobs');
  const items: readonly Item[] =
    typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : await withReferred(core, body.input, signal);
  const given = readMessages(toMessages(items), 'input');
  const instructions = [body.instructions ?? '', given.instructions ?? ''].filter((text) => text !== '').join('\n\n');
  const supplied: Supplied = { ...given, ...(instructions !== '' && { instructions }) };
  const output = readOutput(body.text?.format, 'text.format');
  const stop = readStop(body);
  const echo = toEcho(readSettings(body));
  const beside: Beside = { ...(output && { output }), ...(tools && { tools }), ...(stop && { stop }), ...(echo && { echo }) };
  const key = idempotencyKey(context);
  const agent = await readAgent(context, body.model ?? DEFAULT_AGENT);
  const fresh = await idOfRequest(context);
  const message = { ...beside, ...firstMedia(supplied), id: key ?? fresh, text: firstMessage(supplied) };
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
    await (tools?.length ? refuseWhileWaiting : refuseWhileClientRuns)(core, conversation, message.id);
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

function toMessages(items: readonly Item[]): readonly Message[] {
  return items.flatMap(
    ({ type = 'message', role, content: given, call_id: callId, name = '', arguments: args = '', output }, at): Message[] => {
      // Thinking is made anew.
      if (type === 'reasoning') return [];
      if (type === 'function_call' && callId !== undefined) {
        return [{ role: 'assistant', content: '', calls: [{ id: callId, name, arguments: parseArguments(args) }] }];
      }
      if (type === 'function_call_output' && callId !== undefined) return [{ role: 'tool', content: output ?? '', callId }];
      if (type !== 'message') throw unsupported(`an item of the type ${JSON.stringify(type.slice(0, 40))}`, `input.${at}`);
      if (role === undefined || given === undefined) throw invalid('a message needs a role and content', `input.${at}`);
      return [{ role, content: given }];
    },
  );
}

/** Items of earlier responses, which a client names by their ids, in the place of the references. */
async function withReferred(core: Conversations, items: readonly Item[], signal: AbortSignal): Promise<readonly Item[]> {
  const known = new Map<string, Promise<readonly Item[]>>();
  const readOnce = (name: ResponseName): Promise<readonly Item[]> => {
    const key = responseId(name.conversation, name.turn, name.after);
    const found = known.get(key) ?? readOutputItems(core, name, signal);
    known.set(key, found);
    return found;
  };
  return Promise.all(
    items.map(async (one, at): Promise<Item> => {
      // Some clients leave the type out.
      if (one.type !== 'item_reference' && (one.type !== undefined || one.role !== undefined || one.id === undefined)) return one;
      const { id: named = '' } = one;
      // No thinking is given out.
      if (named.startsWith('rs_')) return { type: 'reasoning' };
      for (const name of responsesNamed(named)) {
        const referred = (await readOnce(name)).find((item) => item.id === named);
        if (referred) return referred;
      }
      throw invalid(`Item with id ${JSON.stringify(named.slice(0, 300))} not found.`, `input.${at}.id`);
    }),
  );
}

async function readOutputItems(core: Conversations, name: ResponseName, signal: AbortSignal): Promise<readonly Item[]> {
  try {
    const response = await look(core, name, await readHead(core, name), signal);
    return z.array(item).parse((response as { readonly output?: unknown }).output ?? []);
  } catch (error) {
    if (toProblem(error).status === 404) return [];
    throw error;
  }
}

/** Those of which an item may be: its id has the response's, and then one number or two. */
function responsesNamed(itemId: string): readonly ResponseName[] {
  return [/^[a-z]+_(.+)_\d+$/, /^[a-z]+_(.+)_\d+_\d+$/].flatMap((pattern) => {
    const name = parseResponseId(`resp_${pattern.exec(itemId)?.[1] ?? ''}`);
    return name ? [name] : [];
  });
}

/** Any but free text. */
function wantsSchema({ text }: Request): boolean {
  const type = text?.format?.type;
  return type !== undefined && type !== 'text';
}

interface RecordedHead extends ResponseHead {
  /** Epoch seconds of what was recorded last in its turn. */
  readonly latest: number;
}

async function readHead({ client }: Conversations, { conversation, turn, after }: ResponseName): Promise<RecordedHead> {
  const { agent, startedAt } = await client.describe(conversation).catch((error: unknown) => {
    throw toProblem(error).type === 'not-found' ? noResponse('response_id') : error;
  });
  const entries = (await client.history(conversation)).filter((entry) => entry.turn === turn);
  const began = entries[0]?.ts ?? new Date(startedAt).getTime() / 1000;
  const schema = schemaIn(entries);
  const echo = entries.flatMap(({ message }) => (message.role === 'user' && message.echo ? [message.echo] : []))[0];
  return {
    id: responseId(conversation, turn, after),
    created_at: Math.floor(began),
    latest: Math.floor(entries.at(-1)?.ts ?? began),
    model: agent ?? DEFAULT_AGENT,
    conversation,
    settings: readSettings({ ...(schema && { text: { format: { type: 'json_schema', schema } } }), ...echo }),
  };
}

/** How long the live events are waited for, of an answer that is there: they know what it has used. */
const EVENTS_PATIENCE_MS = 5_000;

async function look(
  core: Conversations,
  name: ResponseName,
  { latest, ...head }: RecordedHead,
  signal: AbortSignal,
  patienceMs?: number,
): Promise<object> {
  const segment: Segment = { ...name, mayPause: true };
  try {
    const result = await waitForEnd(core, name, signal, patienceMs);
    // A turn that goes on may wait for its client.
    const known =
      result !== undefined
        ? await finalAnswer(core, segment, result)
        : patienceMs === undefined
          ? await findPause(core, segment)
          : undefined;
    if (known === undefined) return runningResponse(head);
    const patience = AbortSignal.any([signal, timeoutSignal(EVENTS_PATIENCE_MS)]);
    const live = core.attach({ id: name.conversation, turn: name.turn, after: OLDEST, signal: patience });
    const answer = await waitForAnswer(answerSnapshots(core, segment, live), patience).catch(() => known);
    signal.throwIfAborted();
    return endedResponse(head, { ...known, result: { ...known.result, usage: answer.result.usage } }, { endedAt: latest });
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
      const { type, code, message, param } = explainError(error);
      // OpenAI's clients read the fields of the event, those of the open specification its error.
      const failed = { type: 'error', code, message, param, error: { type, code, message, param }, sequence_number: last + 1 };
      return { event: 'error', data: JSON.stringify(failed) };
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
  const name = parseResponseId(id);
  if (name) return name;
  throw noResponse(param);
}

function parseResponseId(id: string): ResponseName | undefined {
  const [, conversation = '', number = '', call] =
    NAME.exec(id.startsWith('resp_') && id.length < 200 ? Buffer.from(id.slice(5), 'base64url').toString() : '') ?? [];
  const turn = turnId(Number(number));
  return ID_PATTERN.test(conversation) ? { conversation, turn, ...(call !== undefined && { after: `${turn}${call}` }) } : undefined;
}

function noResponse(param: string): GatewayError {
  return new GatewayError({ status: 404, type: 'response-not-found', message: 'there is no response of that id', param });
}
