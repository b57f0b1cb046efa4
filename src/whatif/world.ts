/**
 * Where a conversation is played: the product's loop, handlers and activities in memory, on a clock that stands where the recording is. Models
 * are called; nothing else leaves it.
 */
import { Context } from '@temporalio/activity';
import { playAgain } from './again.js';
import type { ConversationDependencies, Recorded } from '../activities/dependencies.js';
import { assemble } from '../assemble.js';
import type { ConversationState } from '../conversation/state.js';
import type { ModelAnswer } from '../conversation/turn/model-step-effects.js';
import { ModelFailure, type Model, type ModelHook, type ModelRequest, type ModelResponse, type ToolDescription } from '../models/model.js';
import type { Models } from '../models/known-models.js';
import { NO_MEMORY_VERSION } from '../records/memory/documents.js';
import { createToolRegistry } from '../tools/tool.js';
import { startMemoryTemporal, type MemoryTemporal } from '../testing/engine/connection.js';
import { createFileStore } from '../stores/file/index.js';
import type { Store } from '../stores/store.js';
import type { Part } from './part.js';
import { nameActivity, nameSignal, type RecordedStep } from './recording.js';
import type { Candidate, Project } from './project.js';
import type { SentRequest } from './compare.js';
import { createPlans, createSandboxStore, inSandbox, onlyRead, recordedServers } from './sandbox.js';

export interface WorldOptions {
  readonly namespace: string;
  /** Epoch milliseconds at the beginning. */
  readonly at: number;
  /** For all that is written. */
  readonly dir: string;
  readonly candidate: Candidate;
  /** As it is without any change: recorded requests are made again with it. */
  readonly project: Project;
  readonly recorded: Store;
  readonly memory: 'recorded' | 'candidate';
  /** It is sent what was sent then, as far as that is stored. */
  readonly isBaseline: boolean;
  readonly part: (id: string) => Part | undefined;
  readonly root: string;
  readonly opened: ConversationState;
  readonly tool: (part: Part, ...given: Parameters<Recorded['tool']>) => ReturnType<Recorded['tool']>;
  /** A request that is about to be sent; answers whether it is the recorded one. */
  readonly sends: (part: Part, step: RecordedStep | undefined, sent: SentRequest, rebuild: ConversationDependencies) => Promise<boolean>;
}

export interface World {
  readonly engine: MemoryTemporal;
  readonly store: Store;
  close(): Promise<void>;
}

const TASK_QUEUE = 'what-if';

export function openWorld(options: WorldOptions): World {
  const { namespace, at, dir, candidate, recorded, memory, part: findPart, opened, root } = options;
  const isRecorded = memory === 'recorded';
  const lives = new Set<string>();
  const engine = startMemoryTemporal({
    namespace,
    now: new Date(at),
    ...(candidate.reducers && { reducers: candidate.reducers }),
    observe: ({ workflowId, firstRunId }) => {
      lives.add(firstRunId);
      const part = findPart(workflowId);
      // A long conversation has many runs, and nothing asks for the history of those that are over.
      for (const { status, runId, workflowId: of } of engine.executions()) {
        if (of === workflowId && status === 'CONTINUED_AS_NEW') engine.delete(runId);
      }
      return { opened: (state) => part?.opened(state), event: (event) => part?.event(event) };
    },
    playing: {
      lifeFor: (id) => findPart(id)?.track?.opened.identity.life,
      handsOver: (id) => findPart(id)?.handsOver(),
      openedAs: (id) => (id === root ? opened : undefined),
      hold(id, name, input) {
        const part = findPart(id);
        if (!part || NOT_HELD.has(name)) return Promise.resolve();
        const { effect, of } = nameSignal(name, input) ?? { effect: name, of: nameActivity(name, input) };
        return new Promise((release) => part.hold({ effect, of, release }));
      },
    },
  });
  const present = (): Part | undefined => findPart(Context.current().info.workflowExecution?.workflowId ?? '');
  const recordedMemory = (): string | undefined => (present() ?? findPart(root))?.memoryVersion();
  const written = createFileStore({ dir, clock: engine.clock.now });
  const store = createSandboxStore(written, recorded, {
    isPlayed: ({ life }) => lives.has(life),
    before: ({ conversation }) => findPart(conversation)?.before() ?? 0,
    memoryVersion: () => (isRecorded ? recordedMemory() : undefined),
    firstMemory: () => recordedMemory() ?? NO_MEMORY_VERSION,
    now: engine.clock.now,
  });
  const findPlan = createPlans(() => present()?.plans() ?? []);
  const tools = candidate.tools.map((tool) => inSandbox(tool, findPlan));
  const serverTools = recordedServers(() => offeredThen(recorded, present()), findPlan);
  const models = playedModels(options, present);
  const { activities, close } = assemble(
    {
      ...{ connection: engine.connection, store, agentsDir: candidate.agentsDir, workspace: dir, namespace, taskQueue: TASK_QUEUE },
      ...{ extensions: candidate.extensions, models: models.of(candidate), tools, defaultModel: candidate.defaultModel },
    },
    {
      ...{ now: engine.clock.now, agents: candidate.agents, serverTools, showsWords: false },
      hooks: [...(candidate.extensions.hooks ?? []), models.hook],
      recorded: {
        tool: async (input, argument) => {
          const part = present();
          return part && options.tool(part, input, argument);
        },
        recalled: ({ call }) => (isRecorded ? recalledThen(present(), call.id) : undefined),
        base: ({ call }) => (isRecorded ? baseThen(present(), call.id) : undefined),
      },
    },
  );
  engine.serve(playAgain(activities, { present, store, isRecorded }));
  return {
    engine,
    store,
    async close() {
      for (const execution of engine.executions()) engine.terminate(execution, 'it has been played');
      await close();
      await written.close();
    },
  };
}

/** Handlers ask for these; no conversation waits for their order. */
const NOT_HELD: ReadonlySet<string> = new Set(['recall', 'heal', 'consolidate', 'remember', 'forget', 'review', 'care', 'post-webhook']);

function recalledThen(part: Part | undefined, call: string): string | null | undefined {
  const steps = part?.track?.steps(call) ?? [];
  if (steps.length === 0) return null;
  for (const { result } of steps) {
    if (result?.kind === 'deferred' && result.reason === 'recall') return result.recalled ?? null;
  }
  return null;
}

function baseThen(part: Part | undefined, call: string): Exclude<ReturnType<Recorded['base']>, undefined> | undefined {
  const steps = part?.track?.steps(call) ?? [];
  if (steps.length === 0) return undefined;
  return steps.map(({ result }) => result?.base).find((base) => base !== undefined) ?? null;
}

/** What the model was told of tools, from what the store has of its prompt. */
async function offeredThen(recorded: Store, part: Part | undefined): Promise<readonly ToolDescription[]> {
  if (!part?.track) return [];
  const head =
    part.head() ??
    [...part.track.known()].map(({ result }) => (result?.kind === 'answered' ? result.answer.head : undefined)).find(Boolean);
  const text = head && (await recorded.bodies.get(part.track.conversation.key, head.tools));
  return text === undefined ? [] : (JSON.parse(text) as ToolDescription[]);
}

interface PlayedModels {
  readonly hook: ModelHook;
  readonly of: (project: Project) => Models;
}

/** Knows which call is about to be made, compares it, and lets the model answer, but where a person or a failure did. */
function playedModels(options: WorldOptions, present: () => Part | undefined): PlayedModels {
  const { project, isBaseline } = options;
  const due = new Map<Part, { readonly call: string; readonly request: ModelRequest; readonly model: string }>();
  const registry = createToolRegistry(project.tools);

  const rebuilding = (part: Part): ConversationDependencies => {
    const key = part.track?.conversation.key ?? { namespace: options.namespace, scope: '', conversation: part.id, life: '' };
    const { agent } = part.track?.opened.identity ?? { agent: '' };
    const findPlan = createPlans(() => part.plans());
    return {
      ...{ store: onlyRead(options.recorded), models: project.models, agents: project.agents, tools: registry, workspace: options.dir },
      ...{ serverTools: recordedServers(() => offeredThen(options.recorded, part), findPlan), defaultModel: project.defaultModel },
      ...{ key, identity: { agent, life: key.life, scope: key.scope }, compactionPlugins: project.extensions.compactionPlugins },
    };
  };

  const wrap = (model: Model): Model => {
    const stream: Model['stream'] = async (request, given) => {
      const part = present();
      const call = part && due.get(part);
      if (!part || !call) return model.stream(request, given);
      due.delete(part);
      const step = part.present()?.step;
      if (step && !step.result) {
        const kept = part.track?.committed(call.call) as { readonly answer: ModelAnswer } | undefined;
        if (!kept) throw new ModelFailure('invalid-request', 'it was not answered then');
        return { blocks: kept.answer.blocks, stop: kept.answer.stop, usage: kept.answer.usage };
      }
      const sent = isBaseline ? await asThen(options.recorded, part, call.request) : call.request;
      const isAsked = step?.result?.kind === 'answered' || step?.result?.kind === 'failed';
      const isSame = await options.sends(part, isAsked ? step : undefined, { model: call.model, request: sent }, rebuilding(part));
      const result = step?.result;
      // What a person has cut short cannot be cut there again.
      if (result?.kind === 'answered' && result.answer.stop === 'interrupted') {
        const { blocks, usage } = result.answer;
        return { blocks, stop: 'interrupted', usage } satisfies ModelResponse;
      }
      if (result?.kind === 'failed' && isSame) {
        part.repeat();
        throw new ModelFailure('invalid-request', result.failure.message);
      }
      const began = performance.now();
      const answer = await model.stream(isBaseline ? { ...request, system: sent.system, tools: sent.tools } : request, given);
      part.modelMs.set(call.call, Math.round(performance.now() - began));
      return answer;
    };
    return new Proxy(model, {
      get(_, property) {
        const value: unknown = property === 'stream' ? stream : Reflect.get(model, property);
        return typeof value === 'function' ? (value.bind(model) as unknown) : value;
      },
    });
  };

  return {
    hook: {
      name: 'what-if',
      beforeInvoke(_messages, request, { call, model }) {
        const part = present();
        if (part) due.set(part, { call, request, model });
      },
    },
    of: ({ models }) => {
      const wrapped = new Map<Model, Model>();
      const choose = (name: string): Model => {
        const model = models(name);
        const known = wrapped.get(model) ?? wrap(model);
        wrapped.set(model, known);
        return known;
      };
      return Object.assign(choose, { limits: models.limits });
    },
  };
}

async function asThen(recorded: Store, part: Part, request: ModelRequest): Promise<ModelRequest> {
  const head = part.head();
  if (!head || !part.track) return request;
  const { key } = part.track.conversation;
  const [system, tools] = await Promise.all([recorded.bodies.get(key, head.system), recorded.bodies.get(key, head.tools)]);
  if (system === undefined || tools === undefined) return request;
  const { sharedSystem: _, ...rest } = request;
  return { ...rest, system, tools: JSON.parse(tools) as ModelRequest['tools'] };
}
