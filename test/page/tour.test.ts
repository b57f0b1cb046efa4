/**
 * One way through the page in a real browser: a link, a conversation, words as they come, a reload in mid-word, an attempt that broke off, a
 * call that a person allows. All that the page can do is tried in the slow files of this folder.
 */
import { answerText } from '../../src/records/message.js';
import { callTool, gate, text } from '../support/provider-apis/reply.js';
import { hasBrowser, pageTest, startPage, type PageWorld } from './browser.js';
import { createScript } from './script.js';

const script = createScript();
let stand: PageWorld;
beforeAll(async () => {
  // Nothing here looks at the list of conversations: the server of all files will do.
  if (hasBrowser) stand = await startPage({ answer: script.answer, address: process.env['PERDURA_TEST_ADDRESS'] });
});
afterAll(() => stand?.close());

pageTest('from the link to a call that is allowed: what is said stands on the page, as the store has it', async () => {
  const whole = 'Eins zwei drei vier fünf sechs sieben acht neun zehn — 🦔 elf **zwölf**.';
  const held = gate({ chars: 22 });
  script.on('count', { ...text(whole), hold: held });
  const { page } = await stand.open();
  const settled = (turns: number): Promise<void> =>
    page
      .locator('.turn:not(.is-running) .turn-foot')
      .nth(turns - 1)
      .waitFor();
  await page.getByLabel('First message').fill('count');
  await page.keyboard.press('Enter');
  await held.reached;
  await page.getByText('Eins zwei drei').waitFor();
  await page.waitForURL(/\?chat=conv-[0-9a-f-]{36}$/);
  const id = new URL(page.url()).searchParams.get('chat')!;

  await page.reload();
  await page.getByText('Eins zwei drei').waitFor();
  await page.locator('.doing').waitFor();
  held.release();
  await settled(1);
  await page.locator('.markdown strong', { hasText: 'zwölf' }).waitFor();

  // The first attempt breaks off after some words, which must not stay.
  script.on('go on', { ...text('This breaks off in the middle.'), fault: { kind: 'reset', at: 6 } }, text('This does not.'));
  const message = page.getByLabel('Message', { exact: true });
  await message.fill('go on');
  await page.keyboard.press('Enter');
  await settled(2);

  script.on('echo', callTool('run_command', { command: 'echo', args: ['here'] }), text('Echoed.'));
  await message.fill('echo');
  await page.keyboard.press('Enter');
  await page.locator('.decision pre', { hasText: 'here' }).first().waitFor();
  await page.getByRole('button', { name: 'Allow', exact: true }).click();
  await settled(3);
  expect(await page.locator('.decision').count()).toBe(0);

  const shown = (await page.locator('.answer .markdown').allInnerTexts()).map((words) => words.trim());
  expect(shown).toEqual([whole.replaceAll('**', ''), 'This does not.', 'Echoed.']);
  const stored = await stand.world.client.history(id);
  expect(stored.map(({ message }) => answerText(message)).filter((words) => words !== '')).toEqual([whole, 'This does not.', 'Echoed.']);
  expect(stored.flatMap(({ message }) => (message.role === 'tool' ? [message.outcome] : []))).toEqual(['ok']);
});
