/** `perdura fork`, `resume`, `rewind` and `delete`: lives that go on from others, rewinds, and deletion. */
import type { Begun, Deleted } from '../../client.js';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import type { CliContext } from '../session/context.js';
import { readTenant } from '../../records/scope.js';
import { namedByTenant, newName, partsOfName } from '../gateway/tenant-names.js';
import { canAsk, confirm } from '../terminal/ask.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { refuseUnusableAgent } from '../services/known-agent.js';
import { findConversation, findRunning } from '../args/find-conversation.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { turnName } from '../args/values.js';
import { formatQuantity, formatCount } from '../views/quantities.js';
import { startBudget, type BudgetWanted } from './new.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';

export interface LifeOptions extends BudgetWanted {
  readonly title?: string;
  readonly agent?: string;
  readonly scope?: string;
}

export interface ForkOptions extends LifeOptions {
  readonly at: string;
  readonly id?: string;
}

export function fork(
  context: CliContext,
  given: string,
  { at: turn, id: wanted, budget, budgetTokens, ...more }: ForkOptions,
): Promise<number> {
  const at = turnName(turn);
  if (wanted !== undefined && !ID_PATTERN.test(wanted)) {
    throw new CliError(`${JSON.stringify(wanted)} cannot be an id: up to 64 letters, digits, - and _`, EXIT.usage);
  }
  return withClient(context, { needsWorker: true }, async (desk) => {
    await refuseUnusableAgent(desk.config, more.agent);
    const from = await findRemembered(desk, given);
    const tenant = await desk.client.key(from).then(
      ({ scope }) => readTenant(scope),
      () => partsOfName(given)?.tenant,
    );
    const { id, publicId } = await newName(desk.config, tenant, wanted);
    const begun = await desk.withSlowNotice(
      `forking ${from} at ${at}`,
      desk.client.fork(from, { at, id, tenant, publicId, ...more, ...startBudget({ budget, budgetTokens }) }),
    );
    return reportBegun(desk, begun, `begins with ${turnsOf(begun)} of ${from}, up to ${begun.turn}; ${from} goes on as before`);
  });
}

export function resume(context: CliContext, given: string, { budget, budgetTokens, ...more }: LifeOptions): Promise<number> {
  return withClient(context, { needsWorker: true }, async (desk) => {
    await refuseUnusableAgent(desk.config, more.agent);
    const id = await findRemembered(desk, given);
    const begun = await desk.withSlowNotice(
      `going on from the end of ${id}`,
      desk.client.resume(id, { ...partsOfName(given), ...more, ...startBudget({ budget, budgetTokens }) }),
    );
    return reportBegun(desk, begun, `goes on after ${begun.turn} with its ${turnsOf(begun)}`);
  });
}

export function rewind(context: CliContext, given: string, { to: turn }: { readonly to: string }): Promise<number> {
  const to = turnName(turn);
  return withClient(context, { needsWorker: true, whenInterrupted: 'stopped waiting; it is rewound all the same' }, async (desk) => {
    const id = await findRunning(desk, given);
    const done = await desk.withSlowNotice(`rewinding ${id} to ${to}`, desk.client.rewind(id, to));
    const words = ['workflow', 'update', 'execute', '--name', 'rewind', '-w', id, '--input', JSON.stringify({ to })];
    const { branch, cut } = done;
    const kept =
      branch === null || cut === 0
        ? []
        : [`they are kept: \`perdura show ${id} --branch ${branch}\`, and \`perdura fork ${id} --at\` one of them`];
    const said =
      cut === 0
        ? `${id} stands at the end of ${to}: nothing was cut`
        : `${id} stands at the end of ${to} again: ${formatCount(cut)} ${cut === 1 ? 'turn is' : 'turns are'} cut`;
    return report(desk, { id, ...done }, [said], [...kept, ...(cut > 0 ? [FACTS_STAY] : [])], words);
  });
}

export function remove(context: CliContext, given: string, { yes }: { readonly yes?: boolean }): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const id = await findRemembered(desk, given);
    if (yes !== true) await confirmDeletion(desk, id);
    const done = await desk.withSlowNotice(`deleting ${id}`, desk.client.deleteConversation(id));
    const { lives, runs, subAgents } = done;
    const withThem = subAgents === 0 ? '' : ` with ${formatQuantity(subAgents, 'sub-agent')}`;
    const said = [
      `${id} is deleted${withThem}: ${formatQuantity(lives, 'life', 'lives')} from the store, ${formatQuantity(runs, 'run')} from Temporal`,
    ];
    return report(desk, { id, ...done }, said, [TEMPORAL_LATER, MEMORY_STAYS, ...keptOf(done)], ['workflow', 'delete', '-w', id]);
  });
}

const FACTS_STAY = 'what long-term memory has learnt from the cut turns stays; `perdura memory forget` removes it';
const TEMPORAL_LATER = 'Temporal removes the histories in the background; a backup or an export of them stays where it is';
const MEMORY_STAYS = 'MEMORY.md, HISTORY and the facts of its scope stay: `perdura memory forget` removes what was said there';

/** What the server keeps, and until when. */
function keptOf({ scopes, retentionDays }: Deleted): string[] {
  if (scopes.length === 0) return [];
  const writers = scopes.map((scope) => `memory:${scope}`).join(', ');
  const until = retentionDays === null ? 'until its retention' : `for ${formatQuantity(retentionDays, 'day')} after each run`;
  return [
    `what ${writers} got from a model about it is in ${scopes.length === 1 ? 'its' : 'their'} own history too, which Temporal keeps ${until}`,
  ];
}

/** What Temporal no longer knows, the store may. */
async function findRemembered(desk: CommandSession, given: string): Promise<string> {
  try {
    return await findConversation(desk, given);
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.notFound) throw error;
    const id = (await namedByTenant(desk.config, given)) ?? given;
    if (!ID_PATTERN.test(id)) throw error;
    return id;
  }
}

async function confirmDeletion({ surroundings }: CommandSession, id: string): Promise<void> {
  if (!canAsk(surroundings)) throw new CliError(`will not delete ${id} unasked: add --yes`, EXIT.usage);
  const message = `Delete ${id} and its sub-agents from the store and from Temporal? It cannot be brought back. (What long-term memory has learnt stays.)`;
  if (!(await confirm(surroundings, message))) throw new CliError(`${id} was left as it is`, EXIT.interrupted);
}

function turnsOf({ turns, inContext }: Begun): string {
  const all = `${formatCount(turns)} ${turns === 1 ? 'turn' : 'turns'}`;
  return inContext === turns ? all : `${all} (${formatCount(inContext)} of them word for word, for the others a summary)`;
}

function reportBegun(desk: CommandSession, begun: Begun, said: string): number {
  const { output, globals, temporal } = desk;
  if (globals.output !== 'text') output.line(toTerminalJson(begun));
  else {
    output.line(begun.id);
    output.say(`${begun.id} ${said}`);
    output.explain(temporalCommand(temporal, ['workflow', 'describe', '-w', begun.id]));
  }
  return EXIT.ok;
}

function report(
  { output, globals, temporal }: CommandSession,
  data: object,
  said: readonly string[],
  notes: readonly string[],
  words: readonly string[],
): number {
  if (globals.output !== 'text') output.line(toTerminalJson(data));
  else {
    for (const line of said) output.say(line);
    for (const note of notes) output.note(note);
    output.explain(temporalCommand(temporal, words));
  }
  return EXIT.ok;
}
