/** Conversations without Temporal: the product's decisions, tools, store and prompts, in this process and in no time. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { assemble } from '../assemble.js';
import { ClientError } from '../client/errors.js';
import { commandEnvironment } from '../config.js';
import { apply } from '../conversation/apply.js';
import { turnOfMessage } from '../conversation/inbox/arrivals.js';
import { openStarted, LATEST_RULES } from '../conversation/opening.js';
import type { ConversationEvent } from '../conversation/event.js';
import type { Checked } from '../conversation/protocol/schema.js';
import type { ConversationOutcome, Message, ResetResult, StartOptions, TurnResult } from '../conversation/protocol/contract.js';
import { readDecision, type Approval, type Decision } from '../conversation/protocol/human-input.js';
import { readMessage } from '../conversation/protocol/message.js';
import { readStart } from '../conversation/protocol/input.js';
import { outcomeFor } from '../conversation/requests.js';
import type { ConversationState } from '../conversation/state.js';
import { approvalsOf, decisionRefusal } from '../conversation/turn/approvals.js';
import { endedTurn, isTurnOpen, statusOf } from '../conversation/views/view.js';
import { readArguments, withBodies } from '../memory/bodies.js';
import { readCurrent } from '../memory/past-life.js';
import { modelsAnsweredBy, type Models } from '../models/known-models.js';
import { createKnownSecrets } from '../platform/known-secrets.js';
import { turnId, scopeAndTenant } from '../records/identity.js';
import { shownText, type ConversationMessage } from '../records/message.js';
import { createFileStore } from '../stores/file/index.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { builtinToolsWith } from '../tools/builtin/index.js';
import type { Tool } from '../tools/tool.js';
import {
  closeSignal,
  decideSignal,
  eventSignal,
  interruptSignal,
  messageSignal,
  newSignal,
  turnUpdate,
  WORKFLOW_TYPE,
} from '../workflows/messages.js';
import { advance } from './engine/clock.js';
import { startMemoryTemporal } from './engine/connection.js';
import { asJson } from './engine/run-activity.js';
import { openTestProject } from './project.js';
import type { InMemory, InMemoryOptions, TestConversation, TestToolCall } from './test-conversation.js';

const NAMESPACE = 'test';
const TASK_QUEUE = 'test';
const SCRIPTED = 'scripted/model';
const MEMORY_WAITS = /^a consolidation that failed/;
/** Far more often than any test lets time pass. */
const MAX_JUMPS = 100_000;

/** What observers have seen of a conversation. */
interface Watched {
  readonly id: string;
  state?: ConversationState;
  readonly events: ConversationEvent[];
}

interface ConversationRun extends Pick<Watched, 'id' | 'events'> {
  readonly state: () => ConversationState;
  readonly end: () => { readonly outcome: ConversationOutcome } | { readonly refused: string } | undefined;
  readonly say: (signal: { readonly name: string }, payload?: unknown) => void;
}

/**
 * Runs conversations without Temporal and without a network: Perdura's loop and handlers, the project's agents and tools, the built-in
 * tools, a store in a separate folder. Not part of it: observers, webhooks, MCP servers and forks;
 * `startWithTemporal` has them. Throws `ConfigError` for extensions that are none.
 *
 * ```ts
 * const perdura = await startInMemory({ model: createScriptedModel(['Hello!']) });
 * const { text } = await perdura.start({ agent: 'default' }).send('hi');
 * await perdura.close();
 * ```
 */
export function startInMemory(options: InMemoryOptions): Promise<InMemory> {
  return startInMemoryWith(options, {});
}

/** What an eval has in another way than a test. */
interface MemorySurroundings {
  /** By the names that agents give; default: the model of the options answers for every name. */
  readonly models?: Models;
  readonly defaultModel?: string;
  /** What stands for the tools that there are. */
  readonly replaceTools?: (tools: readonly Tool[]) => readonly Tool[];
  /** MEMORY.md of a scope at the beginning. */
  readonly memory?: { readonly scope: string; readonly text: string };
}

/** @internal For `perdura eval`. */
export async function startInMemoryWith(
  options: InMemoryOptions,
  { models, defaultModel = SCRIPTED, replaceTools = (tools) => tools, memory }: MemorySurroundings,
): Promise<InMemory> {
  const project = await openTestProject(options);
  const { dir, agentsDir, extensions } = project;
  const workspace = join(dir, 'workspace');
  const watched = new Map<string, Watched>();
  const engine = startMemoryTemporal({
    namespace: NAMESPACE,
    now: options.now ?? new Date(),
    ...(options.reducers && { reducers: options.reducers }),
    observe({ workflowId }) {
      const one = watched.get(workflowId) ?? { id: workflowId, events: [] };
      watched.set(workflowId, one);
      return {
        opened: (state) => void (one.state = state),
        event(event) {
          one.events.push(event);
          if (one.state) one.state = apply(one.state, event);
        },
      };
    },
  });
  const { clock, connection } = engine;
  const store = createFileStore({ dir: join(dir, 'memory'), clock: clock.now });
  if (memory !== undefined) await writeFirstMemory(store, memory, clock.now());

  const { activities, close } = assemble(
    {
      ...{ connection, store, agentsDir, workspace, extensions, namespace: NAMESPACE, taskQueue: TASK_QUEUE },
      models: models ?? modelsAnsweredBy(options.model, extensions.models),
      tools: replaceTools([
        ...builtinToolsWith({
          fetchAllow: [],
          commandEnvironment: commandEnvironment(),
          secrets: createKnownSecrets(),
          protectedPlaces: [agentsDir, join(dir, 'memory')],
          hiddenPlaces: [],
        }),
        ...(extensions.tools ?? []),
      ]),
      defaultModel,
    },
    // Titles are made for Temporal's page, by a model call that no script expects.
    { now: clock.now, showsWords: false, serverTools: undefined },
  );
  engine.serve(activities);

  const open = (id: string, start: StartOptions): ConversationRun => {
    const given = asJson(start);
    const read = readStart(given);
    if (!read.ok) throw new ClientError('invalid', `cannot start ${id}: ${read.reason}`);
    if (engine.find(id)) throw new ClientError('invalid', `cannot start ${id}: a conversation of that id was started in this test`);
    if (read.value.origin !== null) throw new ClientError('invalid', `cannot start ${id}: forks and resumes need startWithTemporal`);
    const { agent, scope } = read.value;
    const memo = { agent, ...scopeAndTenant(scope) };
    const { firstRunId: life } = engine.start({ workflowId: id, type: WORKFLOW_TYPE, taskQueue: TASK_QUEUE, args: [given], memo });
    const unopened = openStarted(read.value, { conversation: id, life, rules: LATEST_RULES, at: clock.now() });
    const one = watched.get(id);
    return {
      id,
      events: one?.events ?? [],
      state: () => one?.state ?? unopened,
      end() {
        const { status, result, failure } = engine.find(id) ?? {};
        if (status === 'COMPLETED') return { outcome: result as ConversationOutcome };
        return failure && { refused: failure.message.replace(/^cannot start a conversation: /, '') };
      },
      say: ({ name }, payload) => engine.signal(id, name, payload === undefined ? [] : [asJson(payload)]),
    };
  };

  /** Until it is so, or nothing more happens without a person. */
  const settle = async (run: ConversationRun, isSo: () => boolean): Promise<void> => {
    for (let jumps = 0; jumps < MAX_JUMPS; jumps++) {
      await clock.quiet();
      if (isSo() || run.end() !== undefined || approvalsOf(run.state()).length > 0) return;
      // A consolidation that is retried belongs to no turn.
      if (clock.dueAt((why) => !MEMORY_WAITS.test(why)) === undefined) return;
      clock.passTo(clock.dueAt() as number);
    }
    throw new Error(`${run.id} waits again and again: ${waitsFor(run)}`);
  };

  const keyOf = (conversation: string, { identity: { life, scope } }: ConversationState): ConversationKey => {
    return { namespace: NAMESPACE, scope, conversation, life };
  };

  const conversationOf = (run: ConversationRun): TestConversation => {
    const { state } = run;

    const refuseWhenOver = (): void => {
      refuseWhenRefused();
      if (run.end() || state().closing !== 'no') throw new ClientError('closed', `${run.id} is closed; start another`);
    };

    const isOver = (turn: string | undefined): boolean =>
      turn !== undefined && (endedTurn(state(), turn) !== undefined || !isTurnOpen(state(), turn));

    const receive = async (message: string | Message): Promise<string> => {
      const incoming = checked(readMessage(asJson(message)));
      refuseWhenOver();
      if (incoming.kind === 'reset') throw new ClientError('invalid', 'a reset is no message: call reset()');
      const messageId = incoming.id ?? randomUUID();
      run.say(messageSignal, { ...(typeof message === 'string' ? { text: message } : message), id: messageId });
      let turn: string | undefined;
      await settle(run, () => isOver((turn = turnOfMessage(state(), messageId) ?? turn)));
      refuseWhenRefused();
      if (turn === undefined) throw new Error(`the message of ${run.id} has no turn yet; ${waitsFor(run)}`);
      return turn;
    };

    const refuseWhenRefused = (): void => {
      const end = run.end();
      if (end && 'refused' in end) throw new ClientError('failed', `${run.id} could not begin: ${end.refused}`);
    };

    const resultOfTurn = async (id: string): Promise<TurnResult> => {
      const execution = engine.find(run.id);
      if (endedTurn(state(), id) && execution) {
        const outcome = await engine.update(execution, randomUUID(), turnUpdate.name, [{ turnId: id }]).outcome;
        if ('result' in outcome) return outcome.result as TurnResult;
        throw outcome.failure;
      }
      const what = isTurnOpen(state(), id) ? `${id} has not ended; ${waitsFor(run)}` : `${run.id} knows no ${id}, or no more`;
      throw new Error(
        `${what}. \`send\` is for turns that end by themselves: use \`enqueue\`, decide or let time pass, then ask for \`turn()\``,
      );
    };

    const decide = async (decision: Omit<Decision, 'callId'> & { readonly callId?: string }, kind: Approval['kind']): Promise<void> => {
      const open = approvalsOf(state()).filter(
        (one) => one.kind === kind && (decision.callId === undefined || one.callId === decision.callId),
      );
      const [only, ...others] = open;
      if (only === undefined || others.length > 0) {
        const names = approvalsOf(state()).map(({ kind: what, tool, callId }) => `${what} of ${tool} (${callId})`);
        throw new ClientError(
          'not-waiting',
          only === undefined
            ? `no ${kind} ${decision.callId ?? ''} waits in ${run.id}; what waits: ${names.join(', ') || 'nothing'}`
            : `${open.length} calls wait in ${run.id}, so name one: ${names.join(', ')}`,
        );
      }
      const where = only.conversation === run.id ? {} : { conversation: only.conversation };
      const whole = checked(readDecision(asJson({ ...decision, ...where, callId: only.callId })));
      const refused = decisionRefusal(state(), whole);
      if (refused !== undefined) throw new ClientError('not-waiting', refused);
      run.say(decideSignal, whole);
      await settle(run, () => state().turn === null && state().queue.length === 0);
    };

    const messages = async (): Promise<readonly ConversationMessage[]> => {
      await clock.quiet();
      const key = keyOf(run.id, state());
      const entries = await readCurrent(store, key);
      return Promise.all(entries.map((entry) => withBodies(store, key, entry)));
    };

    return {
      id: run.id,
      events: run.events,
      async send(message) {
        return resultOfTurn(await receive(message));
      },
      enqueue: receive,
      turn: (id = turnId(state().latestTurn)) => resultOfTurn(id),
      async approvals() {
        const key = keyOf(run.id, state());
        return Promise.all(
          approvalsOf(state()).map(async (one) => {
            const itsState = watched.get(one.conversation)?.state;
            return { ...one, arguments: (await readArguments(store, itsState ? keyOf(one.conversation, itsState) : key, one)) ?? null };
          }),
        );
      },
      approve: (callId, { note, input } = {}) => decide({ callId, decision: 'approve', note, input }, 'approval'),
      deny: (callId, note) => decide({ callId, decision: 'deny', note }, 'approval'),
      answer: (text, callId) => decide({ callId, decision: 'approve', note: text }, 'question'),
      async interrupt(reason) {
        run.say(interruptSignal, reason === undefined ? {} : { reason });
        await settle(run, () => state().turn === null);
      },
      async reset() {
        refuseWhenOver();
        const resetId = randomUUID();
        run.say(newSignal, { id: resetId });
        const found = (): ResetResult | 'withdrawn' | undefined => outcomeFor(state(), 'reset', resetId);
        await settle(run, () => found() !== undefined);
        const result = found();
        if (!result || result === 'withdrawn') throw new Error(`the reset of ${run.id} has not ended; ${waitsFor(run)}`);
        return result;
      },
      async close() {
        if (run.end() === undefined) run.say(closeSignal);
        await settle(run, () => false);
        const end = run.end();
        if (end && 'outcome' in end) return end.outcome;
        refuseWhenRefused();
        throw new Error(`${run.id} has not ended; ${waitsFor(run)}`);
      },
      async dispatch(type, payload = null) {
        refuseWhenOver();
        run.say(eventSignal, { type, payload });
        await settle(run, () => !state().queue.some(({ kind }) => kind === 'app'));
      },
      status: () => statusOf(state(), 0),
      messages,
      toolCalls: async () => toolCallsIn(await messages()),
    };
  };

  return {
    workspace,
    now: () => new Date(clock.now()),
    start(start = {}, id = `test-${randomUUID()}`) {
      return conversationOf(open(id, start));
    },
    advance: (ms) => advance(clock, ms),
    memory: async (scope = 'default') => (await store.documents.memory({ namespace: NAMESPACE, scope })).text,
    async close() {
      await clock.quiet();
      await close();
      await store.close();
      await project.close();
    },
  };
}

async function writeFirstMemory(
  store: Store,
  { scope, text }: { readonly scope: string; readonly text: string },
  at: number,
): Promise<void> {
  const key = { namespace: NAMESPACE, scope };
  const { version } = await store.documents.memory(key);
  await store.documents.writeMemory(key, { id: 'first', ts: at / 1000, cause: 'hand', from: version, lines: [], text });
}

function waitsFor(run: ConversationRun): string {
  const { waitingFor, phase } = statusOf(run.state(), 0);
  return waitingFor === undefined ? `it is ${phase}` : `it waits for ${waitingFor}`;
}

function checked<T>(read: Checked<T>): T {
  if (read.ok) return read.value;
  throw new ClientError('invalid', read.reason);
}

function toolCallsIn(messages: readonly ConversationMessage[]): TestToolCall[] {
  const results = new Map(messages.flatMap((message) => (message.role === 'tool' ? [[message.callId, message]] : [])));
  return messages
    .flatMap((message) => (message.role === 'assistant' ? message.blocks : []))
    .flatMap((block) => {
      if (block.kind !== 'tool-call') return [];
      const { callId, name, input } = block;
      const result = results.get(callId);
      return [{ callId, name, input, ...(result && { outcome: result.outcome, result: shownText(result.text) }) }];
    });
}
