/** What a person sees before deciding, and which call they mean. */
import { textOfDrawn } from '../../src/cli/terminal/terminal-text.js';
import { parseAmount, parseTokens } from '../../src/cli/args/values.js';
import { pickApproval } from '../../src/cli/args/find-conversation.js';
import { renderApproval, renderApprovals, shownArguments } from '../../src/cli/views/approvals.js';
import type { Pending } from '../../src/client.js';
import { measure } from './commands/measure.js';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const LOOK = { width: 80, timeFormat: 'relative', now: NOW, measure } as const;

function pending(more: Partial<Pending> = {}): Pending {
  return {
    conversation: 'chat',
    via: 'chat',
    callId: 'turn_0001/c1',
    turnId: 'turn_0001',
    kind: 'approval',
    tool: 'run_command',
    target: 'rm',
    hash: 'h',
    askedIn: 2,
    askedAt: NOW - 60_000,
    expiresAt: NOW + 3_600_000,
    arguments: { command: ['rm', '-rf', 'build'] },
    ...more,
  };
}

const shown = (one: Pending): string => renderApproval(one, LOOK).map(textOfDrawn).join('\n');

test('a call is shown whole, with how to decide', () => {
  expect(shown(pending({ why: 'it deletes' }))).toMatchInlineSnapshot(`
   "chat  turn_0001/c1  Allow run_command?
     {
       "command": [
         "rm",
         "-rf",
         "build"
       ]
     }
     why: it deletes
     asked 60 s ago, expires in 60 min
     perdura approve chat turn_0001/c1
     perdura deny chat turn_0001/c1 --note WHY"
  `);
});

test('a question is shown as it is asked, with its choices', () => {
  const one = pending({ kind: 'question', tool: 'ask_user', arguments: { question: 'Which\ncolour?', options: ['red', 'blue'] } });
  expect(shown(one)).toMatchInlineSnapshot(`
   "chat  turn_0001/c1  asks
     Which
     colour?
     1. red
     2. blue
     asked 60 s ago, expires in 60 min
     perdura answer chat turn_0001/c1 YOUR ANSWER"
  `);
});

test.each([
  ['a bidi override', 'safe\u202egnp.exe'],
  ['zero-width characters', 'r\u200bm'],
  ['tags', 'ls\u{e0041}\u{e0042}'],
  ['a clipboard sequence', '\u001b]52;c;aGk=\u0007'],
  ['C1', '\u009b31m'],
  ['a return that overwrites', 'rm -rf /\rls'],
  ['a blank that is none', 'rm\u00a0-rf\u2003/'],
])('%s in arguments is shown escaped, and means the same', (_, command) => {
  const json = shownArguments({ command });
  expect(json).toMatch(/^[\x20-\x7e]*$/);
  expect(JSON.parse(json)).toEqual({ command });
  const everywhere = `${shown(pending({ arguments: { command }, tool: command, why: command }))}${renderApprovals(
    [pending({ arguments: { command }, tool: command })],
    LOOK,
  )
    .map(textOfDrawn)
    .join('')}`;
  expect(everywhere.replace(/\n/g, '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u200b\u202e\u{e0041}]/u);
});

test('a list is one line each, and none passes the edge at 80 columns', () => {
  const lines = renderApprovals([pending(), pending({ callId: 'turn_0012/c3', arguments: { path: 'x'.repeat(5_000) } })], LOOK);
  expect(lines).toHaveLength(3);
  for (const line of lines) expect(measure(textOfDrawn(line))).toBeLessThanOrEqual(80);
});

describe('which call is meant', () => {
  const two = [pending(), pending({ callId: 'turn_0001/c2' })];
  const question = pending({ callId: 'turn_0001/c3', kind: 'question', tool: 'ask_user' });

  test('the only one that fits needs no name, and a short name will do', () => {
    expect(pickApproval([pending(), question], undefined, 'approve', 'chat')).toMatchObject({ callId: 'turn_0001/c1' });
    expect(pickApproval([pending(), question], undefined, 'answer', 'chat')).toMatchObject({ callId: 'turn_0001/c3' });
    expect(pickApproval(two, 'c2', 'deny', 'chat')).toMatchObject({ callId: 'turn_0001/c2' });
  });

  test.each([
    ['nothing waits', () => pickApproval([], undefined, 'approve', 'chat'), /nothing waits for a person in chat/, 4],
    [
      'several wait',
      () => pickApproval(two, undefined, 'approve', 'chat'),
      /say which: in chat wait turn_0001\/c1 \(run_command\), turn_0001\/c2/,
      2,
    ],
    ['the named one does not wait', () => pickApproval(two, 'c9', 'approve', 'chat'), /c9 does not wait in chat/, 4],
    ['a question is approved', () => pickApproval([question], undefined, 'approve', 'chat'), /cannot be approved; answer it/, 2],
    ['a call is answered', () => pickApproval(two, 'c1', 'answer', 'chat'), /cannot be answered; approve or deny it/, 2],
  ])('%s: said, with what to do', (_, pick, message, exitCode) => {
    let thrown: unknown;
    try {
      pick();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ message: expect.stringMatching(message), exitCode });
  });
});

test.each([
  ['2.50', 2.5],
  ['$3', 3],
  ['.5', 0.5],
])('%s dollars', (text, amount) => expect(parseAmount(text)).toBe(amount));

test.each([
  ['500000', 500_000],
  ['500k', 500_000],
  ['1.5M', 1_500_000],
])('%s tokens', (text, count) => expect(parseTokens(text)).toBe(count));

test.each(['-1', 'many', '', '1e3', 'Infinity'])('%j is neither', (text) => {
  expect(() => parseAmount(text)).toThrow('dollars');
  expect(() => parseTokens(text)).toThrow('tokens');
});
