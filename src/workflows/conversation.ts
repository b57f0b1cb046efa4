/**
 * The workflow `conversation`: a loop that performs steps durably and feeds what came of them back as events. What to do is
 * decided by `nextStep`; this file starts it, waits, and hands over.
 *
 * Handlers check and apply an event, synchronously; the loop does the work. It starts a step and goes on: the state has what is in flight,
 * and `nextStep` looks at it.
 *
 * Why a replay decides alike, in whatever order the results and messages of one activation are applied:
 * - Every job of a workflow task is an event of history (there are no local activities), in one order: signals and updates, then results.
 *   If something could bring some of them earlier, it is refused or done again (early-questions.ts).
 * - Only a task without commands may be joined with the next on replay, and then has that one's time. In such a task nothing has happened,
 *   so the loop sleeps: it looks at the time only after an event of the same activation. It counts the length of history from what the run
 *   has seen and done (measured-history.ts).
 * - Conditions look at the state alone, and only its timer ends a wait for time.
 *
 * @rule workflows/handlers-answered: Before a hand-over every waiting handler has answered, and nothing happens between that and
 *   continue-as-new. (test: test/temporal/hand-over.test.ts)
 * @rule workflows/one-activation-one-task: A workflow task is one activation, live and on replay. (test:
 *   test/determinism/asked-early.test.ts)
 */
import { ApplicationFailure } from '@temporalio/common';
import { apply } from '../conversation/apply.js';
import { CHILD_PATTERN, CONVERSATION_PATTERN } from '../conversation/protocol/limits.js';
import { handedOver } from '../conversation/protocol/state-seal.js';
import { LIMITS, type ConversationOutcome, type StartOptions } from '../conversation/protocol/contract.js';
import { detailsOf } from '../conversation/views/view.js';
import type { ConversationEvent } from '../conversation/event.js';
import { readStart, type ReadStart } from '../conversation/protocol/input.js';
import { scopeAndTenant } from '../records/identity.js';
import { NO_USAGE } from '../records/message.js';
import { nextStep } from '../conversation/next-step.js';
import { handOverReason, LATEST_RULES, nextBuild, openCarried, openStarted, upgradeMoment } from '../conversation/opening.js';
import { createReport } from '../conversation/views/observation.js';
import type { createReducerRegistry } from '../conversation/context/reducers.js';
import type { ConversationState } from '../conversation/state.js';
import { createAnswers, handleMessages } from './handlers.js';
import { arrival, createChangeNotifier } from './requests.js';
import { type Host, refusedSeal } from './host.js';
import { FAILURES, messageSignal } from './messages.js';
import { createPerformer } from './perform.js';

/** The start argument, or what a run hands to the next. */
export type ConversationArgument = StartOptions & { readonly carried?: ConversationState };

export async function converse(
  host: Host,
  argument: ConversationArgument | undefined,
  reduce: ReturnType<typeof createReducerRegistry>,
): Promise<ConversationOutcome> {
  const { start, ...begun } = begin(host, argument);
  if (start?.into !== undefined) return sendInto(host, start.into, start.message);
  let { state } = begun;
  const answers = createAnswers();
  const notifier = createChangeNotifier();
  let handingOver = false;
  const report = createReport(host.observer, state);

  const dispatch = (event: ConversationEvent): void => {
    answers.note(event);
    const before = state;
    state = apply(before, event);
    report(event, before, state);
    notifier.notify();
  };
  let cancelled: Error | undefined;
  // A notifier is deaf to the workflow's cancellation.
  host.onCancelled((error) => {
    cancelled = error;
    notifier.notify();
  });
  host.played?.listen(dispatch);
  remindOfAgent(host, state);
  // Before what came together with the start: that is handed out as soon as handlers are there.
  if (start?.first) dispatch(arrival(start.first, dueId(host) ?? start.first.id ?? host.uuid(), host.now()));
  const updates = handleMessages({ host, state: () => state, dispatch, answers, notifier, isHandingOver: () => handingOver });
  const performer = createPerformer(host, dispatch, updates.resultOf, reduce);
  const settled = (): boolean => host.allHandlersFinished() && performer.hasSent();

  for (;;) {
    const due = handOverReason(state, { ...host.measure(), updates: updates.count() });
    if (due !== undefined) dispatch({ kind: 'hand-over-due', reason: due, at: host.now() });
    const step = nextStep(state);
    const moment = step.kind === 'begin-turn' || step.kind === 'wait' ? upgradeMoment(state, step.kind) : undefined;
    if (moment !== undefined && host.isOtherBuildDue(moment)) {
      dispatch({ kind: 'upgrade-due', at: host.now() });
      continue;
    }
    switch (step.kind) {
      case 'wait': {
        host.setCurrentDetails(detailsOf(state));
        const before = state;
        const changed = (): boolean => state !== before;
        if (step.until === undefined) await notifier.until(() => changed() || cancelled !== undefined);
        else if (!(await host.condition(changed, Math.max(1, step.until - host.now()), { summary: `waiting for ${step.why ?? 'time'}` }))) {
          dispatch({ kind: 'time-passed', at: host.now() });
        }
        if (cancelled !== undefined) throw cancelled;
        break;
      }
      case 'hand-over':
        handingOver = true;
        notifier.notify();
        await host.condition(settled);
        return host.continueAsNew(handedOver({ carried: state }), nextBuild(state));
      case 'refuse':
        handingOver = true;
        notifier.notify();
        await host.condition(settled);
        throw startRefusal(host, step.message);
      case 'finish':
        await host.condition(settled);
        return step.outcome;
      default:
        performer.start(step);
    }
  }
}

interface Begun {
  readonly state: ConversationState;
  /** Of the first run. */
  readonly start?: ReadStart;
}

function begin(host: Host, argument: ConversationArgument | undefined): Begun {
  const info = host.info();
  // A history without a mark goes by the first rules.
  const run = { conversation: info.workflowId, life: info.firstExecutionRunId, rules: pinnedRules(host), at: host.now() };
  // Only an earlier run may carry a state in: a start argument that brings one comes from another sender.
  if (argument?.carried && info.continuedFromExecutionRunId) {
    const unsealed = refusedSeal(host, argument);
    if (unsealed !== undefined)
      throw startRefusal(host, `the run before it handed over a state that no worker of ours has signed (${unsealed}); ${WHAT_TO_DO}`);
    const opened = openCarried(argument.carried, run);
    if (!opened.ok) throw startRefusal(host, `the run before it handed over ${opened.reason}; ${WHAT_TO_DO}`);
    return { state: opened.value };
  }
  if (host.played?.opened) return { state: host.played.opened };
  const start = readStart(argument);
  if (!start.ok) throw startRefusal(host, start.reason);
  const { delegation } = start.value;
  // Who is whose sub-agent, Temporal knows better than an argument.
  if (delegation && info.parent?.workflowId !== delegation.parent.conversation)
    throw startRefusal(host, 'start.delegation is for sub-agents, which a conversation starts');
  const pattern = delegation ? CHILD_PATTERN : CONVERSATION_PATTERN;
  if (!pattern.test(info.workflowId)) throw startRefusal(host, `the workflow id must match ${pattern.source}`);
  return { state: openStarted(start.value, run), start: start.value };
}

async function sendInto(host: Host, into: string, message: StartOptions['message'] = ''): Promise<ConversationOutcome> {
  host.upsertMemo({ into });
  const id = dueId(host);
  const given = typeof message === 'string' ? { text: message } : message;
  await host.signal(into, messageSignal, [id === undefined ? given : { ...given, id }]).catch((error: unknown) => {
    const reason = `cannot send to conversation ${into}: it does not run, so nothing was sent; start it, or name another`;
    throw ApplicationFailure.create({ message: reason, nonRetryable: true, cause: error as Error });
  });
  return { turns: 0, sessions: 0, usage: NO_USAGE };
}

/** The message of a Temporal Schedule that is due at this time: one, however often Temporal starts it. */
function dueId(host: Host): string | undefined {
  const { TemporalScheduledById: [schedule] = [], TemporalScheduledStartTime: [due] = [] } = host.info().searchAttributes ?? {};
  if (typeof schedule !== 'string' || !(due instanceof Date)) return undefined;
  const at = `@${due.toISOString().replace('.000Z', 'Z')}`;
  return `${schedule.slice(0, LIMITS.idLength - at.length)}${at}`;
}

const WHAT_TO_DO = '`perdura resume` begins another with the turns that the store has';

/** The newest that its history knows: a new one asks for no other. */
function pinnedRules(host: Host): number {
  for (let rules = LATEST_RULES; rules > 1; rules--) if (host.patched(`rules-${rules}`)) return rules;
  return 1;
}

/** Who started it without our client gave no memo; lists and the UI read the agent there. */
function remindOfAgent(host: Host, { identity, title }: ConversationState): void {
  if (host.info().memo?.['agent'] !== undefined) return;
  host.upsertMemo({ agent: identity.agent, ...scopeAndTenant(identity.scope), ...(title === null ? {} : { title }) });
}

function startRefusal(host: Host, reason: string): ApplicationFailure {
  const refusal = ApplicationFailure.nonRetryable(`cannot start a conversation: ${reason}`, FAILURES.invalidStart);
  // An update that came together with the start fails the same way.
  host.onOtherUpdate(() => {
    throw refusal;
  });
  return refusal;
}
