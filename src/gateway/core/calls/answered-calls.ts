/** What a client says to calls that wait: what a person has decided, and what tools of its own have answered. */
import type { Approval, Decision } from '../../../conversation/protocol/human-input.js';
import { isClientTool, toPrefixed } from '../../../conversation/protocol/client-tools.js';
import type { PerduraClient, Pending } from '../../../client.js';
import { ClientError } from '../../../client/errors.js';
import { callFingerprint } from '../../../memory/call-fingerprint.js';
import type { JsonValue } from '../../../records/message.js';
import { invalid } from '../read-body.js';
import type { AnsweredCall } from './waiting-calls.js';

export type Answer = Pick<Decision, 'callId' | 'decision' | 'note' | 'input' | 'isError'> & {
  /**
   * What the client took it for: words that answer a question must not allow a call. `answer`: of a question, or of a tool that it runs.
   * Absent: whatever waits is refused.
   */
  readonly to?: 'approval' | 'question' | 'client-tool' | 'answer';
  /** The call as the client has shown it: an approval counts for these arguments alone. */
  readonly shown?: { readonly name: string; readonly input: JsonValue };
  /** What a tool of the client has answered. */
  readonly output?: JsonValue;
};

export interface AnsweredCalls {
  /** The turn that goes on. */
  readonly turn: string;
  /** Those of the calls that waited until now; the others were decided before, by this client or elsewhere. */
  readonly decided: readonly DecidedCall[];
}

export interface DecidedCall {
  readonly callId: string;
  readonly kind: Approval['kind'];
}

const ANSWERS = { approval: 'an approval or a refusal', question: 'an answer in words', 'client-tool': 'what its client answers' };
const CALL_ID = /^(turn_\d{4,15})\/c\d{1,6}$/;

export function isCallId(id: string): boolean {
  return CALL_ID.test(id);
}

/** `before`: done once, before the first of them is decided; not at all where none waits. */
export async function answerCalls(
  client: PerduraClient,
  id: string,
  answers: readonly Answer[],
  before?: () => Promise<unknown>,
): Promise<AnsweredCalls> {
  const [, turn] = CALL_ID.exec(answers.at(-1)?.callId ?? '') ?? [];
  const waiting = await waitingNow(client, id);
  const decided: DecidedCall[] = [];
  const open = answers.flatMap((answer) => {
    const asked = waiting.find(({ callId, conversation }) => callId === answer.callId && conversation === id);
    return asked ? [{ answer, asked }] : [];
  });
  for (const { answer, asked } of open) {
    if (!fits(answer.to, asked.kind)) throw invalid(`${asked.tool} (${asked.callId}) waits for ${ANSWERS[asked.kind]}`);
  }
  if (turn === undefined) throw invalid('the toolCallId is none of this conversation');
  if (open.length > 0) await before?.();
  for (const { answer, asked } of open) {
    if (await decide(client, id, asked, answer)) decided.push({ callId: asked.callId, kind: asked.kind });
  }
  return { turn, decided };
}

/** For streams (waiting-calls.ts). */
export function toAnswered(calls: readonly { readonly callId: string; readonly kind?: Answer['to'] }[]): readonly AnsweredCall[] {
  return calls.map(({ callId, kind }) => ({ callId, isApproval: kind === 'approval' }));
}

function fits(to: Answer['to'], kind: Approval['kind']): boolean {
  return to === undefined || to === kind || (to === 'answer' && kind !== 'approval');
}

/** False where another request was first with what a tool of the client has answered: that is no fault of this one's. */
async function decide(client: PerduraClient, id: string, { kind, tool }: Pending, answer: Answer): Promise<boolean> {
  const { callId, decision, note, input, isError, output, shown } = answer;
  if (kind === 'client-tool' && output !== undefined) {
    try {
      await client.decide(id, { callId, decision: 'approve', output, ...(isError && { isError }) }, { awaited: true });
      return true;
    } catch (error) {
      if (error instanceof ClientError && error.kind === 'not-waiting') return false;
      throw error;
    }
  }
  const words = note === undefined ? {} : { note };
  if (kind !== 'approval') await client.decide(id, { callId, decision, ...words });
  else {
    const name = shown && isClientTool(tool) ? toPrefixed(shown.name) : shown?.name;
    const hash = shown && name !== undefined ? { hash: callFingerprint(name, shown.input) } : {};
    await client.decide(id, { callId, decision, ...words, ...(input !== undefined && { input }), ...hash });
  }
  return true;
}

/** Nothing waits in what has ended. */
async function waitingNow(client: PerduraClient, id: string): Promise<readonly Pending[]> {
  return client.approvals(id).catch((error: unknown): Pending[] => {
    if (error instanceof ClientError && error.kind === 'closed') return [];
    throw error;
  });
}
