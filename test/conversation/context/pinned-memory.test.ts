/** MEMORY.md in the prompts of an epoch: pinned, its changes told by notices, and anew with the next epoch. */
import { apply } from '../../../src/conversation/apply.js';
import type { MemoryNews, ModelStepInput, ModelStepResult } from '../../../src/conversation/turn/model-step-effects.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { listSlots } from '../../../src/records/slots.js';
import { answered, deferred, open, said, settle, SETTINGS, take } from '../drive.js';

/** A turn whose first step has read `version`; with the input of the step that was answered. */
function turn(
  before: ConversationState,
  version: string,
  news?: MemoryNews,
): { readonly state: ConversationState; readonly asked: ModelStepInput } {
  const begun = take(apply(before, said(`${before.latestTurn}`)), 'model-step');
  const configured = { kind: 'settings', settings: { ...SETTINGS, hash: version, memory: { ...SETTINGS.memory, version } } } as const;
  if (!news) return { state: settle(apply(begun.state, begun.done(answered(begun.input, {}, { configured })))).state, asked: begun.input };
  const told = { ...deferred(begun.input, 'memory', { configured }), news } as ModelStepResult;
  const again = take(apply(begun.state, begun.done(told)), 'model-step');
  return { state: settle(apply(again.state, again.done(answered(again.input)))).state, asked: again.input };
}

test('a change is told once, at the end, and the version in the system prompt stays', () => {
  const first = turn(open(), 'v1');
  expect(first.asked.pinned).toBeUndefined();
  const second = turn(first.state, 'v2', { kind: 'notice', text: 'New:\n> tea' });
  expect(second.asked).toMatchObject({ deferred: ['memory'], configure: null, pinned: { version: 'v1', told: 'v2' } });
  expect(second.asked.write.settle).toMatchObject([
    { effect: 'turn_0002/memory', entry: { message: { text: 'New:\n> tea', from: 'notice' } } },
  ]);
  const third = turn(second.state, 'v2');
  expect(third.asked.pinned).toEqual({ version: 'v1', told: 'v2', forgotten: 0 });
  // Only appended to.
  const [before, after] = [second.asked, third.asked].map(({ call }) => listSlots(call.context));
  expect(after?.slice(0, before?.length)).toEqual(before);
  expect(third.state.epoch).toBe(1);
});

test('an epoch that must begin has the new version, and shows no notice of the old one', () => {
  const told = turn(turn(open(), 'v1').state, 'v2', { kind: 'notice', text: 'New:\n> the code is 7' });
  const notice = told.asked.write.settle[0]?.entry?.slot ?? 0;
  expect(listSlots(told.asked.call.context)).toContain(notice);
  const anew = turn(told.state, 'v3', { kind: 'epoch' });
  expect(anew.asked.pinned).toMatchObject({ version: 'v3', told: 'v3' });
  expect(anew.state.epoch).toBe(2);
  expect(listSlots(anew.asked.call.context)).not.toContain(notice);
  expect(listSlots(turn(anew.state, 'v3').asked.call.context)).not.toContain(notice);
  // It is archived with the rest.
  expect(listSlots(anew.state.context)).toContain(notice);
});

test('a new session begins with the newest version', () => {
  const told = turn(turn(open(), 'v1').state, 'v2', { kind: 'notice', text: 'New:\n> tea' }).state;
  const reset = settle(apply(told, { kind: 'reset-requested', resetId: 'r', at: 9 })).state;
  const next = turn(reset, 'v2');
  expect(next.asked.pinned).toBeUndefined();
  expect(next.state.compaction.pinned).toMatchObject({ version: 'v2', told: 'v2', epoch: next.state.epoch });
});
