/** What a person says to calls that wait, sent by a client that has shown them. */
import type { Approval, Decision } from '../../conversation/protocol/human-input.js';
import type { PerduraClient } from '../../client.js';
import { invalid } from './read-body.js';

/** `hash` binds an approval to the arguments that the client has shown. */
export type Answer = Pick<Decision, 'callId' | 'decision' | 'note' | 'hash' | 'input'> & {
  /** What the client took it for, where that matters: words that answer a question must not allow a call. */
  readonly to?: Approval['kind'];
};

export interface AnsweredCalls {
  /** The turn that goes on. */
  readonly turn: string;
  /** Those of the calls that waited until now; the others were decided before, by this client or elsewhere. */
  readonly decided: readonly string[];
}

const ANSWERS = { approval: 'an approval or a refusal', question: 'an answer in words', 'client-tool': 'what its client answers' };

export async function answerCalls(client: PerduraClient, id: string, answers: readonly Answer[]): Promise<AnsweredCalls> {
  const waiting = await client.approvals(id);
  const decided: string[] = [];
  for (const { hash, to, ...answer } of answers) {
    const asked = waiting.find(({ callId, conversation }) => callId === answer.callId && conversation === id);
    if (!asked) continue;
    if (to !== undefined && to !== asked.kind) throw invalid(`${asked.tool} (${asked.callId}) waits for ${ANSWERS[asked.kind]}`);
    // A question has no arguments that run.
    await client.decide(id, asked.kind === 'approval' && hash !== undefined ? { ...answer, hash } : answer);
    decided.push(answer.callId);
  }
  const [, turn] = /^(turn_\d{4,15})\/c\d{1,6}$/.exec(answers.at(-1)?.callId ?? '') ?? [];
  if (turn === undefined) throw invalid('the toolCallId is none of this conversation');
  return { turn, decided };
}
