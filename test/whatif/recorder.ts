/** Conversations that are recorded in memory, to be played again: the product's client, its loop and a scripted model. */
import { join } from 'node:path';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import type { Run } from '../../src/conversation/replay/past.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import type { ConversationState } from '../../src/conversation/state.js';
import { modelsAnsweredBy } from '../../src/models/known-models.js';
import type { Model } from '../../src/models/model.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import type { Tool } from '../../src/tools/tool.js';
import { changeProject, openProject, type Changes, type Project } from '../../src/whatif/project.js';
import { play, type Played, type PlayOptions } from '../../src/whatif/player.js';
import type { Recordings } from '../../src/whatif/recording.js';
import { startWorld, type World, type WorldOptions } from '../support/world.js';

export interface Recorder {
  readonly world: World;
  readonly recordings: Recordings;
  readonly project: Project;
  /** Runs of a conversation as far as they are recorded. */
  runs(id: string): readonly Run[];
  /** With this model in the place of the recorded one. */
  projectWith(model: Model, changes?: Changes): ReturnType<typeof changeProject>;
  play(id: string, more?: Partial<PlayOptions>): Promise<Played>;
  close(): Promise<void>;
}

export async function startRecorder(
  model: Model,
  { tools = [], ...options }: Omit<WorldOptions, 'model' | 'tools'> & { readonly tools?: readonly Tool[] } = {},
): Promise<Recorder> {
  const all = new Map<string, { opened: ConversationState; events: ConversationEvent[] }[]>();
  const known = [...builtinTools, ...tools];
  const world = await startWorld({
    ...options,
    ...{ engine: 'memory', model, tools: known },
    opened(id, state) {
      const runs = all.get(id) ?? [];
      all.set(id, runs);
      runs.push({ opened: state, events: [] });
    },
    observe: (id, event) => void all.get(id)?.at(-1)?.events.push(event),
  });
  const runs = (id: string): readonly Run[] => all.get(id) ?? [];
  const recordings: Recordings = {
    store: world.store,
    async open(id) {
      const [first] = runs(id);
      if (!first) throw new Error(`there is no conversation ${id}`);
      const { life, scope } = first.opened.identity;
      const each = async function* (): AsyncGenerator<Run> {
        for (const run of runs(id)) yield await Promise.resolve({ opened: run.opened, events: [...run.events] });
      };
      return { id, key: { namespace: 'default', conversation: id, life, scope }, runs: each(), gaps: [] };
    },
  };
  const projectWith = (answering: Model, changes: Changes = {}) =>
    changeProject(
      openProject({
        ...{ cwd: world.dir, agentsDir: join(world.dir, 'agents'), extensions: {}, tools: known },
        ...{ models: modelsAnsweredBy(answering), defaultModel: 'anthropic/claude-test' },
        ...(options.reducers && { reducers: options.reducers }),
      }),
      changes,
    );
  const project = projectWith(model);
  return {
    ...{ world, recordings, project, projectWith, runs },
    async play(id, more = {}) {
      const dir = await mkdtemp(join(tmpdir(), 'perdura-play-'));
      try {
        return await play(id, {
          ...{ recordings, lane: 'candidate', candidate: project, project, policy: 'stop', memory: 'recorded', dir },
          signal: new AbortController().signal,
          ...more,
        });
      } finally {
        await rm(dir, { recursive: true, force: true, maxRetries: 3 });
      }
    },
    close: () => world.close(),
  };
}

/** Played again with nothing changed, nothing differs, and no tool runs. */
export async function expectSame(recorder: Recorder, id: string, counts: { readonly ran: number }): Promise<Played> {
  const before = counts.ran;
  const played = await recorder.play(id);
  const { lane, requests } = played;
  expect({ stopped: lane.stopped, divergence: lane.divergence }).toEqual({ stopped: undefined, divergence: null });
  expect(requests.equal).toBe(requests.compared);
  expect(counts.ran).toBe(before);
  for (const { recorded, played: now } of lane.turns) expect(comparable(now)).toEqual(comparable(recorded));
  return played;
}

/** Without times, and without where results came from. */
function comparable(side: object | undefined): unknown {
  if (side === undefined) return undefined;
  return JSON.parse(JSON.stringify(side, (name, value: unknown) => (name === 'modelMs' || name === 'source' ? null : value)));
}
