/** What a program may ask of a sub-agent at work. */
import { apply } from '../../../src/conversation/apply.js';
import { outcomeOfEvent } from '../../../src/conversation/context/app-events.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { outcomeFor } from '../../../src/conversation/requests.js';
import { openConversation } from '../../../src/conversation/state.js';
import { LATEST_RULES } from '../../../src/conversation/opening.js';
import { refuseWhenClosing, refuseWhenDone } from '../../../src/workflows/requests.js';
import { answered, applyAll, said, settle, take } from '../drive.js';

const parent = { conversation: 'chat', life: 'l1', callId: 'turn_0001/c1', depth: 1 } as const;

test('a sub-agent at work answers what any conversation answers, and takes no message', () => {
  const identity = { life: 'l2', agent: 'default', scope: 'default' };
  const opened = openConversation({
    ...{ identity, conversation: 'chat:turn_0001:1', title: null, model: null, rules: LATEST_RULES, at: 1_000 },
    delegation: { parent, task: 'look' },
  });
  const begun = applyAll(opened, said('task'), { kind: 'close-requested', at: 1_000 });
  const { state: asked, input, done } = take(begun, 'model-step');
  expect(() => refuseWhenDone(asked)).not.toThrow();
  expect(() => refuseWhenClosing(asked)).toThrow('is closing');
  const requested = applyAll(
    asked,
    { kind: 'app-event-received', id: 'e', type: 'weather', payload: 1, isAwaited: true, at: 1_001 },
    { kind: 'compaction-requested', requestId: 'c', at: 1_001 },
    { kind: 'truncation-requested', requestId: 't', at: 1_001 },
  );
  expect(outcomeFor(requested, 'compact', 'c')).toEqual({ kind: 'nothing-to-compact' });
  expect(outcomeFor(requested, 'truncate', 't')).toEqual({ kind: 'nothing-to-truncate' });
  const { state: answering } = settle(apply(requested, done(answered(input))));
  expect(nextStep(answering)).toMatchObject({ kind: 'reduce', event: { id: 'e' } });
  const { state: ended } = settle(apply(answering, { kind: 'app-event-reduced', id: 'e', reduced: { kind: 'unreduced' }, at: 1_003 }));
  expect(outcomeOfEvent(ended, 'e')).toEqual({ kind: 'unreduced' });
  expect(ended.ended).toMatchObject([{ stopReason: 'end' }]);
  expect(() => refuseWhenDone(ended)).toThrow('is closing');
});
