/** Lives that begin with turns of another one, turns taken back, and the end of a conversation in store and Temporal. */
import { randomUUID } from 'node:crypto';
import { WorkflowExecutionAlreadyStartedError, WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { StartOptions, Status } from '../conversation/protocol/contract.js';
import { readStart, type Opened, type Origin, type RewindResult } from '../conversation/protocol/input.js';
import { leftOf } from '../conversation/state/budget.js';
import { type Budget, turnId, turnNumber, qualifiedScope, scopeParts } from '../records/identity.js';
import type { ConversationKey, DeletedLife } from '../stores/store.js';
import { openedUpdate, rewindUpdate, WORKFLOW_TYPE } from '../workflows/messages.js';
import { describeDeleted, readPages } from '../memory/past-life.js';
import { isImportedLife } from '../memory/imported-life.js';
import { currentLine, groupTurns } from '../memory/prefix.js';
import { deleteConversation, type Deleted, type DeletionAccess } from './deletion.js';
import type { Description } from './describe.js';
import { ClientError, toClientError } from './errors.js';
import type { AskWorker, UnlessNoWorker } from './temporal/patience.js';

/** A conversation that has begun with turns of another one. */
export interface Begun extends Opened {
  readonly id: string;
}

/** Where Temporal and the store no longer know whose it was, and the id that its tenant knows it by. */
type Owned = Pick<StartOptions, 'tenant' | 'publicId'>;

interface LifeOptions extends Owned {
  readonly title?: string;
  readonly agent?: string;
  readonly scope?: string;
  readonly budget?: Budget;
  /** Null: the agent's, whatever was chosen before. */
  readonly model?: string | null;
  /** Where the latest life of that id has no message, from no earlier one: that may have been another user's. */
  readonly latestLifeOnly?: true;
}

/** Forks, rewinds, resumes and deletion. */
export interface LineageClient {
  /**
   * Starts a conversation with the turns of `id` up to `at`: no effect is run again, nothing is copied. Resolves once it has them. Without
   * a `budget` it may use what is left of that of `id`.
   */
  fork(id: string, options: LifeOptions & Pick<StartOptions, 'owner'> & { readonly at: string; readonly id?: string }): Promise<Begun>;
  /** Starts a new life of a conversation that has ended, with the turns of the last one, and with what is left of its budget. */
  resume(id: string, options?: LifeOptions): Promise<Begun>;
  /** Starts a conversation with the turns that the store has as `life` of its id, as an import has written them. */
  begin(id: string, life: string, options?: { title?: string; agent?: string; scope?: string } & Owned): Promise<Begun>;
  /** Cuts the turns after `to` out of it, in place; a running one is stopped first. */
  rewind(id: string, to: string): Promise<RewindResult>;
  /**
   * Removes a conversation that has ended, all its lives and its sub-agents, from the store, and from Temporal. Refused while forks read
   * its turns. Nothing of it can be resumed, forked or healed from then on; cut short, the same call again does the rest.
   */
  deleteConversation(id: string): Promise<Deleted>;
}

/** What the rest of the client lends. */
export interface LineageAccess extends DeletionAccess {
  /** Rejects for an agent that there is not. */
  readonly checkAgent: (id: string, start: StartOptions) => Promise<void>;
  readonly handleOf: (id: string) => WorkflowHandle;
  readonly askWorker: AskWorker;
  readonly unlessAway: UnlessNoWorker;
  readonly status: (id: string) => Promise<Status>;
  readonly startOptions: (id: string, options: StartOptions) => object & { readonly workflowId: string; readonly taskQueue: string };
}

interface Known {
  readonly life: string;
  /** Absent where Temporal has none any more. */
  readonly run?: string;
  readonly isRunning: boolean;
  readonly start: StartOptions;
}

const TURN = /^turn_\d{4,15}$/;

export function createLineageClient(access: LineageAccess): LineageClient {
  const { client, namespace, taskQueue, store, handleOf, askWorker, unlessAway, describe, status, startOptions, checkAgent } = access;

  const begin = async (id: string, start: StartOptions): Promise<Begun> => {
    const attempt = `cannot start ${id}`;
    await checkAgent(id, start);
    try {
      await client.workflow.start(WORKFLOW_TYPE, { ...startOptions(id, start), args: [start] });
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw toClientError(error, attempt);
      throw new ClientError('conflict', `${attempt}: a conversation of that id is running; choose another id`);
    }
    const without = 'it is started, and has its turns once one does; nothing else was sent';
    const opened = await askWorker({ id, attempt, without }, () => handleOf(id).executeUpdate(openedUpdate, { updateId: 'opened' })).catch(
      (error: unknown) => explainRefusal(handleOf(id), error),
    );
    if (opened === null) throw new ClientError('failed', `${attempt}: its worker is of an earlier version and began it with nothing`);
    return { id, ...opened };
  };

  const deletedLives = async (id: string): Promise<readonly DeletedLife[]> =>
    (await store()).lives.deleted({ namespace, conversation: id });

  const listLives = async (id: string): Promise<ConversationKey[]> => {
    const [lives, deleted] = await Promise.all([(await store()).lives.list({ namespace, conversation: id }), deletedLives(id)]);
    // An import writes into the life that began with it.
    return lives.filter(({ life }) => !isImportedLife(life) && !deleted.some((one) => one.life === life));
  };

  /** The life with the latest message: the latest life may be one that never began. */
  const findLife = async (id: string, latestLifeOnly = false): Promise<Known> => {
    const known = await describe(id).catch((error: unknown) => {
      if (error instanceof ClientError && error.kind === 'not-found') return undefined;
      throw error;
    });
    const deleted = await deletedLives(id);
    // Temporal deletes in the background.
    const described = deleted.some(({ life }) => life === known?.life) ? undefined : known;
    const started = described && (await withLatest(await recoverStart(access, id, described), status, id));
    const isRunning = described?.state === 'running';
    const fromTemporal = { life: described?.life ?? '', ...(described ? { run: described.runId } : {}), isRunning, start: started ?? {} };
    if (isRunning || (described && latestLifeOnly)) return fromTemporal;
    const lives = await listLives(id);
    const last = await Promise.all(lives.map((key) => lastSaid(access, key)));
    const latest = lives.reduce<number>((best, _, i) => ((last[i] ?? 0) > (last[best] ?? 0) ? i : best), 0);
    const found = lives[latest];
    const describedAt = lives.findIndex(({ life }) => life === described?.life);
    if (described && (!found || (last[latest] ?? 0) === 0 || (last[describedAt] ?? 0) > 0)) return fromTemporal;
    if (found) return { life: found.life, isRunning: false, start: { ...scopeParts(found.scope), ...started } };
    const [latestDeleted] = [...deleted].sort((a, b) => b.at - a.at);
    if (latestDeleted) throw new ClientError('not-found', describeDeleted(`go on from ${id}`, { conversation: id, at: latestDeleted.at }));
    throw new ClientError('not-found', `cannot find ${id}: neither Temporal nor the store has a conversation of that id`);
  };

  /** What the store has of it that no rewind has cut, and all that it has. */
  const turnsIn = async ({ life, start }: Known, id: string): Promise<{ readonly last: number; readonly turns: readonly string[] }> => {
    const lives = await listLives(id);
    const key = lives.find((one) => one.life === life) ?? {
      namespace,
      scope: qualifiedScope(start.tenant, start.scope ?? start.agent ?? 'default'),
      conversation: id,
      life,
    };
    const [{ entries }, cuts] = await Promise.all([readPages(await store(), key), (await store()).lives.cuts(key)]);
    return { last: currentLine(entries, cuts).at(-1)?.number ?? 0, turns: groupTurns(entries).map(({ number }) => turnId(number)) };
  };

  /**
   * Nothing is started where there is nothing to go on from. Where the store has lost all turns and Temporal still has the history, the
   * worker makes them again first.
   */
  const refuseNothingSaid = async (known: Known, id: string, attempt: string): Promise<void> => {
    const { last, turns } = await turnsIn(known, id);
    if (last > 0) return;
    const latest = known.run === undefined ? undefined : await status(id).catch(() => undefined);
    const highest = Math.max(0, ...turns.map(turnNumber));
    // The history may have what the store has not.
    if (latest && latest.life === known.life && latest.turn > highest) return;
    const [first] = turns;
    if (first !== undefined) {
      const why = `a rewind has cut all of its turns, ${first} to ${turnId(highest)}`;
      throw new ClientError('not-found', `${attempt}: ${why}; \`perdura fork ${id} --at TURN\` goes on from one of them`);
    }
    if (known.run === undefined) {
      const why = 'the store has no turn of it, and Temporal no longer has its history';
      throw new ClientError('not-found', `${attempt}: ${why}; where there is an export of it, \`perdura admin import\` begins with that`);
    }
    if (latest?.life !== known.life) return;
    throw new ClientError('not-found', `${attempt}: nothing was said in it; \`perdura new\` starts another`);
  };

  const refuseUnknownTurn = async (known: Known, id: string, at: string): Promise<void> => {
    const { turns } = await turnsIn(known, id);
    if (turns.length === 0) return refuseNothingSaid(known, id, `cannot fork ${id}`);
    if (turns.includes(at)) return;
    const [first, last] = [
      turns.reduce((a, b) => (turnNumber(b) < turnNumber(a) ? b : a)),
      turns.reduce((a, b) => (turnNumber(b) > turnNumber(a) ? b : a)),
    ];
    throw new ClientError(
      'not-found',
      `cannot fork ${id}: ${id} has no ${at}: its turns are ${first} to ${last}; \`perdura show ${id}\` shows them, and \`perdura admin heal ${id}\` brings back what the store has lost`,
    );
  };

  const startFrom = (known: Known, origin: Origin, wanted: LifeOptions & Pick<StartOptions, 'owner'>): StartOptions => {
    const { title, agent, scope, budget, tenant, ...more } = wanted;
    const { publicId: before, owner: ownerBefore, model: modelBefore, ...start } = known.start;
    if (tenant !== undefined && start.tenant !== undefined && tenant !== start.tenant)
      throw new ClientError('not-found', `cannot go on from ${origin.conversation}: ${tenant} has no conversation of that id`);
    const publicId = more.publicId ?? (origin.kind === 'resume' ? before : undefined);
    const model = more.model === undefined ? modelBefore : (more.model ?? undefined);
    // It stays with whom it was; a fork is another conversation.
    const owner = origin.kind === 'resume' ? ownerBefore : more.owner;
    return {
      ...start,
      ...(agent === undefined ? {} : { agent }),
      ...(scope === undefined ? {} : { scope }),
      ...(tenant === undefined ? {} : { tenant }),
      ...(publicId === undefined ? {} : { publicId }),
      ...(owner === undefined ? {} : { owner }),
      ...(title === undefined ? {} : { title }),
      ...(model === undefined ? {} : { model }),
      ...(budget === undefined ? {} : { budget }),
      origin,
    };
  };

  return {
    async fork(id, { at, id: wanted = `conv-${randomUUID()}`, latestLifeOnly, ...options }) {
      if (!TURN.test(at))
        throw new ClientError('invalid', `cannot fork ${id}: ${JSON.stringify(at.slice(0, 40))} is not a turn such as "turn_0007"`);
      const known = await unlessAway({ id, attempt: `cannot fork ${id}`, without: 'nothing was begun' }, async () => {
        const found = await findLife(id, latestLifeOnly);
        if (found.isRunning) await refuseRunningTurn(status, id, at);
        await refuseUnknownTurn(found, id, at);
        return found;
      });
      return begin(wanted, startFrom(known, { kind: 'fork', conversation: id, life: known.life, ...pickRun(known), turn: at }, options));
    },

    async resume(id, { latestLifeOnly, ...options } = {}) {
      const attempt = `cannot go on from ${id}`;
      const known = await unlessAway({ id, attempt, queue: taskQueue, without: 'nothing was begun' }, () => findLife(id, latestLifeOnly));
      if (known.isRunning) {
        throw new ClientError(
          'conflict',
          `conversation ${id} is running: talk to it with \`perdura send ${id} …\` or \`perdura chat -r ${id}\``,
        );
      }
      await refuseNothingSaid(known, id, attempt);
      return begin(id, startFrom(known, { kind: 'resume', conversation: id, life: known.life, ...pickRun(known) }, options));
    },

    begin: (id, life, { title, agent, scope, tenant, publicId } = {}) =>
      begin(id, {
        ...(agent === undefined ? {} : { agent }),
        ...(scope === undefined ? {} : { scope }),
        ...(tenant === undefined ? {} : { tenant }),
        ...(publicId === undefined ? {} : { publicId }),
        ...(title === undefined ? {} : { title }),
        origin: { kind: 'resume', conversation: id, life },
      }),

    rewind(id, to) {
      const requestId = randomUUID();
      const args: [{ to: string; id: string }] = [{ to, id: requestId }];
      return askWorker({ id, attempt: `cannot rewind ${id} to ${to}` }, () =>
        handleOf(id).executeUpdate(rewindUpdate, { args, updateId: `rewind-${requestId}` }),
      );
    },

    deleteConversation: (id) => deleteConversation(access, id),
  };
}

function pickRun({ run }: Known): { readonly run?: string } {
  return run === undefined ? {} : { run };
}

/** Half of a turn would be an answer that was never given. */
async function refuseRunningTurn(status: LineageAccess['status'], id: string, at: string): Promise<void> {
  const { phase, turn } = await status(id);
  if (phase === 'idle' || phase === 'closing' || turn !== Number(at.slice('turn_'.length))) return;
  throw new ClientError(
    'conflict',
    `cannot fork ${id} at ${at}: this turn is still running; wait for its end, or stop it with \`perdura stop ${id}\``,
  );
}

/** The workflow has failed with the reason before, or during, the request. */
async function explainRefusal(handle: WorkflowHandle, error: unknown): Promise<never> {
  if (error instanceof ClientError && error.kind === 'not-found') {
    await handle.result().catch((failed: unknown) => {
      const cause = failed instanceof WorkflowFailedError ? failed.cause : undefined;
      if (cause instanceof ApplicationFailure) throw new ClientError('not-found', cause.message, { cause: failed });
    });
  }
  throw error;
}

/** What the life was started with: its model stands nowhere else. */
async function recoverStart(
  { client, namespace }: LineageAccess,
  id: string,
  { life, agent, scope, title, publicId, owner }: Description,
): Promise<StartOptions> {
  const known = {
    ...(agent === null ? {} : { agent }),
    ...(scope === null ? {} : scopeParts(scope)),
    ...(title === null ? {} : { title }),
    ...(publicId === null ? {} : { publicId }),
    ...(owner === null ? {} : { owner }),
  };
  try {
    const { history } = await client.workflowService.getWorkflowExecutionHistory({
      namespace,
      execution: { workflowId: id, runId: life },
      maximumPageSize: 1,
    });
    const data = history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0]?.data;
    const start = readStart(data ? JSON.parse(Buffer.from(data).toString('utf8')) : undefined);
    return start.ok && start.value.model !== null ? { ...known, model: start.value.model } : known;
  } catch {
    return known; // Past its retention: the agent's default model answers then.
  }
}

/**
 * A model that was chosen since the start, and what is left of the budget, are in the state; where no worker shows that, the start's model
 * is used, and the budget of the agent.
 */
async function withLatest(start: StartOptions, status: LineageAccess['status'], id: string): Promise<StartOptions> {
  const latest = await status(id).catch(() => undefined);
  if (!latest) return start;
  const { model: _, ...rest } = start;
  const { chosenModel, budget, usage } = latest;
  const left = budget && { budget: leftOf(budget, usage) };
  if (chosenModel === undefined) return { ...start, ...left };
  return chosenModel === null ? { ...rest, ...left } : { ...rest, model: chosenModel, ...left };
}

/** Epoch seconds; 0 where nothing was. */
async function lastSaid({ store }: LineageAccess, key: ConversationKey): Promise<number> {
  const { entries } = await store();
  const { last } = await entries.page(key, 0, 1);
  const [entry] = last === 0 ? [] : await entries.read(key, [last]);
  return entry?.ts ?? 0;
}
