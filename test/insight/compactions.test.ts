/** Each time that the prompt became smaller, or larger again: from events alone, checked against the contexts that they made. */
import { apply } from '../../src/conversation/apply.js';
import type { Compacted, CompactInput } from '../../src/conversation/context/compaction-effects.js';
import type { Effects } from '../../src/conversation/effect.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import type { Run } from '../../src/conversation/replay/past.js';
import type { ConversationState } from '../../src/conversation/state.js';
import { findContextChanges } from '../../src/insight/compactions.js';
import { listSlots, toRanges } from '../../src/records/slots.js';
import { open, said, settle, SETTINGS, take, USAGE, type Script } from '../conversation/drive.js';
import { userEntry } from '../stores/builders.js';

function compacted(input: CompactInput, keep = 2): Compacted {
  const slots = listSlots(input.context);
  return {
    ...{ kind: 'compacted', life: 'l1', epoch: input.epoch, turns: ['turn_0001'], task: { goal: 'g', openTasks: [] }, facts: [] },
    ...{ kept: toRanges(slots.slice(-keep)), archived: toRanges(slots.slice(0, -keep)), method: 'model', usage: USAGE },
    ...{ base: { ref: `base-${input.epoch}`, text: `summary ${input.epoch}` }, tokensBefore: 1_000, tokensAfter: 200 },
    episode: { id: `ep_000${input.number}`, ts: 1, turn_ids: ['turn_0001'], summary: 's', tags: [], salience: 0.5 },
    record: { inputsHash: 'i', compactor: 'c', method: 'model', model: SETTINGS.model, tokensBefore: 1_000, tokensAfter: 200 },
  };
}

/** Says what happens to it, and keeps that. */
function told() {
  const opened = open();
  let state: ConversationState = opened;
  const events: ConversationEvent[] = [];
  const say = (event: ConversationEvent): void => {
    events.push(event);
    state = apply(state, event);
  };
  const begin = <N extends 'compact' | 'truncate'>(name: N, asking: ConversationEvent) => {
    say(asking);
    const { id, input, done } = take(state, name);
    say({ kind: 'effect-started', effect: name, id, input, at: state.now + 1 } as ConversationEvent);
    return (output: (input: Effects[N]['input']) => Effects[N]['output']): void => say(done(output(input), state.now + 1));
  };
  return {
    say,
    turn(id: string, script: Script = {}) {
      say(said(id, { at: state.now + 1 }));
      for (const event of settle(state, script).events) say(event);
    },
    /** Starts an effect that a person asks for; the answer ends it with what `output` makes of its input. */
    begin,
    compact: (output: (input: CompactInput) => Effects['compact']['output']) =>
      begin('compact', { kind: 'compaction-requested', requestId: `r${events.length}`, at: state.now + 1 })(output),
    undo() {
      say({ kind: 'undo-requested', requestId: `u${events.length}`, at: state.now + 1 });
      for (const event of settle(state).events) say(event);
    },
    get state() {
      return state;
    },
    run: (): Run => ({ opened, events }),
  };
}

function talked(turns: number): ReturnType<typeof told> {
  const life = told();
  for (let n = 1; n <= turns; n++) life.turn(`m${n}`);
  return life;
}

test('a compaction: what left, why, who summarized it at what cost, and what stands in its place', () => {
  const life = talked(4);
  const before = listSlots(life.state.context);
  life.compact((input) => compacted(input));
  const [change, ...more] = findContextChanges([life.run()]);
  expect(more).toEqual([]);
  expect(change).toMatchObject({
    ...{ number: 1, kind: 'compacted', epoch: 2, session: 1, cause: 'asked', method: 'model', model: SETTINGS.model, usage: USAGE },
    ...{ episode: 'ep_0001', turns: ['turn_0001'], text: expect.stringMatching(/^summary/), undoneBy: null },
    slots: before.slice(0, -2),
    messages: { before: before.length, after: 2 },
    base: { before: null, after: life.state.compaction.base },
  });
});

test('taking it back is a change of its own, which names the messages that are there again; the one it took back says by which', () => {
  const life = talked(4);
  life.compact((input) => compacted(input));
  life.undo();
  life.compact((input) => compacted(input, 1));
  const [first, undone, second] = findContextChanges([life.run()]);
  expect([first?.undoneBy, undone?.undoneBy, second?.undoneBy]).toEqual([2, null, null]);
  expect(undone).toMatchObject({ number: 2, kind: 'undone', episode: first?.episode, slots: first?.slots, method: null, usage: null });
  expect(undone?.messages).toEqual({ before: first?.messages.after, after: first?.messages.before });
  expect(second?.kind).toBe('compacted');
});

test('a compaction that found nothing changed nothing', () => {
  const life = talked(3);
  life.compact(({ epoch }) => ({ kind: 'nothing-to-compact', epoch }));
  expect(findContextChanges([life.run()])).toEqual([]);
});

test('what comes after its session has ended is paid for, and is no change of a context', () => {
  const life = talked(4);
  const end = life.begin('compact', { kind: 'compaction-requested', requestId: 'r1', at: life.state.now + 1 });
  life.say({ kind: 'reset-requested', resetId: 'n1', at: life.state.now + 1 });
  for (const event of settle(life.state).events) life.say(event);
  expect([life.state.session, listSlots(life.state.context)]).toEqual([2, []]);
  const { usage } = life.state;
  end((input) => compacted(input));
  expect(life.state.usage.outputTokens).toBe(usage.outputTokens + USAGE.outputTokens);
  expect(findContextChanges([life.run()])).toEqual([]);
});

test('messages that are only shown by their ends from then on are a change in which nothing left', () => {
  const life = talked(4);
  life.begin('compact', { kind: 'compaction-requested', requestId: 'r1', at: life.state.now + 1 })(({ epoch }) => ({
    ...{ kind: 'cited', life: 'l1', epoch, cited: [[1, 1]], tokensBefore: 900, tokensAfter: 100 },
  }));
  expect(findContextChanges([life.run()])).toMatchObject([{ kind: 'cited', slots: [], cause: 'asked', usage: null, text: null }]);
});

test('of many runs the changes are numbered on, each against the state that its own run carried over', () => {
  const life = talked(4);
  life.compact((input) => compacted(input));
  const first = life.run();
  const carried = apply(life.state, { kind: 'run-continued', at: life.state.now });
  const later = talked(4);
  later.compact((input) => compacted(input));
  expect(findContextChanges([first, { opened: carried, events: [] }, later.run()]).map(({ number, kind }) => [number, kind])).toEqual([
    [1, 'compacted'],
    [2, 'compacted'],
  ]);
});

test('a truncation is a change where something left, with no summary and no cost', () => {
  const life = talked(4);
  const asking: ConversationEvent = { kind: 'chunks-chosen', requestId: 't1', what: 'truncate', slots: [[1, 2]], at: life.state.now + 1 };
  life.begin(
    'truncate',
    asking,
  )(({ epoch }) => ({
    ...{ life: 'l1', epoch, dropped: [[1, 2]], tokens: 40, entries: 2 },
    notice: { ...userEntry(9, 'Two messages were left out.'), message: { role: 'user', from: 'notice', text: '' } },
  }));
  expect(findContextChanges([life.run()])).toMatchObject([
    { kind: 'truncated', slots: [1, 2], cause: null, method: null, usage: null, episode: null, text: null },
  ]);
});

test('a truncation that found only long messages to shorten is a change too, and one that found nothing is none', () => {
  const life = talked(4);
  const asked = (requestId: string): ConversationEvent => ({ kind: 'chunks-chosen', requestId, what: 'truncate', slots: [[1, 1]], at });
  const at = life.state.now + 1;
  const ended = { life: 'l1', dropped: [], tokens: 40, entries: 0 };
  life.begin('truncate', asked('t1'))(({ epoch }) => ({ ...ended, epoch, cited: [[1, 1]] }));
  life.begin('truncate', asked('t2'))(({ epoch }) => ({ ...ended, epoch, tokens: 0 }));
  expect(findContextChanges([life.run()])).toMatchObject([{ kind: 'cited', slots: [], usage: null }]);
});
