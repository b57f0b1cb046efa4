/**
 * A message of an MCP client, and what comes of it within the time that the client waits: the answer, a word that the turn goes on, or what a
 * person has to decide first. A client that has elicitation is asked that.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { InputRequiredResult, ServerContext } from '@modelcontextprotocol/server' with { 'resolution-mode': 'import' };
import type { Pending, PerduraClient } from '../../client.js';
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { timeoutSignal } from '../../platform/promises.js';
import type { MediaSource } from '../../records/message.js';
import { isoTime } from '../../records/text.js';
import { refuseWhileClientRuns } from '../core/answer-calls.js';
import { attachmentNamed, checkAttachments, withAttachments } from '../core/attachments.js';
import { describeClientWait } from '../core/client-calls.js';
import { askByRequest, askByResult, hasForms, keyOf, takeAnswers, type Asking } from './ask-person.js';

const PROGRESS_MS = 5_000;
/** Between looks at what waits: soon at first, since most calls that ask are a turn's first. */
const FIRST_LOOK_MS = 250;
const MOST_BETWEEN_MS = 2_000;

export const answerShape = z.looseObject({
  conversation: z.string(),
  message_id: z.string().optional(),
  answer: z.string().optional().describe('absent while there is none yet'),
  state: z.enum(['running', 'waiting']).optional().describe('absent once the turn has ended'),
  waits_for: z.string().optional().describe('what has to happen first, and how'),
  approvals: z.array(z.looseObject({ kind: z.string(), tool: z.string(), call_id: z.string(), hash: z.string() })).optional(),
});

interface Sending {
  readonly id: string;
  readonly text: string;
  /** The content of each one decides its type. */
  readonly documents: readonly MediaSource[];
  readonly messageId: string;
  readonly waitSeconds: number;
}

/** Refused before a conversation is begun for them. */
export async function knownFiles(client: PerduraClient, named: readonly string[]): Promise<readonly MediaSource[]> {
  const documents = named.map((ref) => attachmentNamed(ref, 'attachments'));
  await checkAttachments(client, { text: '', documents });
  return documents;
}

/** What is answered; or what the client has to ask its person, before it calls again. */
export async function send(
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
        for (const approval of waiting) shown.add(keyOf(approval));
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
    const fresh = waiting.filter((approval) => approval.kind !== 'client-tool' && !shown.has(keyOf(approval)));
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
