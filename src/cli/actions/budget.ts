/** `perdura budget`: what a conversation may use in all, and what it has used. */
import type { Status } from '../../conversation/protocol/contract.js';
import type { Budget } from '../../records/identity.js';
import type { CliContext } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findRunning } from '../args/find-conversation.js';
import { temporalCommand } from '../session/temporal-command.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { budgetInWords, usedInWords } from '../views/budget.js';
import { withClient } from '../session/with-client.js';

export interface BudgetOptions {
  readonly maxCost?: number;
  readonly maxTokens?: number;
  readonly none?: boolean;
}

export function budget(context: CliContext, given: string, { maxCost, maxTokens, none }: BudgetOptions): Promise<number> {
  const isChanged = maxCost !== undefined || maxTokens !== undefined;
  if (none === true && isChanged) throw new CliError('--none takes every limit away: leave out --max-cost and --max-tokens', EXIT.usage);
  return withClient(context, { needsWorker: true }, async ({ client, output, globals, temporal, slowly, ...desk }) => {
    const id = await findRunning({ client, output, slowly }, given);
    const before = await slowly(`asking ${id}`, client.status(id));
    // The limit that was not named stays.
    const wanted: Budget = {
      ...before.budget,
      ...(maxCost === undefined ? {} : { maxCostUsd: maxCost }),
      ...(maxTokens === undefined ? {} : { maxTokens }),
    };
    const told = none === true ? {} : wanted;
    if (none === true || isChanged) await slowly(`telling ${id}`, client.raiseBudget(id, told));
    desk.signal.throwIfAborted();
    const now: Status = none === true || isChanged ? await client.status(id) : before;
    if (globals.output !== 'text') {
      output.line(toTerminalJson({ id, budget: now.budget, usage: now.usage }));
      return EXIT.ok;
    }
    output.line(`${budgetInWords(now.budget)}; ${usedInWords(now)}`);
    output.note(
      none === true || isChanged
        ? temporalCommand(temporal, ['workflow', 'update', 'execute', '--name', 'raiseBudget', '-w', id, '--input', JSON.stringify(told)])
        : temporalCommand(temporal, ['workflow', 'query', '--name', 'status', '-w', id]),
    );
    return EXIT.ok;
  });
}
