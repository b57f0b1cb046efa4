/** `perdura withdraw`: takes a message back that no turn has taken. */
import type { CliContext } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findRunning } from '../args/find-conversation.js';
import { temporalCommand } from '../session/temporal-command.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { withClient } from '../session/with-client.js';

export function withdraw(context: CliContext, given: string, messageId: string): Promise<number> {
  return withClient(context, { needsWorker: true }, async ({ client, output, globals, temporal, slowly }) => {
    const id = await findRunning({ client, output, slowly }, given);
    const outcome = await slowly(`telling ${id}`, client.withdraw(id, messageId));
    if (globals.output !== 'text') output.line(toTerminalJson({ id, ...outcome }));
    if (!outcome.withdrawn) throw new CliError(`not withdrawn: ${outcome.reason ?? 'no reason was given'}`, EXIT.failed);
    if (globals.output === 'text') {
      output.say(`message ${messageId} is taken back: no turn has seen it, and none will`);
      const input = JSON.stringify({ messageId });
      output.note(temporalCommand(temporal, ['workflow', 'update', 'execute', '--name', 'withdraw', '-w', id, '--input', input]));
    }
    return EXIT.ok;
  });
}
