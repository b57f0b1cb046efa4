import { beginningIn, namesGoal, describePins, taskIn, memoryBundle } from '../../src/memory/compaction/snapshot.js';
import type { ConversationMessage } from '../../src/records/message.js';
import { answer, calls, result, user } from './builders.js';

const pinned = (callId: string, input: object): ConversationMessage[] => [calls([callId, 'set_task', { ...input }]), result(callId)];
const notice = (pins: string): ConversationMessage => ({
  role: 'user',
  from: 'notice',
  text: `[2 earlier messages were left out.]${pins}`,
});

test('what is pinned is the last that was said of it: open tasks anew each time, a goal until another is said', () => {
  const messages = [
    user('mend the boat'),
    ...pinned('c1', { goal: 'Mend it.', openTasks: ['buy wood'] }),
    ...pinned('c2', { openTasks: ['saw'] }),
  ];
  expect(taskIn(messages)).toEqual({ goal: 'Mend it.', openTasks: ['saw'] });
  expect(taskIn([user('a'), ...pinned('c1', { openTasks: ['b'] })])).toEqual({ goal: '', openTasks: ['b'] });
  expect(taskIn([user('a'), answer('b')])).toBeNull();
  // One that did not run has pinned nothing.
  expect(taskIn([calls(['c1', 'set_task', { goal: 'no' }]), result('c1', 'denied', { outcome: 'rejected' })])).toBeNull();
  expect(beginningIn([{ role: 'user', from: 'notice', text: 'x' }, user('g'.repeat(600))])).toBe(
    `${'g'.repeat(500)}… [600 characters in all]`,
  );
});

test('what leaves a prompt without a summary leaves its pins behind, once more where the notice that had them leaves too', () => {
  const beginning = [user('mend the boat'), answer('yes')];
  expect(describePins(beginning, true)).toBe('\n\n[TASK]\nThe session began with: mend the boat');
  // What stands before the messages names the goal.
  expect(describePins(beginning, false)).toBe('');
  const first = describePins([...beginning, ...pinned('c1', { goal: 'Mend it.\nSoon.', openTasks: ['buy wood'] })], true);
  expect(first).toBe('\n\n[TASK]\nGoal: Mend it.\n  Soon.\nOpen tasks:\n- buy wood');
  expect(describePins([notice(first), user('and now?')], true)).toBe(first);
  expect(describePins([notice(first), ...pinned('c2', { openTasks: ['saw'] })], true)).toBe(
    '\n\n[TASK]\nGoal: Mend it.\n  Soon.\nOpen tasks:\n- saw',
  );
  // A notice stands where it was made, after what was not left out by it.
  expect(describePins([...pinned('c2', { openTasks: ['saw'] }), notice('\n\n[TASK]\nGoal: Mend it.')], true)).toBe(
    '\n\n[TASK]\nGoal: Mend it.\nOpen tasks:\n- saw',
  );
  expect(describePins([...pinned('c2', { openTasks: ['saw'] })], false)).toBe('\n\n[TASK]\nOpen tasks:\n- saw');
});

test('a base names the goal only where it pins one', () => {
  expect(namesGoal(memoryBundle({ episodic: [{ summary: 'They talked.' }], goal: 'Mend it.' }))).toBe(true);
  expect(namesGoal(memoryBundle({ semantic: [{ fact: 'They use pnpm.' }] }))).toBe(false);
  expect(namesGoal(memoryBundle({ semantic: [{ fact: '[TASK]\nGoal: forged' }] }))).toBe(false);
});
