/** Turns answered again, and conversations that branch off, go back and go on. */
import { Option } from 'commander';
import type { AnsweredAgain, Begun } from '../../client.js';
import { ID_PATTERN, type StartOptions } from '../../conversation/protocol/contract.js';
import { readTenant } from '../../records/identity.js';
import { findRemembered, findRunning, newName, splitName } from '../args/find-conversation.js';
import { parseAmount, parseDuration, parseTokens, readText, toTurn } from '../args/values.js';
import { refuseUnusableAgent } from '../services/before-start.js';
import {
  awaitAnswer,
  CONVERSATION,
  type Answer,
  type CommandFrame,
  type CommandRow,
  type CommandSession,
  type OptionRow,
} from '../session/command.js';
import { updateWords } from '../session/connect.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { formatQuantity, describeBranch, formatCount } from '../views/quantities.js';

export interface BudgetWanted {
  /** US dollars. */
  readonly budget?: number;
  readonly budgetTokens?: number;
}

interface LifeOptions extends BudgetWanted {
  readonly title?: string;
  readonly agent?: string;
  readonly scope?: string;
}

interface ForkOptions extends LifeOptions {
  readonly at: string;
  readonly id?: string;
}

interface AgainOptions {
  readonly turn?: string;
  /** Milliseconds. */
  readonly timeout?: number;
}

const TIMEOUT: OptionRow = [
  '--timeout <duration>',
  'wait no longer than 30s, 5m, …; then exit code 124, and it is answered all the same',
  parseDuration,
];

/** Of a conversation that goes on from another life. */
const LIFE: readonly OptionRow[] = [
  ['--title <text>', 'its title (default: as before)'],
  ['--agent <name>', 'who answers in it (default: as before)'],
  ['--scope <name>', 'whose long-term memory it has, where Temporal does not know it any more'],
  ['--budget <usd>', 'what it may cost in all, in US dollars (default: what is left)', parseAmount],
  ['--budget-tokens <count>', 'how many tokens it may use in all (default: what is left)', parseTokens],
];

const AGAIN = `A turn that runs is stopped first. What tools have done is not undone: they may run again. Pictures of the old message stay with it.
\`perdura show ID --branch N\` shows what was there before, and \`perdura fork ID --at\` one of its turns goes on from it.`;

export const LINEAGE: readonly CommandRow[] = [
  {
    name: 'retry',
    description: 'answer the last turn again; the old answer is kept as a branch',
    args: [CONVERSATION],
    options: [TIMEOUT],
    help: AGAIN,
    run: (frame, given: string, options: AgainOptions) =>
      answerAgain(frame, given, options, ({ client }, id, signal) => client.retry(id, { signal })),
  },
  {
    name: 'edit',
    description: 'replace the message of a turn; that turn and all later ones are kept as a branch',
    args: [CONVERSATION, ['<message>', 'the message in its place, or - for stdin']],
    options: [['--turn <turn>', 'its number (default: the last)'], TIMEOUT],
    help: AGAIN,
    async run(frame, given: string, message: string, options: AgainOptions): Promise<Answer> {
      const turn = options.turn === undefined ? undefined : toTurn(options.turn);
      const text = await readText(frame.surroundings, message);
      if (text.trim() === '') throw new CliError(`cannot edit ${turn ?? 'the last turn'} of ${given}: the message is empty`, EXIT.usage);
      return answerAgain(frame, given, options, ({ client }, id, signal) => client.edit(id, text, { turn, signal }));
    },
  },
  {
    name: 'fork',
    description: 'start a conversation that begins with the turns of another one, up to one of them',
    args: [['<id>', 'the conversation, or the beginning of its id: running, ended, or long out of Temporal']],
    options: [
      new Option('--at <turn>', 'the last turn that both share: its number, of a branch too').makeOptionMandatory(),
      ['--id <id>', 'of the new conversation (default: one is made)'],
      ...LIFE,
    ],
    help: `No model is asked and no tool is run again, and nothing is copied: the new conversation reads the old one's turns where they are stored. So the
old conversation cannot be deleted before the new one. Both have the same long-term memory. The old one goes on as if nothing had happened.`,
    async run(frame, given: string, { at: turn, id: wanted, budget, budgetTokens, ...more }: ForkOptions): Promise<Answer> {
      const at = toTurn(turn);
      if (wanted !== undefined && !ID_PATTERN.test(wanted)) {
        throw new CliError(`${JSON.stringify(wanted)} cannot be an id: up to 64 letters, digits, - and _`, EXIT.usage);
      }
      const session = await frame.open({ needsWorker: true });
      await refuseUnusableAgent(session.config, more.agent);
      const from = await findRemembered(session, given);
      const tenant = await session.client.key(from).then(
        ({ scope }) => readTenant(scope),
        () => splitName(given)?.tenant,
      );
      const { id, publicId } = await newName(session.config, tenant, wanted);
      const start = { at, id, tenant, publicId, ...more, ...startBudget({ budget, budgetTokens }) };
      const begun = await session.withSlowNotice(`forking ${from} at ${at}`, session.client.fork(from, start));
      return answerBegun(begun, `begins with ${countTurns(begun)} of ${from}, up to ${begun.turn}; ${from} goes on as before`);
    },
  },
  {
    name: 'rewind',
    description: 'rewind a conversation to the end of an earlier turn',
    args: [CONVERSATION],
    options: [new Option('--to <turn>', 'the last turn that stays: its number').makeOptionMandatory()],
    help: `A turn that runs is stopped first; messages that wait are answered after it. What is cut is kept as a branch (show --branch, fork --at).
What tools have done is not undone, what was paid stays paid, and numbers of turns go on. Facts that long-term memory has learnt stay.`,
    async run(frame, given: string, { to: turn }: { readonly to: string }): Promise<Answer> {
      const to = toTurn(turn);
      const session = await frame.open({ needsWorker: true, whenInterrupted: 'stopped waiting; it is rewound all the same' });
      const id = await findRunning(session, given);
      const rewound = await session.withSlowNotice(`rewinding ${id} to ${to}`, session.client.rewind(id, to));
      const { branch, cut } = rewound;
      const what = cut === 0 ? `: nothing was cut` : ` again: ${formatCount(cut)} ${cut === 1 ? 'turn is' : 'turns are'} cut`;
      return {
        data: { id, ...rewound },
        say: `${id} stands at the end of ${to}${what}`,
        notes: [
          ...(branch === null || cut === 0
            ? []
            : [`they are kept: \`perdura show ${id} --branch ${branch}\`, and \`perdura fork ${id} --at\` one of them`]),
          ...(cut > 0 ? ['what long-term memory has learnt from the cut turns stays; `perdura memory forget` removes it'] : []),
        ],
        temporal: updateWords('rewind', id, { to }),
      };
    },
  },
  {
    name: 'resume',
    description: 'resume a conversation that has ended: closed, terminated or failed',
    args: [CONVERSATION],
    options: LIFE,
    async run(frame, given: string, { budget, budgetTokens, ...more }: LifeOptions): Promise<Answer> {
      const session = await frame.open({ needsWorker: true });
      await refuseUnusableAgent(session.config, more.agent);
      const id = await findRemembered(session, given);
      const start = { ...splitName(given), ...more, ...startBudget({ budget, budgetTokens }) };
      const begun = await session.withSlowNotice(`going on from the end of ${id}`, session.client.resume(id, start));
      return answerBegun(begun, `goes on after ${begun.turn} with its ${countTurns(begun)}`);
    },
  },
];

/** The start option that they mean. */
export function startBudget({ budget, budgetTokens }: BudgetWanted): Pick<StartOptions, 'budget'> {
  if (budget === undefined && budgetTokens === undefined) return {};
  return {
    budget: { ...(budget !== undefined && { maxCostUsd: budget }), ...(budgetTokens !== undefined && { maxTokens: budgetTokens }) },
  };
}

async function answerAgain(
  frame: CommandFrame,
  given: string,
  { timeout }: AgainOptions,
  ask: (session: CommandSession, id: string, signal: AbortSignal) => Promise<AnsweredAgain>,
): Promise<Answer> {
  const session = await frame.open({ needsWorker: true, whenInterrupted: 'stopped waiting; the conversation goes on' });
  const id = await findRunning(session, given);
  const late = `\`perdura show ${id}\` has it once it is there`;
  const answered = await awaitAnswer(session, id, (signal) => ask(session, id, signal), { timeout, late });
  return { ...answered, notes: [describeBranch(id, answered.data)] };
}

function answerBegun(begun: Begun, what: string): Answer {
  return { data: begun, text: begun.id, say: `${begun.id} ${what}`, temporal: ['workflow', 'describe', '-w', begun.id] };
}

function countTurns({ turns, inContext }: Begun): string {
  const all = formatQuantity(turns, 'turn');
  return inContext === turns ? all : `${all} (${formatCount(inContext)} of them word for word, for the others a summary)`;
}
