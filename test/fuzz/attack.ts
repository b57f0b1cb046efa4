/**
 * Anything that the border takes is said to conversations in every phase and to their memories, and to starts; then each must answer, no
 * workflow task may have failed, every history must replay, and the worker must be there.
 */
import { setMaxListeners } from 'node:events';
import { timeoutSignal } from '../../src/platform/promises.js';
import { STOP_REASONS } from '../../src/conversation/protocol/contract.js';
import { failureOf, outside, type Outside } from '../support/outside.js';
import { replayAll } from '../support/replays.js';
import { runsOf, workflowTaskFailures } from '../support/run-chain.js';
import { startWorld, type World } from '../support/world.js';
import { createHolding, PHASES, type Holding } from './phases.js';
import { tell, type Names, type Said } from './said.js';

const AT_ONCE = 6;
/** The long form is for a machine that does other work beside it: what counts is that there is an answer. */
/** What takes longer hangs, also on a machine that does much else. */
const ANSWER_MS = 240_000;

/** A query that came before its workflow task: the workflow itself has that task done again (workflows/foreign-task-done-again). */
const DONE_AGAIN = 'a question came before this workflow task';

export interface Attack {
  readonly what: string;
  readonly phase: string;
  readonly said: readonly Said[];
}

const memory = { consolidationTimeout: 2_000 };
let holding: Holding;
let world: World;
let program: Outside;

/** For the tests of one file: a world of its own for each, in which conversations are held in their phases. */
export function standInAWorld(): void {
  jest.setTimeout(1_200_000);
  beforeEach(async () => {
    holding = createHolding();
    world = await startWorld({ answer: holding.answer, tools: holding.tools, agent: { memory } });
    holding.holdRewinds(world.store);
    await world.writeAgent('brief', { memory, limits: { handOver: { events: 24 } } });
    program = outside(world);
  });
  afterEach(() => world.close());
}

/** In words; nothing when all is as it should be. */
export async function troubleAfter(attacks: readonly Attack[]): Promise<string[]> {
  holding.hold();
  const attacked = await Promise.all(attacks.map((attack) => attackOne(attack)));
  holding.letGo();
  const answers = await Promise.all(attacked.map((one) => silenceOf(one)));
  const failed: string[] = [];
  for await (const { workflowId, runId } of world.temporal.workflow.list({ query: `TaskQueue = '${world.taskQueue}'` })) {
    for (const failure of await workflowTaskFailures(world, workflowId)) {
      if (!failure.includes(DONE_AGAIN)) failed.push(`${workflowId} (${runId}): ${failure}`);
    }
  }
  const replayed = await replayAll(world);
  const unreplayed = replayed.flatMap(({ workflowId, problem }) => (problem === undefined ? [] : [`${workflowId}: ${problem}`]));
  return [...answers.flat(), ...failed, ...unreplayed];
}

interface Attacked {
  readonly attack: Attack;
  readonly names: Names;
  readonly log: readonly string[];
}

async function attackOne(attack: Attack): Promise<Attacked> {
  const { temporal, taskQueue: queue } = world;
  const id = world.id();
  const scope = id;
  await PHASES[attack.phase]?.(program, id, scope);
  await temporal.workflow.start('memory', { workflowId: `memory:${scope}`, taskQueue: queue, args: [{ scope }] }).catch(() => undefined);
  const { runId } = await temporal.workflow.getHandle(id).describe();
  const child = `${id}:turn_0001:1`;
  const capability = attack.phase === 'sub-agent' ? await capabilityOf(child) : 'x'.repeat(32);
  const names = { id, scope, queue, life: runId, child, capability };
  const log: string[] = [];
  for (let at = 0; at < attack.said.length; at += AT_ONCE) {
    await Promise.all(
      attack.said.slice(at, at + AT_ONCE).map(async (said) => {
        log.push(
          `${said.kind} ${said.name.slice(0, 30)}: ${await tell(temporal, said, names)} ${JSON.stringify(said.payloads ?? null).slice(0, 300)}`,
        );
      }),
    );
  }
  return { attack, names, log };
}

async function capabilityOf(child: string): Promise<string> {
  const [first] = (await runsOf(world, child))[0] ?? [];
  const start = Buffer.from(first?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0]?.data ?? []).toString();
  return (JSON.parse(start) as { delegation: { capability: string } }).delegation.capability;
}

/** What does not answer, in words: the conversation, and its memory. */
async function silenceOf({ attack: { what, phase }, names, log }: Attacked): Promise<string[]> {
  const until = Date.now() + ANSWER_MS;
  const trouble = await Promise.all([answerOf(names.id, until), memoryAnswer(`memory:${names.scope}`, until)]);
  return trouble.flatMap((one) => (one === undefined ? [] : [`${what}, ${phase}: ${one}\n${log.join('\n')}`]));
}

async function answerOf(id: string, until: number): Promise<string | undefined> {
  let last = 'no answer';
  // clock: only a hang meets this bound
  while (Date.now() < until) {
    const { status } = await world.temporal.workflow.getHandle(id).describe();
    if (status.name === 'COMPLETED') return undefined;
    if (status.name !== 'RUNNING') return `${id} is ${status.name}`;
    const asked = await failureOf(within(() => makeReady(id)));
    if (asked.type === 'ConversationClosing') await new Promise((resolve) => setTimeout(resolve, 200));
    last = asked.message;
    if (asked.message === 'it did not fail') return undefined;
  }
  return `${id} does not answer: ${last}`;
}

/** Takes back what it may have been told, and asks for an answer; throws while there is none. */
async function makeReady(id: string): Promise<void> {
  await Promise.all([
    program.update(id, 'setMode', { mode: 'auto' }),
    program.update(id, 'setBreakpoints', {}),
    program.update(id, 'raiseBudget', {}),
    program.query(id, 'status'),
    program.query(id, 'control'),
    program.query(id, 'context'),
    program.query(id, 'queue'),
  ]);
  const waiting = (await program.query(id, 'approvals')) as readonly { callId: string; conversation: string }[];
  for (const { callId, conversation } of waiting) await program.signal(id, 'decide', { callId, conversation, decision: 'deny' });
  await program.signal(id, 'interrupt', {});
  const result = (await program.update(id, 'send', 'still there?')) as { stopReason: string };
  const isAnswer = (STOP_REASONS as readonly string[]).includes(result.stopReason) && !['continues', 'queued'].includes(result.stopReason);
  if (!isAnswer) throw new Error(`${result.stopReason} is no answer`);
}

async function memoryAnswer(id: string, until: number): Promise<string | undefined> {
  let last = 'no answer';
  // clock: only a hang meets this bound
  while (Date.now() < until) {
    const ask = async (): Promise<void> => {
      await program.query(id, 'status');
      await program.update(id, 'forget', { text: 'what nobody has said' });
    };
    last = (await failureOf(within(ask))).message;
    if (last === 'it did not fail') return undefined;
  }
  return `${id} does not answer: ${last}`;
}

/** Temporal's client leaves a listener on the signal for each request, and a call makes many. */
function within<T>(call: () => Promise<T>): Promise<T> {
  const signal = timeoutSignal(60_000);
  setMaxListeners(0, signal);
  return world.temporal.withAbortSignal(signal, call);
}
