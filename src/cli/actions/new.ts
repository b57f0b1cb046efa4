/** `perdura new`: a conversation in which nothing was said yet. */
import type { StartOptions } from '../../conversation/contract.js';
import type { CliContext } from '../context.js';
import { EXIT } from '../exit.js';
import { temporalCommand } from '../temporal-command.js';
import { toTerminalJson } from '../terminal-text.js';
import { withClient } from '../with-client.js';

export interface NewOptions extends StartOptions {
  readonly id?: string;
}

export function newConversation(context: CliContext, { id: wanted, agent, title, model, scope, mode }: NewOptions): Promise<number> {
  return withClient(context, { needsWorker: true }, async ({ client, output, globals, temporal, slowly }) => {
    const options: StartOptions = { agent, title, model, scope, mode };
    const { id, attached } = await slowly('starting a conversation', client.start(wanted, options));
    if (globals.output !== 'text') {
      output.line(toTerminalJson({ id, attached, namespace: client.namespace, taskQueue: client.taskQueue }));
      return EXIT.ok;
    }
    output.line(id);
    if (attached) output.problem(`conversation ${id} was running already: nothing was started, and options were not used`);
    output.note(temporalCommand(temporal, ['workflow', 'describe', '-w', id]));
    return EXIT.ok;
  });
}
