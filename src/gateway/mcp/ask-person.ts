/**
 * Asks the person at an MCP client that has elicitation: until 2025-11-25 by a request to the client while its call waits; in 2026-07-28 by the
 * result of the call, which the client repeats with the answers.
 */
import { z } from 'zod';
import type { ClientCapabilities, InputRequiredResult, McpServer, ServerContext } from '@modelcontextprotocol/server' with {
  'resolution-mode': 'import',
};
import type { Pending, PerduraClient } from '../../client.js';
import { orUndefinedOnAbort } from '../../platform/promises.js';
import type { Seal } from '../../platform/seal.js';
import { truncate } from '../../records/text.js';
import type { Principal } from '../access/principal.js';

const SHOWN_ARGUMENTS = 4_000;
const MAX_NOTE = 10_000;
const DAY_S = 86_400;
/** Of `_meta`, in each request from 2026-07-28 on. */
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

/** Of a call that a client repeats: the conversation that it began, and the id of its message. */
export interface Carried {
  readonly conversation: string;
  readonly message_id: string;
}

/** What it takes to ask the person at one client. */
export interface Asking {
  readonly era: 'legacy' | 'modern';
  readonly server: McpServer['server'];
  readonly carries: { close(call: Carried): string; open(state: string): Carried };
}

/** Sealed for its principal: who has another's opens nothing with it. */
export function carriedFor({ name }: Principal, seal: Seal): Asking['carries'] {
  return {
    close: (call) => seal.close({ by: name, ...call }, DAY_S),
    open(state) {
      const { by, ...call } = (seal.open(state)?.content ?? {}) as Partial<Carried & { readonly by: string }>;
      if (by !== name) throw new Error('this state is of no call of this client');
      return call as Carried;
    },
  };
}

/** By which an answer is found again. With other arguments a call has another hash. */
export function requestKey({ conversation, callId, hash }: Pending): string {
  return `${conversation} ${callId} ${hash}`;
}

/** Whether the client shows forms. None that has begun no session: over HTTP before 2026-07-28 an answer would reach another server. */
export function hasForms({ server }: Asking, { mcpReq }: ServerContext): boolean {
  const { [CAPABILITIES]: ofCall } = (mcpReq.envelope ?? {}) as { readonly [CAPABILITIES]?: ClientCapabilities };
  const { elicitation } = ofCall ?? server.getClientCapabilities() ?? {};
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

/** The answer of a call, which the client then repeats. */
export function askByResult({ carries }: Asking, call: Carried, waiting: readonly Pending[]): InputRequiredResult {
  return {
    resultType: 'input_required',
    inputRequests: Object.fromEntries(
      waiting.map((approval) => [
        requestKey(approval),
        { method: 'elicitation/create', params: { mode: 'form' as const, ...formFor(approval) } },
      ]),
    ),
    requestState: carries.close(call),
  };
}

/** One after the other; true when all was decided. */
export async function askByRequest(
  client: PerduraClient,
  id: string,
  waiting: readonly Pending[],
  { mcpReq }: ServerContext,
  options: { readonly signal: AbortSignal; readonly timeout: number },
): Promise<boolean> {
  for (const approval of waiting) {
    const request = mcpReq.send({ method: 'elicitation/create', params: formFor(approval) }, options);
    const answer = await orUndefinedOnAbort(options.signal, request).catch(() => undefined);
    if (!(await decide(client, id, approval, answer))) return false;
  }
  return true;
}

/** What was answered of that which still waits; `undecided`: by an answer without a decision. */
export async function takeAnswers(
  client: PerduraClient,
  id: string,
  { mcpReq: { inputResponses } }: ServerContext,
): Promise<{ readonly decided: readonly string[]; readonly undecided: readonly Pending[] }> {
  const decided: string[] = [];
  const undecided: Pending[] = [];
  if (inputResponses === undefined) return { decided, undecided };
  for (const approval of await client.approvals(id)) {
    const key = requestKey(approval);
    if (approval.kind === 'client-tool' || !Object.hasOwn(inputResponses, key)) continue;
    if (await decide(client, id, approval, inputResponses[key])) decided.push(key);
    else undecided.push(approval);
  }
  return { decided, undecided };
}

const ACCEPTED = z.object({
  action: z.literal('accept'),
  content: z.object({ decision: z.enum(['approve', 'deny']).optional(), note: z.string().max(MAX_NOTE).optional() }),
});

/** False where nothing was decided: some clients accept for their person, and fill in nothing. */
async function decide(client: PerduraClient, id: string, { kind, callId, hash, conversation }: Pending, answer: unknown): Promise<boolean> {
  const { decision, note } = ACCEPTED.safeParse(answer).data?.content ?? {};
  const decided = kind !== 'question' ? decision : note ? 'approve' : undefined;
  if (decided === undefined) return false;
  await client.decide(id, {
    callId,
    hash,
    decision: decided,
    ...(note && { note }),
    ...(conversation !== id && { conversation }),
  });
  return true;
}

const APPROVAL = {
  type: 'object' as const,
  properties: {
    decision: { type: 'string' as const, title: 'Decision', enum: ['approve', 'deny'] },
    note: { type: 'string' as const, title: 'Note', description: 'for the agent to read' },
  },
  required: ['decision'],
};
const QUESTION = {
  type: 'object' as const,
  properties: { note: { type: 'string' as const, title: 'Answer' } },
  required: ['note'],
};

function formFor(approval: Pending) {
  return { message: describeOne(approval), requestedSchema: approval.kind === 'question' ? QUESTION : APPROVAL };
}

function describeOne({ kind, tool, target, arguments: given, why }: Pending): string {
  if (kind === 'question') return target;
  const shown = given === undefined ? '' : `\n${truncate(JSON.stringify(given, null, 2), SHOWN_ARGUMENTS)}`;
  return `The agent wants to call ${tool}${target === '' ? '' : ` (${target})`}.${why === undefined ? '' : ` ${why}`}${shown}`;
}
