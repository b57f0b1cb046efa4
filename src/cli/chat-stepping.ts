/** `/mode` and `/step` of the chat. */
import type { ChatSession } from './chat-session.js';
import type { Drawn } from './drawn.js';
import { CliError, EXIT } from './exit.js';
import { renderControl, renderStep } from './views/control.js';

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
