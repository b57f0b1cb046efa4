import type { ChatSession } from './chat-session.js';
import { toTerminalLine } from './terminal-text.js';
import { trouble, waitingOfStatus } from './what-it-waits-for.js';

const LOOK_EVERY = 5000;

/** Says what an answer waits for when it does not come, where no live screen shows it: each reason once. */
export async function patiently<T>({ client, id, output }: ChatSession, answer: Promise<T>): Promise<T> {
  let told: string | undefined;
  const tell = (why: string): void => {
    if (why !== told) output.note(`(${toTerminalLine(why.replace(' {s}', ''), 400)})`);
    told = why;
  };
  const look = async (): Promise<void> => {
    const status = await client.status(id);
    if (status.waitingFor !== undefined)
      tell(waitingOfStatus({ ...status }, undefined, Date.now())?.text.replace(/(;? trying again at| until) .*$/, '') ?? '');
  };
  const timer = setInterval(() => {
    look().catch(() => tell(trouble('Temporal or its worker does not answer', undefined, Date.now()).text));
  }, LOOK_EVERY);
  try {
    return await answer;
  } finally {
    clearInterval(timer);
  }
}
