/** The page on a telephone, by touch: a conversation is begun, looked at in every view, managed and deleted at 360 px. */
import { callTool, text } from '../support/provider-apis/reply.js';
import { waitFor } from '../support/wait-for.js';
import { hasBrowser, pageTest, picture, startPage, tooWide, type PageWorld } from './browser.js';
import { createScript } from './script.js';

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };
const script = createScript();
let stand: PageWorld;
beforeAll(async () => {
  if (hasBrowser) stand = await startPage({ answer: script.answer });
});
afterAll(() => stand?.close());

pageTest('a conversation from its first word to its deletion', async () => {
  const { page } = await stand.open('', PHONE);
  const tap = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).tap();
  const fits = async (name: string): Promise<void> => {
    expect([name, await tooWide(page)]).toEqual([name, []]);
    await picture(page, `phone-${name}`);
  };
  await fits('list');
  await tap('New conversation');
  script.on('Look around', callTool('run_command', { command: 'echo', args: ['a word'] }), text('There is **a word** here.'));
  await page.getByLabel('First message').fill('Look around');
  await fits('new');
  await tap('Send');
  await page.getByRole('button', { name: 'Allow', exact: true }).waitFor();
  await fits('decision');
  await tap('Allow');
  await page.locator('.turn:not(.is-running) .turn-foot').waitFor();
  await fits('chat');
  const id = new URL(page.url()).searchParams.get('chat') ?? '';

  for (const name of ['Timeline', 'Context', 'Stepper', 'Manage']) {
    await page.getByRole('navigation', { name: 'Views of this conversation' }).getByRole('link', { name }).tap();
    await page.locator('.view-pad > *').first().waitFor();
    await fits(name.toLowerCase());
  }
  await page.getByLabel('Name').fill('Words around');
  await tap('Rename');
  await page.getByRole('heading', { name: 'Words around' }).waitFor();
  await page.getByLabel('US dollars').fill('2.5');
  await tap('Set');
  await waitFor(
    () => stand.world.client.status(id),
    ({ budget }) => budget?.maxCostUsd === 2.5,
  );
  await page.getByLabel('Model').fill('anthropic/claude-other');
  await tap('Use it');
  await waitFor(
    () => stand.world.client.status(id),
    ({ chosenModel }) => chosenModel === 'anthropic/claude-other',
  );
  await tap('Close it');
  await tap('Resume');
  await page.getByLabel('Message', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'Manage' }).tap();
  await tap('Close it');
  await tap('Delete …');
  await tap('Delete it for good');
  await page.getByLabel('Search conversations').waitFor();
  // The server deletes in the background.
  await waitFor(
    () =>
      stand.world.client.describe(id).then(
        () => 'there',
        () => 'gone',
      ),
    (found) => found === 'gone',
  );

  for (const name of ['Inbox', 'Memory', 'Fleet', 'Agents']) {
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name }).tap();
    await page.locator('.view :is(h1, h2, p)').first().waitFor();
    await fits(name.toLowerCase());
  }
});
