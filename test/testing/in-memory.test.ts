/** Conversations without Temporal, as people's tests have them; nothing of this file takes a server. */
import { z } from 'zod';
import { createScriptedModel, callTool, callTools, startInMemory, type InMemory, type InMemoryOptions } from '../../src/testing/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { ModelFailure } from '../../src/models/model.js';

let opened: InMemory[] = [];
afterEach(async () => {
  for (const one of opened) await one.close();
  opened = [];
});

const booked: string[] = [];
const tools = [
  defineTool({
    name: 'book',
    description: 'Books.',
    input: z.object({ what: z.string() }),
    policy: { repeatable: true },
    run: ({ what }) => `booked ${what}, ${booked.push(what)} in all`,
  }),
  defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ cents: z.int() }),
    policy: { approval: 'ask' },
    run: ({ cents }) => `paid ${cents}`,
  }),
  defineTool({
    name: 'hang',
    description: 'Ends when it is stopped.',
    input: z.object({}),
    run: (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped'), { once: true })),
  }),
];

async function open(script: Parameters<typeof createScriptedModel>[0], more: Partial<InMemoryOptions> = {}) {
  const model = createScriptedModel(script);
  const perdura = await startInMemory({ extensions: { tools }, agents: { default: { 'agent.json': {} } }, ...more, model });
  opened.push(perdura);
  return { perdura, model, chat: perdura.start() };
}

test('a turn with a tool is the product’s own: prompt, call, result, answer', async () => {
  const { chat, model } = await open([callTool('book', { what: 'tea' }), 'Booked.'], {
    agents: { default: { 'agent.json': { name: 'Ledger' }, 'SOUL.md': 'You keep a book.' } },
  });
  expect(await chat.send('I had tea.')).toMatchObject({ text: 'Booked.', stopReason: 'end', toolCalls: 1, turnId: 'turn_0001' });
  expect(await chat.toolCalls()).toEqual([
    { callId: 'turn_0001/c1', name: 'book', input: { what: 'tea' }, outcome: 'ok', result: 'booked tea, 1 in all' },
  ]);
  expect(model.requests).toHaveLength(2);
  expect(model.requests[0]?.system).toContain('You keep a book.');
  expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['book', 'pay', 'read_file']));
  expect((await chat.messages()).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  expect(model.left).toBe(0);
});

test('arguments that do not fit the tool’s schema come back to the model as an error', async () => {
  const { chat } = await open([callTool('book', { what: 1 }), 'Sorry.']);
  await chat.send('hi');
  expect(await chat.toolCalls()).toMatchObject([{ outcome: 'error', result: expect.stringContaining('what') }]);
});

test('what waits for a person is asked, and allowed with other arguments', async () => {
  const { chat } = await open([callTool('pay', { cents: 500 }), 'Done.']);
  await expect(chat.send('pay')).rejects.toThrow(/turn_0001 has not ended; it waits for a person: approval of pay; .*use `enqueue`/);
  expect(await chat.approvals()).toMatchObject([{ tool: 'pay', kind: 'approval', arguments: { cents: 500 } }]);
  await chat.approve(undefined, { input: { cents: 1 } });
  expect(await chat.turn()).toMatchObject({ text: 'Done.', stopReason: 'end' });
  expect(await chat.toolCalls()).toMatchObject([{ outcome: 'ok', result: expect.stringContaining('paid 1') }]);
  await expect(chat.deny()).rejects.toMatchObject({ kind: 'not-waiting' });
});

test('two that wait are told apart by their ids, and one is refused', async () => {
  const { chat } = await open([callTools({ name: 'pay', input: { cents: 1 } }, { name: 'pay', input: { cents: 2 } }), 'Half.']);
  await chat.enqueue('pay twice');
  await expect(chat.approve()).rejects.toThrow(/2 calls wait .* name one: .*turn_0001\/c1.*turn_0001\/c2/);
  await chat.approve('turn_0001/c1');
  await chat.deny('turn_0001/c2', 'too much');
  expect((await chat.toolCalls()).map(({ outcome }) => outcome)).toEqual(['ok', 'rejected']);
});

test('an approval that nobody gives expires as time is let pass', async () => {
  const { chat, perdura } = await open([callTool('pay', { cents: 500 }), 'Nobody answered.'], { now: new Date('2030-01-01T00:00:00Z') });
  await chat.enqueue('pay');
  const [asked] = await chat.approvals();
  await perdura.advance((asked?.expiresAt ?? 0) - perdura.now().getTime() - 1);
  expect(await chat.approvals()).toHaveLength(1);
  await perdura.advance(1);
  expect(await chat.approvals()).toEqual([]);
  expect(await chat.turn()).toMatchObject({ text: 'Nobody answered.' });
});

test('tools see the time of the test, and nobody waits for a wait of an hour', async () => {
  const { chat, perdura } = await open([callTool('get_time'), callTool('wait_until', { seconds: 3600 }), callTool('get_time'), 'Done.'], {
    now: new Date('2030-01-01T00:00:00Z'),
  });
  await chat.send('wait an hour');
  const [before, , after] = await chat.toolCalls();
  expect(before?.result).toContain('2030-01-01T00:00:00');
  expect(after?.result).toContain('2030-01-01T01:00:00');
  expect(perdura.now().toISOString()).toMatch(/^2030-01-01T01:00:00/);
});

test('a model that is away for a while is asked again, in no time', async () => {
  const { chat, model } = await open([new ModelFailure('overloaded', '529 overloaded', { retryAfterMs: 60_000 }), 'Back again.']);
  expect(await chat.send('hi')).toMatchObject({ text: 'Back again.' });
  expect(model.requests).toHaveLength(2);
});

test('a script that is over ends the turn with words that say so', async () => {
  const { chat } = await open([callTool('book', { what: 'tea' })]);
  const result = await chat.send('hi');
  expect(result.stopReason).toBe('failed');
  expect(result.error?.message).toMatch(/asked for answer 2 and its script has 1: .* what follows the ok result of book: "booked tea/);
});

test('a function answers by what it was asked, and may think for long', async () => {
  const { chat } = await open(({ messages }) => Promise.resolve(`message ${messages.length}`));
  expect((await chat.send('a')).text).toBe('message 1');
  expect((await chat.send('b')).text).toBe('message 3');
});

test.each<[what: string, script: Parameters<typeof createScriptedModel>[0]]>([
  ['a model that thinks', [() => new Promise(() => undefined)]],
  ['a tool that runs', [callTool('hang')]],
])('%s is stopped', async (_what, script) => {
  const { chat } = await open(script);
  const sent = chat.send('hi');
  while (chat.status().phase === 'idle' || chat.events.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  await chat.interrupt('enough');
  expect(await sent).toMatchObject({ stopReason: 'interrupted' });
});

test('a sub-agent asks its person through its parent, and reports', async () => {
  const { chat } = await open(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === 'tool') return `It says: ${typeof last.text === 'string' ? last.text : '…'}`;
    const text = last?.role === 'user' && typeof last.text === 'string' ? last.text : '';
    return text.includes('sub-task') ? callTool('pay', { cents: 7 }) : callTool('delegate', { task: 'the sub-task' });
  });
  await chat.enqueue('delegate it');
  expect(await chat.approvals()).toMatchObject([
    { tool: 'pay', arguments: { cents: 7 }, conversation: expect.not.stringMatching(chat.id + '$') },
  ]);
  await chat.approve();
  expect((await chat.turn()).text).toMatch(/It says: .*paid 7/s);
});

test('a reset begins a new session, whose prompt has what the old one was asked to remember', async () => {
  const { chat, perdura, model } = await open(['Hello.', 'Hello again.']);
  await chat.send('Please remember that I like green tea.');
  expect(await chat.reset()).toMatchObject({ consolidation: 'model' });
  expect(await perdura.memory()).toContain('green tea');
  expect((await chat.send('hi again')).text).toBe('Hello again.');
  expect(model.requests.at(-1)?.messages).toHaveLength(1);
  expect(model.requests.map(({ system }) => system.includes('green tea'))).toEqual([false, true]);
  expect(await chat.close()).toMatchObject({ turns: 2 });
  await expect(chat.send('once more')).rejects.toMatchObject({ kind: 'closed' });
});

test('events of an application go through its reducers into the prompt', async () => {
  const { chat, model } = await open(['Seen.'], {
    reducers: { 'ticket.opened': ({ payload }) => [{ kind: 'ADD', chunk: { type: 'TICKET', text: `Ticket ${String(payload)}` } }] },
  });
  await chat.dispatch('ticket.opened', 7);
  await chat.send('what is open?');
  expect(JSON.stringify(model.requests[0]?.messages)).toContain('Ticket 7');
});

test('two conversations have one store and one clock, and files of the test', async () => {
  const { perdura, chat } = await open([callTool('read_file', { path: 'notes/a.txt' }), 'Read.', 'Other.'], {
    files: { 'notes/a.txt': 'seven plums' },
  });
  await chat.send('read it');
  expect(await chat.toolCalls()).toMatchObject([{ outcome: 'ok', result: expect.stringContaining('seven plums') }]);
  expect((await perdura.start({}, 'second').send('hi')).text).toBe('Other.');
  expect(() => perdura.start({}, 'second')).toThrow(/was started in this test/);
  expect(() => perdura.start({ agent: '../x' })).toThrow(/start.agent must match/);
});

test('an agent that is not there, and files that lead out, are refused by name', async () => {
  const { perdura } = await open([]);
  expect(await perdura.start({ agent: 'ghost' }).send('hi')).toMatchObject({ stopReason: 'failed', error: { type: 'unknown-agent' } });
  const model = createScriptedModel();
  await expect(startInMemory({ model, agents: {}, files: { '../out': '' } })).rejects.toThrow(/files\["..\/out"\]: it leads out/);
  await expect(startInMemory({ model, extensions: { tool: [] } as object })).rejects.toThrow(/extensions: there is no option "tool"/);
});

test('one that steps by itself no further says what it waits for', async () => {
  const { chat } = await open(['Hello.'], { agents: { default: { 'agent.json': { defaultExecutionMode: 'stepping' } } } });
  await expect(chat.send('hi')).rejects.toThrow(/waits for/);
});
