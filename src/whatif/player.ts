/**
 * Plays one recorded conversation. What came to it comes again in the order in which its workflow heard of it: messages and decisions at the
 * place where they came, results when they came. As long as everything is as it was, nothing else can happen; from where something differs,
 * effects that the recording does not have end by themselves, and what people sent comes at the next place that is like the one it had.
 */
import { join } from 'node:path';
import { setImmediate as immediate } from 'node:timers/promises';
import type { Recorded, ToolEnd } from '../activities/dependencies.js';
import { approvalsOf } from '../conversation/turn/approvals.js';
import { errorMessage } from '../platform/errors.js';
import { turnId } from '../records/identity.js';
import type { JsonValue } from '../records/message.js';
import { readAnswers } from './answers.js';
import { createComparison, type Comparison } from './compare.js';
import { createPart, fits, toBring, type Part } from './part.js';
import type { Candidate, Project } from './project.js';
import { NEXT_RUN, openTrack, TIMER, type Happening, type RecordedConversation, type Recordings, type Track } from './recording.js';
import type { Lane, PlayedLane, ToolPolicy } from './report.js';
import { IN_SANDBOX, isOfServers } from './sandbox.js';
import { standIn, type Stub } from './stub.js';
import { openWorld, type World } from './world.js';

export interface PlayOptions {
  readonly recordings: Recordings;
  readonly lane: Lane;
  readonly candidate: Candidate;
  readonly project: Project;
  readonly policy: ToolPolicy;
  readonly stub?: Stub;
  readonly memory: 'recorded' | 'candidate';
  /** For what is written while it is played. */
  readonly dir: string;
  readonly signal: AbortSignal;
}

export interface Played {
  readonly lane: PlayedLane;
  readonly gaps: readonly string[];
  readonly agent: string;
  readonly turns: number;
  /** Model calls that were sent what was sent then, byte for byte; and all that were compared. */
  readonly requests: { readonly equal: number; readonly compared: number };
}

interface Stop {
  readonly turn: string;
  readonly why: string;
}

/** A conversation that goes round in circles is given up. */
const MAX_IDLE_STEPS = 10_000;
/** What waits for long-term memory belongs to no turn. */
const MEMORY_WAITS = /memory:|a consolidation that failed/;

export async function play(id: string, options: PlayOptions): Promise<Played> {
  const { recordings, memory, candidate, dir } = options;
  const parts = new Map<string, Part>();
  const over = new Set<string>();
  const gaps = new Set<string>();
  const consolidates = memory === 'candidate';
  const make = (...given: Parameters<typeof createPart>): Part => {
    const part = createPart(...given);
    parts.set(part.id, part);
    part.onAnswer((call) => comparison.answered(part, call));
    return part;
  };
  const add = async (recorded: RecordedConversation): Promise<Part> => {
    for (const gap of recorded.gaps) gaps.add(gap);
    const track = await openTrack(recorded, { consolidates });
    const answers = await readAnswers(recordings.store, track, slotBefore(track));
    const part = make(recorded.id, track, answers);
    await addChildren(track);
    return part;
  };
  const addChildren = async (track: Track): Promise<void> => {
    for (const child of track.children()) {
      if (parts.has(child) || over.has(child)) continue;
      const recorded = await recordings.open(child).catch((error: unknown) => {
        gaps.add(`the sub-agent ${child} is not played as it was: ${errorMessage(error)}`);
        return undefined;
      });
      if (recorded) await add(recorded);
      else make(child, undefined, undefined);
    }
  };

  const root = await add(await recordings.open(id));
  const track = root.track as Track;
  const comparison = createComparison(root, candidate.model !== undefined && options.lane === 'candidate');
  const stopping = createStop();
  const { opened } = track;
  const world = openWorld({
    ...{ namespace: track.conversation.key.namespace, at: opened.now, dir: join(dir, 'store'), candidate, project: options.project },
    ...{ recorded: recordings.store, memory, isBaseline: options.lane === 'baseline', root: id },
    part(wanted) {
      const known = parts.get(wanted);
      return known || over.has(wanted) || !wanted.startsWith(`${id}:`) ? known : make(wanted, undefined, undefined);
    },
    opened: candidate.model === undefined || opened.modelOverride === null ? opened : { ...opened, modelOverride: candidate.model },
    tool: (part, input, argument) => answerTool(part, options, stopping.stop, input, argument),
    sends: comparison.sends,
  });
  try {
    const { engine } = world;
    const { identity, title } = opened;
    engine.start({
      workflowId: id,
      type: 'conversation',
      taskQueue: 'what-if',
      args: [{ agent: identity.agent }],
      memo: { agent: identity.agent, title },
    });
    await conduct(world, { parts, over, root, options, stopping, addChildren });
    return {
      lane: toLane(root, comparison, stopping.stopped()),
      gaps: [...gaps],
      agent: identity.agent,
      turns: track.log.turns.size,
      requests: comparison.requests,
    };
  } finally {
    await world.close();
  }
}

/** Of what was there before its first run that is left: a fork's turns that it shares are in its entries too. */
function slotBefore(track: Track): number {
  const origin = track.effects('open-origin', '').find(({ ended }) => ended?.kind === 'effect-completed')?.ended;
  const shared = origin?.kind === 'effect-completed' && origin.effect === 'open-origin' ? origin.output.slot : 0;
  return Math.max(track.opened.counters.slot, shared);
}

interface Stopping {
  readonly stop: (stop: Stop) => void;
  readonly stopped: () => Stop | undefined;
  /** Resolves with it, or with the stop that comes before: what is stopped never ends. */
  readonly orStopped: (work: Promise<void>) => Promise<void>;
}

function createStop(): Stopping {
  let stopped: Stop | undefined;
  let end = (): void => undefined;
  return {
    stop(stop) {
      stopped ??= stop;
      end();
    },
    stopped: () => stopped,
    orStopped: (work) =>
      new Promise((resolve) => {
        end = resolve;
        if (stopped) resolve();
        else void work.then(resolve);
      }),
  };
}

async function answerTool(
  part: Part,
  { policy, stub, candidate }: PlayOptions,
  stop: (stop: Stop) => void,
  input: Parameters<Recorded['tool']>[0],
  argument: JsonValue,
): Promise<ToolEnd | undefined> {
  const { name, callId, turn, plan } = input;
  const known = await part.answers?.next(input, argument);
  if (known) {
    part.sources.set(callId, 'recording');
    return known;
  }
  if (IN_SANDBOX.has(name)) {
    part.sources.set(callId, 'product');
    return undefined;
  }
  const tool = candidate.tools.find((one) => one.name === name);
  if (policy === 'stub') {
    part.sources.set(callId, 'stub');
    const text = await stub?.({ conversation: part.id, turn, name, input: argument });
    return { outcome: 'ok', text: text ?? standIn(name, tool) };
  }
  const asks = plan.approval !== undefined || tool?.policy.approval === 'ask';
  if (policy === 'live' && tool?.policy.repeatable && !asks) {
    part.sources.set(callId, 'live');
    return undefined;
  }
  // The model would have been told that there is no such tool.
  if (!tool && !isOfServers(name)) return undefined;
  const why =
    policy === 'live'
      ? `${name} was not called like this, and ${tool ? 'is not repeatable, or asks a person,' : 'is of an MCP server,'} so it does not run`
      : `${name} was not called like this then: ${JSON.stringify(argument).slice(0, 400)}`;
  stop({ turn, why });
  return new Promise(() => undefined);
}

interface Conducting {
  readonly parts: Map<string, Part>;
  /** Sub-agents that have been. */
  readonly over: Set<string>;
  readonly root: Part;
  readonly options: PlayOptions;
  readonly stopping: Stopping;
  readonly addChildren: (track: Track) => Promise<void>;
}

/** Until nothing is left of the recording, and what goes on by then has come to rest. */
async function conduct({ engine }: World, { parts, over, root, options, stopping, addChildren }: Conducting): Promise<void> {
  const { clock } = engine;
  const release = (part: Part, effect: string, of: string): boolean => {
    const at = part.held.findIndex((one) => one.effect === effect && one.of === of);
    if (at < 0) return false;
    part.held.splice(at, 1)[0]?.release();
    return true;
  };
  const dueBy = (time: number): number | undefined => {
    const due = clock.dueAt();
    return due !== undefined && due <= time ? due : undefined;
  };
  const bring = async (part: Part, happenings: readonly Happening[]): Promise<void> => {
    const { track } = part;
    if (!track) return;
    clock.passTo(Math.max(...happenings.map(({ at }) => at)));
    const events = happenings.flatMap((one) => (one.kind === 'input' ? (toBring(part, one.event) ?? []) : []));
    const wanted = options.candidate.model === undefined ? events : events.filter(({ kind }) => kind !== 'model-set');
    const ends = happenings.flatMap((one) => (one.kind === 'end' ? [one] : []));
    await track.take();
    await addChildren(track);
    part.brought();
    if (wanted.length > 0) engine.bring(part.id, wanted);
    for (const { effect, of, event } of ends) if (!release(part, effect, of) && event) engine.bring(part.id, [event]);
    release(part, NEXT_RUN.effect, NEXT_RUN.of);
  };
  /** What the recording does not have ends at once. */
  const releaseOthers = (): boolean => {
    let hasReleased = false;
    for (const part of parts.values()) {
      const counts = new Map<string, number>();
      for (const { effect, of } of [...part.held]) {
        const name = `${effect}/${of}`;
        const held = (counts.get(name) ?? 0) + 1;
        counts.set(name, held);
        // What came first then comes first now: a wait is not over before.
        if (effect === TIMER.effect && part.track?.batch()) continue;
        if (effect === NEXT_RUN.effect && part.track?.opensRun()) continue;
        if (held > (part.track?.pending(effect, of) ?? 0)) hasReleased = release(part, effect, of) || hasReleased;
      }
    }
    return hasReleased;
  };
  /** Of a sub-agent that is over, in the recording and here, nothing is needed any more. */
  const forgetEnded = (): void => {
    for (const part of parts.values()) {
      const run = engine.find(part.id);
      if (part === root || !run || run.status === 'RUNNING' || part.track?.batch() || part.held.length > 0) continue;
      parts.delete(part.id);
      over.add(part.id);
      engine.delete(run.runId);
    }
  };
  const waiting = (): readonly { readonly part: Part; readonly batch: readonly Happening[]; readonly at: number }[] =>
    [...parts.values()]
      .flatMap((part) => {
        const batch = part.state() ? part.track?.batch() : undefined;
        return batch ? [{ part, batch, at: Math.max(...batch.map(({ at }) => at)) }] : [];
      })
      .sort((a, b) => a.at - b.at);

  for (let idle = 0; ;) {
    // What was released is at work by then.
    await immediate();
    await stopping.orStopped(clock.quiet());
    options.signal.throwIfAborted();
    if (stopping.stopped()) return;
    if (releaseOthers()) continue;
    forgetEnded();
    const all = waiting();
    const ready = all.find(({ part, batch }) => batch.every((one) => fits(part, one)));
    const next = ready ?? all[0];
    if (!next) {
      if (rest(engine, root, stopping) === 'over') return;
      if (++idle > MAX_IDLE_STEPS) return stopping.stop({ turn: currentTurn(root), why: 'it does not come to rest' });
      continue;
    }
    const due = dueBy(next.at);
    if (due !== undefined) {
      clock.passTo(due);
      continue;
    }
    if (ready) {
      await bring(ready.part, ready.batch);
      continue;
    }
    // No conversation of the tree sends it: a person has sent it to the sub-agent itself.
    if (next.batch.every((one) => one.kind === 'end' && one.event)) {
      await bring(next.part, next.batch);
      continue;
    }
    // Nothing goes on by itself: what the recording waits for does not come. What ended later then may have to end first now.
    const stuck = [next.part, ...parts.values()].find(({ held }) => held.length > 0);
    if (stuck) {
      stuck.held.shift()?.release();
      continue;
    }
    const isBlocked = next.batch.some((one) => one.kind === 'input' && !fits(next.part, one));
    if (isBlocked && rest(engine, next.part, stopping) === 'going') {
      if (++idle > MAX_IDLE_STEPS) return stopping.stop({ turn: currentTurn(next.part), why: 'it does not come to rest' });
      continue;
    }
    if (stopping.stopped()) return;
    await bring(next.part, next.batch);
  }
}

/** Lets the time of a turn that still goes on pass; of one that waits for a person there is no more to play. */
function rest({ clock }: World['engine'], part: Part, { stop }: Stopping): 'going' | 'over' {
  const state = part.state();
  if (!state || state.turn === null) return 'over';
  const waits = approvalsOf(state);
  const then = part.track?.state();
  const wereWaiting = then?.turn ? approvalsOf(then) : [];
  if (waits.length > 0) {
    const unknown = waits.find(({ callId }) => !wereWaiting.some((one) => one.callId === callId));
    if (unknown)
      stop({ turn: turnId(state.turn.number), why: `${unknown.tool} waits for a person, and the recording has no decision for it` });
    return 'over';
  }
  // It was recorded in the middle of this.
  if (part.held.length > 0) return 'over';
  const due = clock.dueAt((why) => !MEMORY_WAITS.test(why));
  if (due === undefined) return 'over';
  clock.passTo(due);
  return 'going';
}

function currentTurn(part: Part): string {
  return turnId(part.state()?.turn?.number ?? part.state()?.latestTurn ?? 0);
}

function toLane(root: Part, comparison: Comparison, stopped: Stop | undefined): PlayedLane {
  const recorded = root.track?.log;
  const then = recorded?.turns ?? new Map();
  const now = root.log.turns;
  const turns = [...new Set([...then.keys(), ...now.keys()])].sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
  return {
    ...comparison.end(stopped !== undefined),
    turns: turns.map((turn) => {
      const [before, after] = [then.get(turn), now.get(turn)];
      return {
        turn,
        message: before?.message || after?.message || '',
        ...(before && { recorded: before.side }),
        ...(after && { played: after.side }),
      };
    }),
    ...(stopped && { stopped }),
    sum: root.log.sum(),
    recordedSum: recorded?.sum() ?? root.log.sum(),
  };
}
