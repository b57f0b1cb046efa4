/** Talking with an agent in a browser. */
import { gate, text } from '../support/provider-apis/reply.js';
import { createStage, say } from '../support/stage.js';
import { accessFaults, hasBrowser, pageTest, picture, startPage, type PageWorld } from './browser.js';

jest.setTimeout(60_000);

const stage = createStage();
let stand: PageWorld;
beforeAll(async () => {
  if (hasBrowser) stand = await startPage({ answer: stage.answer });
});
afterAll(() => stand?.close());

pageTest('a message is sent from the keyboard, and its answer comes as it is said', async () => {
  const id = stand.world.id();
  const held = gate({ chars: 24 });
  stage.play(id, { ...text('Oslo has **about 700,000** people.'), hold: held });
  const { page } = await stand.open(`?chat=${id}`);
  await page.getByLabel('Message', { exact: true }).fill(say(id, 'How many people live in Oslo?'));
  await page.keyboard.press('Enter');
  await held.reached;
  await page.getByText('Oslo has').waitFor();
  expect(await page.getByRole('button', { name: 'Stop' }).isVisible()).toBe(true);
  held.release();
  await page.locator('.markdown strong', { hasText: 'about 700,000' }).waitFor();
  await page.getByRole('button', { name: 'Retry' }).waitFor();
  expect(await accessFaults(page)).toEqual([]);
  await picture(page, 'first');
});
