/** What the commands' declarations share. */
import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

/** A command whose first argument is a conversation. */
export function onConversation(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .argument('<id>', "the conversation, or the beginning of its id; TENANT/ID is a tenant's");
}

/** For `action`: loads what does the work only when it is asked for, and ends with its exit code. It gets the arguments, then the options. */
export function runs(
  context: CliContext,
  load: () => Promise<(context: CliContext, ...args: never[]) => Promise<number>>,
): (...args: unknown[]) => Promise<void> {
  return async (...args) => {
    const action = await load();
    // Behind them commander gives the command itself. What they are is said where they are declared.
    context.end(await action(context, ...(args.slice(0, -1) as never[])));
  };
}
