/**
 * The client as a principal of the role user has it: the one way by which every protocol reaches conversations for it. A user sees and
 * talks in the conversations of the scopes that it may use, and disposes of those that belong to it; the rest needs an operator
 * (docs/reference/roles.md).
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Description, Listed, PerduraClient } from '../../client.js';
import type { ListOptions } from '../../client/listing.js';
import { streamTurn } from '../../client/turns/stream.js';
import { baseId } from '../../client/tenants/names.js';
import type { StartOptions } from '../../conversation/protocol/contract.js';
import { leftOf } from '../../conversation/state/budget.js';
import type { Budget } from '../../records/identity.js';
import type { AgentDescription } from '../context.js';
import { GatewayError } from '../core/errors.js';
import type { Principal } from './principal.js';

interface UserReach {
  readonly principal: Principal;
  /** Names of agents that the user may use; each has a scope of that name. */
  readonly agents: () => Promise<readonly string[]>;
  readonly describeAgent: (name: string) => Promise<AgentDescription | undefined>;
}

/** On each conversation that the user may see. A new method of the client does not compile until this file lists it. */
const SEEN = [
  ...(['turn', 'status', 'approvals', 'turnEnds', 'items', 'item', 'turns', 'contextView', 'why', 'context', 'queue'] as const),
  ...(['history', 'latest', 'entries', 'branches', 'timeline', 'newestCursor', 'outcome', 'checkTokenUsage'] as const),
  ...(['message', 'enqueue', 'withdraw', 'interrupt', 'reset', 'dispatch', 'attach', 'attachUploaded', 'countFile', 'keepWishes'] as const),
] as const;

/** On those that belong to it, with what is attempted. */
const BELONGING = {
  compact: 'compact',
  triggerCompaction: 'compact',
  undoCompaction: 'undo the compaction of',
  truncate: 'truncate',
  executeTruncation: 'truncate',
  retry: 'answer again in',
  edit: 'say something else in',
  rewind: 'rewind',
  rename: 'rename',
  closeConversation: 'end',
} as const;

/** Nowhere. */
const OF_OPERATORS = [
  ...(['setMode', 'step', 'setBreakpoints', 'control', 'editQueue', 'moments', 'moment', 'cancel', 'terminate', 'begin'] as const),
  ...(['deleteConversation', 'key', 'runs', 'archived', 'whereabouts', 'imported', 'openMemory'] as const),
  ...(['usage', 'allApprovals', 'failures', 'workers', 'sweepUploads', 'scopes', 'search'] as const),
  ...(['addSchedule', 'schedules', 'pauseSchedule', 'deleteSchedule'] as const),
] as const;

const DEFAULT_AGENT = 'default';
/** The latest conversations, of which a list shows the user's. */
const MAX_SCANNED = 5_000;
const namedModels = z.looseObject({ model: z.string().optional(), models: z.array(z.string()).optional() });

export function createUserClient(client: PerduraClient, { principal, agents, describeAgent }: UserReach): PerduraClient {
  const { name: owner, scopes } = principal;
  const ownsScope = (scope: string): boolean => scopes?.some((one) => fits(one, scope)) === true;
  const mayUse = async (scope: string, agent: string): Promise<boolean> =>
    scopes === undefined ? scope === agent || (await agents()).includes(scope) : ownsScope(scope);

  /** It, or the conversation that it is a sub-agent of. Throws where the user may not see it. */
  const see = async (id: string): Promise<Description> => {
    const found = await client.describe(baseId(id));
    if (found.scope !== null && (await mayUse(found.scope, found.agent ?? DEFAULT_AGENT))) return found;
    throw refused(`cannot open ${id}: it is in a scope that this user may not use; an operator may open it`);
  };
  const dispose = async (id: string, attempt: string): Promise<Description> => {
    const found = await see(id);
    if (scopes !== undefined || found.owner === owner) return found;
    throw refused(`cannot ${attempt} ${id}: another user began it; who began it may, and an operator`);
  };
  const checkScope = async (attempt: string, scope: string, agent: string): Promise<void> => {
    if (await mayUse(scope, agent)) return;
    const what = scopes === undefined ? 'leave it out, and the agent’s scope is used' : `those of this user are ${scopes.join(', ')}`;
    throw refused(`${attempt}: this user may not use the scope ${scope}; ${what}`);
  };

  const readModels = async (agent: string): Promise<readonly string[]> => {
    const { model, models = [] } = namedModels.safeParse((await describeAgent(agent))?.config).data ?? {};
    return [...new Set([...(model === undefined ? [] : [model]), ...models])];
  };
  const checkModel = async (attempt: string, agent: string, model: string): Promise<void> => {
    const known = await readModels(agent);
    if (known.includes(model)) return;
    const which = known.length === 0 ? 'names none that can be chosen' : `names ${known.join(', ')}`;
    throw refused(`${attempt}: agent.json of ${agent} ${which}; another model, such as ${model}, is chosen by an operator`);
  };

  const toStart = async (id: string, start: StartOptions = {}): Promise<StartOptions> => {
    const attempt = `cannot start ${id}`;
    const { agent = DEFAULT_AGENT, scope = scopes?.find((one) => !one.endsWith('*')), mode, model, budget } = start;
    if (mode !== undefined) throw refused(`${attempt}: its mode is chosen by an operator`);
    await checkScope(attempt, scope ?? agent, agent);
    if (typeof model === 'string') await checkModel(attempt, agent, model);
    return { ...start, owner, ...(scope !== undefined && { scope }), ...(budget !== undefined && { budget: withinAgent(budget) }) };
  };

  /** Of a fork, or of another life: what an operator gave to the one that it comes from stays there. */
  const toLife = async (attempt: string, id: string, found: Description, wanted: LifeWanted) => {
    const { agent = found.agent ?? DEFAULT_AGENT, scope = found.scope ?? agent, budget } = wanted;
    await checkScope(attempt, scope, agent);
    const status = await client.status(id).catch(() => undefined);
    const rest = status?.budget ? leftOf(status.budget, status.usage) : {};
    const chosen = status?.chosenModel;
    const keepsModel = chosen === null || (chosen !== undefined && (await readModels(agent)).includes(chosen));
    return { budget: withinAgent(budget ?? rest), ...(!keepsModel && { model: null }) };
  };

  const narrow = async ({ where, ...options }: ListOptions = {}): Promise<ListOptions> => {
    const names = scopes === undefined ? await agents() : [];
    const isSeen = ({ scope, agent }: Listed): boolean =>
      scope !== null && (scopes === undefined ? [agent ?? DEFAULT_AGENT, ...names].includes(scope) : ownsScope(scope));
    return { scan: MAX_SCANNED, ...options, where: (row) => isSeen(row) && (where?.(row) ?? true) };
  };

  const start: PerduraClient['start'] = async (id = `conv-${randomUUID()}`, options) => {
    const started = await client.start(id, await toStart(id, options));
    if (started.attached) await see(id);
    return started;
  };

  const guardedClient: Omit<PerduraClient, 'stream'> = {
    namespace: client.namespace,
    taskQueue: client.taskQueue,
    ...guarded(client, SEEN, (_method, id) => see(id)),
    ...guarded(client, Object.keys(BELONGING) as (keyof typeof BELONGING)[], (method, id) => dispose(id, BELONGING[method])),
    ...guarded(client, OF_OPERATORS, () => Promise.reject(refused('this needs the role operator'))),

    start,
    async send(id, message, { start: begins, ...options } = {}) {
      await (begins === undefined ? see(id) : start(id, begins));
      return client.send(id, message, options);
    },
    async describe(id) {
      const found = await see(id);
      return baseId(id) === id ? found : client.describe(id);
    },
    async *watch(id, options) {
      await see(id);
      yield* client.watch(id, options);
    },
    list: async (options) => client.list(await narrow(options)),
    standing: async (options) => client.standing(await narrow(options)),

    async decide(id, decision, options) {
      await dispose(id, 'decide on calls of');
      if (decision.conversation !== undefined && baseId(decision.conversation) !== baseId(id)) {
        await dispose(decision.conversation, 'decide on calls of');
      }
      return client.decide(id, decision, options);
    },
    async raiseBudget(id, budget) {
      await dispose(id, 'change the budget of');
      return client.raiseBudget(id, withinAgent(budget));
    },
    async setModel(id, model) {
      const { agent } = await dispose(id, 'change the model of');
      if (model !== null) await checkModel(`cannot change the model of ${id}`, agent ?? DEFAULT_AGENT, model);
      return client.setModel(id, model);
    },
    async fork(id, options) {
      const life = await toLife(`cannot fork ${id}`, id, await see(id), options);
      return client.fork(id, { ...options, ...life, owner, latestLifeOnly: true });
    },
    async resume(id, options = {}) {
      // Going on as it was is talking; anything else changes it.
      if (Object.values(options).every((value) => value === undefined)) {
        await see(id);
        return client.resume(id, { latestLifeOnly: true });
      }
      const life = await toLife(`cannot resume ${id}`, id, await dispose(id, 'change'), options);
      return client.resume(id, { ...options, ...life, latestLifeOnly: true });
    },

    // What a scope of others remembers is read by operators alone, also where a conversation in it is seen.
    async memory(id, which) {
      await see(id);
      const { facts, ...remembered } = await client.memory(id, which);
      const isFromHere = (fact: (typeof facts)[number]): boolean => baseId(fact.source?.conversation ?? '') === baseId(id);
      return { ...remembered, facts: scopes === undefined ? facts.filter(isFromHere) : facts };
    },
    async chunk(id, chunk, offset) {
      await see(id);
      if (chunk === 'memory' && scopes === undefined) {
        throw refused(`cannot read what stands before the messages of ${id}: others use its scope too; an operator may`);
      }
      return client.chunk(id, chunk, offset);
    },
    async contextChanges(id) {
      await see(id);
      const { changes, ...rest } = await client.contextChanges(id);
      if (scopes !== undefined) return { ...rest, changes };
      return { ...rest, changes: changes.map((change) => ({ ...change, text: null, beforeText: null, afterText: null })) };
    },
    scope: () => {
      throw refused('the memory of a scope needs the role operator');
    },

    upload: (parts, options) => client.upload(parts, options),
    uploaded: (ref) => client.uploaded(ref),
    uploadedBytes: (ref) => client.uploadedBytes(ref),
    checkRoomForFiles: (bytes) => client.checkRoomForFiles(bytes),
    close: () => Promise.resolve(),
  };
  return { ...guardedClient, stream: (id, message, options) => streamTurn(guardedClient, id, message, options) };
}

type LifeWanted = Pick<StartOptions, 'agent' | 'scope' | 'budget'>;
type AnyMethod = (...given: readonly unknown[]) => Promise<unknown>;

/** The methods, each once it is allowed; the first argument of one on a conversation is its id. */
function guarded<K extends keyof PerduraClient>(
  client: PerduraClient,
  methods: readonly K[],
  allow: (method: K, id: string) => Promise<unknown>,
): Pick<PerduraClient, K> {
  return Object.fromEntries(
    methods.map((method) => [
      method,
      async (...given: readonly unknown[]) => {
        await allow(method, String(given[0]));
        return (client[method] as unknown as AnyMethod)(...given);
      },
    ]),
  ) as unknown as Pick<PerduraClient, K>;
}

function fits(pattern: string, scope: string): boolean {
  return pattern.endsWith('*') ? scope.startsWith(pattern.slice(0, -1)) : scope === pattern;
}

/** The worker, which knows agent.json, lets these only lower its limits. */
function withinAgent(budget: Budget): Budget {
  return { ...budget, within: 'agent' };
}

function refused(message: string): GatewayError {
  return new GatewayError({ status: 403, type: 'forbidden', message });
}
