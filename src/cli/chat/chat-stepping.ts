/** `/mode` and `/step` of the chat. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChatSession } from './chat-session.js';
import type { Drawn } from '../terminal/drawn.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { renderControl, renderStep } from '../views/control.js';

/** Without a mode it says how things stand. */
export async function setMode({ client, id }: ChatSession, mode: string): Promise<Drawn[]> {
  if (mode !== '' && mode !== 'auto' && mode !== 'stepping') {
    throw new CliError(`there is no mode ${mode}: write /mode auto or /mode stepping`, EXIT.usage);
  }
  return renderControl(mode === '' ? await client.control(id) : await client.setMode(id, mode));
}

export async function stepOnce({ client, id }: ChatSession): Promise<Drawn[]> {
  return renderStep(await client.step(id));
}

/** Queues a line, and answers which turn it becomes. */
export async function queueLine({ client, id }: ChatSession, text: string): Promise<string> {
  const { messageId } = await client.message(id, text);
  for (let tries = 0; tries < 50; tries++) {
    const queued = (await client.queue(id)).find(({ event }) => event.kind === 'message' && event.messageId === messageId);
    if (queued?.event.kind === 'message') return queued.event.turnId;
    await sleep(100);
  }
  throw new CliError(`the line was sent to ${id}, and is not in its queue: \`perdura queue ${id}\` shows what is`, EXIT.failed);
}
