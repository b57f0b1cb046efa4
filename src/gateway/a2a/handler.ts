/**
 * The operations of A2A on conversations. A task is a turn, and a gateway remembers nothing of it: any gateway answers for it.
 *
 * @rule a2a/same-message-same-task: The same message is one task: within its context by its id, without a context by its words too. (test:
 *   test/gateway/a2a/a2a.slow.test.ts)
 * @rule a2a/message-to-its-task: A message with a task's id answers the task's question to a person; while the task works, the message
 *   reaches the model in the same turn. (test: test/gateway/a2a/a2a.slow.test.ts)
 */
import type { AgentCard, ListTasksResponse, SendMessageRequest, StreamResponse, Task } from '@a2a-js/sdk' with {
  'resolution-mode': 'import',
};
import type { A2ARequestHandler } from '@a2a-js/sdk/server' with { 'resolution-mode': 'import' };
import type { Principal } from '../access/principal.js';
import { refuseWhileClientRuns } from '../core/answer-calls.js';
import type { Conversations } from '../core/conversations.js';
import { CLEARED } from '../../client/turns/stream.js';
import { toProblem, invalid } from '../core/errors.js';
import { END_PATIENCE_MS, stopTurn } from '../../client/turns/turn-status.js';
import { toConversationId } from '../core/read-body.js';
import { shortHash } from '../core/supplied-history.js';
import { readDecisions, wasTaken, readRequest, type ParsedRequest } from './request.js';
import { followSubmitted, followTask, readTask, listTasks } from './read-tasks.js';
import {
  isTerminal,
  decideState,
  renderTask,
  type TaskFacts,
  type Message,
  type State,
  type Update,
  readTaskId,
  taskName,
  type TaskName,
} from './task.js';
import { A2A_PACKAGE, loadOptional } from '../../platform/optional-package.js';

interface A2aRequest {
  readonly sdk: Sdk;
  readonly core: Conversations;
  readonly principal: Principal;
  /** Those that are listed; none: the worker knows. */
  readonly agents: () => Promise<readonly string[]>;
  readonly card: CardOptions;
  readonly signal: AbortSignal;
  /** Gets what is no fault of the client's. */
  readonly onFailure: (error: unknown) => void;
}

const DEFAULT_AGENT = 'default';
const OUTPUT_MODES = /^(\*\/\*|text\/(\*|plain)|application\/(\*|json))$/;

type Begun = { readonly updates: AsyncGenerator<Update, void>; readonly name: TaskName } | { readonly message: Message };

export function createA2aHandler({ sdk, core, principal, agents, card, signal, onFailure }: A2aRequest): A2ARequestHandler {
  const { client } = core;
  const { types, errors } = sdk;

  const failed = (error: unknown): Error => {
    const refusal = toRefusal(sdk, error);
    if (refusal) return refusal;
    onFailure(error);
    return new Error(toProblem(error).message);
  };
  const answer = async <T>(act: () => Promise<T>): Promise<T> => {
    try {
      return await act();
    } catch (error) {
      throw failed(error);
    }
  };
  async function* answerAll(act: () => AsyncGenerator<Update, void>): AsyncGenerator<StreamResponse, void, undefined> {
    try {
      for await (const update of act()) yield types.StreamResponse.fromJSON(update);
    } catch (error) {
      throw failed(error);
    }
  }

  const named = (task: string): TaskName => {
    if (task === '') throw invalid('the id of the task is missing');
    const name = readTaskId(task);
    if (!name) throw noTask();
    return name;
  };
  const noTask = (): Error => new errors.TaskNotFoundError('there is no task of that id');
  const read = (name: TaskName, patienceMs?: number): Promise<TaskFacts> =>
    readTask(core, name, signal, patienceMs).catch((error: unknown) => {
      throw toProblem(error).type === 'not-found' ? noTask() : error;
    });
  const unsupported = (words: string): Error => new errors.UnsupportedOperationError(words);
  const noPush = (): Promise<never> =>
    Promise.reject(new errors.PushNotificationNotSupportedError('there are no push notifications: subscribe to the task, or get it'));

  const chooseAgent = async (sent: ParsedRequest): Promise<string> => {
    const name = card.agent ?? sent.agent ?? DEFAULT_AGENT;
    const known = await agents();
    if (known.length > 0 && !known.includes(name))
      throw invalid(`there is no agent ${name}: the skills of the extended card are those that there are`);
    return name;
  };

  const begin = async ({ message, configuration, metadata }: SendMessageRequest, untilAsked: boolean): Promise<Begun> => {
    const sent = readRequest(message, metadata);
    if (configuration?.taskPushNotificationConfig !== undefined) return noPush();
    const modes = configuration?.acceptedOutputModes ?? [];
    if (modes.length > 0 && !modes.some((mode) => OUTPUT_MODES.test(mode))) {
      throw new errors.ContentTypeNotSupportedError('answers are text/plain or application/json');
    }
    return sent.task === '' ? beginTask(sent, untilAsked) : goOn(named(sent.task), sent, untilAsked);
  };

  const following = (name: TaskName, untilAsked: boolean): Begun => ({
    name,
    updates: followTask(untilAsked ? core.whileWorked : core, { name, signal, untilAsked }),
  });

  const submit = async (
    context: string,
    sent: ParsedRequest,
    how: Parameters<Conversations['submit']>[2],
    untilAsked: boolean,
  ): Promise<Begun> => {
    const submitted = await core.submit(toConversationId(context), sent.message, { ...how, signal });
    const { turn, acceptedAs, messageId } = submitted;
    if (turn === null) {
      return { message: { messageId: `${messageId}-reset`, contextId: context, role: 'ROLE_AGENT', parts: [{ text: CLEARED.text }] } };
    }
    const name = taskName(context, turn);
    if (acceptedAs === 'duplicate') return following(name, untilAsked);
    const userMessage: Message = { messageId, contextId: context, role: 'ROLE_USER', parts: [{ text: sent.text }] };
    return { name, updates: followSubmitted(untilAsked ? core.whileWorked : core, submitted, userMessage, { name, signal, untilAsked }) };
  };

  /** (a2a/same-message-same-task) */
  const beginTask = async (sent: ParsedRequest, untilAsked: boolean): Promise<Begun> => {
    const agent = await chooseAgent(sent);
    const identity = [principal.name, agent, sent.messageId, sent.text, JSON.stringify(sent.data)];
    if (sent.context !== '') await refuseWhileClientRuns(core, toConversationId(sent.context), sent.messageId);
    return submit(sent.context === '' ? `a2a-${shortHash(identity)}` : sent.context, sent, { start: { agent } }, untilAsked);
  };

  /** (a2a/message-to-its-task) */
  const goOn = async (name: TaskName, sent: ParsedRequest, untilAsked: boolean): Promise<Begun> => {
    if (sent.context !== '' && sent.context !== name.context)
      throw invalid('message.contextId is not that of the task', 'message.contextId');
    const facts = await read(name);
    const state = decideState(facts);
    if (facts.entries.some(({ messageId }) => messageId === sent.messageId)) return following(name, untilAsked);
    if (state === 'TASK_STATE_INPUT_REQUIRED') {
      for (const decision of readDecisions(sent, facts.waiting)) await client.decide(name.conversation, decision);
      return following(name, untilAsked);
    }
    if (wasTaken(sent, facts.entries)) return following(name, untilAsked);
    if (isTerminal(facts)) {
      const taken = (await client.history(name.conversation)).find(({ messageId }) => messageId === sent.messageId);
      if (taken) return following(taskName(name.context, taken.turn), untilAsked);
      throw unsupported('the task has ended: send the message with its contextId and without its taskId');
    }
    if (state === 'TASK_STATE_SUBMITTED') throw unsupported('the task has not begun: send the message without its taskId, or later');
    return submit(name.context, { ...sent, message: { ...sent.message, delivery: 'steer' } }, {}, untilAsked);
  };

  const toTask = (facts: TaskFacts, historyLength?: number): Task =>
    types.Task.fromJSON(renderTask(facts, historyLength === undefined ? {} : { historyLength }));

  return {
    getAgentCard: () => Promise.resolve(types.AgentCard.fromJSON(createCard(card))),
    getAuthenticatedExtendedAgentCard: () =>
      answer<AgentCard>(async () => types.AgentCard.fromJSON(createCard({ ...card, agents: await agents() }))),

    sendMessage: (params) =>
      answer(async () => {
        const begun = await begin(params, true);
        if ('message' in begun) return types.Message.fromJSON(begun.message);
        const historyLength = params.configuration?.historyLength;
        for await (const update of begun.updates) {
          if (params.configuration?.returnImmediately === true && 'task' in update) return types.Task.fromJSON(update.task);
        }
        return toTask(await read(begun.name), historyLength);
      }),
    sendMessageStream: (params) =>
      answerAll(async function* () {
        const begun = await begin(params, true);
        if ('message' in begun) yield { message: begun.message };
        else yield* begun.updates;
      }),
    getTask: ({ id, historyLength }) => answer(async () => toTask(await read(named(id)), historyLength)),
    cancelTask: ({ id }) =>
      answer(async () => {
        const name = named(id);
        if (isTerminal(await read(name))) throw new errors.TaskNotCancelableError('the task has ended');
        await stopTurn(client, name, 'by a client of A2A');
        return toTask(await read(name, END_PATIENCE_MS));
      }),
    resubscribe: ({ id }) =>
      answerAll(async function* () {
        const name = named(id);
        if (isTerminal(await read(name))) throw unsupported('the task has ended: get it');
        yield* followTask(core, { name, signal, untilAsked: false });
      }),
    listTasks: ({ status, ...wanted }) =>
      answer<ListTasksResponse>(async () => {
        const state = types.taskStateToJSON(status);
        const all = state === 'TASK_STATE_UNSPECIFIED' ? {} : { state: state as State };
        return types.ListTasksResponse.fromJSON(await listTasks(core, { ...wanted, ...all }, signal));
      }),
    createTaskPushNotificationConfig: noPush,
    getTaskPushNotificationConfig: noPush,
    listTaskPushNotificationConfigs: noPush,
    deleteTaskPushNotificationConfig: noPush,
  };
}

/** The protocol's official library, loaded at its first request. */
export function loadSdk() {
  return loadOptional([A2A_PACKAGE], async () => {
    const [types, server, legacy, errors] = await Promise.all([
      import('@a2a-js/sdk'),
      import('@a2a-js/sdk/server'),
      import('@a2a-js/sdk/compat/v0_3/server'),
      import('@a2a-js/sdk/errors'),
    ]);
    return { types, server, legacy, errors };
  });
}

export type Sdk = Awaited<ReturnType<typeof loadSdk>>;

/** The error as one that the library knows; undefined where the client did not cause it. */
export function toRefusal({ errors }: Sdk, error: unknown): Error | undefined {
  if (error instanceof errors.A2AError) return error;
  const { status, message, type } = toProblem(error);
  if (status === 415) return new errors.ContentTypeNotSupportedError(message);
  if (status === 409 || type === 'unsupported') return new errors.UnsupportedOperationError(message);
  return status < 429 ? new errors.RequestMalformedError(message) : undefined;
}

/** The first is preferred; a request without a version is one of 0.3. */
export const A2A_VERSIONS = ['1.0', '0.3'] as const;

export interface CardOptions {
  /** Such as `https://agents.example/perdura`. */
  readonly base: string;
  readonly version: string;
  /** The agent of a card for one agent. */
  readonly agent?: string;
  /** All agents, in an extended card. */
  readonly agents?: readonly string[];
}

const TEXT = ['text/plain', 'application/json'];
const MEDIA = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'application/pdf', 'text/plain'];

/**
 * Who serves here, for clients that look for an agent. What a stranger reads names no agent and nothing that runs behind it; the extended
 * card is for those with a token.
 */
export function createCard({ base, version, agent, agents }: CardOptions): object {
  const url = `${base}/a2a${agent === undefined ? '' : `/${agent}`}`;
  return {
    name: agent ?? 'Perdura',
    description:
      'Durable conversations with AI agents. A context is a conversation, and a task is one turn of it, which outlives connections and servers.',
    version,
    supportedInterfaces: A2A_VERSIONS.map((protocolVersion) => ({ url, protocolBinding: 'JSONRPC', protocolVersion })),
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
    securitySchemes: { token: { httpAuthSecurityScheme: { scheme: 'Bearer', description: 'The token that `perdura serve` names.' } } },
    securityRequirements: [{ schemes: { token: { list: [] } } }],
    defaultInputModes: [...TEXT, ...MEDIA],
    defaultOutputModes: TEXT,
    skills: (agent === undefined ? agents : [agent])?.map(toSkill) ?? [CONVERSE],
  };
}

const CONVERSE = {
  id: 'converse',
  name: 'Converse',
  description: 'Talk with an agent: it answers, uses its tools, and asks back where a person must decide.',
  tags: ['conversation'],
};

function toSkill(agent: string): object {
  return {
    id: agent,
    name: agent,
    description: `Talk with the agent ${agent}: send { "agent": "${agent}" } as metadata.`,
    tags: ['agent'],
  };
}
