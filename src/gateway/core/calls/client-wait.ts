/** That a conversation waits for tools of the client that brought them, for those who came by another way: what it is, and who can answer. Pure. */
import type { Pending } from '../../../client.js';
import { withoutPrefix } from '../../../conversation/protocol/client-tools.js';
import { isoTime } from '../../../records/time.js';

/** Undefined where it waits for none. */
export function clientWaitInWords(conversation: string, waiting: readonly Pending[]): string | undefined {
  const own = waiting.filter(({ kind }) => kind === 'client-tool');
  const [first] = own;
  if (!first) return undefined;
  const calls = own.map(({ tool, callId }) => `${withoutPrefix(tool)} (${callId})`).join(', ');
  const until = isoTime(Math.min(...own.map(({ expiresAt }) => expiresAt)));
  return (
    `${conversation} waits for what ${calls} answers, until ${until}. The client that brought this tool runs it and answers; ` +
    `"perdura answer ${conversation} ${first.callId} WHAT IT ANSWERS" answers in its place, and an interrupt ends the wait.`
  );
}
