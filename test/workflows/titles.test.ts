/** What lists call a conversation that nobody has named: its first words, after the processors, for one event of history. */
import { text } from '../support/provider-apis/reply.js';
import { replayProblems } from '../support/replays.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;

beforeAll(async () => {
  const withoutName = { name: 'WithoutNames', order: 1, process: (words: string) => words.replaceAll('Ada Lovelace', '[a name]') };
  world = await startWorld({ answer: stage.answer, processors: { input: [withoutName] } });
});
afterAll(() => world.close());

async function listed(id: string): Promise<string | null | undefined> {
  const found = await waitFor(
    () => world.client.list({ limit: 50 }),
    (list) => list.some((one) => one.id === id),
  );
  return found.find((one) => one.id === id)?.title;
}

/** How often its history tells lists a title. */
async function titled(id: string): Promise<number> {
  const { events } = await world.temporal.workflow.getHandle(id).fetchHistory();
  return (events ?? []).filter(({ workflowPropertiesModifiedEventAttributes: change }) => change?.upsertedMemo?.fields?.['title']).length;
}

test('status, list and Temporal have it, without what a processor has taken out; a person’s own goes over it', async () => {
  const id = world.id();
  stage.play(id, text('Hello.'));
  await world.client.start(id);
  await world.client.send(id, say(id, 'write to Ada Lovelace'));
  const title = (await world.client.status(id)).title ?? '';
  expect(title).toBe(`${id} write to [a name]`);
  expect((await world.client.describe(id)).title).toBe(title);
  await waitFor(
    () => listed(id),
    (found) => found === title,
  );
  await world.client.rename(id, 'Mine');
  await world.client.send(id, say(id, 'and again'));
  expect((await world.client.status(id)).title).toBe('Mine');
  expect(await titled(id)).toBe(2);
  expect(await replayProblems(world)).toEqual([]);
});

test('one that was named, and one that wants none, cost no event', async () => {
  for (const start of [{ title: 'Mine' }, { autoTitle: false }]) {
    const id = world.id();
    await world.client.start(id, start);
    await world.client.send(id, say(id, 'hi'));
    expect((await world.client.status(id)).title).toBe(start.title ?? null);
    expect(await titled(id)).toBe(0);
  }
});
