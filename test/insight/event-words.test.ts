/** What happened, in a line: by a table, and of random lives that every event has one. */
import fc from 'fast-check';
import type { ConversationEvent } from '../../src/conversation/event.js';
import { eventName } from '../../src/conversation/views/observation.js';
import { describeEvent } from '../../src/insight/event-words.js';
import { choices } from '../conversation/lives/choices.js';
import { choose, pump } from '../conversation/lives/living.js';
import { createWorld } from '../conversation/lives/world.js';

const at = 1_000;
/** Of an event only what its words are made of. */
const event = (parts: object): ConversationEvent => ({ at, ...parts }) as ConversationEvent;
const begun = (effect: string, input: object): ConversationEvent => event({ kind: 'effect-started', effect, id: 'e1', input });
const done = (effect: string, output: unknown): ConversationEvent => event({ kind: 'effect-completed', effect, id: 'e1', output });
const write = { messages: [{ messageId: 'm1' }, { messageId: 'm2' }], settle: [{ effect: 'c9' }], entries: [{}, {}] };
const nothing = { messages: [], settle: [], entries: [] };
const ran = { name: 'look', callId: 'c1', outcome: 'ok', ms: 1_500 };
const said = (more: object): object => ({ kind: 'answered', answer: { blocks: [], call: 't/m1', stop: 'end', ...more } });

test.each<[words: string, event: ConversationEvent | undefined]>([
  ['a run begins, with what the one before it carried over', undefined],
  ['message received: m1 “hello”', event({ kind: 'message-received', messageId: 'm1', text: 'hello' })],
  ['app event received: RAIN (a1)', event({ kind: 'app-event-received', id: 'a1', type: 'RAIN' })],
  ['app event reduced: a1, 2 operations', event({ kind: 'app-event-reduced', id: 'a1', reduced: { kind: 'reduced', operations: [1, 2] } })],
  ['app event reduced: a1, 1 operation', event({ kind: 'app-event-reduced', id: 'a1', reduced: { kind: 'reduced', operations: [1] } })],
  [
    'app event reduced: a1, parked: no reducer',
    event({ kind: 'app-event-reduced', id: 'a1', reduced: { kind: 'parked', error: 'no reducer' } }),
  ],
  ['decided: c1: deny', event({ kind: 'decided', decision: { callId: 'c1', decision: 'deny' } })],
  [
    'chunks chosen: truncate, 3 chunks',
    event({
      kind: 'chunks-chosen',
      what: 'truncate',
      slots: [
        [1, 2],
        [4, 4],
      ],
    }),
  ],
  ['mode set: stepping', event({ kind: 'mode-set', mode: 'stepping' })],
  ['breakpoints set: {"tools":["look"]}', event({ kind: 'breakpoints-set', breakpoints: { tools: ['look'] } })],
  ['step requested: s1', event({ kind: 'step-requested', id: 's1' })],
  ['step requested: s1, tree', event({ kind: 'step-requested', id: 's1', scope: 'tree' })],
  [
    'child stepped: c1, stepping, next: model-step',
    event({ kind: 'child-stepped', callId: 'c1', control: { mode: 'stepping', next: 'model-step' } }),
  ],
  ['child stepped: c1, auto', event({ kind: 'child-stepped', callId: 'c1', control: { mode: 'auto', next: null } })],
  ['parent ordered: stepping, step s1', event({ kind: 'parent-ordered', order: { mode: 'stepping', step: 's1' } })],
  ['parent ordered: auto', event({ kind: 'parent-ordered', order: { mode: 'auto' } })],
  ['queue edited: clear', event({ kind: 'queue-edited', edit: { op: 'clear' } })],
  ['queue edited: drop m1', event({ kind: 'queue-edited', edit: { op: 'drop', id: 'm1' } })],
  ['input rejected: send: too long', event({ kind: 'input-rejected', name: 'send', reason: 'too long' })],
  ['interrupt requested: enough', event({ kind: 'interrupt-requested', reason: 'enough' })],
  ['interrupt requested', event({ kind: 'interrupt-requested', reason: null })],
  ['renamed: Rain', event({ kind: 'renamed', title: 'Rain' })],
  ['consolidation ended: model', event({ kind: 'consolidation-ended', consolidation: 'model' })],
  ['hand over due: events', event({ kind: 'hand-over-due', reason: 'events' })],
  [
    'run tool failed: e1, overloaded: busy',
    event({ kind: 'effect-failed', effect: 'run-tool', id: 'e1', failure: { type: 'overloaded', message: 'busy' } }),
  ],
  [
    'model step started: t/m1 · writes m1, m2 · settles c9 · writes again what the store did not take: 2 · rides: look at x (c1), see (c2)',
    begun('model-step', {
      call: { id: 't/m1' },
      write,
      tools: [
        { name: 'look', target: 'at x', callId: 'c1' },
        { name: 'see', target: '', callId: 'c2' },
      ],
    }),
  ],
  ['model step started: t/m1', begun('model-step', { call: { id: 't/m1' }, write: nothing, tools: [] })],
  ['store step started: a part of a message', begun('store-step', { write: nothing, part: {} })],
  ['run tool started: look at x (c1)', begun('run-tool', { name: 'look', target: 'at x', callId: 'c1' })],
  ['compact started: asked', begun('compact', { cause: 'asked' })],
  ['start child started: c:1 for c1', begun('start-child', { child: 'c:1', callId: 'c1' })],
  ['look after started: c:1', begun('look-after', { child: 'c:1' })],
  ['rewind started: to turn_0001', begun('rewind', { to: 'turn_0001' })],
  ['evict started: trim', begun('evict', { what: { kind: 'trim' } })],
  ['ask memory started: 3 messages, window', begun('ask-memory', { request: { messages: 3, why: 'window' } })],
  [
    'model step completed: look (c1) ok in 1.5 s · t/m1 tool-calls asks for look, see “I look the rest”',
    done('model-step', {
      tools: [ran],
      ...said({
        stop: 'tool-calls',
        blocks: [
          { kind: 'text', text: 'I look' },
          { kind: 'text', text: { ref: 'r', preview: 'the rest' } },
          { kind: 'tool-call', name: 'look' },
          { kind: 'tool-call', name: 'see' },
        ],
      }),
    }),
  ],
  [
    'model step completed: e1 failed: auth: no key',
    done('model-step', { tools: [], kind: 'failed', failure: { type: 'auth', message: 'no key' } }),
  ],
  ['model step completed: e1 deferred: tools', done('model-step', { tools: [], kind: 'deferred', reason: 'tools' })],
  [
    'store step completed: 2 messages written · 1 of them sent before · committed before it was settled: c9',
    done('store-step', { written: { messages: [{}, { duplicate: {} }], committed: [{ effect: 'c9' }] } }),
  ],
  ['store step completed', done('store-step', { written: { messages: [] } })],
  ['run tool completed: look (c1) ok in 1.5 s', done('run-tool', ran)],
  ['compact completed: long messages shown by their ends (slots 2)', done('compact', { kind: 'cited', cited: [[3, 4]] })],
  [
    'compact completed: 1 turn, 1,000 → 200 tokens, by model',
    done('compact', { kind: 'compacted', turns: [1], tokensBefore: 1_000, tokensAfter: 200, method: 'model' }),
  ],
  ['compact completed: there was nothing to compact', done('compact', { kind: 'nothing-to-compact' })],
  ['truncate completed: 1 entry, about 40 tokens (slots 2)', done('truncate', { entries: 1, tokens: 40, dropped: [[1, 2]] })],
  [
    'evict completed: 1 message, about 9 tokens, became ep_0001',
    done('evict', { trimmed: { messages: 1, tokens: 9, episode: { id: 'ep_0001' } } }),
  ],
  ['evict completed', done('evict', {})],
  ['look after completed: alive', done('look-after', 'alive')],
])('%s', (words, told) => {
  expect(describeEvent(told)).toBe(words);
});

test('whatever happens in a random life has a line, which begins with its name and is never long', () => {
  fc.assert(
    fc.property(choices(60), (chosen) => {
      const world = createWorld();
      const told: ConversationEvent[] = [];
      pump(world);
      for (const choice of chosen) choose(world, choice);
      for (const { effect, id, input } of world.flying) told.push(event({ kind: 'effect-started', effect, id, input }));
      told.push(event({ kind: 'message-received', messageId: 'm', text: 'x'.repeat(9_999), delivery: 'queue' }));
      for (const one of told) {
        const words = describeEvent(one);
        expect(words.startsWith(eventName(one).replaceAll('-', ' '))).toBe(true);
        expect(words.length).toBeLessThanOrEqual(eventName(one).length + 2 + 240);
      }
    }),
    { numRuns: 30 },
  );
});
