/** Each view while its answer is on the way, when there is none, when the gateway refuses, and when nothing is there yet: in words, to everybody. */
import type { Page, Route } from 'playwright-core';
import { text } from '../support/provider-apis/reply.js';
import { accessFaults, hasBrowser, pageTest, picture, startPage, type PageWorld } from './browser.js';
import { createScript } from './script.js';

const script = createScript();
let stand: PageWorld;
let id: string;
beforeAll(async () => {
  if (!hasBrowser) return;
  const described = { config: {}, system: 'You look after the harbour.', tools: [], servers: [] };
  stand = await startPage({ answer: script.answer }, { describeAgent: (name) => Promise.resolve({ name, ...described }) });
});
afterAll(() => stand?.close());

/** With what each says where nothing is there yet. */
const OF_ALL: readonly (readonly [path: string, empty: RegExp])[] = [
  ['?inbox', /Nothing waits for you/],
  ['?fleet', /No conversation yet/],
  ['?fleet&part=failures', /None has failed/],
  ['?fleet&part=workers', /1 conversation|0 conversations|not reported/],
  ['?fleet&part=spending', /Nothing was spent/],
  ['?fleet&part=trees', /No conversation of the latest has delegated/],
  ['?memory', /Nothing is remembered yet/],
  ['?memory&part=versions', /Nothing was ever written/],
  ['?memory&part=proposals', /Nothing waits for review/],
  ['?memory&part=facts', /No facts yet/],
  ['?memory&part=history', /HISTORY is empty/],
  ['?agents=default', /First message/],
];
const OF_ONE = ['chat', 'timeline', 'context', 'stepper', 'manage'] as const;
/** The playground takes a message before it knows anything. */
const paths = (): string[] => [
  ...OF_ALL.map(([path]) => path).filter((path) => path !== '?agents=default'),
  '?agents=default&part=tools',
  ...OF_ONE.map((name) => `?${name}=${id}`),
];

const words = (page: Page): Promise<string> => page.locator('main').innerText();

pageTest('where nothing is there yet, each view says so', async () => {
  const { page, context } = await stand.open('?inbox');
  for (const [path, empty] of OF_ALL) {
    await page.goto(`${stand.url}/${path}`);
    await page.getByText(empty).or(page.getByLabel(empty)).first().waitFor();
    expect([path, await accessFaults(page)]).toEqual([path, []]);
    await picture(page, `empty-${path.replace(/\W+/g, '-')}`);
  }
  await context.close();
});

pageTest('a view whose answer is on the way says that it loads; one that gets none why, and it can be asked again', async () => {
  id = stand.world.id();
  script.on('Hello', text('Hello there.'));
  await stand.world.client.send(id, 'Hello', { start: {} });
  for (const path of paths()) {
    const { page, context } = await stand.open('?agents');
    let hold: (route: Route) => Promise<void> = () => new Promise(() => undefined);
    await page.route(/\/v1\/(?!me\b)/, (route) => hold(route));
    await page.goto(`${stand.url}/${path}`);
    await page
      .locator('main')
      .getByText(/Loading …|Asking how it stands|Replaying what happened|looks around/)
      .first()
      .waitFor();
    expect([path, await accessFaults(page)]).toEqual([path, []]);
    await picture(page, `loading-${path.replace(/\W+/g, '-').replace(id, 'one')}`);

    const problem = { type: 'about:blank', title: 'Internal', status: 500, detail: 'the tide took it away', kind: 'failed' };
    hold = (route) => route.fulfill({ status: 500, contentType: 'application/problem+json', body: JSON.stringify(problem) });
    await page.reload();
    await page.locator('main').getByText('the tide took it away').first().waitFor();
    expect([path, await words(page)]).toEqual([path, expect.not.stringMatching(/undefined|\[object|Loading …/)]);
    expect([path, await accessFaults(page)]).toEqual([path, []]);
    await picture(page, `failed-${path.replace(/\W+/g, '-').replace(id, 'one')}`);

    hold = (route) => route.continue();
    const again = page.locator('main').getByRole('button', { name: 'Try again' });
    for (let tries = 0; tries < 20 && (await again.first().isVisible()); tries++) {
      await again.first().click();
      await page.waitForTimeout(300);
    }
    await page.locator('main').getByText('the tide took it away').first().waitFor({ state: 'detached' });
    await context.close();
  }
});
