/** What people say beside messages: approval of a call, an answer, a larger budget, another model, a message taken back. And what sub-agents report. */
import { ApplicationFailure } from '@temporalio/common';
import { turnOfMessage } from '../conversation/inbox/arrivals.js';
import type { Enqueued, Withdrawn } from '../conversation/protocol/contract.js';
import type { Budget } from '../records/identity.js';
import { readMessage } from '../conversation/protocol/message.js';
import { readModelChoice } from '../conversation/protocol/input.js';
import { readBudget, readChildNews, readDecision, readWithdrawal, type Decided } from '../conversation/protocol/human-input.js';
import { queuedCount } from '../conversation/inbox/spill.js';
import { approvalsOf, decisionRefusal } from '../conversation/turn/approvals.js';
import { newsRefusal } from '../conversation/turn/delegation.js';
import { withdrawalRefusal } from '../conversation/inbox/queue-editing.js';
import { type Handling, accepted, refuseWhenClosing } from './handling.js';
import {
  approvalsQuery,
  childSignal,
  decideSignal,
  decideUpdate,
  enqueueUpdate,
  FAILURES,
  raiseBudgetUpdate,
  setModelUpdate,
  withdrawUpdate,
} from './messages.js';

export function handleHumanInput({
  host,
  state,
  dispatch,
  counted,
  accept,
  reject,
}: Pick<Handling, 'host' | 'state' | 'dispatch' | 'counted' | 'accept' | 'reject'>): void {
  host.setHandler(decideSignal, (payload: unknown) => {
    const decision = readDecision(payload);
    if (decision.ok) dispatch({ kind: 'decided', decision: decision.value, at: host.now() });
    else reject('decide', decision.reason);
  });
  host.setHandler(childSignal, (payload: unknown) => {
    const news = readChildNews(payload);
    if (!news.ok) return reject('child', news.reason);
    const refused = newsRefusal(state(), news.value);
    if (refused !== undefined) return reject('child', refused);
    const { callId } = news.value;
    if (news.value.kind === 'asks') dispatch({ kind: 'child-asks', callId, asks: news.value.asks, at: host.now() });
    else if (news.value.kind === 'control') dispatch({ kind: 'child-stepped', callId, control: news.value.control, at: host.now() });
    else dispatch({ kind: 'child-ended', callId, report: news.value.report, at: host.now() });
  });
  host.setHandler(
    decideUpdate,
    counted((payload: unknown): Promise<Decided> => {
      const decision = accepted(readDecision(payload));
      dispatch({ kind: 'decided', decision, at: host.now() });
      return Promise.resolve({ callId: decision.callId, decision: decision.decision });
    }),
    {
      validator: (payload: unknown) => {
        const refused = decisionRefusal(state(), accepted(readDecision(payload)));
        if (refused !== undefined) throw ApplicationFailure.nonRetryable(refused, FAILURES.notWaiting);
      },
    },
  );
  host.setHandler(
    enqueueUpdate,
    counted((payload: unknown): Promise<Enqueued> => {
      const said = accepted(readMessage(payload));
      const messageId = said.id ?? host.uuid();
      const known = state().seen.some(([id]) => id === messageId);
      const position = queuedCount(state().queue);
      accept(said, messageId);
      const acceptedAs = known ? 'duplicate' : said.kind === 'reset' ? 'queue' : said.delivery;
      return Promise.resolve({ messageId, turnId: turnOfMessage(state(), messageId) ?? null, acceptedAs, position });
    }),
    {
      validator: (payload: unknown) => {
        accepted(readMessage(payload));
        refuseWhenClosing(state());
      },
    },
  );
  host.setHandler(
    withdrawUpdate,
    counted((payload: unknown): Promise<Withdrawn> => {
      const messageId = accepted(readWithdrawal(payload));
      const reason = withdrawalRefusal(state(), messageId);
      if (reason !== undefined) return Promise.resolve({ messageId, withdrawn: false, reason });
      dispatch({ kind: 'withdraw-requested', messageId, at: host.now() });
      return Promise.resolve({ messageId, withdrawn: true });
    }),
    { validator: (payload: unknown) => void accepted(readWithdrawal(payload)) },
  );
  host.setHandler(
    raiseBudgetUpdate,
    counted((payload: unknown): Promise<{ readonly budget: Budget }> => {
      const budget = accepted(readBudget(payload));
      dispatch({ kind: 'budget-raised', budget, at: host.now() });
      return Promise.resolve({ budget });
    }),
    { validator: (payload: unknown) => void accepted(readBudget(payload)) },
  );
  host.setHandler(
    setModelUpdate,
    counted((payload: unknown): Promise<{ readonly model: string | null }> => {
      const model = accepted(readModelChoice(payload));
      dispatch({ kind: 'model-set', model, at: host.now() });
      return Promise.resolve({ model });
    }),
    { validator: (payload: unknown) => void accepted(readModelChoice(payload)) },
  );
  host.setHandler(approvalsQuery, () => approvalsOf(state()));
}
