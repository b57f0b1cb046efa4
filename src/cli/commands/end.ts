/** The ways to stop: a turn, a message that waits, a conversation, and all that is stored of one. And its title. */
import { Option } from 'commander';
import type { Deleted } from '../../client.js';
import { findRemembered, findRunning } from '../args/find-conversation.js';
import { CONVERSATION, type Answer, type CommandFrame, type CommandRow, type CommandSession } from '../session/command.js';
import { signalWords, updateWords } from '../session/connect.js';
import { withEndingProgress } from '../session/with-progress.js';
import { canAsk, confirm } from '../terminal/input.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { formatQuantity, formatUsage } from '../views/quantities.js';

interface EndOptions {
  readonly now?: boolean;
  readonly terminate?: boolean;
  readonly wait?: boolean;
  /** False: nothing of it is consolidated. */
  readonly memory: boolean;
  readonly reason?: string;
  readonly yes?: boolean;
}

export const END: readonly CommandRow[] = [
  {
    name: 'stop',
    description: 'stop the running turn, or take back a message that waits; the conversation goes on',
    args: [CONVERSATION],
    options: [
      new Option('--message <id>', 'this message instead, as `perdura send --signal` or `--enqueue` printed it').conflicts('reason'),
      ['--reason <text>', 'why, for its history'],
    ],
    async run(frame, given: string, { message, reason }: { readonly message?: string; readonly reason?: string }): Promise<Answer> {
      const session = await frame.open({ needsWorker: message !== undefined });
      const id = await findRunning(session, given);
      if (message !== undefined) return withdraw(session, id, message);
      await session.withSlowNotice(`stopping the turn of ${id}`, session.client.interrupt(id, reason));
      return {
        data: { id, stopped: true },
        say: `${id} stops its turn; the conversation goes on`,
        temporal: signalWords('interrupt', id),
      };
    },
  },
  {
    name: 'end',
    description: 'end a conversation after what waits in its queue; --now: without it',
    args: [CONVERSATION],
    options: [
      new Option('--now', 'without what waits in its queue').conflicts(['wait', 'terminate']),
      new Option('--terminate', 'the workflow at once, without cleanup: for one that no worker can end').conflicts('wait'),
      ['--wait', 'until it has ended'],
      ['--no-memory', 'nothing of it goes to long-term memory, and nothing is waited for there'],
      ['--reason <text>', 'of --terminate: why, for its history'],
      ['-y, --yes', 'of --terminate: do not ask'],
    ],
    run(frame, given: string, options: EndOptions): Promise<Answer> {
      if (options.terminate === true) return terminate(frame, given, options);
      return options.now === true ? cancel(frame, given) : close(frame, given, options);
    },
  },
  {
    name: 'delete',
    description: 'remove a conversation that has ended, from the store and from Temporal',
    args: [CONVERSATION],
    options: [['-y, --yes', 'do not ask']],
    help: `All lives of it and of its sub-agents go: messages, traces, summaries and long texts, what HISTORY has of it word for word, and its
runs in Temporal. It cannot be resumed, forked or healed afterwards, and memory drops what it has not consolidated of it yet. What its
scope has learnt from it stays (perdura memory forget). One that runs is not deleted, nor one whose turns a fork reads: delete the fork
first. If it is cut short, run it again: it does the rest.`,
    async run(frame, given: string, { yes }: { readonly yes?: boolean }): Promise<Answer> {
      const session = await frame.open();
      const id = await findRemembered(session, given);
      const question = `Delete ${id} and its sub-agents from the store and from Temporal? It cannot be brought back. (What long-term memory has learnt stays.)`;
      if (yes !== true) await confirmEnd(session, id, question, `will not delete ${id} unasked: add --yes`);
      const deleted = await session.withSlowNotice(`deleting ${id}`, session.client.deleteConversation(id));
      const { lives, runs, subAgents } = deleted;
      const withThem = subAgents === 0 ? '' : ` with ${formatQuantity(subAgents, 'sub-agent')}`;
      return {
        data: { id, ...deleted },
        say: `${id} is deleted${withThem}: ${formatQuantity(lives, 'life', 'lives')} from the store, ${formatQuantity(runs, 'run')} from Temporal`,
        notes: [
          'Temporal removes the histories in the background; a backup or an export of them stays where it is',
          'MEMORY.md, HISTORY and the facts of its scope stay: `perdura memory forget` removes what they have of it',
          ...describeRemains(deleted),
        ],
        temporal: ['workflow', 'delete', '-w', id],
      };
    },
  },
  {
    name: 'rename',
    description: 'give a conversation another title',
    args: [CONVERSATION, ['<title>', 'what lists call it']],
    async run(frame, given: string, title: string): Promise<Answer> {
      if (title.trim() === '') throw new CliError(`cannot rename ${given}: the title is empty`, EXIT.usage);
      const session = await frame.open();
      const id = await findRunning(session, given);
      await session.withSlowNotice(`renaming ${id}`, session.client.rename(id, title));
      return { data: { id, title }, say: `${id} is now ${title}`, temporal: signalWords('rename', id, { title }) };
    },
  },
];

async function withdraw({ client, withSlowNotice }: CommandSession, id: string, messageId: string): Promise<Answer> {
  const outcome = await withSlowNotice(`asking ${id}`, client.withdraw(id, messageId));
  const temporal = updateWords('withdraw', id, { messageId });
  if (outcome.withdrawn)
    return { data: { id, ...outcome }, say: `message ${messageId} is taken back: no turn has seen it, and none will`, temporal };
  const problems = [`not withdrawn: ${outcome.reason ?? 'no reason was given'}`];
  return { data: { id, ...outcome }, problems, temporal, exitCode: EXIT.failed };
}

async function close(frame: CommandFrame, given: string, { wait, memory }: EndOptions): Promise<Answer> {
  const session = await frame.open({ needsWorker: true, whenInterrupted: 'stopped waiting; the conversation ends all the same' });
  const { client, withSlowNotice, signal } = session;
  const id = await findRunning(session, given);
  await withSlowNotice(`ending ${id}`, client.closeConversation(id, { memory }));
  const temporal = signalWords('close', id, memory ? undefined : { memory });
  if (wait !== true) return { data: { id, closing: true }, say: `${id} takes no new messages, and ends after its queue`, temporal };
  const { scope } = await client.describe(id);
  const ended = withEndingProgress({ ...session, id, scope }, client.outcome(id, { signal }));
  const outcome = await withSlowNotice(`waiting for the end of ${id}`, ended);
  return {
    data: { id, outcome },
    say: `${id} has ended after ${formatQuantity(outcome.turns, 'turn')}: ${formatUsage(outcome.usage)}`,
    temporal,
  };
}

async function cancel(frame: CommandFrame, given: string): Promise<Answer> {
  const session = await frame.open();
  const id = await findRunning(session, given);
  await session.withSlowNotice(`ending ${id}`, session.client.cancel(id));
  return {
    data: { id, canceled: true },
    say: `${id} ends now, without what waits in its queue`,
    temporal: ['workflow', 'cancel', '-w', id],
  };
}

async function terminate(frame: CommandFrame, given: string, { reason, yes }: EndOptions): Promise<Answer> {
  const session = await frame.open();
  const id = await findRunning(session, given);
  const refusal = `will not terminate ${id} unasked: add --yes, or let it end in good order with \`perdura end ${id}\``;
  const question = `Terminate ${id}? It cannot go on afterwards. (\`perdura end\` without --terminate ends it in good order.)`;
  if (yes !== true) await confirmEnd(session, id, question, refusal);
  await session.withSlowNotice(`terminating ${id}`, session.client.terminate(id, reason));
  return {
    data: { id, terminated: true },
    say: `${id} is terminated: what was recorded stays, nothing of it runs any more`,
    temporal: ['workflow', 'terminate', '-w', id, ...(reason === undefined ? [] : ['--reason', reason])],
  };
}

async function confirmEnd({ surroundings }: CommandSession, id: string, question: string, refusal: string): Promise<void> {
  if (!canAsk(surroundings)) throw new CliError(refusal, EXIT.usage);
  if (!(await confirm(surroundings, question))) throw new CliError(`${id} was left as it is`, EXIT.interrupted);
}

/** What the server does not delete, and until when it has it. */
function describeRemains({ scopes, retentionDays }: Deleted): string[] {
  if (scopes.length === 0) return [];
  const writers = scopes.map((scope) => `memory:${scope}`).join(', ');
  const until = retentionDays === null ? 'until its retention' : `for ${formatQuantity(retentionDays, 'day')} after each run`;
  return [
    `what ${writers} got from a model about it is in ${scopes.length === 1 ? 'its' : 'their'} history too, which Temporal keeps ${until}`,
  ];
}
