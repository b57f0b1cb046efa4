/**
 * A message of an MCP client, and what comes of it within the time that the client waits: the answer, a word that the turn goes on, or what a
 * person has to decide first. A client that has elicitation asks its person.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { InputRequiredResult, McpServer, ServerContext } from '@modelcontextprotocol/server' with { 'resolution-mode': 'import' };
import type { Pending, PerduraClient } from '../../client.js';
import { CONVERSATION_PATTERN, ID_PATTERN, LIMITS, type TurnResult } from '../../conversation/protocol/contract.js';
import { timeoutSignal } from '../../platform/promises.js';
import type { MediaSource } from '../../records/message.js';
import { isoTime } from '../../records/text.js';
import { refuseWhileClientRuns } from '../core/answer-calls.js';
import { attachmentNamed, checkAttachments, withAttachments } from '../core/attachments.js';
import { describeClientWait } from '../core/client-calls.js';
import { askByRequest, askByResult, hasForms, requestKey, takeAnswers, type Asking, type Carried } from './ask-person.js';

const PROGRESS_MS = 5_000;
/** Between looks at what waits: soon at first, since most calls that ask are a turn's first. */
const FIRST_LOOK_MS = 250;
const MOST_BETWEEN_MS = 2_000;
const DEFAULT_WAIT_S = 45;
const MAX_WAIT_S = 3_600;
const MAX_REFERENCE = 2_048;

const answerShape = z.looseObject({
  conversation: z.string(),
  message_id: z.string().optional(),
  answer: z.string().optional().describe('absent while there is none yet'),
  state: z.enum(['running', 'waiting']).optional().describe('absent once the turn has ended'),
  waits_for: z.string().optional().describe('what has to happen first, and how'),
  approvals: z.array(z.looseObject({ kind: z.string(), tool: z.string(), call_id: z.string(), hash: z.string() })).optional(),
});

export const conversation = z.string().regex(CONVERSATION_PATTERN).describe('id of the conversation');

const attachments = z
  .array(z.string().max(MAX_REFERENCE))
  .max(LIMITS.mediaPerMessage)
  .default([])
  .describe('files for the model: references that POST /v1/attachments of the gateway has answered, such as att_0123…');

const waitSeconds = z
  .number()
  .min(0)
  .max(MAX_WAIT_S)
  .default(DEFAULT_WAIT_S)
  .describe('how long to wait for the answer; the turn goes on after that too');

interface Sending {
  readonly id: string;
  readonly text: string;
  /** The content of each one decides its type. */
  readonly documents: readonly MediaSource[];
  readonly messageId: string;
  readonly waitSeconds: number;
}

export interface Structured {
  readonly [field: string]: unknown;
  content: { type: 'text'; text: string }[];
  structuredContent: Record<string, unknown>;
}

/** The same as JSON text, for clients that know only that. Once through JSON: dates are texts, and what is undefined is not there. */
export function json(value: object): Structured {
  const text = JSON.stringify(value, null, 2);
  return { content: [{ type: 'text', text }], structuredContent: JSON.parse(text) as Record<string, unknown> };
}

/** Tools that begin a conversation, talk to it, and stop it. */
export function addSending(server: McpServer, client: PerduraClient, asking: Asking): void {
  const sendAndWait = async (sending: Sending, calling: ServerContext): Promise<Structured | InputRequiredResult> => {
    const given = await send(client, sending, calling, asking);
    return isQuestion(given) ? given : json(given);
  };
  server.registerTool(
    'start_conversation',
    {
      description: 'Start a durable conversation with an agent, and send its first message if there is one. Answers the id.',
      inputSchema: z.object({
        agent: z.string().regex(ID_PATTERN).optional().describe('the agent; the one called default without it'),
        title: z.string().max(200).optional(),
        message: z.string().min(1).optional(),
        attachments,
        wait_seconds: waitSeconds,
      }),
      outputSchema: answerShape,
    },
    async ({ agent, title, message, attachments: named, wait_seconds }, calling) => {
      const documents = await knownFiles(client, named);
      const begun = calling.mcpReq.requestState<Carried>();
      const id =
        begun?.conversation ??
        (await client.start(undefined, { ...(agent !== undefined && { agent }), ...(title !== undefined && { title }) })).id;
      if (message === undefined) return json({ conversation: id });
      const messageId = begun?.message_id ?? randomUUID();
      return sendAndWait({ id, text: message, documents, messageId, waitSeconds: wait_seconds }, calling);
    },
  );
  server.registerTool(
    'send_message',
    {
      description:
        'Send a message to a conversation and wait for the answer. When that takes longer than wait_seconds, the answer has the state ' +
        '"running"; when a person has to allow a call or to answer a question first, "waiting", with what waits. Then call again with the ' +
        'same text and message_id to go on waiting, which sends nothing a second time.',
      inputSchema: z.object({
        conversation,
        text: z.string().min(1),
        attachments,
        message_id: z.string().min(1).max(128).optional().describe('makes sending the same message again harmless'),
        wait_seconds: waitSeconds,
      }),
      outputSchema: answerShape,
      annotations: { openWorldHint: true },
    },
    async ({ conversation: id, text, attachments: named, message_id, wait_seconds }, calling) => {
      const documents = named.map((ref) => attachmentNamed(ref, 'attachments'));
      const messageId = message_id ?? sentBefore(calling, id) ?? randomUUID();
      return sendAndWait({ id, text, documents, messageId, waitSeconds: wait_seconds }, calling);
    },
  );
  server.registerTool(
    'interrupt_conversation',
    {
      description: 'Stop what a conversation is doing now. Its words so far stay.',
      inputSchema: z.object({ conversation }),
      outputSchema: z.looseObject({ conversation: z.string(), interrupted: z.boolean() }),
    },
    async ({ conversation: id }) => {
      await client.interrupt(id, 'by an MCP client');
      return json({ conversation: id, interrupted: true });
    },
  );
}

function isQuestion(given: object): given is InputRequiredResult {
  return (given as { readonly resultType?: unknown }).resultType === 'input_required';
}

function sentBefore({ mcpReq }: ServerContext, id: string): string | undefined {
  const before = mcpReq.requestState<Carried>();
  return before?.conversation === id ? before.message_id : undefined;
}

/** Refused before a conversation is begun for them. */
async function knownFiles(client: PerduraClient, named: readonly string[]): Promise<readonly MediaSource[]> {
  const documents = named.map((ref) => attachmentNamed(ref, 'attachments'));
  await checkAttachments(client, { text: '', documents });
  return documents;
}

/** What is answered; or what the client has to ask its person, before it calls again. */
async function send(
  client: PerduraClient,
  sending: Sending,
  calling: ServerContext,
  asking: Asking,
): Promise<object | InputRequiredResult> {
  const { id, text, documents, messageId, waitSeconds } = sending;
  const about = { conversation: id, message_id: messageId };
  const waits = (waiting: readonly Pending[]): object => ({ ...about, state: 'waiting', ...describeWaiting(id, waiting) });
  const patience = timeoutSignal(Math.max(1, waitSeconds * 1000));
  await refuseWhileClientRuns({ client }, id, messageId);
  const { decided, undecided } = await takeAnswers(client, id, calling);
  if (undecided.length > 0) return waits(undecided);
  const stopProgress = reportProgress(calling);
  const left = new AbortController();
  const signal = AbortSignal.any([calling.mcpReq.signal, patience, left.signal]);
  try {
    const message = await withAttachments(client, id, { id: messageId, text, ...(documents.length > 0 && { documents }) });
    if (waitSeconds === 0) await client.message(id, message);
    else {
      const answered = client.send(id, message, { signal });
      answered.catch(() => undefined);
      const shown = new Set(decided);
      for (;;) {
        const first = await Promise.race([answered, whatWaits(client, id, shown, signal)]);
        if (first === undefined) return toAnswer(about, await answered);
        if (!Array.isArray(first)) return toAnswer(about, first as TurnResult);
        const waiting = first as readonly Pending[];
        for (const approval of waiting) shown.add(requestKey(approval));
        if (!hasForms(asking, calling)) return waits(waiting);
        if (asking.era === 'modern') return askByResult(asking, about, waiting);
        const isDecided = await Promise.race([
          askByRequest(client, id, waiting, calling, { signal, timeout: waitSeconds * 1000 }),
          answered.then(
            () => true,
            () => true,
          ),
        ]);
        if (!isDecided) return waits(waiting);
      }
    }
  } catch (error) {
    if (!patience.aborted) throw error;
  } finally {
    left.abort();
    stopProgress();
  }
  const waiting = describeClientWait(id, await client.approvals(id).catch(() => []));
  return { ...about, state: 'running', ...(waiting !== undefined && { waits_for: waiting }) };
}

function toAnswer(about: object, { text: answer, ...result }: TurnResult): object {
  return { ...about, answer, ...result };
}

/** What waits for a person and is not among `shown`; undefined when the signal aborts. */
async function whatWaits(
  client: PerduraClient,
  id: string,
  shown: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<readonly Pending[] | undefined> {
  for (let ms = FIRST_LOOK_MS; ; ms = Math.min(MOST_BETWEEN_MS, ms * 2)) {
    await sleep(ms, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return undefined;
    const { pendingApprovals } = await client.status(id).catch(() => ({ pendingApprovals: 0 }));
    if (pendingApprovals === 0) continue;
    const waiting = await client.approvals(id).catch((): Pending[] => []);
    const fresh = waiting.filter((approval) => approval.kind !== 'client-tool' && !shown.has(requestKey(approval)));
    if (fresh.length > 0) return fresh;
  }
}

function describeWaiting(id: string, waiting: readonly Pending[]): { readonly waits_for: string; readonly approvals: readonly object[] } {
  const calls = waiting.map(({ kind, tool, callId }) =>
    kind === 'question' ? `an answer to ${callId}` : `a permission for ${tool} (${callId})`,
  );
  return {
    waits_for:
      `${id} waits for ${calls.join(', ')}, which a person gives who has seen what it is about: decide_approval with its call_id and hash says ` +
      'so. Then send_message with the same text and message_id goes on waiting.',
    approvals: waiting.map(({ kind, tool, target, callId, hash, arguments: given, why, expiresAt, conversation }) => ({
      kind,
      tool,
      call_id: callId,
      hash,
      ...(kind === 'question' ? { question: target } : { target, arguments: given }),
      ...(why !== undefined && { why }),
      ...(conversation !== id && { sub_agent: conversation }),
      expires_at: isoTime(expiresAt),
    })),
  };
}

/** Clients give a call up that is silent. */
function reportProgress({ mcpReq: { _meta, notify } }: ServerContext): () => void {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  let progress = 0;
  const timer = setInterval(() => {
    progress += 1;
    notify({ method: 'notifications/progress', params: { progressToken, progress, message: 'the agent is working' } }).catch(
      () => undefined,
    );
  }, PROGRESS_MS);
  return () => clearInterval(timer);
}
