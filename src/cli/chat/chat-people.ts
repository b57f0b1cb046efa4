/**
 * What waits for the person, in the chat: shown where it came up, and decided on the line below.
 *
 * 1. What waits is shown once, whole, before it can be answered; what has not been shown cannot be decided here.
 * 2. A decision names the hash of the arguments that were shown: it counts for these alone.
 * 3. A rule that allows for good is shown as it would be saved, and the next line says whether it is.
 * 4. A line is the answer to a question only when a question is the oldest that waits and the line says so.
 */
import type { Pending } from '../../client.js';
import type { JsonObject } from '../../records/message.js';
import type { Decision } from '../../conversation/protocol/human-input.js';
import type { ChatSession } from './chat-session.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { CALL_PATTERN, pickApproval, type Verb } from '../args/find-conversation.js';
import { toTerminalLine } from '../terminal/terminal-text.js';
import { renderQuestion, questionIn, shownName, renderStanding, standingRefusal } from '../views/approvals.js';
import { formatTime } from '../views/quantities.js';

export interface ChatPeople {
  /** Looks at what waits, and shows what was not shown yet. */
  look(): Promise<void>;
  /** The call no longer counts as waiting here. */
  forget(callId: string): void;
  /** The question that a line of text answers; undefined while the oldest that waits is something else. */
  question(): Pending | undefined;
  /** How many that were shown wait. */
  count(): number;
  /** `/approve [CALL] [note]` and `/deny [CALL] [note]`. Answers what is shown for it. */
  decide(verb: 'approve' | 'deny', argument: string): Promise<string>;
  answer(question: Pending, text: string): Promise<string>;
  /** `/always [CALL]`: shows what would be saved; the next line says yes to it. */
  offerAlways(argument: string): Promise<void>;
  /** What a line that is no command means to what was offered, or `a` to the call that waits; undefined where it means nothing to them. */
  take(text: string): Promise<string> | undefined;
  /** `/approvals`: shows all that wait, again. */
  showAll(): Promise<void>;
}

export function createChatPeople({ client, id, output, config }: Pick<ChatSession, 'client' | 'id' | 'output' | 'config'>): ChatPeople {
  let shown: readonly Pending[] = [];
  let looking: Promise<void> | undefined;
  let offered: Pending | undefined;

  const show = (one: Pending): void => {
    const [head, ...rest] = card(one, id);
    output.say(`\n${head ?? ''}`);
    for (const line of rest) output.say(line);
  };

  const lookOnce = async (): Promise<void> => {
    const waiting = await client.approvals(id);
    const fresh = waiting.filter((one) => !shown.some((known) => isSame(known, one)));
    shown = waiting;
    fresh.forEach(show);
  };
  /** One at a time, so that nothing is shown twice. */
  const look = (): Promise<void> => (looking ??= lookOnce().finally(() => (looking = undefined)));

  const submit = async (one: Pending, verb: Verb, note: string, always = false): Promise<string> => {
    const { callId, conversation, hash, tool, kind } = one;
    const decision: Decision = {
      callId,
      hash,
      decision: verb === 'deny' ? 'deny' : 'approve',
      ...(conversation === id ? {} : { conversation }),
      ...(note === '' ? {} : { note }),
      ...(always && { always }),
    };
    shown = shown.filter((other) => !isSame(other, one));
    try {
      await client.decide(id, decision);
    } catch (error) {
      await look().catch(() => undefined);
      throw error;
    }
    if (kind === 'question' && verb === 'deny') return '(no answer: the agent goes on without)';
    // What was decided here the feed tells; that of its sub-agents it does not have.
    if (conversation === id && !always) return '';
    if (verb === 'answer') return '(answered)';
    if (always) return `(allowed, now and from now on: ${shownName(tool)})`;
    return verb === 'approve' ? `(allowed: ${shownName(tool)})` : `(not run: ${shownName(tool)})`;
  };

  const picked = (argument: string): Pending | undefined => {
    const waiting = shown.filter(({ kind }) => kind === 'approval');
    return argument === '' ? waiting[0] : pickApproval(shown, argument, 'approve', id);
  };
  const offer = (one: Pending): void => {
    const refusal = standingRefusal(one);
    if (refusal !== undefined) throw new CliError(refusal, EXIT.usage);
    for (const line of renderStanding(one, 'in this conversation, until /new')) output.say(line);
    output.say('  y saves it; agent saves it for all conversations of this agent, in its agent.json; any other line saves nothing');
    offered = one;
  };
  const saveForAgent = async ({ conversation, tool, arguments: given }: Pending): Promise<void> => {
    const { agent } = await client.status(conversation);
    const { allowInAgent } = await import('../trust/agent-trust.js');
    const file = await allowInAgent(config, agent, { tool, exactly: given as JsonObject, policy: 'allow' });
    output.note(`(written into ${file})`);
  };
  const answerOffer = async (one: Pending, text: string): Promise<string> => {
    const word = text.trim().toLowerCase();
    if (word === 'agent') await saveForAgent(one);
    else if (word !== 'y' && word !== 'yes') return '(nothing was saved; the call still waits)';
    return submit(one, 'approve', '', true);
  };

  return {
    look,
    async offerAlways(argument) {
      if (shown.length === 0) await look();
      const one = picked(argument);
      if (one === undefined) throw new CliError('no call waits for you', EXIT.notFound);
      offer(one);
    },
    take(text) {
      const one = offered;
      offered = undefined;
      if (one !== undefined) return answerOffer(one, text);
      if (text.trim() !== 'a' || shown[0]?.kind !== 'approval') return undefined;
      const [first] = shown;
      return Promise.resolve().then(() => (offer(first), ''));
    },
    forget(callId) {
      shown = shown.filter((one) => one.callId !== callId || one.conversation !== id);
    },
    question: () => (shown[0]?.kind === 'question' ? shown[0] : undefined),
    count: () => shown.length,
    async decide(verb, argument) {
      const [first = '', ...rest] = argument.split(/[ \t]+/);
      const isCall = CALL_PATTERN.test(first);
      const note = isCall ? rest.join(' ') : argument;
      if (shown.length === 0) await look();
      if (shown.length === 0) throw new CliError('nothing waits for you', EXIT.notFound);
      const fitting = shown.filter(({ kind }) => verb === 'deny' || kind === 'approval');
      // The oldest is the one that a person has before their eyes.
      const one = isCall || fitting[0] === undefined ? pickApproval(shown, isCall ? first : undefined, verb, id) : fitting[0];
      return submit(one, verb, note);
    },
    answer: (question, text) => submit(question, 'answer', text),
    async showAll() {
      const before = shown;
      await look();
      if (shown.length === 0) output.note('(nothing waits for you)');
      for (const one of shown) if (before.some((known) => isSame(known, one))) show(one);
    },
  };
}

function isSame(one: Pending, other: Pending): boolean {
  return one.callId === other.callId && one.conversation === other.conversation && one.askedAt === other.askedAt;
}

function hasOptions({ arguments: given }: Pending): boolean {
  return given !== undefined && (questionIn(given)?.options.length ?? 0) > 0;
}

/** Beneath the answer so far. */
function card(one: Pending, id: string): string[] {
  const { kind, tool, callId, conversation, why, expiresAt } = one;
  const whose = conversation === id ? '' : `sub-agent ${conversation} · `;
  const heads = {
    question: 'a question for you',
    approval: `Allow ${shownName(tool)}?`,
    'client-tool': `${shownName(tool)} waits for its client`,
  };
  const head = `? ${whose}${heads[kind]}`;
  const short = callId.replace(/^.*\//, '');
  const how =
    kind === 'question'
      ? `write the answer${hasOptions(one) ? ', or the number or the beginning of one,' : ''} on the line below, or /deny`
      : kind === 'client-tool'
        ? `perdura answer ${conversation} ${short} answers in its place, /deny ${short} goes on without`
        : `/approve ${short} [note] or /deny ${short} [note]${one.mayAlways ? ', or a to allow it from now on' : ''}; other lines wait until then`;
  return [
    head,
    ...renderQuestion(one).map((line) => `    ${line}`),
    ...(why === undefined ? [] : [`  why: ${toTerminalLine(why, 500)}`]),
    `  ${how} · expires ${formatTime(expiresAt, 'relative', Date.now())}`,
  ];
}
