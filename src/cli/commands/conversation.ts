import { type Command, Option } from 'commander';
import type { ChatOptions } from '../chat/chat.js';
import { onConversation, runs } from './command.js';
import type { CliContext } from '../session/context.js';
import { refuseStrayWords } from '../args/nearest.js';
import { parseDuration, parseAmount, parseTokens } from '../args/values.js';

export function chatCommand(program: Command, context: CliContext): void {
  program
    .command('chat', { isDefault: true })
    .description('chat with an agent; lines can also be piped in')
    .argument('[words...]', 'what to say first')
    .option('-c, --continue', 'go on with the last conversation of this folder')
    .addOption(new Option('-r, --resume [id]', 'go on with this conversation, or choose one').conflicts('continue'))
    .option('--agent <name>', 'agent of a new conversation')
    .option('--model <provider/name>', 'model of a new conversation')
    .addOption(new Option('--mode <mode>', 'of a new conversation; stepping: it waits for each /step').choices(['auto', 'stepping']))
    .option('--budget <usd>', 'what a new conversation may cost in all, in US dollars', parseAmount)
    .option('-p, --print [message]', 'print one answer and end; stdin is taken too')
    .option('--keep', 'of -p: the conversation stays open; else it closes, and -c resumes it')
    .addOption(new Option('--output-format <format>', 'of -p').choices(['text', 'json', 'stream-json']).default('text'))
    .option('--start-services', 'find or start Temporal and a worker first, as npm start does')
    .action(async (words: string[], options: ChatOptions, command: Command) => {
      refuseStrayWords(words, options.print !== undefined, program, command);
      const { chat } = await import('../chat/chat.js');
      context.end(await chat(words, options, context));
    });
}

export function newCommand(program: Command, context: CliContext): void {
  program
    .command('new')
    .description('start a conversation and print its id')
    .option('--agent <name>', 'its agent')
    .option('--title <text>', 'what lists call it')
    .option('--model <provider/name>', "a model other than the agent's")
    .option('--scope <name>', 'whose long-term memory it uses')
    .option('--tenant <name>', 'whose it is, where several share the installation; other commands take it as NAME/ID')
    .addOption(new Option('--mode <mode>', 'stepping: it waits for each `perdura step`').choices(['auto', 'stepping']))
    .option('--budget <usd>', 'what it may cost in all, in US dollars', parseAmount)
    .option('--budget-tokens <count>', 'how many tokens it may use in all', parseTokens)
    .option('--context <json>', 'values that tools see and the model never does: JSON, @FILE or - for stdin')
    .option('--id <id>', 'its id; one that runs already is left as it is')
    .action(runs(context, async () => (await import('../actions/new.js')).newConversation));
}

export function sendCommand(program: Command, context: CliContext): void {
  program
    .command('send')
    .description('send a message to a running conversation and print its answer')
    .argument('<id>', 'the conversation')
    .argument('<message>', 'the message, or - for stdin')
    .option('--signal', 'by signal: do not wait, print the id of the message')
    .option('--id <key>', 'id of the message: the same id twice is one message')
    .option('--wait', 'for the answer (the default)', true)
    .option('--no-wait', 'the same as --signal')
    .option('--enqueue', 'do not wait: print a receipt, with the turn that the message becomes')
    .addOption(
      new Option(
        '--delivery <how>',
        'queue: after the running turn; steer: into it, between its next tool calls; interrupt: in its place',
      ).choices(['queue', 'steer', 'interrupt']),
    )
    .option('--attach <file...>', 'files for the model: pictures (PNG, JPEG, GIF, WebP), PDF, texts')
    .option('--payload <json>', 'data for the model, shown after the text: JSON, @FILE or - for stdin')
    .option('--output-schema <json>', 'JSON Schema of the object that the answer must be: JSON or @FILE')
    .option('--context <json>', 'values that tools see and the model never does, from this turn on: JSON or @FILE')
    .option('--timeout <duration>', 'wait no longer than 30s, 5m, …; then exit code 124, and the message stays sent', parseDuration)
    .action(runs(context, async () => (await import('../actions/send.js')).send));
}

const HELP = `
The event waits in the conversation's queue and is reduced between turns and between the steps of one, by the reducer of that type in the worker's own
workflows. One that nobody reduces is counted; \`perdura inspect ID\` names it.

  perdura dispatch my-chat ticket.updated '{"id": 7, "state": "open"}'
  echo '{"id": 7}' | perdura dispatch my-chat ticket.closed -`;

export function dispatchCommand(program: Command, context: CliContext): void {
  onConversation(program, 'dispatch', 'hand a conversation an event of your own application, for its reducer')
    .argument('<type>', 'the event\'s type: letters, digits, "_", "." and "-"')
    .argument('[json]', 'its payload; "-" reads it from standard input')
    .option('--event-id <id>', 'its id: the same twice is one event')
    .option('--wait', 'for what its reducer makes of it')
    .addHelpText('after', HELP)
    .action(async (id: string, type: string, json: string | undefined, options: { readonly eventId?: string; readonly wait?: boolean }) => {
      const { dispatch } = await import('../actions/send.js');
      context.end(await dispatch(context, id, { type, json, eventId: options.eventId, wait: options.wait === true }));
    });
}

export function withdrawCommand(program: Command, context: CliContext): void {
  onConversation(program, 'withdraw', 'withdraw a message that waits in the queue')
    .argument('<message-id>', 'the message, as `perdura send --signal` or `--enqueue` printed it')
    .action(runs(context, async () => (await import('../actions/send.js')).withdraw));
}
