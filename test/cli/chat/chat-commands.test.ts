import { CHAT_COMMANDS, helpText, readChatLine, refusalOf } from '../../../src/cli/chat/chat-commands.js';

test.each([
  ['/new', { kind: 'command', name: '/new', argument: '' }],
  ['/NEW ', { kind: 'command', name: '/new', argument: '' }],
  ['/quit', { kind: 'command', name: '/exit', argument: '' }],
  ['/?', { kind: 'command', name: '/help', argument: '' }],
  ['/rename  The long tale ', { kind: 'command', name: '/rename', argument: 'The long tale' }],
  ['/export', { kind: 'command', name: '/export', argument: '' }],
])('%j is a command', (line, expected) => {
  expect(readChatLine(line)).toEqual(expected);
});

test.each([
  ['/nwe', '/new'],
  ['/hlep', '/help'],
  ['/stauts now', '/status'],
  ['/retyr', '/retry'],
])('%s is not sent to the model: %s is named', (line, nearest) => {
  const read = readChatLine(line);
  expect(read).toMatchObject({ kind: 'unknown-command', nearest });
  expect(read.kind === 'unknown-command' && refusalOf(read)).toMatch(/^there is no \/\w+; the nearest is \/\w+/);
});

test('a command that takes no words is not obeyed and not sent when words stand behind it', () => {
  const read = readChatLine('/new ideas please');
  expect(read).toEqual({ kind: 'stray-words', name: '/new' });
  expect(read.kind === 'stray-words' && refusalOf(read)).toBe('/new takes no words; a blank before the slash makes it a message');
});

test.each(['/etc/hosts holds what?', ' /new', 'what is /new?', '/new\nand more', '// a comment'])('%j is a message', (line) => {
  expect(readChatLine(line)).toEqual({ kind: 'message', text: line.trim() });
});

test('a blank line is nothing', () => {
  expect(readChatLine('  \t')).toEqual({ kind: 'nothing' });
});

test('help names every command', () => {
  for (const { name } of CHAT_COMMANDS) expect(helpText()).toContain(`${name} `);
});
