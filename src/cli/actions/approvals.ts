/** `perdura approvals`: what waits for a person, in one conversation or in all. */
import type { AllPending, Pending } from '../../client.js';
import type { CliContext } from '../session/context.js';
import { EXIT, CliError } from '../terminal/exit.js';
import { findRunning, CALL_PATTERN, pickApproval, type Verb } from '../args/find-conversation.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import {
  renderApproval,
  renderApprovals,
  askedLines,
  shownArguments,
  shownName,
  standingLines,
  standingRefusal,
} from '../views/approvals.js';
import { loadMeasure } from '../views/table.js';
import { printFound } from '../session/print-found.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';
import type { Decision } from '../../conversation/protocol/human-input.js';
import { readJsonObject, readText } from '../args/values.js';
import type { JsonObject } from '../../records/message.js';
import { canAsk, confirm } from '../terminal/ask.js';

export interface ApprovalsOptions {
  readonly full?: boolean;
}

export function approvals(context: CliContext, given: string | undefined, { full }: ApprovalsOptions): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const { output, globals, temporal } = desk;
    const id = given === undefined ? undefined : await findRunning(desk, given);
    const found = await desk.withSlowNotice('asking what waits', lookFor(desk, id));
    for (const { id: silent, reason } of found.silent) output.problem(`${silent} does not answer: ${reason}`);
    if (found.more) output.problem('more conversations run than were asked; name one to look there');
    await printFound(output, globals.output, {
      whole: found.approvals,
      rows: found.approvals,
      draw: async () => {
        const look = { width: output.width(), timeFormat: globals.timeFormat, now: Date.now(), measure: await loadMeasure() };
        if (found.approvals.length === 0) output.note(`nothing waits for a person${id === undefined ? '' : ` in ${id}`}`);
        else if (full === true || id !== undefined) {
          for (const one of found.approvals) for (const line of renderApproval(one, look)) output.draw(line);
        } else {
          for (const line of renderApprovals(found.approvals, look)) output.draw(line);
          output.note('`perdura approvals --full` shows all of their arguments, `perdura approve ID` decides');
        }
        output.explain(
          id === undefined
            ? temporalCommand(temporal, ['workflow', 'list', '-q', `AgentStatus = 'waiting'`])
            : temporalCommand(temporal, ['workflow', 'query', '--name', 'approvals', '-w', id]),
        );
      },
    });
    return EXIT.ok;
  });
}

async function lookFor({ client }: CommandSession, id: string | undefined): Promise<AllPending> {
  return id === undefined ? client.allApprovals() : { approvals: await client.approvals(id), silent: [], more: false };
}

/** `perdura approve`, `deny` and `answer`: a person's word on what waits for it. */
export interface ApproveOptions {
  readonly note?: string;
  readonly input?: string;
  readonly always?: Reach;
  readonly yes?: boolean;
}

/** How far a call is allowed for good. */
export type Reach = 'conversation' | 'agent';

export async function approve(context: CliContext, given: string, call: string | undefined, options: ApproveOptions): Promise<number> {
  const { note, input, always, yes = false } = options;
  if (always !== undefined && input !== undefined)
    throw new CliError('--always is for the arguments as they were asked; leave out --input', EXIT.usage);
  const edited = input === undefined ? {} : { input: await readJsonObject(context.surroundings, '--input', input) };
  const asked: Asked = { given, call, verb: 'approve', ...(always && { always: { reach: always, yes } }) };
  return decide(context, asked, { decision: 'approve', ...(note === undefined ? {} : { note }), ...edited });
}

export function deny(context: CliContext, given: string, call: string | undefined, { note }: { readonly note?: string }): Promise<number> {
  return decide(context, { given, call, verb: 'deny' }, { decision: 'deny', ...(note === undefined ? {} : { note }) });
}

/** `words` may begin with the call. */
export async function answer(context: CliContext, given: string, words: readonly string[]): Promise<number> {
  const [first = '', ...rest] = words;
  const isCall = CALL_PATTERN.test(first);
  const said = (isCall ? rest : words).join(' ');
  const text = said === '-' ? (await readText(context.surroundings, said)).trimEnd() : said;
  if (text.trim() === '') throw new CliError(`cannot answer ${given}: the answer is empty`, EXIT.usage);
  return decide(context, { given, call: isCall ? first : undefined, verb: 'answer' }, { decision: 'approve', note: text });
}

interface Asked {
  readonly given: string;
  readonly call: string | undefined;
  readonly verb: Verb;
  readonly always?: { readonly reach: Reach; readonly yes: boolean };
}

/** It counts for the arguments that stood there when we looked, and for no others. */
function decide(context: CliContext, { given, call, verb, always }: Asked, word: Omit<Decision, 'callId'>): Promise<number> {
  return withClient(context, { needsWorker: true }, async (desk) => {
    const id = await findRunning(desk, given);
    if (call !== undefined && !CALL_PATTERN.test(call)) {
      throw new CliError(
        `${JSON.stringify(call)} is not a call: write it as \`perdura approvals\` shows it, such as turn_0001/c1`,
        EXIT.usage,
      );
    }
    const waiting = await desk.withSlowNotice(`asking what waits in ${id}`, desk.client.approvals(id));
    const asked = pickApproval(waiting, call, verb, id);
    const { callId, conversation, hash } = asked;
    if (always) await allowForGood(desk, asked, always);
    const decision: Decision = {
      ...word,
      ...(always && { always: true }),
      callId,
      hash,
      ...(conversation === id ? {} : { conversation }),
    };
    await desk.withSlowNotice(`asking ${id}`, desk.client.decide(id, decision));
    return done(desk, id, asked, decision, verb);
  });
}

/** Shown before it is saved. Of the agent too it counts in this conversation at once: a running turn goes by the rules of its beginning. */
async function allowForGood(desk: CommandSession, asked: Pending, { reach, yes }: NonNullable<Asked['always']>): Promise<void> {
  const { output, client, config, surroundings } = desk;
  const { conversation, tool, arguments: given } = asked;
  const refusal = standingRefusal(asked);
  if (refusal !== undefined) throw new CliError(refusal, EXIT.usage);
  const agent = reach === 'agent' ? (await desk.withSlowNotice(`asking ${conversation}`, client.status(conversation))).agent : undefined;
  const where = agent === undefined ? `in ${conversation}, until /new` : `wherever agent ${agent} works (its agent.json)`;
  for (const line of standingLines(asked, where)) output.note(line);
  if (!yes) {
    if (!canAsk(surroundings)) throw new CliError('no person can be asked here; --yes saves what is shown', EXIT.usage);
    if (!(await confirm(surroundings, 'Save this, and let the call run?')))
      throw new CliError('nothing was saved; the call still waits', EXIT.failed);
  }
  if (agent !== undefined) {
    const { allowInAgent } = await import('../trust/agent-rule.js');
    const file = await allowInAgent(config, agent, { tool, exactly: given as JsonObject, policy: 'allow' });
    output.note(`written into ${file}`);
  }
}

function done({ output, globals, temporal }: CommandSession, id: string, asked: Pending, decision: Decision, verb: Verb): number {
  const { callId, conversation, tool, kind } = asked;
  if (globals.output !== 'text') {
    const { input, note } = decision;
    output.line(
      toTerminalJson({ ...asked, decision: verb, ...(note === undefined ? {} : { note }), ...(input === undefined ? {} : { input }) }),
    );
    return EXIT.ok;
  }
  const what = { approve: 'is allowed', deny: kind !== 'approval' ? 'gets no answer' : 'is not run', answer: 'is answered' }[verb];
  output.say(`${callId} of ${conversation} ${what}: ${kind === 'question' ? 'the question' : shownName(tool)}`);
  const shown = decision.input === undefined ? askedLines(asked) : shownArguments(decision.input, 2).split('\n');
  for (const line of shown) output.note(`  ${line}`);
  const input = JSON.stringify(decision);
  output.explain(
    temporalCommand(temporal, ['workflow', 'signal', '--name', 'decide', '-w', id, '--input', input.length > 200 ? '…' : input]),
  );
  return EXIT.ok;
}
