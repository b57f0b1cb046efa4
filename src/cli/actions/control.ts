/** The short commands: each sends a conversation one thing. */
import type { CliContext } from '../session/context.js';
import { canAsk, confirm } from '../terminal/ask.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findRunning } from '../args/find-conversation.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { formatQuantity, formatUsage, budgetInWords, usedInWords } from '../views/quantities.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';
import { withEndingProgress } from '../session/with-progress.js';
import type { Status } from '../../conversation/protocol/contract.js';
import type { Budget } from '../../records/identity.js';

export function rename(context: CliContext, given: string, title: string): Promise<number> {
  if (title.trim() === '') throw new CliError(`cannot rename ${given}: the title is empty`, EXIT.usage);
  return withClient(context, {}, async (desk) => {
    const id = await findRunning(desk, given);
    await desk.withSlowNotice(`renaming ${id}`, desk.client.rename(id, title));
    const input = ['--input', JSON.stringify({ title })];
    return done(desk, { id, title }, `${id} is now ${title}`, ['workflow', 'signal', '--name', 'rename', '-w', id, ...input]);
  });
}

/** `perdura model`: which model answers, or another one. */
export function model(context: CliContext, given: string, name: string | undefined): Promise<number> {
  return withClient(context, { needsWorker: true }, async (desk) => {
    const id = await findRunning(desk, given);
    if (name !== undefined) await desk.withSlowNotice(`asking ${id}`, desk.client.setModel(id, name === 'default' ? null : name));
    const status = await desk.withSlowNotice(`asking ${id}`, desk.client.status(id));
    const { model: now, chosenModel: chosen = null } = status;
    if (desk.globals.output !== 'text') {
      desk.output.line(toTerminalJson({ id, model: now, chosenModel: chosen }));
      return EXIT.ok;
    }
    desk.output.line(modelInWords(status));
    const input = ['--input', JSON.stringify({ model: chosen })];
    const words =
      name === undefined ? ['query', '--name', 'status', '-w', id] : ['update', 'execute', '--name', 'setModel', '-w', id, ...input];
    desk.output.explain(temporalCommand(desk.temporal, ['workflow', ...words]));
    return EXIT.ok;
  });
}

/** Which model answers, and who has chosen it. */
export function modelInWords({ model: now, chosenModel: chosen, agent }: Pick<Status, 'model' | 'chosenModel' | 'agent'>): string {
  if (chosen !== undefined && chosen !== null) return `${chosen}, chosen for this conversation`;
  return now === null ? `the model of agent ${agent}: its name is known with the next answer` : `${now}, the model of agent ${agent}`;
}

export function stop(context: CliContext, given: string, { reason }: { readonly reason?: string }): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const id = await findRunning(desk, given);
    await desk.withSlowNotice(`stopping the turn of ${id}`, desk.client.interrupt(id, reason));
    const words = ['workflow', 'signal', '--name', 'interrupt', '-w', id];
    return done(desk, { id, stopped: true }, `${id} stops its turn; the conversation goes on`, words);
  });
}

export interface CloseOptions {
  readonly wait?: boolean;
  /** False: nothing of it is consolidated. */
  readonly memory?: boolean;
}

export function close(context: CliContext, given: string, { wait, memory }: CloseOptions): Promise<number> {
  const whenInterrupted = 'stopped waiting; the conversation closes all the same';
  return withClient(context, { needsWorker: true, whenInterrupted }, async (desk) => {
    const id = await findRunning(desk, given);
    await desk.withSlowNotice(`closing ${id}`, desk.client.closeConversation(id, { memory }));
    const input = memory === false ? ['--input', JSON.stringify({ memory })] : [];
    const words = ['workflow', 'signal', '--name', 'close', '-w', id, ...input];
    if (wait !== true) return done(desk, { id, closing: true }, `${id} closes: it takes no new messages and runs out its queue`, words);
    const { scope } = await desk.client.describe(id);
    const ended = withEndingProgress({ ...desk, id, scope }, desk.client.outcome(id, { signal: desk.signal }));
    const outcome = await desk.withSlowNotice(`waiting for the end of ${id}`, ended);
    const text = `${id} has ended after ${formatQuantity(outcome.turns, 'turn')}: ${formatUsage(outcome.usage)}`;
    return done(desk, { id, outcome }, text, words);
  });
}

export function cancel(context: CliContext, given: string): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const id = await findRunning(desk, given);
    await desk.withSlowNotice(`cancelling ${id}`, desk.client.cancel(id));
    return done(desk, { id, canceled: true }, `${id} was asked to end now, without what waits in its queue`, [
      'workflow',
      'cancel',
      '-w',
      id,
    ]);
  });
}

export interface TerminateOptions {
  readonly reason?: string;
  readonly yes?: boolean;
}

export function terminate(context: CliContext, given: string, { reason, yes }: TerminateOptions): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const id = await findRunning(desk, given);
    if (yes !== true) await confirmTermination(desk, id);
    await desk.withSlowNotice(`terminating ${id}`, desk.client.terminate(id, reason));
    const words = ['workflow', 'terminate', '-w', id, ...(reason === undefined ? [] : ['--reason', reason])];
    return done(desk, { id, terminated: true }, `${id} is terminated: what was recorded stays, nothing of it runs any more`, words);
  });
}

async function confirmTermination({ surroundings }: CommandSession, id: string): Promise<void> {
  if (!canAsk(surroundings)) {
    throw new CliError(`will not terminate ${id} unasked: add --yes, or end it in good order with \`perdura close ${id}\``, EXIT.usage);
  }
  const message = `Terminate ${id}? It cannot go on afterwards. (\`perdura close\` ends it in good order.)`;
  if (!(await confirm(surroundings, message))) throw new CliError(`${id} was left as it is`, EXIT.interrupted);
}

function done({ output, globals, temporal }: CommandSession, data: object, text: string, words: readonly string[]): number {
  if (globals.output === 'text') {
    output.say(text);
    output.explain(temporalCommand(temporal, words));
  } else {
    output.line(toTerminalJson(data));
  }
  return EXIT.ok;
}

/** `perdura budget`: what a conversation may use in all, and what it has used. */
export interface BudgetOptions {
  readonly maxCost?: number;
  readonly maxTokens?: number;
  readonly none?: boolean;
}

export function budget(context: CliContext, given: string, { maxCost, maxTokens, none }: BudgetOptions): Promise<number> {
  const isChanged = maxCost !== undefined || maxTokens !== undefined;
  if (none === true && isChanged) throw new CliError('--none takes every limit away: leave out --max-cost and --max-tokens', EXIT.usage);
  return withClient(context, { needsWorker: true }, async ({ client, config, output, globals, temporal, withSlowNotice, ...desk }) => {
    const id = await findRunning({ client, config, output, withSlowNotice }, given);
    const before = await withSlowNotice(`asking ${id}`, client.status(id));
    // The limit that was not named stays.
    const wanted: Budget = {
      ...before.budget,
      ...(maxCost === undefined ? {} : { maxCostUsd: maxCost }),
      ...(maxTokens === undefined ? {} : { maxTokens }),
    };
    const limits = none === true ? {} : wanted;
    if (none === true || isChanged) await withSlowNotice(`asking ${id}`, client.raiseBudget(id, limits));
    desk.signal.throwIfAborted();
    const now: Status = none === true || isChanged ? await client.status(id) : before;
    if (globals.output !== 'text') {
      output.line(toTerminalJson({ id, budget: now.budget, usage: now.usage }));
      return EXIT.ok;
    }
    output.line(`${budgetInWords(now.budget)}; ${usedInWords(now)}`);
    output.explain(
      none === true || isChanged
        ? temporalCommand(temporal, ['workflow', 'update', 'execute', '--name', 'raiseBudget', '-w', id, '--input', JSON.stringify(limits)])
        : temporalCommand(temporal, ['workflow', 'query', '--name', 'status', '-w', id]),
    );
    return EXIT.ok;
  });
}
