import { readChatLine } from '../../src/cli/chat-commands.js';

test.each([
  ['/new', { kind: 'command', name: '/new' }],
  ['/NEW ', { kind: 'command', name: '/new' }],
  ['/quit', { kind: 'command', name: '/exit' }],
])('%s is a command', (line, expected) => {
  expect(readChatLine(line)).toEqual(expected);
});

test('an unknown command is not sent to the model: the nearest is named', () => {
  expect(readChatLine('/nwe')).toEqual({ kind: 'unknown-command', name: '/nwe', nearest: '/new' });
  expect(readChatLine('/hlep')).toMatchObject({ nearest: '/help' });
});

test.each(['/etc/hosts holds what?', ' /new', '/new ideas please', 'what is /new?'])('%j is a message', (line) => {
  expect(readChatLine(line)).toEqual({ kind: 'message', text: line.trim() });
});

test('a blank line is nothing', () => {
  expect(readChatLine('  \t')).toEqual({ kind: 'nothing' });
});
