import type { Command } from 'commander';
import { Option } from 'commander';
import type { ChatOptions } from '../chat/chat.js';
import { parseAmount } from '../args/amount.js';
import type { CliContext } from '../session/context.js';
import { refuseStrayWords } from '../args/stray-words.js';

export function register(program: Command, { output, config, closed, end }: CliContext): void {
  program
    .command('chat', { isDefault: true })
    .description('talk with an agent; lines may also be piped in')
    .argument('[words...]', 'what to say first')
    .option('-c, --continue', 'go on with the last conversation of this folder')
    .addOption(new Option('-r, --resume [id]', 'go on with this conversation, or choose one').conflicts('continue'))
    .option('--agent <name>', 'agent of a new conversation')
    .option('--model <provider/name>', 'model of a new conversation')
    .addOption(new Option('--mode <mode>', 'of a new conversation; stepping: it waits for each /step').choices(['auto', 'stepping']))
    .option('--budget <usd>', 'what a new conversation may cost in all, in US dollars', parseAmount)
    .option('-p, --print [message]', 'print one answer and end; stdin is taken too')
    .addOption(new Option('--output-format <format>', 'of -p').choices(['text', 'json', 'stream-json']).default('text'))
    .option('--start-services', 'find or start Temporal and a worker first, as npm start does')
    .action(async (words: string[], options: ChatOptions, command: Command) => {
      refuseStrayWords(words, options.print !== undefined, program, command);
      const { chat } = await import('../chat/chat.js');
      end(await chat(words, options, { config: config(), output, closed }));
    });
}
