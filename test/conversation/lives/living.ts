/** A life: choices drive the pure `apply` and `nextStep`, and in the end all goes well. Answers with what did not hold. */
import { apply } from '../../../src/conversation/apply.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import { turnOfMessage } from '../../../src/conversation/inbox/arrivals.js';
import type { Reduced } from '../../../src/conversation/context/reducers.js';
import { nextStep, type Step } from '../../../src/conversation/next-step.js';
import type { ChildNews } from '../../../src/conversation/protocol/human-input.js';
import { outcomeFor, type RequestKind } from '../../../src/conversation/requests.js';
import { readCarriedState } from '../../../src/conversation/opening.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { approvalsOf } from '../../../src/conversation/turn/approvals.js';
import { endedTurn } from '../../../src/conversation/views/view.js';
import { NO_USAGE } from '../../../src/records/message.js';
import { listSlots } from '../../../src/records/slots.js';
import { brings, endOf } from './activities.js';
import type { Choice } from './choices.js';
import { checkChange, checkStart, MAX_CARRIED, MAX_RESTING } from './rules.js';
import { createWorld, isFromLongAgo, type Kind, type World } from './world.js';

/** Problems of one life, in words; none when all is as it should be. */
export function problemsOf(made: readonly Choice[], kind: Kind = 'own'): string[] {
  return end(lived(made, kind, {}));
}

/** The same choices twice, once with a hand-over wherever nothing is in flight: it must change nothing. */
export function differences(made: readonly Choice[], kind: Kind = 'own'): string[] {
  const whole = lived(made, kind, { isTwin: true });
  const handedOver = lived(made, kind, { isTwin: true, handsOver: true });
  const at = whole.story.findIndex((step, i) => step !== handedOver.story[i]);
  const isLonger = at === -1 && handedOver.story.length > whole.story.length;
  if (at === -1 && !isLonger) return [...whole.problems, ...handedOver.problems];
  const i = at === -1 ? whole.story.length : at;
  return [`without a hand-over: ${whole.story[i] ?? 'nothing'}`, `with one: ${handedOver.story[i] ?? 'nothing'}`];
}

interface Manner {
  readonly isTwin?: boolean;
  readonly handsOver?: boolean;
}

function lived(made: readonly Choice[], kind: Kind, { isTwin = false, handsOver = false }: Manner): World {
  const world = createWorld(kind);
  if (kind === 'sub-agent') {
    for (const one of [{ kind: 'say', id: 0, delivery: 'queue', bytes: 4 }, { kind: 'close' }] as const) choose(world, one, isTwin);
  }
  for (const choice of made) {
    const { state, isOver, problems } = world;
    if (problems.length > 0) return world;
    if (handsOver && !isOver && state.inFlight.length === 0 && state.lineage?.isOpen !== false) {
      handOver(world);
      pump(world, isTwin);
    }
    choose(world, choice, isTwin);
  }
  finish(world, isTwin);
  return world;
}

/** What must have become of everything by the end. */
function end(world: World): string[] {
  const { state, problems, said, withdrawn, droppable, messages, answers } = world;
  if (state.lineage && !state.lineage.isOpen) return problems;
  const expect = (holds: boolean, problem: string): void => void (holds || problems.push(problem));
  for (const [id] of said) {
    const turn = turnOfMessage(state, id);
    if (isFromLongAgo(id) && turn === 'turn_9001') continue;
    const reason = turn === undefined ? undefined : endedTurn(state, turn)?.stopReason;
    expect(reason !== undefined, `${id} (${turn ?? 'no turn'}) is not answered`);
    expect(reason === 'withdrawn' || messages.has(id), `${id} is answered and was never recorded`);
    expect(reason === 'withdrawn' || !withdrawn.has(id), `${id} was withdrawn and is answered: ${reason}`);
    expect(reason !== 'withdrawn' || withdrawn.has(id) || droppable.has(id), `${id} is taken back, and nobody has asked for that`);
  }
  const open = listSlots(state.context).flatMap((slot) => (world.asks.get(slot) ?? []).filter((callId) => !answers.has(callId)));
  expect(open.length === 0, `${open.join()} were never answered`);
  expect(world.endsDelivered.join() === world.ends.join(), `turns ${world.ends.join()} ended, ${world.endsDelivered.join()} went out`);
  expect(state.usage.inputTokens === toldTokens(world), `${toldTokens(world)} tokens were told, ${state.usage.inputTokens} are counted`);
  expect(!state.parent || world.reports > 0, 'the parent is never told how it ended');
  const isAnswered = (id: string, ...kinds: readonly RequestKind[]): boolean =>
    kinds.some((kind) => outcomeFor(state, kind, id) !== undefined);
  const unanswered = world.requests.slice(-16).filter((id) => !isAnswered(id, 'compact', 'truncate', 'undo'));
  expect(unanswered.length === 0, `the requests ${unanswered.join()} are not answered`);
  const rewound = Array.from({ length: Math.min(16, world.rewinds) }, (_, i) => `w${world.rewinds - i}`);
  expect(
    rewound.every((id) => isAnswered(id, 'rewind')),
    `of the rewinds ${rewound.join()} one is not answered`,
  );
  const resets = Array.from({ length: world.resets }, (_, i) => `r${i + 1}`).filter((id) => !isAnswered(id, 'reset'));
  expect(world.resets > 20 || resets.length === 0, `the resets ${resets.join()} are not answered`);
  const retries = Object.keys(state.retries).filter((of) => !['store', 'evict', 'deliver'].includes(of));
  expect(retries.length === 0, `${retries.join()} are tried again, and there is nothing to do`);
  const json = JSON.stringify(state);
  expect(JSON.stringify(JSON.parse(json)) === json && !hasUndefined(state), 'the state is no plain JSON'); // (conversation/plain-json)
  expect(json.length <= MAX_RESTING, `a state at rest of ${json.length} characters`);
  if (state.closing === 'no' && !world.isOver) sayHello(world);
  return problems;
}

/** Whatever has been: a plain word is answered. */
function sayHello(world: World): void {
  world.at += 61_000;
  tell(world, { kind: 'message-received', messageId: 'hello', text: 'hello', delivery: 'queue', at: world.at });
  finish(world);
  const turn = turnOfMessage(world.state, 'hello');
  const ended = turn === undefined ? undefined : endedTurn(world.state, turn);
  if (ended?.stopReason !== 'end' || ended.error) world.problems.push(`hello is not answered: ${JSON.stringify(ended ?? turn ?? null)}`);
}

function hasUndefined(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value === undefined;
  return Object.values(value).some(hasUndefined);
}

export function tell(world: World, event: ConversationEvent): void {
  const before = world.state;
  world.state = apply(before, event);
  checkChange(world, before, event);
}

/** Starts what is next until nothing is. */
export function pump(world: World, isTwin = false): void {
  for (let i = 0; i < 1000 && !world.isOver; i++) if (!start(world, nextStep(world.state), isTwin)) return;
  if (!world.isOver) world.problems.push('nextStep never comes to rest');
}

function start(world: World, step: Step, isTwin: boolean): boolean {
  const { at } = world;
  noteStory(world, step);
  switch (step.kind) {
    case 'effect': {
      const { kind: _, ...effect } = step;
      checkStart(world, effect);
      tell(world, { kind: 'effect-started', ...effect, at });
      // Only a run that another one has handed over to looks after its sub-agents: in a twin this must shift nothing.
      if (isTwin && effect.effect === 'look-after') tell(world, endOf(world, effect, 0, 1));
      else world.flying.push(effect);
      return true;
    }
    case 'begin-turn':
      tell(world, { kind: 'turn-begun', at });
      return true;
    case 'reduce':
      tell(world, { kind: 'app-event-reduced', id: step.event.id, reduced: reducedOf(step), at });
      return true;
    case 'stop':
      tell(world, { kind: 'stop-sent', at });
      return true;
    case 'stop-late':
      tell(world, { kind: 'late-children-stopped', at });
      return true;
    case 'upsert-attributes':
      tell(world, { kind: 'attributes-upserted', status: step.attributes.AgentStatus, turns: step.attributes.AgentTurns, at });
      return true;
    case 'upsert-title':
      tell(world, { kind: 'title-upserted', at });
      return true;
    case 'notify-children':
      tell(world, { kind: 'children-notified', at });
      return true;
    case 'order-children':
      tell(world, { kind: 'children-ordered', orders: step.orders, at });
      return true;
    case 'notify-parent':
      tell(world, { kind: 'parent-notified', ...notified(step.news), at });
      return true;
    case 'hand-over':
      if (JSON.stringify(world.state).length > MAX_CARRIED) world.problems.push('a hand-over that no server takes');
      handOver(world);
      // What was given up in this run tells no later one.
      world.flying = [];
      return true;
    case 'finish':
      if (world.state.inFlight.length > 0) world.problems.push('finished with something in flight');
      world.isOver = true;
      return true;
    case 'refuse':
      world.isOver = true;
      return true;
    case 'wait':
      return false;
  }
}

/** What the next run is given: the state through JSON, as it reads it. */
function handOver(world: World): void {
  const { problems, state } = world;
  if (state.inFlight.length > 0) problems.push('hand-over with something in flight');
  const json = JSON.stringify(state);
  const carried = readCarriedState(JSON.parse(json), state.identity.life);
  if (!carried.ok) return void problems.push(`the next run would not take it: ${carried.reason}`);
  world.state = carried.value;
  tell(world, { kind: 'run-continued', at: world.at });
}

const UNTOLD = ['upsert-attributes', 'hand-over', 'wait'];
const UNCOMPARED = ['asksAttributes', 'text', 'knownMemory'];

/** Ids that only count effects are left out: a look after a sub-agent counts, too. */
function noteStory({ story }: World, step: Step): void {
  if (UNTOLD.includes(step.kind) || (step.kind === 'effect' && step.effect === 'look-after')) return;
  const told = step.kind === 'effect' && /_\d+$/.test(step.id) ? { ...step, id: '' } : step;
  story.push(JSON.stringify(told, (key, value: unknown) => (UNCOMPARED.includes(key) ? undefined : value)));
}

function reducedOf({ event, view }: Extract<Step, { kind: 'reduce' }>): Reduced {
  const what = Number(event.payload);
  const chunk = { type: what % 2 === 0 ? 'NOTE' : 'WORKING_FLOW', text: 'x'.repeat(20) };
  const [first] = view.chunks;
  if (what === 6) return { kind: 'unreduced' };
  if (what === 7) return { kind: 'parked', error: 'no' };
  if (!first || what < 3) return { kind: 'reduced', operations: [{ kind: 'ADD', chunk }] };
  if (what === 3) return { kind: 'reduced', operations: [{ kind: 'DELETE', id: first.id }] };
  if (what === 4) return { kind: 'reduced', operations: [{ kind: 'UPDATE', id: first.id, text: 'y' }] };
  return { kind: 'reduced', operations: [{ kind: 'BATCH_REPLACE', ids: [first.id], chunks: [chunk, chunk] }] };
}

function notified(news: ChildNews): { readonly asks?: string; readonly control?: Extract<ChildNews, { kind: 'control' }>['control'] } {
  if (news.kind === 'control') return { control: news.control };
  return { asks: JSON.stringify(news.kind === 'asks' ? news.asks : []) };
}

export function choose(world: World, choice: Choice, isTwin = false): void {
  if (world.isOver) return;
  world.at += 1;
  if (choice.kind === 'time') {
    world.at += choice.ms;
    tell(world, { kind: 'time-passed', at: world.at });
    const late = approvalsOf(world.state).find(
      ({ conversation, expiresAt }) => conversation === world.state.conversation && expiresAt < world.at,
    );
    if (late) world.problems.push(`${late.callId} waits for longer than it may`);
  } else if (choice.kind === 'end') {
    const [one] = world.flying.splice(choice.which % Math.max(1, world.flying.length), 1);
    if (one) tell(world, endOf(world, one, choice.how, choice.tools));
  } else {
    const event = eventOf(world, choice);
    if (event) tell(world, event);
  }
  pump(world, isTwin);
}

function isOpen({ lineage }: ConversationState): boolean {
  return lineage?.isOpen !== false;
}

export function eventOf(world: World, choice: Exclude<Choice, { kind: 'end' | 'time' }>): ConversationEvent | undefined {
  const { at, state } = world;
  switch (choice.kind) {
    case 'say':
      return say(world, choice);
    case 'withdraw': {
      const messageId = `m${choice.id}`;
      if (!isOpen(state)) world.droppable.add(messageId);
      else if (isAtHand(state, messageId)) world.withdrawn.add(messageId);
      return { kind: 'withdraw-requested', messageId, at };
    }
    case 'reset':
      return { kind: 'reset-requested', resetId: `r${++world.resets}`, at };
    case 'interrupt':
      if (isOpen(state)) noteStop(world);
      return { kind: 'interrupt-requested', reason: null, at };
    case 'close':
      return { kind: 'close-requested', at, ...(at % 2 === 0 && { memory: false as const }) };
    case 'rewind':
      return { kind: 'rewind-requested', requestId: `w${++world.rewinds}`, to: 'turn_0001', ...saidInItsPlace(world), at };
    case 'model':
      world.model = at % 2 === 0 ? null : 'anthropic/claude-other';
      return { kind: 'model-set', model: world.model, at };
    case 'due':
      return { kind: 'hand-over-due', reason: 'test', at };
    case 'rename':
      return { kind: 'renamed', title: `title at ${at}`, at };
    case 'rejected':
      return { kind: 'input-rejected', name: 'message', reason: 'no', at };
    case 'app':
      return {
        kind: 'app-event-received',
        id: `e${choice.id}`,
        type: 'note',
        payload: choice.what,
        ...(at % 2 === 0 && { isAwaited: true }),
        at,
      };
    case 'edit':
      return edit(world, choice);
    case 'step':
      return { kind: 'step-requested', id: `s${++world.steps}`, at };
    case 'mode':
      return { kind: 'mode-set', mode: choice.mode, at };
    case 'break': {
      const breakpoints = [{}, { tools: ['tool'] }, { onError: true }, { events: ['message'] }][choice.at] ?? {};
      return { kind: 'breakpoints-set', breakpoints, at };
    }
    case 'budget':
      world.maxTokens = choice.maxTokens;
      return { kind: 'budget-raised', budget: { maxTokens: choice.maxTokens }, at };
    case 'ask':
      return ask(world, choice);
    case 'decide':
      return decide(world, choice);
    case 'child':
      return childNews(world, choice);
    case 'news': {
      const requestId = choice.isAgain ? world.news[0] : world.news.shift();
      return requestId === undefined ? undefined : { kind: 'consolidation-ended', requestId, consolidation: 'model', usage: null, at };
    }
  }
}

type Of<Kind extends Choice['kind']> = Extract<Choice, { kind: Kind }>;

function say(world: World, { id, delivery, bytes, brings: what }: Of<'say'>): ConversationEvent {
  const { at, state } = world;
  const messageId = `m${id}`;
  const isTaken = state.closing === 'no' && !(state.lineage?.held ?? []).some(({ kind }) => kind === 'close-requested');
  if (isTaken && !world.said.has(messageId)) {
    world.said.set(messageId, delivery);
    if (delivery === 'steer') world.steering.set(messageId, at);
    if (delivery === 'interrupt' && isOpen(state) && state.turn) world.stoppedTurns.add(state.turn.number);
  }
  const more = {
    ...(what === 'picture' && { images: [{ mediaType: 'image/png', base64: 'aGk=' }] }),
    ...(what === 'output' && { output: { type: 'object' } }),
    ...(what === 'context' && { context: { place: 'here' } }),
  };
  return { kind: 'message-received', messageId, text: 'x'.repeat(bytes), delivery, ...brings(id), ...more, at } as ConversationEvent;
}

/** What is interrupted: the turn that runs, or the message that would be the next. */
function noteStop({ state: { turn, queue }, stoppedTurns, stopped }: World): void {
  const [head] = queue;
  if (turn) stoppedTurns.add(turn.number);
  else if (head?.kind === 'message') stopped.add(head.messageId);
}

function isAtHand({ queue }: ConversationState, id: string): boolean {
  return queue.some((item) => item.kind === 'message' && item.messageId === id);
}

function edit(world: World, { op, which, before }: Of<'edit'>): ConversationEvent {
  const { at, state, droppable, moved } = world;
  const messages = state.queue.flatMap((item) => (item.kind === 'message' ? [item.messageId] : []));
  const at_ = (i: number): string => `qevt_${String(state.queue[i % Math.max(1, state.queue.length)]?.number ?? 0).padStart(6, '0')}`;
  for (const id of messages) (op === 'move' ? moved : droppable).add(id);
  const id = at_(which);
  return {
    kind: 'queue-edited',
    edit: op === 'clear' ? { op } : op === 'drop' ? { op, id } : { op, id, before: before === 5 ? null : at_(before) },
    at,
  };
}

function ask(world: World, { what }: Of<'ask'>): ConversationEvent {
  const { at, state, requests } = world;
  const requestId = `a${requests.length}`;
  requests.push(requestId);
  if (what !== 'truncate' && what !== 'compact') return { kind: `${what}-requested`, requestId, at };
  const own = new Set(state.appEvents?.chunks.map(({ slot }) => slot));
  const slot = listSlots(state.context).find((one) => !own.has(one));
  return { kind: 'chunks-chosen', requestId, what, slots: slot === undefined ? [] : [[slot, slot]], at };
}

function decide(world: World, { which, decision }: Of<'decide'>): ConversationEvent | undefined {
  const { at, state, decided, plans, always } = world;
  const waiting = approvalsOf(state);
  const one = waiting[which % Math.max(1, waiting.length)];
  // To what nobody has asked, or was decided already.
  if (decision === 'stray')
    return { kind: 'decided', decision: { callId: [...decided.keys()][which] ?? 'turn_0001/c99', decision: 'approve' }, at };
  if (!one) return undefined;
  const { callId, conversation, kind } = one;
  if (conversation !== state.conversation)
    return { kind: 'decided', decision: { callId, conversation, decision: decision === 'deny' ? 'deny' : 'approve' }, at };
  if (kind === 'client-tool' && decision !== 'deny') {
    const output = { output: 'done', ...(decision === 'always' && { isError: true as const }) };
    return { kind: 'decided', decision: { callId, decision: 'approve', ...output }, at };
  }
  const mayAlways = decision === 'always' && one.mayAlways === true;
  const same = plans.get(callId)?.approval;
  if (kind === 'approval') {
    decided.set(callId, decision === 'deny' ? 'deny' : 'approve');
    if (mayAlways && same?.policy === 'ask' && same.same !== undefined) always.add(same.same);
  }
  return {
    kind: 'decided',
    decision: { callId, ...(decision === 'deny' ? { decision } : { decision: 'approve', ...(mayAlways && { always: true }) }) },
    at,
  };
}

function childNews(world: World, { which, news }: Of<'child'>): ConversationEvent | undefined {
  const { at, state, children, reported } = world;
  const index = which % Math.max(1, children.length);
  const callId = news === 'again' ? reported[which % Math.max(1, reported.length)] : children[index];
  if (callId === undefined) return undefined;
  if (news === 'asks') {
    const { turn } = state;
    const child = turn?.phase.kind === 'tools' ? turn.phase.calls.find(({ id }) => id === callId)?.child?.id : undefined;
    if (child === undefined) return undefined;
    const asked = { kind: 'approval', tool: 'tool', target: '', hash: '', askedIn: 1, askedAt: at, expiresAt: at + 20_000 } as const;
    return { kind: 'child-asks', callId, asks: [{ conversation: child, callId: 'turn_0001/c1', turnId: 'turn_0001', ...asked }], at };
  }
  if (news === 'stands' || news === 'paused') {
    const standing = { number: at, changes: state.control?.changes ?? 0, mode: 'stepping', next: 'run tool', subAgents: [] } as const;
    return { kind: 'child-stepped', callId, control: { ...standing, pausedBy: news === 'paused' ? 'tool: tool' : null }, at };
  }
  if (news === 'ended') reported.push(...children.splice(index, 1));
  return { kind: 'child-ended', callId, report: { text: 'done', stopReason: 'end', usage: NO_USAGE }, at };
}

/** Everything ends well from here on, and time passes, until nothing is left. */
export function finish(world: World, isTwin = false): void {
  const { at } = world;
  world.maxTokens = undefined;
  tell(world, { kind: 'breakpoints-set', breakpoints: {}, at });
  tell(world, { kind: 'mode-set', mode: 'auto', at });
  tell(world, { kind: 'budget-raised', budget: {}, at });
  for (let i = 0; i < 2_000; i++) {
    pump(world, isTwin);
    if (world.problems.length > 0) return;
    if (world.isOver && world.flying.length === 0) return;
    const [one] = world.flying.splice(0, 1);
    const event = one
      ? endOf(world, one, 0, 1)
      : (eventOf(world, { kind: 'child', which: 0, news: 'ended' }) ?? eventOf(world, { kind: 'news', isAgain: false }));
    world.at += 61_000;
    if (event) tell(world, event);
    else if (isAtRest(world.state)) return;
    else tell(world, { kind: 'time-passed', at: world.at });
  }
  world.problems.push(`it never comes to rest: ${JSON.stringify(nextStep(world.state)).slice(0, 200)}`);
}

/** Every other rewind brings a message, which is taken back where it fails. */
function saidInItsPlace({ rewinds, state, droppable }: World): { readonly before: true; readonly messageId?: string } | undefined {
  if (rewinds % 2 === 0) return undefined;
  const item = state.queue.find((one) => one.kind === 'message');
  if (item?.kind === 'message') droppable.add(item.messageId);
  return { before: true, ...(item?.kind === 'message' && { messageId: item.messageId }) };
}
function isAtRest({ turn, queue, consolidation, requests, outbox, inFlight, deliveries }: ConversationState): boolean {
  const ends = (deliveries?.due ?? []).filter(({ kind }) => kind === 'turn-ended').length;
  const owed =
    outbox.messages.length + outbox.settle.length + outbox.entries.length + outbox.feed.length + consolidation.pendingRequests.length;
  return (
    turn === null &&
    queue.length + owed + requests.pending.length + ends + inFlight.length === 0 &&
    consolidation.ending === null &&
    consolidation.pending === null
  );
}

/** What the conversation should have counted. */
export function toldTokens({ told }: World): number {
  return [...told.values()].reduce((sum, tokens) => sum + tokens, 0);
}
