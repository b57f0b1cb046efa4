/**
 * What people say to conversations beside messages: approval of a call, an answer, a larger budget, a message taken back.
 *
 * A decision is a signal unless somebody asks for its answer: sends that wait fill the ten updates that a server lets be in flight.
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
import { callFingerprint } from '../memory/call-fingerprint.js';
import { BETWEEN_RUNS_MS, ClientError, isBetweenRuns } from './errors.js';
import { withRetries } from './temporal/with-retries.js';
import { describeDelivery, type AskWorker } from './temporal/worker-patience.js';
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
  /** The conversation that was asked; `conversation` is a sub-agent of it, or itself. */
  readonly via: string;
  /** Absent where the store does not have them, or has others. */
  readonly arguments?: JsonValue;
  /** The store's arguments are not those that the model asked with: somebody has changed them, and they will not run. */
  readonly altered?: true;
}

/** What waits for people, in all conversations that were asked. */
export interface AllPending {
  /** Those that expire first come first. */
  readonly approvals: readonly Pending[];
  /** Conversations that did not answer, and why. */
  readonly silent: readonly { readonly id: string; readonly reason: string }[];
  /** True when more conversations run than were asked. */
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
   * kind `not-waiting` when it was decided before, has expired, or was asked with other arguments. `awaited`: by update.
   */
  decide(id: string, decision: Decision, options?: { readonly awaited?: boolean }): Promise<Decided>;
  /** Queues a message and answers with a receipt, without waiting for its turn. */
  enqueue(id: string, message: string | Message): Promise<Enqueued>;
  /** Takes a message back that no turn has taken yet. */
  withdraw(id: string, messageId: string): Promise<Withdrawn>;
  /** What the conversation may use in all from now on; `{}` takes every limit away. */
  raiseBudget(id: string, budget: Budget): Promise<Budget>;
  /**
   * Which model answers from the next call on, as `provider/name`; null: the agent's own. Whether the worker has it shows with the next
   * turn, which fails with the names of those that there are.
   */
  setModel(id: string, model: string | null): Promise<string | null>;
}

export interface PeopleAccess {
  readonly handleOf: (id: string) => WorkflowHandle;
  readonly askWorker: AskWorker;
  readonly withId: (message: string | Message) => Message & { readonly id: string };
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
/** For all of them together; who was not asked by then is named among the silent. */
const ALL_MS = 60_000;
/** Milliseconds until a decision shows: a sub-agent hears of it by way of its parent. */
const TAKEN_WITHIN_MS = 10_000;
const LOOK_MS = 100;

export function createHumanInput({ handleOf, askWorker, withId, argumentsOf, running, within }: PeopleAccess): HumanInputClient {
  const query = <T>(attempt: string, ask: () => Promise<T>): Promise<T> =>
    withRetries({ attempt, patienceMs: BETWEEN_RUNS_MS, isWorthAnother: isBetweenRuns }, ask);

  const waitingIn = (id: string): Promise<Approval[]> => query(`cannot read what waits in ${id}`, () => handleOf(id).query(approvalsQuery));

  const rejectedBy = async (id: string): Promise<readonly RejectedInput[]> => {
    const { rejectedInputs } = await query(`cannot read the status of ${id}`, () => handleOf(id).query(statusQuery));
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

  /** Where the attribute is not registered, Temporal refuses the query: then all that run are asked. */
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
    const asked = (await waitingIn(id)).find(isThis);
    if (!asked) throw new ClientError('not-waiting', `${attempt}: ${NOT_WAITING}`);
    if (decision.hash !== undefined && decision.hash !== asked.hash) throw new ClientError('not-waiting', `${attempt}: ${OTHER_ARGUMENTS}`);
    const before = await rejectedBy(owner);
    await withRetries({ attempt, patienceMs: 10_000 }, () => handleOf(id).signal(decideSignal, decision));
    for (const until = Date.now() + TAKEN_WITHIN_MS; ; await sleep(LOOK_MS)) {
      const refusals = (await rejectedBy(owner)).filter(({ at, reason }) => !before.some((one) => one.at === at && one.reason === reason));
      const refusal = refusals.find(({ reason }) => reason.includes(callId));
      if (refusal) throw new ClientError('not-waiting', `${attempt}: ${refusal.reason}; the first decision counts`);
      // One that asks again under the same name would be another wait.
      const still = (await waitingIn(id)).some((one) => isThis(one) && one.askedAt === asked.askedAt);
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
      const asked = ids.slice(0, limit);
      const found: Pending[] = [];
      const silent: { id: string; reason: string }[] = [];
      const rest = [...asked];
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
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, asked.length) }, work));
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

    enqueue(id, message) {
      const own = withId(message);
      const without = async (): Promise<string> => {
        await handleOf(id).signal(messageSignal, own);
        return describeDelivery(own.id);
      };
      return askWorker({ id, attempt: `cannot send to ${id}`, without }, () =>
        handleOf(id).executeUpdate(enqueueUpdate, { args: [own], updateId: `enqueue-${own.id}` }),
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
