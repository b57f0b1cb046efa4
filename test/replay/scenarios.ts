/**
 * What is recorded: everything that makes the workflow take another way. `has` names what the history must contain, so that
 * a recording that missed its moment is not kept.
 */
import { callTool, callTools, gate, text, type Gate, type Reply } from '../support/provider-apis/reply.js';
import { contextWindowExceeded, httpError, overloaded, pauseTurn, rateLimited, refusal } from '../support/provider-apis/faults.js';
import { consolidationReply } from '../support/provider-apis/consolidation-reply.js';
import type { DeferReason } from '../../src/conversation/turn/model-step-effects.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import type { Exchange } from '../support/provider-apis/scripted-api.js';
import { WEBHOOK_EVENTS } from '../../src/records/turn-end.js';
import type { World, WorldOptions } from '../support/world.js';

export interface WorkerProcess {
  kill(): Promise<void>;
  /** It takes what comes and does nothing with it, until it is killed. */
  freeze(): void;
}

export interface Stage {
  readonly world: World;
  readonly id: string;
  /** A worker in a process of its own. The effects that it has `lost` commit there, and their results never come. */
  startProcess(lost?: readonly string[]): Promise<WorkerProcess>;
  /** Resolves once one of the tools that hang is running. */
  toolRuns(): Promise<void>;
  /** Lets the tool `wait` go on. */
  letGo(): void;
  /** From now on every turn fails as it begins. */
  breakAgent(): void;
  emptyRedis(): Promise<void>;
  killRedis(): Promise<void>;
  restartRedis(): Promise<void>;
  until(what: string, isSo: () => Promise<boolean>): Promise<void>;
  /** The conversation waits for a person, or has ended. */
  settled(): Promise<void>;
  end(): Promise<void>;
}

export interface Scenario {
  readonly name: string;
  readonly world?: () => WorldOptions;
  /** `here`: one in this process, from the start. `by-hand`: the scenario starts them. */
  readonly workers?: 'here' | 'by-hand';
  readonly redis?: boolean;
  /** Its workers (by hand) say that our search attributes are registered. */
  readonly attributes?: boolean;
  /** Only the runs that have this in them. */
  readonly keep?: string;
  /** Recorded is this workflow instead of the conversation itself. */
  readonly whose?: (id: string) => string;
  /** Runs that the chain must have at least. */
  readonly runs?: number;
  readonly has: readonly string[];
  readonly lacks?: readonly string[];
  readonly play: (stage: Stage) => Promise<void>;
}

const START = { start: {} };
const MODEL = '"name":"model-step"';
const STORE = '"name":"store-step"';
/** Tools ride on a model step. */
const RIDES = '"tools":[{"callId":';
const DEFERRED_ANY = '"kind":"deferred"';
const DEFERRED = (reason: DeferReason): string => `"kind":"deferred","reason":"${reason}"`;
const TOOL = '"name":"run-tool"';
const HEAL = '"name":"heal"';
const TIMER_STARTED = 'EVENT_TYPE_TIMER_STARTED';
const TIMER_FIRED = 'EVENT_TYPE_TIMER_FIRED';
const TIMER_CANCELLED = 'EVENT_TYPE_TIMER_CANCELED';
const CANCEL_ASKED = 'EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED';
const TASK_TIMED_OUT = 'EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT';
const UPDATE_DONE = 'EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED';
const ASK_MEMORY = '"name":"ask-memory"';
const EVICT = '"name":"evict"';
const CONTINUED = 'EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW';

const scopeOf = (id: string): string => `scope-${id}`;
const script = (...replies: readonly Reply[]): Exchange<ApiRequest>[] => replies.map((reply) => ({ reply }));
const says = (...replies: readonly Reply[]) => ({ script: script(...replies) });
const tools = (...names: readonly string[]): Reply => callTools(...names.map((name, i) => ({ name, input: { text: `${i}` } })));
const held = (stop: Gate, reply: Reply): Reply => ({ ...reply, hold: stop });

/** Sends and lets the answer come when it comes; a failure shows when it is awaited. */
function sendLater({ world, id }: Stage, message: Parameters<World['client']['send']>[1]) {
  const sent = world.client.send(id, message, START);
  sent.catch(() => undefined);
  return sent;
}

/** Sends, and waits until the model speaks and is held. */
async function sendUntilHeld(stage: Stage, message: string, stop: Gate, reply: Reply = text('A long answer that is held back.')) {
  stage.world.api.play({ reply: held(stop, reply) });
  const sent = sendLater(stage, message);
  await Promise.race([stop.reached, sent.then(() => Promise.reject(new Error('answered before it was held')))]);
  // In an object: an async function cannot hand a promise on unsettled.
  return { sent };
}

const handsOver = (events: number, more: object = {}): WorldOptions => ({ agent: { limits: { handOver: { events, ...more } } } });

const signalRaw = async ({ world, id }: Stage, signalName: string, encoding: string, data: string): Promise<void> => {
  await world.temporal.workflowService.signalWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: id },
    signalName,
    input: { payloads: [{ metadata: { encoding: Buffer.from(encoding) }, data: Buffer.from(data) }] },
    identity: 'a stranger',
    requestId: `raw-${Math.random()}`,
  });
};

const longText = (bytes: number): string => 'a long, long message. '.repeat(bytes / 22 + 1).slice(0, bytes);

const tinyPng = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** A model so small that a few answers fill it; asked to summarize, it does. */
const small = (): WorldOptions => ({
  agent: {
    maxTokens: 500,
    context: { maxTokens: 6_000, safetyMargin: 500 },
  },
  answer: (request) => {
    const summarizes = JSON.stringify(request.system ?? '').includes('You condense');
    const summary = { episodic: { summary: 'They spoke of ledgers.', tags: [], salience: 0.5 }, semantic: [] };
    return text(summarizes ? JSON.stringify(summary) : 'The harbour master keeps the ledger. '.repeat(40));
  },
});

/** As before; told to bring something, it asks for so many characters. */
const bringsMuch = (characters: number): WorldOptions => {
  const { answer, ...rest } = small();
  return {
    ...rest,
    answer: (request, hit) => {
      const isAsked = JSON.stringify(request.messages.at(-1)?.content).includes('bring it');
      return isAsked ? callTool('bring_much', { text: `${characters}` }) : (answer?.(request, hit) ?? text('Here.'));
    },
  };
};

/** As before; told to go round, it asks for one thing after the other. */
const goesRound = (rounds: number): WorldOptions => {
  const { answer, ...rest } = small();
  let left = rounds;
  return {
    ...rest,
    answer: (request, hit) => {
      const isAsked =
        JSON.stringify(request.messages).includes('go round') && JSON.stringify(request.system ?? '').includes('You condense') === false;
      return isAsked && left-- > 0 ? callTool('bring_much', { text: `${1_600 + left}` }) : (answer?.(request, hit) ?? text('Here.'));
    },
  };
};

async function talk({ world, id }: Stage, turns: number): Promise<void> {
  for (let n = 1; n <= turns; n++) await world.client.send(id, `turn ${n}`, START);
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'compaction-by-pressure',
    world: small,
    has: ['"name":"compact"', MODEL],
    play: (stage) => talk(stage, 12),
  },
  {
    name: 'compaction-asked-and-undone',
    world: small,
    has: ['"name":"compact"', '"name":"uncompact"', UPDATE_DONE, '"kind":"undone"'],
    async play(stage) {
      const { world, id } = stage;
      await talk(stage, 6);
      await world.client.compact(id);
      await world.client.undoCompaction(id);
      await talk(stage, 1);
    },
  },
  {
    // Said before it was opened, and rewound: what a fork does that no other conversation does.
    name: 'forked-and-rewound',
    whose: (id) => `fork-${id}`.slice(0, 64),
    world: () => says(...Array.from({ length: 9 }, (_, i) => text(`Answer ${i + 1}.`))),
    has: ['"name":"open-origin"', '"name":"rewind"', UPDATE_DONE, MODEL],
    async play(stage) {
      const { world, id } = stage;
      const fork = `fork-${id}`.slice(0, 64);
      await talk(stage, 3);
      await world.client.fork(id, { at: 'turn_0002', id: fork, title: 'another way' });
      for (const message of ['third of the fork', 'fourth of the fork']) await world.client.send(fork, message);
      await world.client.rewind(fork, 'turn_0001');
      await world.client.send(fork, 'and on');
    },
  },
  {
    // The stop, the hold of what waits, and the turn after it.
    name: 'rewound-in-a-turn',
    has: ['"name":"rewind"', CANCEL_ASKED, UPDATE_DONE],
    async play(stage) {
      const { world, id } = stage;
      world.api.play({ reply: text('One.') }, { reply: text('Two.') });
      await talk(stage, 2);
      const stop = gate();
      const { sent } = await sendUntilHeld(stage, 'third', stop);
      world.api.play({ reply: text('After it.') });
      const waits = world.client.send(id, 'waits');
      await world.client.rewind(id, 'turn_0001');
      stop.release();
      await Promise.all([sent, waits]);
    },
  },
  {
    // Before the first turn there is nothing; before a later one its message is said in the same update.
    name: 'answered-anew',
    world: () => says(...Array.from({ length: 4 }, (_, i) => text(`Answer ${i + 1}.`))),
    has: ['"name":"rewind"', '"before":true', UPDATE_DONE],
    async play({ world, id }) {
      await world.client.send(id, 'first', START);
      await world.client.retry(id);
      await world.client.send(id, 'then');
      await world.client.edit(id, 'then, in other words');
    },
  },
  {
    // Between turns, and while a tool of a turn waits for a person: the next call of that turn is the other model's.
    name: 'other-model',
    world: () => says(text('One.'), text('Two.'), callTool('ask_user', { question: 'Which?' }), text('Three.'), text('Four.')),
    has: ['"setModel"', MODEL, UPDATE_DONE],
    async play(stage) {
      const { world, id } = stage;
      await world.client.send(id, 'first', START);
      await world.client.setModel(id, 'anthropic/claude-other');
      await world.client.send(id, 'second');
      const sent = sendLater(stage, 'third');
      await stage.until('a question', async () => (await world.client.approvals(id)).length === 1);
      await world.client.setModel(id, null);
      await world.client.decide(id, { callId: 'turn_0003/c1', decision: 'approve', note: 'this' });
      await sent;
      await world.client.setModel(id, 'nobody/nothing');
      await world.client.send(id, 'fails');
      await world.client.setModel(id, null);
      await world.client.send(id, 'fourth');
    },
  },
  {
    name: 'text-turns',
    world: () => says(text('One.'), text('Two.'), text('Three.')),
    has: [MODEL, UPDATE_DONE],
    lacks: [STORE, DEFERRED_ANY],
    async play({ world, id }) {
      for (const message of ['first', 'second', 'third']) await world.client.send(id, message, START);
      await world.client.turn(id, 'turn_0001');
    },
  },
  {
    // More text waits than a hand-over carries.
    name: 'weighed-hand-over',
    runs: 2,
    world: () => ({ ...handsOver(20), answer: () => text('Here.') }),
    has: [MODEL, STORE, CONTINUED],
    async play(stage) {
      const { world, id, until } = stage;
      await world.client.send(id, 'first', START);
      const stop = gate();
      const { sent } = await sendUntilHeld(stage, 'second', stop);
      for (let i = 0; i < 4; i++) await world.client.message(id, longText(45_000));
      await until('a queue', async () => (await world.client.status(id)).queued === 4);
      stop.release();
      await sent;
      await stage.settled();
    },
  },
  {
    name: 'signals-only',
    world: () => says(text('One.'), text('Two.')),
    has: [MODEL, 'EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED'],
    async play({ world, id, until }) {
      await world.client.start(id, { title: 'by signal' });
      await world.client.message(id, 'first');
      await world.client.message(id, 'second');
      await world.client.rename(id, 'another title');
      await until('two turns', async () => (await world.client.status(id)).turns === 2);
    },
  },
  {
    name: 'long-texts-and-an-image',
    world: () => says(tools('long_text'), text('a long answer. '.repeat(1_500)), text('A dot.')),
    has: [MODEL, TOOL],
    async play({ world, id }) {
      await world.client.send(id, 'a long question. '.repeat(1_200), START);
      await world.client.send(id, { text: 'what is this?', images: [{ mediaType: 'image/png', base64: tinyPng }] });
    },
  },
  {
    name: 'many-sends',
    world: () => ({ answer: () => text('Here.') }),
    has: [MODEL, UPDATE_DONE],
    async play(stage) {
      const stop = gate();
      const { sent } = await sendUntilHeld(stage, 'first', stop);
      const more = Array.from({ length: 8 }, (_, i) => sendLater(stage, `more ${i}`));
      await stage.until('a full queue', async () => (await stage.world.client.status(stage.id)).queued === 8);
      stop.release();
      await Promise.all([sent, ...more]);
    },
  },
  {
    name: 'tool-riding',
    world: () => says(tools('note'), tools('note', 'note'), text('Noted.')),
    has: [MODEL, RIDES, UPDATE_DONE],
    lacks: [TOOL, STORE, DEFERRED_ANY],
    async play({ world, id }) {
      await world.client.send(id, 'note this', START);
    },
  },
  {
    name: 'tool-ordinary',
    world: () => says(tools('look_up'), tools('pay'), text('Found and paid.')),
    has: [MODEL, TOOL],
    async play({ world, id }) {
      await world.client.send(id, 'look it up', START);
    },
  },
  {
    name: 'tools-parallel',
    world: () =>
      says(tools('look_up', 'look_up', 'note', 'pay'), tools(...Array.from({ length: 18 }, () => 'look_up')), text('All found.')),
    has: [MODEL, TOOL],
    async play({ world, id }) {
      await world.client.send(id, 'look them all up', START);
    },
  },
  {
    name: 'tools-that-fail',
    world: () =>
      says(tools('fail'), callTool('no_such_tool'), callTool('note', { wrong: true }), tools('dawdle_briefly'), text('None of it worked.')),
    has: [MODEL, TOOL, RIDES],
    async play({ world, id }) {
      await world.client.send(id, 'try', START);
    },
  },
  {
    name: 'riding-tool-too-slow',
    world: () => says(tools('note', 'too_slow'), text('It took its time.')),
    has: [RIDES, 'did not finish within 400 ms'],
    lacks: [TOOL],
    async play({ world, id }) {
      await world.client.send(id, 'be quick', START);
    },
  },
  {
    name: 'tool-limit',
    world: () => ({ ...says(tools('note'), tools('note'), text('Going on.')), agent: { limits: { maxToolRounds: 1 } } }),
    has: [MODEL, RIDES, STORE, '"stopReason":"tool-limit"'],
    async play({ world, id }) {
      await world.client.send(id, 'note for ever', START);
      await world.client.send(id, 'continue');
    },
  },
  {
    name: 'other-stops',
    world: () =>
      says(
        pauseTurn('Wait…'),
        text('done.'),
        refusal(),
        { ...text('Cut of'), stopReason: 'max_tokens' },
        contextWindowExceeded('Too'),
        text('Fine.'),
      ),
    has: [MODEL],
    async play({ world, id }) {
      for (const message of ['pause', 'refuse', 'cut', 'overflow', 'and now?']) await world.client.send(id, message, START);
    },
  },
  {
    name: 'failed-turns',
    world: () => says(httpError(401), httpError(400, { message: 'a request that is wrong' }), text('Better.')),
    has: [MODEL, '"kind":"failed","failure":{"type":"auth"'],
    async play({ world, id }) {
      for (const message of ['first', 'second', 'third']) await world.client.send(id, message, START);
    },
  },
  {
    name: 'unusable-agent',
    has: [MODEL, STORE, DEFERRED('unusable')],
    async play({ world, id }) {
      await world.client.send(id, 'hello?', { start: { agent: 'nobody' } });
      await world.client.send(id, 'hello?');
    },
  },
  {
    name: 'refused-start',
    has: ['EVENT_TYPE_WORKFLOW_EXECUTION_FAILED', 'InvalidStart'],
    async play({ world, id }) {
      const { taskQueue, temporal } = world;
      const handle = await temporal.workflow.start('conversation', { workflowId: id, taskQueue, args: [{ agent: 5 }] });
      await handle.result().catch(() => undefined);
    },
  },
  {
    name: 'model-retries',
    world: () => says(overloaded({ retryAfter: 1 }), text('After a moment.'), rateLimited({ retryAfter: 6 }), text('After a while.')),
    has: [MODEL, TIMER_STARTED, TIMER_FIRED, '"attempt":2', 'rate-limit'],
    async play({ world, id }) {
      await world.client.send(id, 'first', START);
      await world.client.send(id, 'second');
    },
  },
  {
    name: 'worker-shut-down-during-a-model-call',
    workers: 'by-hand',
    has: [MODEL, '"attempt":2'],
    async play(stage) {
      const { world } = stage;
      const stopFirst = await world.startWorker();
      const { sent } = await sendUntilHeld(stage, 'hello', gate());
      world.api.play({ reply: text('Still here.') });
      const stopped = stopFirst();
      await stage.startProcess();
      await Promise.all([stopped, sent]);
    },
  },
  {
    name: 'crash-during-a-model-call',
    workers: 'by-hand',
    has: [MODEL, 'TIMEOUT_TYPE_HEARTBEAT', '"attempt":2', TASK_TIMED_OUT],
    async play(stage) {
      const { world, id } = stage;
      const { kill } = await stage.startProcess();
      const { sent } = await sendUntilHeld(stage, 'hello', gate());
      world.api.play({ reply: text('Back again.') }, { reply: text('And on.') });
      await kill();
      // Goes to the dead worker's own queue first.
      await world.client.message(id, 'are you there?');
      await stage.startProcess();
      await sent;
      await stage.settled();
    },
  },
  {
    name: 'crash-during-a-tool',
    workers: 'by-hand',
    has: [TOOL, 'TIMEOUT_TYPE_HEARTBEAT', '"attempt":2'],
    async play(stage) {
      const { kill } = await stage.startProcess();
      stage.world.api.play(...script(tools('look_up', 'hang_once'), text('Done.')));
      const sent = sendLater(stage, 'hang');
      await stage.toolRuns();
      await kill();
      await stage.startProcess();
      await sent;
      await stage.settled();
    },
  },
  {
    name: 'crash-during-a-tool-that-must-not-repeat',
    workers: 'by-hand',
    has: [TOOL, 'EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT', 'TIMEOUT_TYPE_HEARTBEAT'],
    async play(stage) {
      const { kill } = await stage.startProcess();
      stage.world.api.play(...script(tools('hang_and_pay'), text('Nobody knows.')));
      const sent = sendLater(stage, 'pay');
      await stage.toolRuns();
      await kill();
      await stage.startProcess();
      await sent;
      await stage.settled();
    },
  },
  {
    // The worker has taken the task and is lost before it answers.
    name: 'crash-during-a-workflow-task',
    workers: 'by-hand',
    has: [TASK_TIMED_OUT, 'TIMEOUT_TYPE_START_TO_CLOSE', '"attempt":2'],
    async play(stage) {
      const { world, id } = stage;
      const { kill, freeze } = await stage.startProcess();
      const { sent } = await sendUntilHeld(stage, 'hello', gate());
      world.api.play({ reply: text('Back again.') }, { reply: text('And on.') });
      freeze();
      await world.client.message(id, 'are you there?');
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      await kill();
      await stage.startProcess();
      await sent;
      await stage.settled();
    },
  },
  {
    name: 'crash-while-a-tool-rides',
    workers: 'by-hand',
    has: [RIDES, 'TIMEOUT_TYPE_HEARTBEAT', '"attempt":2', 'done at the second try'],
    lacks: [TOOL],
    async play(stage) {
      const { kill } = await stage.startProcess();
      stage.world.api.play(...script(tools('note', 'hang_riding', 'note'), text('Done.')));
      const sent = sendLater(stage, 'hang');
      await stage.toolRuns();
      await kill();
      await stage.startProcess();
      await sent;
      await stage.settled();
    },
  },
  {
    // What was given up had committed: the fence that comes too late brings back what it cost.
    name: 'fence-too-late',
    workers: 'by-hand',
    has: [CANCEL_ASKED, STORE, '"committed":[{"effect":"turn_0001/c1"', '"committed":[{"effect":"turn_0002/m1"', TIMER_FIRED],
    async play(stage) {
      const { world, id, until } = stage;
      await stage.startProcess(['turn_0001/c1', 'turn_0002/m1']);
      world.api.play(...script(tools('look_up'), text('Nobody hears this.'), text('What else?')));
      const interrupted = async (words: string, phase: string, hits: number): Promise<void> => {
        const sent = sendLater(stage, words);
        await until('a call', async () => world.api.hits.length === hits && (await world.client.status(id)).phase === phase);
        await new Promise((resolve) => setTimeout(resolve, 1_500));
        await world.client.interrupt(id, 'nothing comes');
        await sent;
      };
      await interrupted('look it up', 'running-tools', 1);
      await interrupted('say something', 'thinking', 2);
      await world.client.send(id, 'go on');
      await stage.settled();
    },
  },
  {
    name: 'interrupt-while-streaming',
    world: () => ({ answer: () => text('What else?') }),
    has: [CANCEL_ASKED, TIMER_CANCELLED],
    async play(stage) {
      const { world, id } = stage;
      const { sent } = await sendUntilHeld(stage, 'tell me everything', gate());
      await world.client.interrupt(id, 'enough');
      await sent;
      await world.client.interrupt(id);
      await world.client.send(id, 'go on');
    },
  },
  {
    name: 'interrupt-while-a-tool-runs',
    world: () => says(tools('look_up', 'hang_once', 'hang_once'), text('What else?')),
    has: [CANCEL_ASKED, TIMER_CANCELLED, TOOL],
    async play(stage) {
      const { world, id } = stage;
      const sent = sendLater(stage, 'hang');
      await stage.toolRuns();
      await world.client.interrupt(id, 'enough');
      await sent;
      await world.client.send(id, 'go on');
    },
  },
  {
    name: 'interrupt-while-a-tool-waits-for-its-worker',
    world: () => says(tools('look_up', 'render'), text('What else?')),
    has: [CANCEL_ASKED, TOOL, '"timeoutType":"TIMEOUT_TYPE_SCHEDULE_TO_START"', '"unserved":1', '"taskQueue":{"name":"no-worker-here"'],
    async play(stage) {
      const { world, id } = stage;
      const sent = sendLater(stage, 'render it');
      await stage.until('a wait for a worker', async () => (await world.client.status(id)).waiting?.kind === 'worker');
      await world.client.interrupt(id, 'enough');
      await sent;
      await world.client.send(id, 'go on');
    },
  },
  {
    name: 'interrupt-while-a-tool-rides',
    world: () => says(tools('note', 'hang_riding'), text('What else?')),
    has: [CANCEL_ASKED, RIDES, DEFERRED('stopped')],
    lacks: [TOOL],
    async play(stage) {
      const { world, id } = stage;
      const sent = sendLater(stage, 'hang');
      await stage.toolRuns();
      await world.client.interrupt(id, 'enough');
      await sent;
      await world.client.send(id, 'go on');
    },
  },
  {
    name: 'interrupt-during-a-wait-for-the-model',
    world: () => says(rateLimited({ retryAfter: 30 }), text('What else?')),
    has: [TIMER_STARTED, TIMER_CANCELLED, 'rate-limit'],
    async play(stage) {
      const { world, id } = stage;
      const sent = sendLater(stage, 'hello');
      await stage.until('a wait', async () => (await world.client.status(id)).phase === 'waiting-to-retry');
      await world.client.interrupt(id, 'enough');
      await sent;
      await world.client.send(id, 'go on');
    },
  },
  {
    name: 'interrupt-after-the-worker-was-lost',
    workers: 'by-hand',
    has: [CANCEL_ASKED, TIMER_STARTED, TIMER_FIRED, TASK_TIMED_OUT],
    async play(stage) {
      const { world, id } = stage;
      const { kill } = await stage.startProcess();
      const { sent } = await sendUntilHeld(stage, 'hello', gate());
      world.api.play({ reply: text('What else?') });
      // There before the first one goes, so that the stop is heard before the silence is.
      await stage.startProcess();
      await kill();
      await world.client.interrupt(id, 'nobody answers');
      await sent;
      await world.client.send(id, 'go on');
      await stage.settled();
    },
  },
  {
    name: 'reset-during-a-turn',
    world: () => ({ answer: () => text('A clean session.') }),
    has: [CANCEL_ASKED, 'Session cleared.'],
    async play(stage) {
      const { world, id } = stage;
      const { sent } = await sendUntilHeld(stage, 'tell me everything', gate());
      await world.client.reset(id);
      await sent;
      await world.client.send(id, 'who are you?');
    },
  },
  {
    name: 'reset-in-every-way',
    world: () => ({ answer: () => text('Here.') }),
    has: ['Session cleared.', '"signalName":"new"'],
    async play({ world, id }) {
      const handle = world.temporal.workflow.getHandle(id);
      await world.client.send(id, 'first', START);
      await world.client.send(id, ' /new ');
      await world.client.send(id, '/new');
      await world.client.send(id, 'second');
      await world.client.reset(id);
      await world.client.send(id, 'third');
      await handle.signal('new', { id: 'by-signal' });
      await handle.signal('new');
      await world.client.send(id, 'fourth');
      await world.client.message(id, '/new');
      await world.client.send(id, 'fifth');
    },
  },
  {
    name: 'duplicate-ids',
    world: () => ({ answer: () => text('Once.') }),
    has: [MODEL, UPDATE_DONE],
    async play(stage) {
      const { world, id } = stage;
      const handle = world.temporal.workflow.getHandle(id);
      const message = { id: 'm-1', text: 'hello' };
      await Promise.all([world.client.send(id, message, START), world.client.send(id, message, START)]);
      await world.client.message(id, message);
      await handle.executeUpdate('send', { args: [message] });
      await handle.executeUpdate('reset', { args: [{ id: 'r-1' }] });
      await handle.executeUpdate('reset', { args: [{ id: 'r-1' }] });
      await world.client.send(id, { id: 'm-2', text: 'another' });
    },
  },
  {
    name: 'duplicate-that-only-the-store-knows',
    world: () => says(text('Once.'), tools('wait'), text('All heard.'), text('Another.')),
    has: [MODEL, DEFERRED('duplicate'), '"duplicate":"turn_0001"'],
    async play(stage) {
      const { world, id } = stage;
      const message = { id: 'm-1', text: 'hello' };
      await world.client.send(id, message, START);
      await world.client.message(id, 'wait');
      await stage.toolRuns();
      // More ids than the state remembers, and no turn of their own.
      const steer = (i: number) => world.client.message(id, { id: `s-${i}`, text: 'mind', delivery: 'steer' });
      for (let i = 0; i < 260; i += 20) await Promise.all(Array.from({ length: 20 }, (_, j) => steer(i + j)));
      stage.letGo();
      await stage.until('a second turn', async () => (await world.client.status(id)).turns === 2);
      await world.client.message(id, message);
      await world.client.send(id, 'another');
    },
  },
  {
    name: 'rejected-inputs',
    world: () => ({ answer: () => text('Still here.') }),
    has: ['bm90IGpzb24=', '"signalName":"decide"', '"signalName":"no-such-signal"'],
    async play(stage) {
      const { world, id } = stage;
      const handle = world.temporal.workflow.getHandle(id);
      await world.client.start(id);
      await signalRaw(stage, 'message', 'json/plain', 'not json');
      await signalRaw(stage, 'message', 'binary/of-another-world', 'text');
      await signalRaw(stage, 'interrupt', 'binary/of-another-world', 'text');
      await signalRaw(stage, 'new', 'json/plain', '{{');
      await handle.signal('message', { text: 5 });
      await handle.signal('message', { text: 'hi', extra: true });
      await handle.signal('message', '   ');
      await handle.signal('decide', { callId: 'turn_0001/c1', decision: 'approve' });
      await handle.signal('no-such-signal', 1, 2);
      for (const [name, argument] of [
        ['send', { text: '' }],
        ['turn', { turnId: 'turn_0099' }],
        ['compact', undefined],
        ['no-such-update', undefined],
      ] as const) {
        await handle.executeUpdate(name, { args: [argument] }).catch(() => undefined);
      }
      await world.client.send(id, 'and now?');
    },
  },
  {
    name: 'steer-joins-the-turn',
    world: () => says(tools('wait'), text('Heard both.')),
    has: [TOOL, UPDATE_DONE],
    async play(stage) {
      const { world, id } = stage;
      const sent = sendLater(stage, 'wait');
      await stage.toolRuns();
      const steered = sendLater(stage, { text: 'and mind this', delivery: 'steer' });
      await world.client.message(id, { text: 'and this', delivery: 'steer' });
      await stage.until('a queue', async () => (await world.client.status(id)).queued === 2);
      stage.letGo();
      await Promise.all([sent, steered]);
    },
  },
  {
    name: 'steer-becomes-the-next-turn',
    world: () => ({ answer: () => text('That too.') }),
    has: [MODEL, UPDATE_DONE],
    async play(stage) {
      const { world, id } = stage;
      const stop = gate();
      const { sent } = await sendUntilHeld(stage, 'hello', stop);
      const steered = sendLater(stage, { text: 'and mind this', delivery: 'steer' });
      const queued = sendLater(stage, 'later');
      await stage.until('a queue', async () => (await world.client.status(id)).queued === 2);
      stop.release();
      await Promise.all([sent, steered, queued]);
      await world.client.send(id, { text: 'nothing to steer', delivery: 'steer' });
    },
  },
  {
    name: 'interrupt-delivery',
    world: () => ({ answer: () => text('At once.') }),
    has: [CANCEL_ASKED, UPDATE_DONE],
    async play(stage) {
      const { world, id } = stage;
      const { sent } = await sendUntilHeld(stage, 'tell me everything', gate());
      const queued = sendLater(stage, 'later');
      await stage.until('a queue', async () => (await world.client.status(id)).queued === 1);
      await world.client.send(id, { text: 'no, this first', delivery: 'interrupt' });
      await Promise.all([sent, queued]);
    },
  },
  {
    name: 'store-away',
    redis: true,
    world: () => ({ answer: () => text('Here.') }),
    has: [TIMER_STARTED, TIMER_FIRED, MODEL, 'EVENT_TYPE_ACTIVITY_TASK_FAILED', 'StoreUnavailable'],
    async play(stage) {
      const { world, id } = stage;
      await world.client.send(id, 'first', START);
      await stage.killRedis();
      const sent = sendLater(stage, 'second');
      await stage.until('a wait for the store', async () => (await world.client.status(id)).phase === 'waiting-to-retry');
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      await stage.restartRedis();
      await sent;
      await world.client.send(id, 'third');
    },
  },
  {
    name: 'store-lost-an-answer-for-a-while',
    redis: true,
    has: [TIMER_FIRED, TOOL, STORE, '"persisted":false'],
    async play(stage) {
      const { world, id } = stage;
      const stop = gate();
      world.api.play(
        { reply: held(stop, { ...tools('look_up'), text: 'Let me see.' }) },
        { reply: text('Seen.') },
        { reply: text('Here.') },
      );
      const sent = sendLater(stage, 'look it up');
      await stop.reached;
      await stage.killRedis();
      stop.release();
      await stage.until('an answer that the store did not take', async () => (await world.client.status(id)).phase === 'running-tools');
      // Now both are owed: the message and the answer.
      await world.client.message(id, 'and another thing');
      await stage.until('a wait for the store', async () => (await world.client.status(id)).phase === 'waiting-to-retry');
      await stage.restartRedis();
      await sent;
      await world.client.send(id, 'again');
    },
  },
  {
    // The model is not asked before the store has what it is to read.
    name: 'store-lost-what-rode',
    redis: true,
    world: () => says(tools('note', 'wait_riding'), text('Noted.'), text('Here.')),
    has: [RIDES, TIMER_FIRED, '"persisted":false', '"kind":"failed","failure":{"type":"StoreUnavailable"'],
    async play(stage) {
      const { world, id } = stage;
      const sent = sendLater(stage, 'wait');
      await stage.toolRuns();
      await stage.killRedis();
      stage.letGo();
      await stage.until('a wait for the store', async () => (await world.client.status(id)).phase === 'waiting-to-retry');
      await stage.restartRedis();
      await sent;
      await world.client.send(id, 'again');
    },
  },
  {
    name: 'search-attributes',
    workers: 'by-hand',
    attributes: true,
    has: ['EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES', 'AgentStatus', 'EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED'],
    async play(stage) {
      const { world, id } = stage;
      const { temporal, taskQueue } = world;
      await stage.startProcess();
      world.api.play(...script(text('Here.'), httpError(401), text('Here again.')));
      // Started by a stranger, without a memo.
      await temporal.workflow.start('conversation', { workflowId: id, taskQueue, args: [{ title: 'a title' }] });
      for (const message of ['first', 'second', 'third']) await world.client.send(id, message);
      await world.client.closeConversation(id);
      await temporal.workflow.getHandle(id).result();
    },
  },
  {
    name: 'long-queue-that-the-store-lost',
    redis: true,
    keep: HEAL,
    world: () => ({ ...handsOver(60), answer: () => httpError(401) }),
    has: [HEAL, STORE, '"lost":true'],
    async play(stage) {
      const { world, id } = stage;
      const queued = async (): Promise<number> => (await world.client.status(id)).queued;
      const stop = gate();
      await sendUntilHeld(stage, 'first', stop);
      for (let i = 0; i < 540; i += 20) await Promise.all(Array.from({ length: 20 }, () => world.client.message(id, 'one more')));
      await stage.until('a long queue', async () => (await queued()) === 540);
      stop.release();
      // The tail is read back when the head runs low. No model is called any more by then: it would heal what it misses itself.
      await stage.until('most of it to be done', async () => (await queued()) < 540 - 500 + 90);
      stage.breakAgent();
      await stage.emptyRedis();
    },
  },
  {
    name: 'hand-over-between-turns',
    runs: 2,
    world: () => ({ ...handsOver(20), answer: () => text('Here.') }),
    has: [CONTINUED, UPDATE_DONE],
    async play({ world, id }) {
      for (const message of ['first', 'second', 'third', 'fourth']) await world.client.send(id, message, START);
      // Of an earlier run: its text comes from the store.
      await world.client.turn(id, 'turn_0001');
      await world.client.send(id, { id: 'm-1', text: 'fifth' });
      await world.client.message(id, { id: 'm-1', text: 'fifth' });
    },
  },
  {
    name: 'hand-over-inside-a-turn',
    runs: 3,
    world: () => ({
      ...handsOver(25),
      ...says(
        tools('look_up'),
        tools('pay'),
        tools('look_up', 'look_up'),
        tools('note'),
        tools('look_up'),
        tools('pay'),
        tools('look_up'),
        text('At last.'),
      ),
    }),
    has: [CONTINUED, TOOL],
    async play({ world, id }) {
      await world.client.send(id, 'look up everything', START);
    },
  },
  {
    name: 'hand-over-with-a-queue',
    runs: 2,
    world: () => ({ ...handsOver(20), answer: () => text('Here.') }),
    has: [CONTINUED, UPDATE_DONE],
    async play(stage) {
      const { world, id } = stage;
      const stop = gate();
      const { sent } = await sendUntilHeld(stage, 'first', stop);
      const more = ['second', 'third', 'fourth'].map((message) => sendLater(stage, message));
      await stage.until('a queue', async () => (await world.client.status(id)).queued === 3);
      for (let i = 0; i < 8; i++) await world.client.message(id, { id: 'm-1', text: 'fifth' });
      stop.release();
      await Promise.all([sent, ...more]);
    },
  },
  {
    name: 'hand-over-after-updates',
    runs: 3,
    world: () => ({ ...handsOver(3_000, { updates: 2 }), answer: () => text('Here.') }),
    has: [CONTINUED, UPDATE_DONE],
    async play({ world, id }) {
      for (const message of ['first', 'second', '/new', 'third', 'fourth']) await world.client.send(id, message, START);
    },
  },
  {
    name: 'close',
    world: () => ({ answer: () => text('Goodbye.') }),
    has: ['EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED'],
    async play(stage) {
      const { world, id } = stage;
      const stop = gate();
      const { sent } = await sendUntilHeld(stage, 'hello', stop);
      await world.client.message(id, 'one more');
      await world.client.closeConversation(id);
      await world.client.message(id, 'too late');
      await world.client.closeConversation(id);
      stop.release();
      await sent;
      await world.temporal.workflow.getHandle(id).result();
    },
  },
  {
    name: 'close-at-once',
    has: ['EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED'],
    async play({ world, id }) {
      await world.client.start(id);
      await world.client.closeConversation(id);
      await world.temporal.workflow.getHandle(id).result();
    },
  },
  {
    name: 'consolidated-reset-and-close',
    world: () => ({ answer: () => text('Here.') }),
    has: [ASK_MEMORY, EVICT, '"signalName":"consolidated"', '"consolidation":"model"', 'EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED'],
    async play({ world, id, until }) {
      const start = { start: { scope: scopeOf(id) } };
      await world.client.send(id, 'first', start);
      await world.client.reset(id);
      await world.client.send(id, 'second');
      await world.client.send(id, '/new');
      await world.client.send(id, 'third');
      await world.temporal.workflow.getHandle(id).signal('new', { id: 'by-signal' });
      await until('the third session', async () => (await world.client.status(id)).session === 4);
      await world.client.send(id, 'fourth');
      await world.client.closeConversation(id);
      await world.temporal.workflow.getHandle(id).result();
    },
  },
  {
    name: 'consolidated-window',
    world: () => ({ agent: { memory: { memoryWindow: 4, keepCount: 2, trim: 'at-window' } }, answer: () => text('Here.') }),
    has: [ASK_MEMORY, EVICT, '"why":"window"', '"kind":"trim"', '"trimmed":{'],
    async play({ world, id, until }) {
      const story = ' and the whole story once more'.repeat(60);
      for (const message of ['first', 'second', 'third'])
        await world.client.send(id, `${message}${story}`, { start: { scope: scopeOf(id) } });
      await until('a trimmed window', async () => (await world.client.status(id)).epoch === 2);
      await world.client.send(id, 'fourth');
      await world.client.reset(id);
    },
  },
  {
    name: 'consolidation-not-in-time',
    world: () => ({
      agent: { memory: { consolidationTimeout: 500 } },
      answer: () => text('Here.'),
      aside: (request) => consolidationReply(request) && overloaded(),
    }),
    has: [ASK_MEMORY, EVICT, TIMER_FIRED, '"consolidation":"raw-fallback"'],
    async play({ world, id }) {
      await world.client.send(id, 'first', { start: { scope: scopeOf(id) } });
      await world.client.reset(id);
      await world.client.send(id, 'second');
    },
  },
  {
    name: 'memory-of-a-scope',
    whose: (id) => `memory:${scopeOf(id)}`,
    world: () => {
      let failing = 5;
      return {
        answer: () => text('Here.'),
        aside: (request) => consolidationReply(request) && (failing-- > 0 ? overloaded() : consolidationReply(request)),
      };
    },
    has: ['"name":"consolidate"', '"name":"remember"', '"name":"forget"', '"name":"care"', TIMER_FIRED, UPDATE_DONE],
    async play({ world, id, until }) {
      const scope = scopeOf(id);
      const memory = world.client.scope(scope);
      await world.client.send(id, 'first', { start: { scope } });
      await world.client.message(id, '/new');
      await until('a consolidation that is tried again', async () => (await memory.status())?.consolidated === 1);
      await memory.forget('the code of the locker');
      await memory.review('prop_0001', 'accept').catch(() => undefined);
      await memory.care('default');
      await world.client.send(id, 'second');
      await world.client.reset(id);
    },
  },
  {
    name: 'approval-decided',
    world: () => ({
      agent: { approvals: [{ tool: 'note', policy: 'ask' }] },
      ...says(tools('note', 'note'), text('Both.')),
    }),
    has: [TOOL, UPDATE_DONE, '"signalName":"decide"', TIMER_STARTED, TIMER_CANCELLED],
    async play(stage) {
      const { world, id, until } = stage;
      const sent = sendLater(stage, 'note it');
      await until('two approvals', async () => (await world.client.status(id)).pendingApprovals === 2);
      const handle = world.temporal.workflow.getHandle(id);
      await handle.signal('decide', { callId: 'turn_0001/c1', decision: 'approve', note: 'this once' });
      await handle.executeUpdate('decide', { args: [{ callId: 'turn_0001/c2', decision: 'deny' }] });
      await sent;
    },
  },
  {
    name: 'events-for-webhooks',
    world: () => ({
      agent: { approvals: [{ tool: 'note', policy: 'ask' }], limits: { handOver: { events: 60 } } },
      webhooks: { endpoints: [{ url: 'http://127.0.0.1:9/', secrets: [], events: WEBHOOK_EVENTS }] },
      ...says(tools('note'), text('Noted.'), text('Two.'), httpError(401), text('Four.')),
    }),
    runs: 2,
    has: [MODEL, '"name":"deliver"', '"kind":"turn-ended"', '"kind":"waiting"', '"stopReason":"failed"', CONTINUED],
    async play(stage) {
      const { world, id, until } = stage;
      const sent = sendLater(stage, 'note it');
      await until('an approval', async () => (await world.client.status(id)).pendingApprovals === 1);
      await world.client.decide(id, { callId: 'turn_0001/c1', decision: 'approve' });
      await sent;
      for (const what of ['two', 'three', 'four']) await world.client.send(id, what);
      await stage.settled();
    },
  },
  {
    name: 'questions-and-waits',
    world: () => ({
      agent: { approvalExpiryMs: 2_000 },
      ...says(
        callTool('ask_user', { question: 'Which colour?' }),
        callTool('ask_user', { question: 'And which size?' }),
        callTool('wait_until', { seconds: 1 }),
        text('Done.'),
      ),
    }),
    has: [TIMER_STARTED, TIMER_FIRED, UPDATE_DONE],
    async play(stage) {
      const { world, id, until } = stage;
      const sent = sendLater(stage, 'choose');
      await until('a question', async () => (await world.client.status(id)).pendingApprovals === 1);
      const answer = { callId: 'turn_0001/c1', decision: 'approve', note: 'blue' };
      await world.temporal.workflow.getHandle(id).executeUpdate('decide', { args: [answer] });
      await sent;
    },
  },
  ...(['sub-agent', 'sub-agent-itself'] as const).map((name): Scenario => ({
    name,
    ...(name === 'sub-agent' ? {} : { whose: (id: string) => `${id}:turn_0001:1` }),
    world: () => says(callTool('delegate', { task: 'Count the boats.' }), text('Seven.'), text('There are seven.')),
    has: [MODEL, name === 'sub-agent' ? 'EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED' : 'EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED'],
    async play({ world, id }) {
      await world.client.send(id, 'how many boats?', START);
      await world.temporal.workflow.getHandle(`${id}:turn_0001:1`).result();
    },
  })),
  {
    name: 'sub-agent-that-asks-hands-over',
    whose: (id) => `${id}:turn_0001:1`,
    runs: 2,
    world: () => ({
      agent: { limits: { handOver: { events: 20 } }, approvals: [{ tool: 'pay', policy: 'ask' }] },
      ...says(
        callTool('delegate', { task: 'Pay for the boats.' }),
        tools('look_up'),
        tools('pay', 'look_up'),
        text('Paid.'),
        text('They are paid for.'),
      ),
    }),
    has: [CONTINUED, 'EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED'],
    async play(stage) {
      const { world, id, until } = stage;
      const sent = sendLater(stage, 'have them paid for');
      await until('a question', async () => (await world.client.status(id)).pendingApprovals === 1);
      await until('the hand-over', async () => {
        const { life, runId } = await world.client.describe(`${id}:turn_0001:1`);
        return runId !== life;
      });
      const [asked] = await world.client.approvals(id);
      await world.temporal.workflow
        .getHandle(id)
        .signal('decide', { callId: asked?.callId, conversation: asked?.conversation, decision: 'approve' });
      await sent;
    },
  },
  {
    name: 'stepped',
    world: () => says(tools('note', 'note'), text('Noted.'), text('By itself.')),
    has: [MODEL, TOOL, UPDATE_DONE, '"did":"event"', '"did":"tool-run"', '"did":"model-call"'],
    async play(stage) {
      const { world, id } = stage;
      const handle = world.temporal.workflow.getHandle(id);
      await world.client.start(id, {});
      await handle.executeUpdate('setMode', { args: [{ mode: 'stepping' }] });
      const sent = sendLater(stage, 'note it');
      await stage.until('a message to step to', async () => (await world.client.status(id)).queued === 1);
      for (let n = 1; n <= 5; n++) await handle.executeUpdate('step', { args: [{ id: `step-${n}` }] });
      await sent;
      await handle.signal('event', { type: 'weather', payload: 'rain' });
      await world.client.message(id, 'go on');
      await handle.executeUpdate('setMode', { args: [{ mode: 'auto' }] });
      await stage.until('the second turn', async () => (await world.client.status(id)).turns === 2);
    },
  },
  // The conversation's history has the orders that it sends, that of its sub-agent has what it makes of them.
  ...(['sub-agent-stepped', 'sub-agent-stepped-itself'] as const).map((name): Scenario => ({
    name,
    ...(name === 'sub-agent-stepped' ? {} : { whose: (id: string) => `${id}:turn_0001:1` }),
    world: () => says(callTool('delegate', { task: 'Count the boats.' }), tools('note'), text('Seven.'), text('There are seven.')),
    has:
      name === 'sub-agent-stepped'
        ? ['"scope":"into"', '"did":"sub-agent"', UPDATE_DONE]
        : ['"mode":"stepping"', MODEL, 'EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED'],
    async play(stage) {
      const { world, id } = stage;
      await world.client.start(id, { mode: 'stepping' });
      const sent = sendLater(stage, 'how many boats?');
      await stage.until('a message to step to', async () => (await world.client.status(id)).queued === 1);
      for (let n = 1; n <= 20 && (await world.client.status(id)).turns === 0; n++)
        await world.client.step(id, { id: `step-${n}`, ...(n > 2 && { scope: 'into' as const }) });
      await sent;
      await world.temporal.workflow.getHandle(`${id}:turn_0001:1`).result();
    },
  })),
  {
    // Without reducers, as the shipped workflow is: what counts is when they are taken.
    name: 'app-events-inside-a-turn',
    world: () => says(tools('wait'), tools('note', 'look_up'), text('Done.'), text('Heard.')),
    has: ['"dispatch"', TOOL, MODEL, UPDATE_DONE],
    async play(stage) {
      const { world, id } = stage;
      const handle = world.temporal.workflow.getHandle(id);
      const sent = sendLater(stage, 'wait for it');
      await stage.toolRuns();
      await handle.signal('event', { type: 'weather', payload: 'rain' });
      await world.client.dispatch(id, { id: 'e-1', type: 'weather', payload: 'sun' }, { wait: true });
      await world.client.dispatch(id, { id: 'e-1', type: 'weather', payload: 'sun' });
      stage.letGo();
      await sent;
      await world.client.dispatch(id, { id: 'e-2', type: 'weather', payload: 'snow' }, { wait: true });
      await world.client.send(id, 'go on');
    },
  },
  {
    name: 'chosen-chunks',
    world: small,
    has: ['"executeTruncation"', '"triggerCompaction"', '"name":"truncate"', '"name":"compact"', UPDATE_DONE],
    async play(stage) {
      const { world, id } = stage;
      for (let n = 1; n <= 4; n++) await world.client.send(id, `message ${n}`, START);
      await world.client.executeTruncation(id, ['chunk_1', 'chunk_2']);
      await world.client.triggerCompaction(id, ['chunk_3', 'chunk_4']);
      await world.client.send(id, 'go on');
    },
  },
  {
    name: 'title-by-a-model',
    world: () => ({
      agent: { titles: 'model' },
      ...says(text('Hello.'), text('The harbour'), text('And on.')),
    }),
    has: ['"name":"title"', 'EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED', MODEL],
    async play(stage) {
      const { world, id } = stage;
      await world.client.send(id, 'what of the harbour?', START);
      await stage.until('a title', async () => (await world.client.status(id)).title === 'The harbour');
      await world.client.send(id, 'go on');
    },
  },
  {
    name: 'recalled-for-a-turn',
    world: () => ({ agent: { memory: { recall: { turns: 2 } } }, answer: () => text('Noted.') }),
    has: [MODEL, DEFERRED('recall'), '"recalled":"[RECALLED]', 'the dentist Brandt, beside'],
    async play({ world, id }) {
      // A session is a context of its own: what the one before it had is not in it.
      await world.client.send(id, 'In Kiel I go to the dentist Brandt, beside the harbour.', START);
      for (const line of [
        'My umbrella is green.',
        'Ole sails in June.',
        'The cat has a collar.',
        'I sold the accordion.',
        'The roof leaks.',
      ])
        await world.client.send(id, line);
      await world.client.reset(id);
      await world.client.send(id, 'To which dentist in Kiel do I go, beside the harbour?');
      await world.client.send(id, 'Thanks.');
    },
  },
  {
    name: 'vectors-that-cost',
    world: () => ({
      embedder: {
        name: 'test/one',
        price: 1_000,
        embed: (texts) =>
          Promise.resolve({ vectors: texts.map((one) => Float32Array.from([1, one.length])), tokens: 1_000_000 * texts.length }),
      },
      answer: () => text('Noted.'),
    }),
    has: [MODEL, '"embedded":{', '"stopReason":"budget"'],
    async play({ world, id, until }) {
      await world.client.send(id, 'In Kiel I go to the dentist Brandt.', { start: { budget: { maxTokens: 2_000_000 } } });
      await until('vectors are made', async () => {
        const [key] = await world.store.lives.list({ namespace: 'default', conversation: id });
        return key !== undefined && (await world.store.vectors.read(key, 'test/one')).length === 2;
      });
      await world.client.send(id, 'Thanks.');
      // Nothing is left for a model.
      await world.client.send(id, 'And now?');
    },
  },
  {
    name: 'truncated',
    world: () => {
      const { agent, ...rest } = small();
      return { ...rest, agent: { ...agent, context: { maxTokens: 6_000, safetyMargin: 500, autoCompactEnabled: false } } };
    },
    has: ['"name":"truncate"', MODEL],
    play: (stage) => talk(stage, 14),
  },
  {
    name: 'answer-corrected',
    world: () => says(text('Blue, I think.'), text('{"colour":"blue"}')),
    has: [MODEL, UPDATE_DONE, '"schemaViolation"', '"payload"'],
    async play({ world, id }) {
      const output = { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] };
      await world.client.send(id, { text: 'which colour?', output, context: { tenant: 'a' } }, START);
    },
  },
  {
    // Questions end workflow tasks where no task would end; beside them comes all that may come beside a running step.
    name: 'asked-meanwhile',
    has: [CANCEL_ASKED, EVICT, 'EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED'],
    async play(stage) {
      const { world, id } = stage;
      const handle = world.temporal.workflow.getHandle(id);
      const message = (name: string): Promise<void> => handle.signal('message', { id: name, text: name });
      const ask = (): Promise<unknown> => Promise.all([world.client.status(id), world.client.context(id)]);
      const { sent } = await sendUntilHeld(stage, 'a', gate());
      world.api.play(...script(text('b'), text('c'), text('d')));
      await Promise.all([ask(), handle.signal('new', {}), ask(), message('b'), ask()]);
      await Promise.all([message('c'), ...Array.from({ length: 40 }, (_, i) => (i % 4 === 0 ? ask() : message('b')))]);
      await Promise.all([...Array.from({ length: 10 }, ask), message('d'), sent]);
    },
  },
  {
    name: 'ride-of-several-tools',
    world: () => says(tools('note', 'note', 'note'), tools('fail', 'note', 'no_such_tool'), text('Noted.'), text('Fine.')),
    has: [RIDES, '"outcome":"error"', '"outcome":"rejected"'],
    lacks: [TOOL, STORE, DEFERRED_ANY],
    async play({ world, id }) {
      await world.client.send(id, 'note them all', START);
      await world.client.send(id, 'and?');
    },
  },
  {
    // One that does not ride, and none rides.
    name: 'mixed-round',
    world: () => says(tools('note', 'look_up', 'note'), tools('note'), text('All of it.')),
    has: [TOOL, RIDES],
    async play({ world, id }) {
      await world.client.send(id, 'note and look up', START);
    },
  },
  {
    name: 'ride-held-by-a-breakpoint',
    world: () => says(tools('note', 'note'), text('Noted.'), tools('note'), text('By itself.')),
    has: [TOOL, RIDES, UPDATE_DONE],
    async play(stage) {
      const { world, id, until } = stage;
      const handle = world.temporal.workflow.getHandle(id);
      await world.client.start(id, {});
      await handle.executeUpdate('setBreakpoints', { args: [{ tools: ['note'] }] });
      const sent = sendLater(stage, 'note it');
      await until('a pause', async () => (await world.client.status(id)).pausedBy !== null);
      await handle.executeUpdate('step', { args: [{ id: 'step-1' }] });
      await handle.executeUpdate('setBreakpoints', { args: [{}] });
      await handle.executeUpdate('setMode', { args: [{ mode: 'auto' }] });
      await sent;
      await world.client.send(id, 'and again');
    },
  },
  {
    name: 'steer-while-a-tool-rides',
    world: () => says(tools('wait_riding'), text('Let go.'), text('Heard.')),
    has: [RIDES, UPDATE_DONE],
    async play(stage) {
      const { world, id } = stage;
      const sent = sendLater(stage, 'wait');
      await stage.toolRuns();
      const steered = sendLater(stage, { text: 'and mind this', delivery: 'steer' });
      await stage.until('a queue', async () => (await world.client.status(id)).queued === 1);
      stage.letGo();
      await Promise.all([sent, steered]);
    },
  },
  {
    name: 'agent-broken-between-turns',
    world: () => ({ answer: () => text('Here.') }),
    has: [MODEL, STORE, DEFERRED('unusable'), 'bad-config'],
    async play(stage) {
      const { world, id } = stage;
      await world.client.send(id, 'first', START);
      stage.breakAgent();
      await world.client.send(id, 'second');
      await world.writeAgent('default', {});
      await world.client.send(id, 'third');
    },
  },
  {
    name: 'budget-lowered-between-turns',
    world: () => ({ answer: () => text('Here.') }),
    has: [MODEL, STORE, DEFERRED('budget'), '"stopReason":"budget"'],
    async play({ world, id }) {
      await world.client.send(id, 'first', START);
      await world.writeAgent('default', { limits: { maxTokens: 1 } });
      await world.client.send(id, 'second');
      await world.client.send(id, 'third');
      await world.writeAgent('default', {});
      await world.client.send(id, 'fourth');
    },
  },
  {
    name: 'smaller-context-between-turns',
    world: () => {
      const { agent, ...rest } = small();
      return { ...rest, agent: { ...agent, context: { maxTokens: 60_000, safetyMargin: 500 } } };
    },
    has: ['"name":"compact"', DEFERRED('compaction')],
    async play(stage) {
      await talk(stage, 8);
      await stage.world.writeAgent('default', small().agent ?? {});
      await stage.world.client.send(stage.id, 'and now?');
    },
  },
  {
    name: 'ride-that-needs-a-compaction',
    world: () => bringsMuch(4_500),
    has: [RIDES, '"name":"compact"', DEFERRED('compaction')],
    async play(stage) {
      await talk(stage, 5);
      await stage.world.client.send(stage.id, 'bring it');
      await talk(stage, 1);
    },
  },
  {
    name: 'compaction-inside-a-turn',
    world: () => goesRound(16),
    has: [RIDES, '"name":"compact"', '[SUMMARIZED IN PART]'],
    async play(stage) {
      await talk(stage, 1);
      await stage.world.client.send(stage.id, 'go round');
      await talk(stage, 1);
    },
  },
  {
    name: 'ride-that-needs-a-truncation',
    world: () => bringsMuch(12_000),
    has: [RIDES, '"name":"truncate"', DEFERRED('truncation')],
    async play(stage) {
      await talk(stage, 5);
      await stage.world.client.send(stage.id, 'bring it');
      await talk(stage, 1);
    },
  },
  {
    name: 'message-in-parts',
    world: () => ({ answer: () => text('Read.') }),
    has: [STORE, MODEL, '"part":{"slot"', '"parts":["'],
    async play(stage) {
      const { world, id } = stage;
      await world.client.start(id, {});
      await world.client.message(id, longText(1024 * 1024));
      await world.client.send(id, 'short');
      await stage.settled();
    },
  },
  {
    name: 'long-texts-in-the-queue',
    world: () => ({ script: script(tools('wait')), answer: () => text('Read.') }),
    has: [TOOL, STORE, MODEL],
    async play(stage) {
      const { world, id } = stage;
      const sent = sendLater(stage, 'wait');
      await stage.toolRuns();
      for (let i = 0; i < 7; i++) await world.client.message(id, longText(60_000));
      await stage.until('a queue', async () => (await world.client.status(id)).queued === 7);
      stage.letGo();
      await sent;
      await stage.settled();
    },
  },
];
