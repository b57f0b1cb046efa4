/** Which of the calls that wait a person means: named, or the only one. */
import type { Pending } from '../../client.js';
import { CliError, EXIT } from '../terminal/exit.js';

export type Verb = 'approve' | 'deny' | 'answer';

/** `c1`, `turn_0001/c1`; a sub-agent's may stand behind its conversation's id. */
export const CALL_PATTERN = /^(?:turn_\d{4,15}\/)?c\d{1,6}$/;

export function pickApproval(waiting: readonly Pending[], call: string | undefined, verb: Verb, id: string): Pending {
  if (waiting.length === 0) throw new CliError(`nothing waits for a person in ${id}: it was decided, or has expired`, EXIT.notFound);
  const named = call === undefined ? waiting : waiting.filter(({ callId }) => callId === call || callId.endsWith(`/${call}`));
  if (named.length === 0) {
    throw new CliError(
      `${call ?? ''} does not wait in ${id}: it was decided, has expired, or was never asked; there ${listed(waiting)}`,
      EXIT.notFound,
    );
  }
  const fitting = named.filter(({ kind }) => fits(kind, verb));
  const [first, second] = fitting;
  if (first !== undefined && second === undefined) return first;
  if (first === undefined) {
    const other = verb === 'answer' ? 'approve or deny it' : 'answer it: perdura answer';
    throw new CliError(`${named.map(nameOf).join(', ')} cannot be ${PAST[verb]}; ${other}`, EXIT.usage);
  }
  throw new CliError(`say which: in ${id} ${listed(fitting)}`, EXIT.usage);
}

function fits(kind: Pending['kind'], verb: Verb): boolean {
  return verb === 'deny' || (kind === 'question') === (verb === 'answer');
}

const PAST: Readonly<Record<Verb, string>> = { approve: 'approved', deny: 'denied', answer: 'answered' };

function listed(waiting: readonly Pending[]): string {
  return `${waiting.length === 1 ? 'waits' : 'wait'} ${waiting.map(nameOf).join(', ')}`;
}

/** As it can be typed: the conversation's id first, where it is a sub-agent's. */
function nameOf({ conversation, via, callId, tool, kind }: Pending): string {
  const whose = conversation === via ? '' : `${conversation} `;
  return `${whose}${callId} (${kind === 'question' ? 'a question' : tool.replace(/[^\w.:/-]/g, '?').slice(0, 80)})`;
}
