import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

const HELP = `
The event waits in the conversation's queue and is reduced between turns, by the reducer of that type in the worker's own
workflows. One that nobody reduces is counted; \`perdura inspect ID\` names it.

  perdura dispatch my-chat ticket.updated '{"id": 7, "state": "open"}'
  echo '{"id": 7}' | perdura dispatch my-chat ticket.closed -`;

export function register(program: Command, context: CliContext): void {
  program
    .command('dispatch')
    .description('hand a conversation an event of your own application, for its reducer')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .argument('<type>', 'the event\'s type: letters, digits, "_", "." and "-"')
    .argument('[json]', 'its payload; "-" reads it from standard input')
    .option('--event-id <id>', 'its id: the same twice is one event')
    .addHelpText('after', HELP)
    .action(async (id: string, type: string, json: string | undefined, options: { readonly eventId?: string }) => {
      const { dispatch } = await import('../actions/dispatch.js');
      context.end(await dispatch(context, id, { type, json, eventId: options.eventId }));
    });
}
