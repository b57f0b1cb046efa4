/** What the bench's reader does in a working session, and what it knows of files. */
import { answerOfWork, nextStep } from '../../bench/memory/work.js';
import { workingSessions } from '../../bench/memory/working.js';
import type { ConversationMessage } from '../../src/records/message.js';
import { request, user } from '../models/builders.js';

test('a message names its steps, which are done one after the other', () => {
  const asked = 'Harbour tide. Please read src/berth-4.ts, then edit src/berth-4.ts at TODO-4, then check 4. Anchor deck.';
  expect([0, 1, 2, 3].map((done) => nextStep(asked, done)?.name)).toEqual(['read_file', 'edit_file', 'run_command', undefined]);
  expect(nextStep(asked, 1)?.input).toMatchObject({ path: 'src/berth-4.ts', oldText: '// TODO-4:' });
  expect(nextStep('Remind me: was src/berth-4.ts edited, or only read?', 0)).toBeUndefined();
});

test.each<[string, string, string | undefined]>([
  ['an edit that worked', 'edited src/berth-4.ts on line 5; it has 900 bytes now', 'It is edited.'],
  ['a summary that says so', '   in short: Files read: src/berth-9.ts Files edited: src/berth-2.ts, src/berth-4.ts', 'It is edited.'],
  ['a summary of reads', '   Files read: src/berth-4.ts\n   Files edited: src/berth-2.ts', 'It is read.'],
  ['the name of another file', 'Files edited: src/berth-14.ts', undefined],
  [
    'an edit that was asked for and failed',
    'Please edit src/berth-4.ts at TODO-4.\ndid not edit src/berth-4.ts: there is no such text',
    undefined,
  ],
])('%s', (_, text, answer) => {
  const messages: ConversationMessage[] = [user(text)];
  expect(answerOfWork(request({ messages }), 'src/berth-4.ts')).toEqual(answer === undefined ? undefined : { kind: 'text', text: answer });
});

test('what is asked of a session was planted in it: decisions, findings, failures and files', () => {
  const [session] = workingSessions();
  const lines = session?.lines ?? [];
  const planted = lines.flatMap((line) => (line.kind === 'say' ? [...line.states, ...(line.finds ?? [])] : []));
  const asked = lines.flatMap((line) => (line.kind === 'ask' ? [line.subject] : []));
  expect(asked).toHaveLength(new Set(asked).size);
  expect(new Set(asked)).toEqual(new Set(planted.map(({ subject }) => subject)));
  const sizes = Object.values(session?.files ?? {}).map((text) => text.length);
  expect([Math.min(...sizes) >= 900, Math.max(...sizes) <= 9_500]).toEqual([true, true]);
});
