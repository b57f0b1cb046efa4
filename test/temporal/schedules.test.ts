/** Temporal Schedules that begin conversations, and that send to one. */
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;
beforeAll(async () => {
  world = await startWorld({ engine: 'temporal', answer: stage.answer });
});
afterAll(async () => {
  for (const { id } of await world.client.schedules()) if (made.has(id)) await world.client.deleteSchedule(id);
  await world.close();
});

const made = new Set<string>();
const DUE = '2026-01-05T09:00:00Z';

function newId(): string {
  const id = world.id();
  made.add(id);
  return id;
}

/** As the time would have come. */
function fallDue(schedule: string): Promise<void> {
  const [start, end] = [new Date('2026-01-05T08:30:00Z'), new Date('2026-01-05T09:30:00Z')];
  return world.temporal.schedule.getHandle(schedule).backfill({ start, end, overlap: 'ALLOW_ALL' });
}

const usersOf = async (id: string): Promise<readonly string[]> => {
  const entries = await world.client.history(id).catch(() => []);
  return entries.flatMap(({ message }) => (message.role === 'user' && typeof message.text === 'string' ? [message.text] : []));
};

test('a schedule begins a conversation with its message, named after the time at which it was due', async () => {
  const id = newId();
  await world.client.addSchedule(id, { cron: ['0 10 * * 1'], timeZone: 'Europe/Berlin', start: { message: say(id, 'the weekly report') } });
  await fallDue(id);
  const conversation = `${id}-${DUE}`;
  await waitFor(
    () => usersOf(conversation),
    (texts) => texts.length > 0,
  );
  // Sent again, it is the turn that it was.
  expect(await world.client.send(conversation, { id: `${id}@${DUE}`, text: 'again' })).toMatchObject({
    turnId: 'turn_0001',
    text: 'Understood.',
  });
  expect(await usersOf(conversation)).toEqual([expect.stringContaining('the weekly report')]);
  // It is a conversation like any other.
  expect(await world.client.send(conversation, say(id, 'and now?'))).toMatchObject({ stopReason: 'end', turnId: 'turn_0002' });
});

test('a schedule sends into a conversation that runs: a due time is one message, and no conversation of its own', async () => {
  const [id, conversation] = [newId(), world.id()];
  await world.client.send(conversation, say(conversation, 'hello'), { start: {} });
  await world.client.addSchedule(id, { cron: ['0 9 * * *'], start: { message: say(conversation, 'the daily news'), into: conversation } });
  await fallDue(id);
  await waitFor(
    () => usersOf(conversation),
    (texts) => texts.length > 1,
  );
  await fallDue(id);
  const runs = `WorkflowId STARTS_WITH '${id}' AND ExecutionStatus = 'Completed'`;
  await waitFor(
    async () => {
      let count = 0;
      for await (const _ of world.temporal.workflow.list({ query: runs })) count++;
      return count;
    },
    (count) => count === 2,
  );
  await world.client.send(conversation, say(conversation, 'bye'));
  expect(await usersOf(conversation)).toEqual(['hello', 'the daily news', 'bye'].map((text) => expect.stringContaining(text)));
  const listed = await world.client.list({ query: `TaskQueue = '${world.taskQueue}'` });
  expect(listed.map((one) => one.id).filter((one) => one.startsWith(id))).toEqual([]);
});

test('one into what does not run fails in words, and a start that means nothing is refused', async () => {
  const id = world.id();
  const start = (argument: object): Promise<unknown> =>
    world.temporal.workflow.execute('conversation', { workflowId: `${id}-${DUE}`, taskQueue: world.taskQueue, args: [argument] });
  const reason = (error: { cause?: { message?: string } }): string => error.cause?.message ?? '';
  expect(await start({ message: 'hi', into: 'nobody-there' }).catch(reason)).toContain(
    'cannot send to conversation nobody-there: it does not run',
  );
  expect(await start({ into: 'nobody-there' }).catch(reason)).toContain('start.into needs start.message');
  expect(await start({ agnet: 'writer' }).catch(reason)).toContain('agnet is not a field');
  expect(await start({ message: { text: 7 } }).catch(reason)).toContain('start.message');
  expect(await start({ message: '/new' }).catch(reason)).toContain('is the reset');
});

test('schedules are listed, paused and deleted; one without a time or a message is refused', async () => {
  const id = newId();
  await world.client.addSchedule(id, { everyMs: 3_600_000, start: { message: 'hi' } });
  const mine = async () => (await world.client.schedules()).filter((one) => one.id === id);
  await waitFor(mine, (found) => found.length === 1);
  expect(await mine()).toMatchObject([{ isPaused: false, into: null, nextAt: expect.any(Date) }]);
  await world.client.pauseSchedule(id, { note: 'holidays' });
  await waitFor(mine, ([one]) => one?.isPaused === true);
  expect(await mine()).toMatchObject([{ note: 'holidays' }]);
  await expect(world.client.addSchedule(id, { everyMs: 1000, start: { message: 'hi' } })).rejects.toThrow('there is one of that id');
  await expect(world.client.addSchedule(newId(), { start: { message: 'hi' } })).rejects.toThrow('say when it is due');
  await expect(world.client.addSchedule(newId(), { everyMs: 1000, start: {} })).rejects.toThrow('say what it sends');
  await expect(world.client.addSchedule(newId(), { cron: ['no time'], start: { message: 'hi' } })).rejects.toThrow(
    'cannot make the schedule',
  );
  await world.client.deleteSchedule(id);
  await expect(world.client.pauseSchedule(id)).rejects.toThrow('there is no such schedule');
});

test('a schedule of another program is neither paused nor deleted', async () => {
  const scheduleId = world.id();
  const action = { type: 'startWorkflow', workflowType: 'backup', taskQueue: 'another', args: [] } as const;
  const handle = await world.temporal.schedule.create({ scheduleId, spec: { intervals: [{ every: '1h' }] }, action });
  await expect(world.client.deleteSchedule(scheduleId)).rejects.toThrow('there is no such schedule');
  await expect(world.client.pauseSchedule(scheduleId)).rejects.toThrow('there is no such schedule');
  expect((await handle.describe()).state.paused).toBe(false);
  await handle.delete();
});
