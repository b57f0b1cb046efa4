/** What people decide: calls that wait for them, questions of agents, and what a conversation may cost and is answered by. */
import { Option } from 'commander';
import type { AllPending, Pending } from '../../client.js';
import type { Status } from '../../conversation/protocol/contract.js';
import type { Decision } from '../../conversation/protocol/human-input.js';
import type { Budget } from '../../records/identity.js';
import type { JsonObject } from '../../records/message.js';
import { CALL_PATTERN, findRunning, pickApproval, type Verb } from '../args/find-conversation.js';
import { parseAmount, parseTokens, readModelName, readJsonObject, readText } from '../args/values.js';
import { CONVERSATION, type Answer, type CommandRow, type CommandSession } from '../session/command.js';
import { queryWords, signalWords, updateWords } from '../session/connect.js';
import { canAsk, confirm } from '../terminal/input.js';
import { CliError, EXIT } from '../terminal/exit.js';
import {
  renderApproval,
  renderApprovals,
  renderQuestion,
  renderStanding,
  shownArguments,
  shownName,
  standingRefusal,
} from '../views/approvals.js';
import { describeBudget, describeModel, describeUse } from '../views/quantities.js';

/** How far a call is allowed for good. */
type Reach = 'conversation' | 'agent';

interface ApproveOptions {
  readonly note?: string;
  readonly input?: string;
  readonly always?: Reach;
  readonly yes?: boolean;
}

interface BudgetOptions {
  readonly maxCost?: number;
  readonly maxTokens?: number;
  readonly none?: boolean;
}

const CALL = ['[call]', 'which call, as `perdura approvals` shows it; may be left out when only one waits'] as const;

export const DECIDE: readonly CommandRow[] = [
  {
    name: 'approvals',
    description: 'list what waits for a person: approvals and questions, those of sub-agents too',
    args: [['[id]', 'only of this conversation, or the beginning of its id; shown whole']],
    options: [['--full', 'with all of their arguments, and how to decide']],
    async run(frame, given: string | undefined, { full }: { readonly full?: boolean }): Promise<Answer> {
      const session = await frame.open();
      const id = given === undefined ? undefined : await findRunning(session, given);
      const { approvals, silent, more } = await session.withSlowNotice('asking what waits', findPending(session, id));
      const isWhole = full === true || id !== undefined;
      return {
        data: approvals,
        draw: (look) => (isWhole ? approvals.flatMap((one) => renderApproval(one, look)) : renderApprovals(approvals, look)),
        notes: [
          ...(approvals.length === 0 ? [`nothing waits for a person${id === undefined ? '' : ` in ${id}`}`] : []),
          ...(approvals.length > 0 && !isWhole
            ? ['`perdura approvals --full` shows all of their arguments, `perdura approve ID` decides']
            : []),
        ],
        problems: [
          ...silent.map((one) => `${one.id} does not answer: ${one.reason}`),
          ...(more ? ['more conversations run than were asked; name one to look there'] : []),
        ],
        temporal: id === undefined ? ['workflow', 'list', '-q', `AgentStatus = 'waiting'`] : queryWords('approvals', id),
      };
    },
  },
  {
    name: 'approve',
    description: 'approve a call, which then runs',
    args: [CONVERSATION, CALL],
    options: [
      ['--note <text>', 'for the model, which reads it with the result'],
      ['--input <json>', "other arguments in place of the model's: JSON, @FILE or - for stdin"],
      new Option('--always [where]', 'let this very call run without asking from now on: in this conversation, or wherever its agent works')
        .choices(['conversation', 'agent'])
        .preset('conversation'),
      ['--yes', 'save what --always shows without being asked'],
    ],
    async run(frame, given: string, call: string | undefined, { note, input, always, yes = false }: ApproveOptions): Promise<Answer> {
      if (always !== undefined && input !== undefined)
        throw new CliError('--always is for the arguments that the model wrote; leave out --input', EXIT.usage);
      const edited = input === undefined ? {} : { input: await readJsonObject(frame.surroundings, '--input', input) };
      const word = { decision: 'approve', ...(note !== undefined && { note }), ...edited } as const;
      return decide(await frame.open({ needsWorker: true }), 'approve', given, call, word, always && { reach: always, yes });
    },
  },
  {
    name: 'deny',
    description: 'deny a call, or leave a question without an answer',
    args: [CONVERSATION, CALL],
    options: [['--note <text>', 'why, for the model, which reads it in place of a result']],
    async run(frame, given: string, call: string | undefined, { note }: { readonly note?: string }): Promise<Answer> {
      const word = { decision: 'deny', ...(note !== undefined && { note }) } as const;
      return decide(await frame.open({ needsWorker: true }), 'deny', given, call, word);
    },
  },
  {
    name: 'answer',
    description: 'answer a question of the agent',
    args: [CONVERSATION, ['<words...>', 'the answer, or - for stdin; which call, such as turn_0001/c1, may stand before it']],
    async run(frame, given: string, words: readonly string[]): Promise<Answer> {
      const [first = '', ...rest] = words;
      const isCall = CALL_PATTERN.test(first);
      const typed = (isCall ? rest : words).join(' ');
      const text = typed === '-' ? (await readText(frame.surroundings, typed)).trimEnd() : typed;
      if (text.trim() === '') throw new CliError(`cannot answer ${given}: the answer is empty`, EXIT.usage);
      const session = await frame.open({ needsWorker: true });
      return decide(session, 'answer', given, isCall ? first : undefined, { decision: 'approve', note: text });
    },
  },
  {
    name: 'budget',
    description: 'show or set what a conversation may use in all, sub-agents included',
    args: [CONVERSATION],
    options: [
      ['--max-cost <usd>', 'at most so many US dollars', parseAmount],
      ['--max-tokens <count>', 'at most so many tokens, of prompts and answers together', parseTokens],
      ['--none', 'no limit any more'],
    ],
    async run(frame, given: string, { maxCost, maxTokens, none = false }: BudgetOptions): Promise<Answer> {
      const isNamed = maxCost !== undefined || maxTokens !== undefined;
      if (none && isNamed) throw new CliError('--none takes every limit away: leave out --max-cost and --max-tokens', EXIT.usage);
      const session = await frame.open({ needsWorker: true });
      const { client, withSlowNotice } = session;
      const id = await findRunning(session, given);
      const before: Status = await withSlowNotice(`asking ${id}`, client.status(id));
      // The limit that was not named stays.
      const more = { ...(maxCost !== undefined && { maxCostUsd: maxCost }), ...(maxTokens !== undefined && { maxTokens }) };
      const limits: Budget = none ? {} : { ...before.budget, ...more };
      const isChanged = none || isNamed;
      if (isChanged) await withSlowNotice(`asking ${id}`, client.raiseBudget(id, limits));
      session.signal.throwIfAborted();
      const { budget, usage } = isChanged ? await client.status(id) : before;
      return {
        data: { id, budget, usage },
        text: `${describeBudget(budget)}; ${describeUse({ usage })}`,
        temporal: isChanged ? updateWords('raiseBudget', id, limits) : queryWords('status', id),
      };
    },
  },
  {
    name: 'model',
    description: 'show or change the model that answers in a conversation',
    args: [CONVERSATION, ['[model]', 'provider/name, or "default" for the one of its agent']],
    help: `It answers from the next call on, with its limits and price; a call that runs goes on with the old one. Sub-agents keep theirs. Where
the worker has no such provider, the next turn fails and names those that there are; the conversation stays as it is.`,
    async run(frame, given: string, name: string | undefined): Promise<Answer> {
      const wanted = name === undefined || name === 'default' ? null : readModelName(name);
      const session = await frame.open({ needsWorker: true });
      const id = await findRunning(session, given);
      if (name !== undefined) await session.withSlowNotice(`asking ${id}`, session.client.setModel(id, wanted));
      const status = await session.withSlowNotice(`asking ${id}`, session.client.status(id));
      const { model, chosenModel = null } = status;
      return {
        data: { id, model, chosenModel },
        text: describeModel(status),
        temporal: name === undefined ? queryWords('status', id) : updateWords('setModel', id, { model: chosenModel }),
      };
    },
  },
];

async function findPending({ client }: CommandSession, id: string | undefined): Promise<AllPending> {
  return id === undefined ? client.allApprovals() : { approvals: await client.approvals(id), silent: [], more: false };
}

/** It counts for the arguments that stood there when we looked, and for no others. */
async function decide(
  session: CommandSession,
  verb: Verb,
  given: string,
  call: string | undefined,
  word: Omit<Decision, 'callId'>,
  always?: { readonly reach: Reach; readonly yes: boolean },
): Promise<Answer> {
  const id = await findRunning(session, given);
  if (call !== undefined && !CALL_PATTERN.test(call)) {
    throw new CliError(
      `${JSON.stringify(call)} is not a call: write it as \`perdura approvals\` shows it, such as turn_0001/c1`,
      EXIT.usage,
    );
  }
  const waiting = await session.withSlowNotice(`asking what waits in ${id}`, session.client.approvals(id));
  const chosen = pickApproval(waiting, call, verb, id);
  const { callId, conversation, hash, kind, tool } = chosen;
  if (always) await allowForGood(session, chosen, always);
  const where = conversation === id ? {} : { conversation };
  const decision: Decision = { ...word, ...(always && { always: true }), callId, hash, ...where };
  await session.withSlowNotice(`asking ${id}`, session.client.decide(id, decision));
  const { input, note } = decision;
  const what = { approve: 'is allowed', deny: kind !== 'approval' ? 'gets no answer' : 'is not run', answer: 'is answered' }[verb];
  const shown = input === undefined ? renderQuestion(chosen) : shownArguments(input, 2).split('\n');
  return {
    data: { ...chosen, decision: verb, ...(note !== undefined && { note }), ...(input !== undefined && { input }) },
    say: `${callId} of ${conversation} ${what}: ${kind === 'question' ? 'the question' : shownName(tool)}`,
    notes: shown.map((line) => `  ${line}`),
    temporal: signalWords('decide', id, decision),
  };
}

/** Shown before it is saved. Of the agent too it counts in this conversation at once: a running turn goes by the rules of its beginning. */
async function allowForGood(
  { output, client, config, surroundings, withSlowNotice }: CommandSession,
  chosen: Pending,
  { reach, yes }: { readonly reach: Reach; readonly yes: boolean },
): Promise<void> {
  const { conversation, tool, arguments: given } = chosen;
  const refusal = standingRefusal(chosen);
  if (refusal !== undefined) throw new CliError(refusal, EXIT.usage);
  const agent = reach === 'agent' ? (await withSlowNotice(`asking ${conversation}`, client.status(conversation))).agent : undefined;
  const where = agent === undefined ? `in ${conversation}, until /new` : `wherever agent ${agent} works (its agent.json)`;
  for (const line of renderStanding(chosen, where)) output.note(line);
  if (!yes) {
    if (!canAsk(surroundings)) throw new CliError('no person can be asked here; --yes saves what is shown', EXIT.usage);
    if (!(await confirm(surroundings, 'Save this, and let the call run?')))
      throw new CliError('nothing was saved; the call still waits', EXIT.failed);
  }
  if (agent !== undefined) {
    const { allowInAgent } = await import('../trust/agent-trust.js');
    output.note(`written into ${await allowInAgent(config, agent, { tool, exactly: given as JsonObject, policy: 'allow' })}`);
  }
}
