/** What lists call a conversation that nobody has named: its first words, after the processors, for one event of history. */
import { sumSpending, type Spent } from '../../src/records/spending.js';
import { overloaded } from '../support/provider-apis/faults.js';
import { gate, text } from '../support/provider-apis/reply.js';
import { expectReplays } from '../support/replays.js';
import { createStage, say } from '../support/stage.js';
import { currentDetails, modelStepsOf } from '../support/steps.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;

beforeAll(async () => {
  const withoutName = { name: 'WithoutNames', order: 1, process: (words: string) => words.replaceAll('Ada Lovelace', '[a name]') };
  world = await startWorld({ answer: stage.answer, processors: { input: [withoutName] } });
  await world.writeAgent('naming', { titles: 'model' });
});
afterAll(() => world.close());

async function listed(id: string): Promise<string | null | undefined> {
  const found = await waitFor(
    () => world.client.list({ limit: 50 }),
    (list) => list.some((one) => one.id === id),
  );
  return found.find((one) => one.id === id)?.title;
}

async function titleIs(id: string, title: string): Promise<void> {
  await waitFor(
    () => world.client.status(id),
    (status) => status.title === title,
  );
}

async function spentIn(id: string): Promise<Spent[]> {
  const spent: Spent[] = [];
  for await (const one of world.store.spendings.all(await world.client.key(id))) if (one.conversation === id) spent.push(one);
  return spent;
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
  await expectReplays(world);
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

test('where the agent wants it a model names the first exchange, once, and what that takes counts', async () => {
  const id = world.id();
  stage.play(id, text('Dear Ada, and so on.'), text('**Title: “A letter to Ada.”**\nIs that good?'), text('And more.'));
  await world.client.start(id, { agent: 'naming' });
  await world.client.send(id, say(id, 'write to Ada Lovelace'));
  await titleIs(id, 'A letter to Ada');
  await world.client.send(id, say(id, 'and again'));
  const [, asked, next] = stage.requests(id);
  expect(JSON.stringify(asked?.messages)).toMatch(/write to \[a name\].*Dear Ada, and so on/);
  expect(asked?.tools ?? []).toEqual([]);
  expect(JSON.stringify(next?.messages)).toContain('and again');
  expect(await titled(id)).toBe(2);
  const spent = await spentIn(id);
  expect(spent.map(({ kind }) => kind).sort()).toEqual(['answer', 'answer', 'title']);
  expect((await world.client.status(id)).usage).toEqual(sumSpending('all', spent).usage);
});

test('a model that fails, or says what must not stand in a list, leaves the first words, and is not asked again', async () => {
  for (const line of [overloaded(), text(`sk-ant-api03-${'x9Y'.repeat(30)}`), text('***')]) {
    const id = world.id();
    stage.play(id, text('Hello.'), line, text('Still here.'));
    await world.client.start(id, { agent: 'naming' });
    await world.client.send(id, say(id, 'hi'));
    await stage.waitForRequest(id, 2);
    await world.client.send(id, say(id, 'and now?'));
    await world.client.send(id, say(id, 'and then?'));
    expect([(await world.client.status(id)).title, await titled(id), stage.requests(id).length]).toEqual([`${id} hi`, 1, 4]);
  }
});

test('a person who renames it while the model is asked has the last word, and a reset and a question wait for nothing', async () => {
  const id = world.id();
  const held = gate();
  stage.play(id, text('Hello.'), { ...text('Of the model'), hold: held }, text('And on.'));
  await world.client.start(id, { agent: 'naming' });
  await world.client.send(id, say(id, 'hi'));
  await held.reached;
  await world.client.rename(id, 'Mine');
  expect(await world.client.send(id, say(id, 'more'))).toMatchObject({ text: 'And on.' });
  await world.client.reset(id);
  held.release();
  await waitFor(
    async () => ({ spent: await spentIn(id), now: (await world.client.status(id)).usage }),
    ({ spent, now }) => spent.some(({ kind }) => kind === 'title') && now.outputTokens === sumSpending('all', spent).usage.outputTokens,
  );
  expect([(await world.client.status(id)).title, await titled(id)]).toEqual(['Mine', 2]);
  await expectReplays(world);
});

test('Temporal’s page shows the first words of question and answer, after the processors; off, it shows none', async () => {
  const shows = await startWorld({ answer: stage.answer, showsWords: true });
  try {
    const id = shows.id();
    stage.play(id, text('Good day to you.'), text('And to you.'));
    await shows.client.start(id);
    await shows.client.send(id, say(id, 'hello there'));
    await shows.client.send(id, say(id, 'hello *again*'));
    const [first, second] = await modelStepsOf(shows, id);
    expect(first?.summary).not.toContain('hello');
    expect(second?.summary).toContain(`\`${id} hello *again*\``);
    const details = await currentDetails(shows, id);
    expect(details).toContain(`**asked** \`${id} hello *again*\``);
    expect(details).toContain('**answered** `And to you.`');
    await expectReplays(shows);
  } finally {
    await shows.close();
  }
  const id = world.id();
  stage.play(id, text('Hush.'), text('Hush.'));
  await world.client.start(id, { title: 'Mine' });
  await world.client.send(id, say(id, 'hello there'));
  await world.client.send(id, say(id, 'hello there'));
  expect((await modelStepsOf(world, id)).map(({ summary }) => summary).join()).not.toContain('hello');
  expect(await currentDetails(world, id)).not.toMatch(/hello|Hush/);
});
