import { CHAT_COMMANDS, completeChatLine, readChatLine, explainRefusal, type ChatControls } from '../../../src/cli/chat/chat-commands.js';

test.each([
  ['/new', { kind: 'command', command: { name: '/new' }, argument: '' }],
  ['/NEW ', { kind: 'command', command: { name: '/new' }, argument: '' }],
  ['/quit', { kind: 'command', command: { name: '/exit' }, argument: '' }],
  ['/?', { kind: 'command', command: { name: '/help' }, argument: '' }],
  ['/rename  The long tale ', { kind: 'command', command: { name: '/rename' }, argument: 'The long tale' }],
  ['/export', { kind: 'command', command: { name: '/export' }, argument: '' }],
])('%j is a command', (line, expected) => {
  expect(readChatLine(line)).toMatchObject(expected);
});

test.each([
  ['/nwe', '/new'],
  ['/hlep', '/help'],
  ['/stauts now', '/status'],
  ['/retyr', '/retry'],
])('%s is not sent to the model: %s is named', (line, nearest) => {
  const read = readChatLine(line);
  expect(read).toMatchObject({ kind: 'unknown-command', nearest });
  expect(read.kind === 'unknown-command' && explainRefusal(read)).toMatch(/^there is no \/\w+; the nearest is \/\w+/);
});

test('a command that takes no words is not obeyed and not sent when words stand behind it', () => {
  const read = readChatLine('/new ideas please');
  expect(read).toEqual({ kind: 'stray-words', name: '/new' });
  expect(read.kind === 'stray-words' && explainRefusal(read)).toBe('/new takes no words; a blank before the slash makes it a message');
});

test.each(['/etc/hosts holds what?', ' /new', 'what is /new?', '/new\nand more', '// a comment'])('%j is a message', (line) => {
  expect(readChatLine(line)).toEqual({ kind: 'message', text: line.trim() });
});

test('a blank line is nothing', () => {
  expect(readChatLine('  \t')).toEqual({ kind: 'nothing' });
});

test('help names every command with what it takes, and answers through the table like any other', async () => {
  const said: string[] = [];
  const chat = { session: { output: { say: (text: string) => said.push(text) } } } as unknown as ChatControls;
  const line = readChatLine('/?');
  if (line.kind === 'command') await line.command.run(chat, line.argument);
  for (const { name, argument } of CHAT_COMMANDS) expect(said.join()).toContain(`  ${name} ${argument ?? ''}`);
});

test.each(['/approve', '/deny no', '/approvals'])('where lines are piped %s says what to type elsewhere', async (text) => {
  const line = readChatLine(text);
  const chat = { session: { id: 'c-1', output: {} } } as unknown as ChatControls;
  await expect(async () => line.kind === 'command' && line.command.run(chat, line.argument)).rejects.toThrow(
    '`perdura approvals c-1` shows what waits',
  );
});

test.each([
  ['/retry', {}],
  ['/edit 3 apples, please', { text: '3 apples, please' }],
  ['/edit turn_3 apples', { text: 'apples', turn: 'turn_0003' }],
  ['/edit turn_0012  two words', { text: 'two words', turn: 'turn_0012' }],
])('%s answers a turn anew', async (text, expected) => {
  const asked: unknown[] = [];
  const line = readChatLine(text);
  const chat = { again: (edit: unknown) => void asked.push(edit) } as unknown as ChatControls;
  if (line.kind === 'command') await line.command.run(chat, line.argument);
  expect(asked).toEqual([expected]);
});

test.each(['/edit', '/edit turn_3'])('%s says what is missing', (text) => {
  const line = readChatLine(text);
  expect(() => line.kind === 'command' && line.command.run({} as ChatControls, line.argument)).toThrow('write what to say in its place');
});

test.each([
  ['/re', ['/retry', '/rename ']],
  ['/rename', ['/rename ']],
  ['/rename a', ['\t']],
  ['/mode s', ['stepping']],
  ['/step ', ['into', 'over']],
  ['/model anthropic/claude-sonnet-5', ['anthropic/claude-sonnet-5-5', 'anthropic/claude-sonnet-5']],
  ['/model d', ['default']],
  ['/model default ', ['\t']],
  ['if (x) {', ['\t']],
])('Tab behind %j gives %j', (line, expected) => {
  expect(completeChatLine(line)[0]).toEqual(expected);
});
