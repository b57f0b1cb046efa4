/**
 * What people say to conversations beside messages: approval of a call, an answer, a larger budget, a message taken back.
 *
 * A decision is a signal unless the caller waits for its answer: sends that wait fill the ten updates that a server lets be in flight.
 * A signal has no answer, so the conversation is looked at afterwards.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import type { Enqueued, Message, RejectedInput, Withdrawn } from '../conversation/protocol/contract.js';
import type { Budget } from '../records/identity.js';
import type { JsonValue } from '../records/message.js';
import {
  approvalsQuery,
  decideSignal,
  decideUpdate,
  enqueueUpdate,
  messageSignal,
  raiseBudgetUpdate,
  setModelUpdate,
  statusQuery,
  withdrawUpdate,
} from '../workflows/messages.js';
import { readModelChoice } from '../conversation/protocol/input.js';
import { callFingerprint } from '../memory/bodies.js';
import { ClientError } from './errors.js';
import { withRetries, describeDelivery, type AskQuery, type AskWorker } from './temporal/patience.js';
import {
  readBudget,
  readDecision,
  readWithdrawal,
  type Approval,
  type Decided,
  type Decision,
} from '../conversation/protocol/human-input.js';
import { errorMessage } from '../platform/errors.js';

/** What waits for a person, with what it would run with. */
export interface Pending extends Approval {
  /** The conversation that was queried; `conversation` is a sub-agent of it, or itself. */
  readonly via: string;
  /** Absent where the store does not have them, or has others. */
  readonly arguments?: JsonValue;
  /** The store's arguments are not those of the model's request: they were changed since, and will not run. */
  readonly altered?: true;
}

/** What waits for people, in all conversations that were queried. */
export interface AllPending {
  /** Those that expire first come first. */
  readonly approvals: readonly Pending[];
  /** Conversations that did not answer, and why. */
  readonly silent: readonly { readonly id: string; readonly reason: string }[];
  /** True when more conversations run than were queried. */
  readonly more: boolean;
}

/** What people say to conversations beside messages. */
export interface HumanInputClient {
  /** What waits for a person in a conversation and in its sub-agents, oldest first, with the arguments whole. */
  approvals(id: string): Promise<Pending[]>;
  /** The same of every conversation that runs, or of those whose ids begin so. One that does not answer is named. */
  allApprovals(options?: { readonly limit?: number; readonly idPrefix?: string }): Promise<AllPending>;
  /**
   * Allows a call, refuses it, or answers a question (`note` is the answer). Resolves once the conversation has taken it; fails with
   * kind `not-waiting` when it was decided before, has expired, or has other arguments. `awaited`: by update.
   */
  decide(id: string, decision: Decision, options?: { readonly awaited?: boolean }): Promise<Decided>;
  /** Queues a message and answers with a receipt, without waiting for its turn. */
  enqueue(id: string, message: string | Message): Promise<Enqueued>;
  /** Takes a message back that no turn has taken yet. */
  withdraw(id: string, messageId: string): Promise<Withdrawn>;
  /** What the conversation may use in all from now on; `{}` takes every limit away. */
  raiseBudget(id: string, budget: Budget): Promise<Budget>;
  /**
   * Which model answers from the next call on, as `provider/name`; null: the agent's default. Whether the worker has it shows with the next
   * turn, which fails with the names of those that there are.
   */
  setModel(id: string, model: string | null): Promise<string | null>;
}

export interface PeopleAccess {
  readonly handleOf: (id: string) => WorkflowHandle;
  readonly askWorker: AskWorker;
  readonly askQuery: AskQuery;
  readonly withId: (message: string | Message) => Promise<Message & { readonly id: string }>;
  /** Undefined where the store does not have them; rejects where it does not answer. */
  readonly argumentsOf: (approval: Approval) => Promise<JsonValue | undefined>;
  /** Ids of running conversations, latest first. */
  readonly running: (wanted: { readonly query?: string; readonly limit: number; readonly idPrefix?: string }) => Promise<readonly string[]>;
  /** Aborts what takes longer. */
  readonly within: <T>(ms: number, call: () => Promise<T>) => Promise<T>;
}

/** As its search attributes say, or not listed yet. */
const WAITING = `AgentStatus = 'waiting' OR AgentStatus IS NULL`;
const MAX_CONVERSATIONS = 1_000;
const AT_ONCE = 8;
/** Milliseconds for one conversation among many; more than the five seconds for which a dead worker is waited for. */
const PATIENCE_MS = 8_000;
/** For all of them together; conversations that were not queried by then are named among the silent. */
const ALL_MS = 60_000;
/** Milliseconds until a decision shows: a sub-agent hears of it by way of its parent. */
const TAKEN_WITHIN_MS = 10_000;
const LOOK_MS = 100;

export function createHumanInput({ handleOf, askWorker, askQuery, withId, argumentsOf, running, within }: PeopleAccess): HumanInputClient {
  const waitingIn = (id: string): Promise<Approval[]> =>
    askQuery({ id, attempt: `cannot read what waits in ${id}` }, () => handleOf(id).query(approvalsQuery));

  const rejectedBy = async (id: string): Promise<readonly RejectedInput[]> => {
    const { rejectedInputs } = await askQuery({ id, attempt: `cannot read the status of ${id}` }, () => handleOf(id).query(statusQuery));
    return rejectedInputs.last.filter(({ name }) => name === 'decide');
  };

  /** A sub-agent may end while its parent still names it: its arguments are then not looked for. */
  const withArguments = async (via: string, approval: Approval): Promise<Pending> => {
    const given = await argumentsOf(approval).catch(() => undefined);
    if (given === undefined) return { ...approval, via };
    const isAsAsked = callFingerprint(approval.tool, given) === approval.hash;
    return { ...approval, via, ...(isAsAsked ? { arguments: given } : { altered: true }) };
  };

  const approvals = async (id: string): Promise<Pending[]> => {
    const waiting = await waitingIn(id);
    return Promise.all(waiting.map((approval) => withArguments(id, approval)));
  };

  /** Where the attribute is not registered, Temporal refuses the query: then all that run are queried. */
  const candidates = async (wanted: { readonly limit: number; readonly idPrefix?: string }): Promise<readonly string[]> => {
    try {
      return await running({ ...wanted, query: WAITING });
    } catch (error) {
      if ((error as Partial<ClientError>).kind !== 'invalid') throw error;
      return running(wanted);
    }
  };

  const decideBySignal = async (id: string, decision: Decision): Promise<Decided> => {
    const { callId } = decision;
    const attempt = `cannot decide ${callId} of ${id}`;
    const owner = decision.conversation ?? id;
    const isThis = (one: Approval): boolean => one.callId === callId && one.conversation === owner;
    const pending = (await waitingIn(id)).find(isThis);
    if (!pending) throw new ClientError('not-waiting', `${attempt}: ${NOT_WAITING}`);
    if (decision.hash !== undefined && decision.hash !== pending.hash)
      throw new ClientError('not-waiting', `${attempt}: ${OTHER_ARGUMENTS}`);
    const before = await rejectedBy(owner);
    await withRetries({ attempt, patienceMs: 10_000 }, () => handleOf(id).signal(decideSignal, decision));
    for (const until = Date.now() + TAKEN_WITHIN_MS; ; await sleep(LOOK_MS)) {
      const refusals = (await rejectedBy(owner)).filter(({ at, reason }) => !before.some((one) => one.at === at && one.reason === reason));
      const refusal = refusals.find(({ reason }) => reason.includes(callId));
      if (refusal) throw new ClientError('not-waiting', `${attempt}: ${refusal.reason}; the first decision counts`);
      // One that asks again under the same name would be another wait.
      const still = (await waitingIn(id)).some((one) => isThis(one) && one.askedAt === pending.askedAt);
      if (!still) return { callId, decision: decision.decision };
      if (Date.now() > until) {
        throw new ClientError(
          'unreachable',
          `${attempt}: it got the signal and has not taken it within ${TAKEN_WITHIN_MS / 1000} s; look again`,
        );
      }
    }
  };

  return {
    approvals,

    async allApprovals({ limit = MAX_CONVERSATIONS, idPrefix } = {}) {
      const ids = await candidates({ limit: limit + 1, ...(idPrefix !== undefined && { idPrefix }) });
      const chosen = ids.slice(0, limit);
      const found: Pending[] = [];
      const silent: { id: string; reason: string }[] = [];
      const rest = [...chosen];
      const deadline = Date.now() + ALL_MS;
      const work = async (): Promise<void> => {
        for (let id = rest.shift(); id !== undefined; id = rest.shift()) {
          const one = id;
          if (Date.now() > deadline) {
            silent.push({ id, reason: 'was not asked: the others took too long to answer' });
            continue;
          }
          try {
            found.push(...(await within(PATIENCE_MS, () => approvals(one))));
          } catch (error) {
            // It may have ended since it was listed.
            if ((error as Partial<ClientError>).kind === 'not-found') continue;
            silent.push({ id, reason: errorMessage(error) });
          }
        }
      };
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, chosen.length) }, work));
      return { approvals: once(found), silent, more: ids.length > limit };
    },

    async decide(id, decision, { awaited = false } = {}) {
      const checked = readDecision(decision);
      if (!checked.ok) throw new ClientError('invalid', checked.reason);
      if (!awaited) return decideBySignal(id, checked.value);
      const updateId = `decide-${randomUUID()}`;
      return askWorker({ id, attempt: `cannot decide ${decision.callId} of ${id}` }, () =>
        handleOf(id).executeUpdate(decideUpdate, { args: [checked.value], updateId }),
      );
    },

    async enqueue(id, message) {
      const outgoing = await withId(message);
      const without = async (): Promise<string> => {
        await handleOf(id).signal(messageSignal, outgoing);
        return describeDelivery(outgoing.id);
      };
      return askWorker({ id, attempt: `cannot send to ${id}`, without }, () =>
        handleOf(id).executeUpdate(enqueueUpdate, { args: [outgoing], updateId: `enqueue-${outgoing.id}` }),
      );
    },

    async withdraw(id, messageId) {
      const checked = readWithdrawal({ messageId });
      if (!checked.ok) throw new ClientError('invalid', checked.reason);
      const updateId = `withdraw-${randomUUID()}`;
      return askWorker({ id, attempt: `cannot withdraw ${messageId} from ${id}` }, () =>
        handleOf(id).executeUpdate(withdrawUpdate, { args: [{ messageId }], updateId }),
      );
    },

    async raiseBudget(id, budget) {
      const checked = readBudget(budget);
      if (!checked.ok) throw new ClientError('invalid', checked.reason);
      const updateId = `raise-budget-${randomUUID()}`;
      const answer = await askWorker({ id, attempt: `cannot change the budget of ${id}` }, () =>
        handleOf(id).executeUpdate(raiseBudgetUpdate, { args: [checked.value], updateId }),
      );
      return answer.budget;
    },

    async setModel(id, model) {
      const checked = readModelChoice({ model });
      if (!checked.ok) throw new ClientError('invalid', checked.reason);
      const updateId = `set-model-${randomUUID()}`;
      const answer = await askWorker({ id, attempt: `cannot change the model of ${id}` }, () =>
        handleOf(id).executeUpdate(setModelUpdate, { args: [{ model: checked.value }], updateId }),
      );
      return answer.model;
    },
  };
}

const NOT_WAITING = 'it does not wait: it was decided, has expired, or was never asked; `perdura approvals` lists what waits';
const OTHER_ARGUMENTS = 'it was asked with other arguments than those that were looked at; look again';

/** A sub-agent's wait is reported by itself and by its parents: the one nearest to the person is kept. */
function once(found: readonly Pending[]): Pending[] {
  const kept = new Map<string, Pending>();
  for (const one of found) {
    const key = `${one.conversation} ${one.callId}`;
    const known = kept.get(key);
    if (!known || one.via.length < known.via.length) kept.set(key, one);
  }
  return [...kept.values()].sort((a, b) => a.expiresAt - b.expiresAt);
}
