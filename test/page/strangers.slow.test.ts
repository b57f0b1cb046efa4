/** What is very long, and what waits in many conversations, as the page shows it. */
import { randomUUID } from 'node:crypto';
import { importedLifeName } from '../../src/memory/imported-life.js';
import { writeLife } from '../../src/memory/past-life.js';
import type { Entry } from '../../src/records/message.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { waitFor } from '../support/wait-for.js';
import { accessFaults, hasBrowser, pageTest, picture, startPage, tooWide, type PageWorld } from './browser.js';
import type { Page } from 'playwright-core';
import { createScript } from './script.js';

const script = createScript();
let stand: PageWorld;
beforeAll(async () => {
  if (hasBrowser) stand = await startPage({ answer: script.answer });
});
afterAll(() => stand?.close());
afterEach(() => stand?.closePages());

pageTest('a word of a megabyte neither hangs the page nor widens it', async () => {
  const id = stand.world.id();
  script.on('long word', text('w'.repeat(1_000_000)));
  await stand.world.client.send(id, 'long word', { start: {} });
  const { page } = await stand.open(`?chat=${id}`);
  await page.locator('.markdown .plain').waitFor();
  await page.locator('.virtual').evaluate((list) => list.scrollTo(0, 0));
  expect(await page.evaluate('1 + 1')).toBe(2);
  expect(await tooWide(page)).toEqual([]);
  for (const [path, element] of [
    [`?timeline=${id}`, '.bar.lane-model'],
    [`?context=${id}&part=now`, '.chunk.assistant'],
    [`?stepper=${id}&at=1`, '.moment .state-facts'],
    [`?memory=default&part=search&question=long+word`, '.hit'],
  ] as const) {
    await page.goto(`${stand.url}/${path}`);
    await page.locator(element).first().click();
    expect([
      path,
      await page.evaluate('document.querySelectorAll("*").length < 5_000 && document.body.innerText.length < 600_000'),
    ]).toEqual([path, true]);
    expect([path, await tooWide(page)]).toEqual([path, []]);
  }
});

const TURNS = 5_000;

function longLife(): Entry[] {
  const entries: Entry[] = [];
  for (let n = 1; n <= TURNS; n += 1) {
    const place = { v: 1 as const, session: 1, turn: `turn_${String(n).padStart(4, '0')}`, ts: 1_700_000_000 + n * 60 };
    const answer = `Answer ${n}. ${'It has **some words** more. '.repeat(n % 7)}`;
    entries.push({ ...place, slot: 2 * n - 1, seq: 1, messageId: `m${n}`, message: { role: 'user', text: `Question ${n}?` } });
    entries.push({
      ...place,
      slot: 2 * n,
      seq: 2,
      message: { role: 'assistant', blocks: [{ kind: 'text', text: answer }], model: 'anthropic/claude-test', stop: 'end' },
    });
  }
  return entries;
}

/** Begun anew from what an export would bring, whose scope is its own. */
async function beginLongLife(): Promise<string> {
  const id = `long-${randomUUID().slice(0, 8)}`;
  const life = importedLifeName(randomUUID());
  const { client, store } = stand.world;
  await writeLife(
    store,
    { namespace: client.namespace, scope: id, conversation: id, life },
    { entries: longLife(), archived: [], episodes: [], skipped: 0 },
  );
  await client.begin(id, life, { scope: id });
  return id;
}

pageTest('of 5,000 turns every view draws what is seen, and reaches what is far back', async () => {
  const id = await beginLongLife();
  const { page } = await stand.open();
  page.setDefaultTimeout(240_000);
  await page.locator('.side-link', { hasText: id }).first().click();
  await page.getByText(`Answer ${TURNS}.`).first().waitFor();
  const drawn = (): Promise<number> => page.evaluate<number>('document.querySelectorAll("*").length');
  expect(await page.locator('.virtual-row').count()).toBeLessThan(60);
  // Back by a screen at a time, until what is above has come.
  await waitFor(
    async () => {
      await page.locator('.virtual').evaluate((list) => list.scrollBy(0, -20_000));
      return page.getByText(/^Question 4[0-8][0-9]{2}\?$/).count();
    },
    (count) => count > 0,
  );
  expect(await page.locator('.virtual-row').count()).toBeLessThan(60);

  const tab = (view: string): string => `.conversation-head a[href^="?${view}="]`;
  const elements: [string, number][] = [['chat', await drawn()]];
  for (const [view, element] of [
    ['timeline', '.turn-column[aria-current]'],
    ['context', '.chunk'],
    ['stepper', '.event'],
  ] as const) {
    await page.locator(tab(view)).click();
    await page.locator(element).first().waitFor();
    elements.push([view, await drawn()]);
  }
  await page.locator(tab('context')).click();
  await page.getByRole('tab', { name: 'Turn by turn' }).click();
  await page.locator('.turn-row').first().waitFor();
  elements.push(['turns', await drawn()]);
  // By what it draws: how long that takes is the bench's.
  expect(elements.filter(([, count]) => count >= 20_000)).toEqual([]);
  await page.getByRole('button', { name: 'Earlier turns' }).click();
  await page.locator('.turn-row', { hasText: /^4700\D/ }).click();
  await shown(page, '.story blockquote', 'Question 4700?');

  // The first question makes the index; from then on it is there.
  await page.goto(`${stand.url}/?memory=${id}&part=search&question=${encodeURIComponent('What is question 17?')}`);
  await page.locator('.hit mark').first().waitFor();
  await page.getByRole('searchbox', { name: 'Question' }).fill('What is answer 4711?');
  await page.locator('.search-form [type=submit]').click();
  await page.getByText('Answer 4711.').first().waitFor();
});

/** Where a busy gateway did not answer in time, it is asked again, as a person would. */
async function shown(page: Page, element: string, words: string): Promise<void> {
  const again = page.getByRole('button', { name: 'Try again' }).first();
  const look = async (): Promise<string> => {
    await again.click({ timeout: 100 }).catch(() => undefined);
    return page.locator('main').innerText();
  };
  await waitFor(
    async () => ((await page.locator(element, { hasText: words }).count()) > 0 ? 'shown' : await look()),
    (seen) => seen === 'shown',
  );
}

pageTest('the inbox has what waits in all conversations, oldest first, and is gone through by keyboard', async () => {
  const { client } = stand.world;
  const ids = ['release-notes', 'trip-to-bergen'] as const;
  script.on('publish them', callTool('run_command', { command: 'npm', args: ['publish', '--tag', 'next'] }), text('Published.'));
  script.on(
    'book it',
    callTool('ask_user', { question: 'The cabin with a view costs 40 € more. Which one?', options: ['With a view', 'The cheaper one'] }),
    text('Booked.'),
  );
  for (const [at, words] of ['publish them', 'book it'].entries()) {
    await client.start(ids[at], { title: ['Release notes of 2.4', 'Trip to Bergen'][at] ?? '' });
    await client.enqueue(ids[at] ?? '', words);
    await waiting(ids[at] ?? '');
  }
  const { page } = await stand.open('?inbox');
  await page.locator('.inbox-item').nth(1).waitFor();
  expect(await page.locator('.inbox-item p a').allInnerTexts()).toEqual(['Release notes of 2.4', 'Trip to Bergen']);
  expect(await page.title()).toBe('(2) Inbox · Perdura');
  await picture(page, 'inbox');
  expect(await accessFaults(page)).toEqual([]);
  await page.keyboard.press('Tab');
  await page.getByRole('button', { name: 'To the content' }).press('Enter');
  await page.locator('main:focus').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.locator('.inbox-item').nth(1).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Allow', exact: true }).click();
  await page.getByText('Nothing waits for you').waitFor();

  // A page that is not seen asks the browser to say it; sooner here than each 20 s.
  await page.evaluate(`{
    const later = window.setTimeout;
    window.setTimeout = (act, ms, ...more) => later(act, ms > 10_000 ? 200 : ms, ...more);
    window.notices = [];
    window.Notification = class { static permission = 'granted'; constructor(title, { body }) { notices.push(Object.assign(this, { title, body })); } close() {} };
    Object.defineProperty(document, 'hidden', { get: () => true });
    document.dispatchEvent(new Event('visibilitychange'));
  }`);
  script.on('once more', callTool('run_command', { command: 'npm', args: ['publish'] }), text('Published.'));
  await client.start('hotfix', { title: 'Hotfix' });
  await client.enqueue('hotfix', 'once more');
  const said = await waitFor(
    () => page.evaluate<{ title: string; body: string }[]>('notices.map(({ title, body }) => ({ title, body }))'),
    (all) => all.length > 0,
  );
  expect(said).toEqual([{ title: 'run_command waits for your approval', body: expect.stringContaining('npm') }]);
  await page.evaluate('notices[0].onclick()');
  await page.waitForURL(/chat=hotfix/);
});

async function waiting(id: string): Promise<void> {
  for (;;) if ((await stand.world.client.approvals(id)).length > 0) return;
}
