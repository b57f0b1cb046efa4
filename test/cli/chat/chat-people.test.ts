/** What waits in the chat, and the line `a`: what would be saved is shown whole before it is, and only the very next line says yes to it. */
import type { PerduraClient, Pending } from '../../../src/client.js';
import type { Config } from '../../../src/config.js';
import { createChatPeople, type ChatPeople } from '../../../src/cli/chat/chat-people.js';
import type { Output } from '../../../src/cli/terminal/output.js';
import type { Decision } from '../../../src/conversation/protocol/human-input.js';

const HOSTILE = 'ls\u202e\u001b[2K\rrm -rf /';

function pending(more: Partial<Pending> = {}): Pending {
  return {
    ...{
      conversation: 'chat',
      via: 'chat',
      callId: 'turn_0001/c1',
      turnId: 'turn_0001',
      kind: 'approval',
      tool: 'run_command',
      target: 'ls',
    },
    ...{ hash: 'h1', askedIn: 2, askedAt: 1, expiresAt: Date.now() + 60_000, mayAlways: true, arguments: { command: HOSTILE } },
    ...more,
  };
}

interface Scene {
  readonly people: ChatPeople;
  readonly drawn: string[];
  readonly decided: Decision[];
}

async function scene(...waiting: Pending[]): Promise<Scene> {
  const drawn: string[] = [];
  const decided: Decision[] = [];
  const client = {
    approvals: () => Promise.resolve(waiting),
    decide: (_id: string, decision: Decision) => Promise.resolve(void decided.push(decision)),
    status: () => Promise.resolve({ agent: 'nobody-here' }),
  } as unknown as PerduraClient;
  const output = { say: (line: string) => drawn.push(line), note: (line: string) => drawn.push(line) } as unknown as Output;
  const people = createChatPeople({
    client,
    id: 'chat',
    output,
    config: { cwd: '/nowhere', agentsDir: '/nowhere/agents', env: {} } as Config,
  });
  await people.look();
  drawn.length = 0;
  return { people, drawn, decided };
}

test('`a` shows the call whole and escaped, saves nothing, and `y` on the next line saves it for these arguments', async () => {
  const { people, drawn, decided } = await scene(pending());
  expect(await people.take('a')).toBe('');
  const shown = drawn.join('\n');
  expect(shown).toContain('run_command runs without asking with exactly these arguments and no others');
  expect(shown).toContain(JSON.stringify(HOSTILE).replace('\u202e', '\\u202e'));
  expect(shown.replaceAll('\n', '')).toMatch(/^[\x20-\x7e]*$/);
  expect(decided).toEqual([]);
  expect(await people.take('y')).toContain('from now on');
  expect(decided).toEqual([{ callId: 'turn_0001/c1', hash: 'h1', decision: 'approve', always: true }]);
});

test.each(['n', '', 'yes please', 'a', 'hello'])('%j on the next line saves nothing, and the call waits still', async (line) => {
  const { people, decided } = await scene(pending());
  await people.take('a');
  expect(await people.take(line)).toContain('nothing was saved');
  expect(decided).toEqual([]);
  // Only the very next line counts.
  expect(people.take('y')).toBeUndefined();
});

test('`agent` where its file is not here saves nothing and decides nothing', async () => {
  const { people, decided } = await scene(pending());
  await people.take('a');
  await expect(people.take('agent')).rejects.toThrow(/no such file here/);
  expect(decided).toEqual([]);
});

test.each<[what: string, one: Pending]>([
  ['what is asked about each time', pending({ mayAlways: undefined as never })],
  ['what cannot be shown', pending({ arguments: undefined as never, altered: true })],
])('%s is not offered', async (_, one) => {
  const { people, decided } = await scene(one);
  await expect(people.take('a')).rejects.toThrow(/cannot be/);
  expect(people.take('y')).toBeUndefined();
  expect(decided).toEqual([]);
});

test('a line `a` is a line where no call is the first that waits', async () => {
  expect((await scene()).people.take('a')).toBeUndefined();
  expect((await scene(pending({ kind: 'question' }))).people.take('a')).toBeUndefined();
  expect((await scene(pending())).people.take('and so on')).toBeUndefined();
});

test('/always names one of several', async () => {
  const { people, decided } = await scene(pending(), pending({ callId: 'turn_0001/c2', hash: 'h2' }));
  await people.offerAlways('c2');
  await people.take('yes');
  expect(decided).toMatchObject([{ callId: 'turn_0001/c2', hash: 'h2', always: true }]);
});

test('what is decided here the feed tells, and nothing else does; of a sub-agent’s call it is said here', async () => {
  const { people, decided } = await scene(pending(), pending({ conversation: 'chat.c1', callId: 'turn_0001/c2' }));
  expect(await people.decide('approve', 'c1')).toBe('');
  expect(await people.decide('approve', 'c2')).toBe('(allowed: run_command)');
  expect(decided.map(({ callId }) => callId)).toEqual(['turn_0001/c1', 'turn_0001/c2']);
});
