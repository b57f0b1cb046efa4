/** `perdura new`: a conversation in which nothing was said yet. */
import type { StartOptions } from '../../conversation/protocol/contract.js';
import type { CliContext } from '../session/context.js';
import { refuseUnusableAgent } from '../services/known-agent.js';
import { newName } from '../gateway/tenant-names.js';
import { EXIT } from '../terminal/exit.js';
import { readJsonObject } from '../args/values.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { withClient, temporalCommand } from '../session/with-client.js';

export interface NewOptions extends Pick<StartOptions, 'agent' | 'title' | 'model' | 'scope' | 'tenant' | 'mode'>, BudgetWanted {
  readonly id?: string;
  readonly context?: string;
}

export interface BudgetWanted {
  /** US dollars. */
  readonly budget?: number;
  readonly budgetTokens?: number;
}

/** The start option that they mean. */
export function startBudget({ budget, budgetTokens }: BudgetWanted): Pick<StartOptions, 'budget'> {
  if (budget === undefined && budgetTokens === undefined) return {};
  return {
    budget: { ...(budget !== undefined && { maxCostUsd: budget }), ...(budgetTokens !== undefined && { maxTokens: budgetTokens }) },
  };
}

export async function newConversation(context: CliContext, given: NewOptions): Promise<number> {
  const { id: wanted, agent, title, model, scope, tenant, mode } = given;
  const shared = given.context === undefined ? {} : { context: await readJsonObject(context.surroundings, '--context', given.context) };
  return withClient(context, { needsWorker: true }, async ({ client, config, output, globals, temporal, withSlowNotice }) => {
    await refuseUnusableAgent(config, agent, tenant);
    const { id, publicId, name } = await newName(config, tenant, wanted);
    const options: StartOptions = { agent, title, model, scope, tenant, publicId, mode, ...startBudget(given), ...shared };
    const { attached } = await withSlowNotice('starting a conversation', client.start(id, options));
    if (globals.output !== 'text') {
      const of = publicId === undefined ? {} : { tenant, publicId };
      output.line(toTerminalJson({ id, ...of, attached, namespace: client.namespace, taskQueue: client.taskQueue }));
      return EXIT.ok;
    }
    output.line(name);
    if (attached) output.problem(`conversation ${name} was running already: nothing was started, and options were not used`);
    output.explain(temporalCommand(temporal, ['workflow', 'describe', '-w', id]));
    return EXIT.ok;
  });
}
