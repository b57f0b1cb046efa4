/** Talking with an agent in a browser: all that tour.test.ts leaves out. */
import type { Page, Request } from 'playwright-core';
import { callTool, callTools, gate, text } from '../support/provider-apis/reply.js';
import { figure } from '../support/scene.js';
import { waitFor } from '../support/wait-for.js';
import { accessFaults, hasBrowser, pageTest, picture, startPage, tooWide, type PageWorld } from './browser.js';
import { createScript } from './script.js';

const script = createScript();
/** One pixel. */
const DOT = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
/** Of the least that a reader takes. */
const PDF = Buffer.from(
  '%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n',
);
let stand: PageWorld;
/** Turns that the page has added to datasets; in the dataset "closed" nothing can be written. */
const added: unknown[] = [];
beforeAll(async () => {
  if (!hasBrowser) return;
  stand = await startPage(
    { answer: script.answer, files: { 'trip.md': '# Oslo\n\nThree days in May.\n' } },
    {
      addToDataset: (_client, id, turn, { name, labels }) => {
        if (name === 'closed') return Promise.resolve(undefined);
        added.push({ id, turn, name, labels });
        return Promise.resolve({ id: `${id}/${turn}`, name, cases: added.length, isNew: added.length === 1, labels });
      },
    },
  );
});
afterAll(() => stand?.close());
afterEach(() => stand?.closePages());

const say = async (page: Page, words: string): Promise<void> => {
  await page.getByLabel('Message', { exact: true }).fill(words);
  await page.keyboard.press('Enter');
};
/** The last turn has ended. */
const settled = (page: Page): Promise<void> => page.locator('.turn.is-last:not(.is-running) .turn-foot').waitFor();
const answers = async (page: Page): Promise<string[]> =>
  (await page.locator('.answer .markdown').allInnerTexts()).map((words) => words.trim());

pageTest('a message is sent from the keyboard, and its answer comes as it is said', async () => {
  const held = gate({ chars: 24 });
  script.on('How many people live in Oslo?', { ...text('Oslo has **about 700,000** people.'), hold: held });
  const { page } = await stand.open(`?chat=${stand.world.id()}`);
  await say(page, 'How many people live in Oslo?');
  await held.reached;
  await page.getByText('Oslo has').waitFor();
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  held.release();
  await page.locator('.markdown strong', { hasText: 'about 700,000' }).waitFor();
  await settled(page);
  expect(await accessFaults(page)).toEqual([]);
});

pageTest('a turn is added to a dataset: by a click and Enter, under another name with a label, and a refusal is told', async () => {
  script.on('Remember this one.', text('As you wish.'));
  const id = stand.world.id();
  const { page } = await stand.open(`?chat=${id}`);
  await say(page, 'Remember this one.');
  await settled(page);
  const open = page.getByRole('button', { name: 'Add to dataset' });
  await open.click();
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('Added to dataset cases (1 case)').waitFor();
  await open.click();
  await page.getByLabel('Dataset').fill('good-ones');
  await page.getByLabel('Label').fill('polite');
  expect(await accessFaults(page)).toEqual([]);
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('In dataset good-ones (2 cases) already').waitFor();
  expect(added).toEqual([
    { id, turn: 'turn_0001', name: 'cases', labels: [] },
    { id, turn: 'turn_0001', name: 'good-ones', labels: ['polite'] },
  ]);
  await open.click();
  await page.getByLabel('Dataset').fill('closed');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('run `perdura dataset add ID --turn N`').waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await tooWide(page)).toEqual([]);
});

pageTest('a block of code has colours where it names its language, and is copied as it is', async () => {
  const program = "const name = 'Oslo'; // where";
  script.on('Show me a program.', text(`\`\`\`ts\n${program}\n\`\`\`\n\nand\n\n\`\`\`no-such\n<b>plain</b>\n\`\`\``));
  const { page, context } = await stand.open(`?chat=${stand.world.id()}`);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await say(page, 'Show me a program.');
  await settled(page);
  await page.locator('.markdown .hljs-string', { hasText: "'Oslo'" }).waitFor();
  const [first, second] = await page.locator('.markdown pre').all();
  expect(await first?.textContent()).toBe(`${program}\n`);
  expect(await second?.textContent()).toBe('<b>plain</b>\n');
  expect(await second?.locator('span').count()).toBe(0);
  await page.locator('.markdown .block').first().hover();
  await page.getByRole('button', { name: 'Copy', exact: true }).first().click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(`${program}\n`);
  expect(await accessFaults(page)).toEqual([]);
});

pageTest('a call that waits is decided in place: other arguments, refused with a reason, always', async () => {
  const command = (...args: string[]) => callTool('run_command', { command: 'echo', args });
  script.on('echo', command('first'), command('second'), command('third'), command('third'), text('Done.'));
  const id = stand.world.id();
  const { page } = await stand.open(`?chat=${id}`);
  await say(page, 'echo');
  await page.getByRole('button', { name: 'Edit arguments' }).click();
  await page.getByLabel('Arguments, as JSON').fill('{"command": "echo", "args": ["changed"]}');
  await page.getByRole('button', { name: 'Allow with changes' }).click();
  await page.locator('.decision pre', { hasText: 'second' }).first().waitFor();
  await page.getByRole('button', { name: 'Refuse' }).click();
  await page.getByLabel('Why not').fill('not that one');
  await page.keyboard.press('Enter');
  await page.locator('.decision pre', { hasText: 'third' }).first().waitFor();
  expect(await accessFaults(page)).toEqual([]);
  await page.getByRole('button', { name: 'Always allow' }).click();
  await settled(page);
  expect(await page.locator('.decision').count()).toBe(0);
  const outcomes = (await stand.world.client.history(id)).flatMap(({ message }) => (message.role === 'tool' ? [message] : []));
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['ok', 'rejected', 'ok', 'ok']);
  expect(JSON.stringify(outcomes[0]?.text)).toContain('changed');
  expect(JSON.stringify(outcomes[1]?.text)).toContain('not that one');
});

pageTest('a question is answered in place', async () => {
  const asked = callTool('ask_user', { question: 'Which hotel?', options: ['Grand', 'Bristol'] });
  script.on('book', asked, text('Booked.'));
  const { page } = await stand.open(`?chat=${stand.world.id()}`);
  await say(page, 'book');
  await page.getByRole('button', { name: 'Bristol' }).click();
  await page.getByText('Booked.').waitFor();
  await page.locator('.call', { hasText: 'ask_user' }).click();
  await page.locator('.call-body', { hasText: 'Bristol' }).waitFor();
  // Who comes later learns as much.
  await page.reload();
  await page.locator('.call', { hasText: 'ask_user' }).click();
  await page.locator('.call-facts', { hasText: 'Waited for a person' }).getByRole('link', { name: 'Timeline' }).click();
  await page.locator('.bar-detail', { hasText: 'ask_user' }).waitFor();
});

pageTest('two tabs decide one approval: one counts, the other learns of it', async () => {
  script.on('once', callTool('run_command', { command: 'echo', args: ['once'] }), text('Said once.'));
  const id = stand.world.id();
  const [one, two] = [await stand.open(`?chat=${id}`), await stand.open('?inbox')];
  await say(one.page, 'once');
  const [first, second] = [one, two].map(({ page }) =>
    page.locator('.decision', { hasText: 'once' }).getByRole('button', { name: 'Allow', exact: true }),
  );
  await Promise.all([first?.waitFor(), second?.waitFor()]);
  expect(await two.page.title()).toMatch(/^\(1\) Inbox/);
  await Promise.all([first?.click(), second?.click()]);
  await one.page.getByText('Said once.').waitFor();
  await two.page.getByText('Nothing waits for you').waitFor();
  const results = (await stand.world.client.history(id)).filter(({ message }) => message.role === 'tool');
  expect(results).toHaveLength(1);
});

pageTest('what is said while a turn runs is queued, steers it or interrupts it, each with a receipt', async () => {
  const held = gate({ chars: 8 });
  script.on('long', { ...text('A long answer.'), hold: held });
  script.on('after', text('After it.'));
  script.on('instead', text('In its place.'));
  const { page } = await stand.open(`?chat=${stand.world.id()}`);
  await say(page, 'long');
  await held.reached;
  await page.getByText('A long').waitFor();
  await say(page, 'after');
  await page.getByText('Queued: it is answered next').waitFor();
  await say(page, 'never mind');
  const third = page.locator('.sent', { hasText: 'never mind' });
  await third.getByText('Queued: one other comes before it').waitFor();
  await third.getByRole('button', { name: 'Take back' }).click();
  await third.waitFor({ state: 'detached' });
  await page.reload();
  await page.locator('.sent', { hasText: 'after' }).waitFor();
  await page.getByLabel('Interrupt').check();
  await say(page, 'instead');
  await page.getByText('In its place.').waitFor();
  await page.getByText('Stopped by a person').waitFor();
  held.release();
  await page.getByText('After it.').waitFor();
  await settled(page);
  expect(await page.locator('.sent').count()).toBe(0);
});

pageTest('an answer is retried, a turn is said in other words, and what went stays as a branch that can be forked', async () => {
  script.on('guess', text('First guess.'), text('Second guess.'));
  script.on('guess again', text('Third guess.'));
  const id = stand.world.id();
  const { page } = await stand.open(`?chat=${id}`);
  await say(page, 'guess');
  await page.getByText('First guess.').waitFor();
  await settled(page);
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByText('Second guess.').waitFor();
  await page.getByText('2 of 2').waitFor();
  await page.getByText('First guess.').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Say this instead').fill('guess again');
  await page.getByRole('button', { name: 'Say this instead' }).click();
  await page.getByText('Third guess.').waitFor();
  await page.getByText('3 of 3').waitFor();
  await page.getByRole('button', { name: 'The answer before this one' }).click();
  await page.getByText('Second guess.').waitFor();
  await page.getByRole('button', { name: 'The answer before this one' }).click();
  await page.getByText('First guess.').waitFor();
  expect(page.url()).toContain('branch=');
  await page.getByRole('button', { name: 'Fork' }).click();
  await page.waitForURL((url) => !url.search.includes(id));
  await page.getByText('First guess.').waitFor();
  await settled(page);
});

pageTest('pictures, PDF and text are sent before their message, which names them', async () => {
  const id = stand.world.id();
  const { page } = await stand.open(`?chat=${id}`);
  const files = page.getByLabel('Files', { exact: true });
  await files.setInputFiles({ name: 'all.zip', mimeType: 'application/zip', buffer: Buffer.from('PK\u0003\u0004\u0000\u00ff', 'latin1') });
  await page.locator('.composer .note.bad').waitFor();
  await files.setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: DOT });
  await page.getByRole('img', { name: 'dot.png' }).waitFor();
  await files.setInputFiles({ name: 'page.pdf', mimeType: 'application/pdf', buffer: PDF });
  await page.locator('.pictures .file-name', { hasText: 'page.pdf' }).waitFor();
  await files.setInputFiles({ name: 'notes.md', mimeType: 'text/markdown', buffer: Buffer.from('# Notes\n\nThree days in May.\n') });
  await page.locator('.pictures .file-name', { hasText: 'notes.md' }).waitFor();
  await say(page, 'What is on it?');
  await page.getByText('Understood.').waitFor();
  await settled(page);
  const [first] = await stand.world.client.history(id);
  expect(first?.message).toMatchObject({
    role: 'user',
    images: [{ mediaType: 'image/png' }],
    documents: [{ mediaType: 'application/pdf' }],
  });
  expect(JSON.stringify(first?.message)).toContain('Three days in May.');
  await page.reload();
  await page.locator('.documents', { hasText: 'PDF' }).waitFor();
});

pageTest('/new clears the session', async () => {
  const id = stand.world.id();
  const { page } = await stand.open(`?chat=${id}`);
  await say(page, 'hello');
  await page.getByText('Understood.').waitFor();
  await settled(page);
  await say(page, '/new');
  await page.getByText('A new session begins').waitFor();
  expect((await stand.world.client.status(id)).session).toBe(2);
});

pageTest('without its gateway the page says so, keeps what is said, and goes on by itself', async () => {
  const held = gate({ chars: 6 });
  script.on('be careful', { ...text('Slow but sure.'), hold: held, chunks: { size: 4, delayMs: 0 } });
  script.on('kept', text('It was kept.'));
  const { page } = await stand.open(`?chat=${stand.world.id()}`);
  await say(page, 'be careful');
  await held.reached;
  await page.locator('.markdown', { hasText: 'Slow' }).waitFor();
  await stand.stopGateway();
  await page.locator('.offline').waitFor();
  await say(page, 'kept');
  await page.getByText('Not sent yet').waitFor();
  await picture(page, 'offline');
  held.release();
  await stand.startGateway();
  await page.getByText('It was kept.').waitFor();
  await page.locator('.offline').waitFor({ state: 'detached' });
  await settled(page);
  expect(await answers(page)).toEqual(['Slow but sure.', 'It was kept.']);
});

pageTest('both themes, narrow and wide, are readable for everybody', async () => {
  script.on(
    'We have three days in Oslo in May. What do the notes say, and what would you do?',
    callTools({ name: 'read_file', input: { path: 'trip.md' } }),
    callTool('run_command', { command: 'weather', args: ['--city', 'Oslo', '--month', 'May'] }),
    callTool('ask_user', { question: 'By train or by plane?', options: ['Train', 'Plane'] }),
    text(
      'Your notes only say *three days in May*. I would keep the fjord for the clearest day:\n\n| Day | Morning | Afternoon |\n| --- | --- | --- |\n' +
        '| 1 | Opera house, Bjørvika | Munch museum |\n| 2 | Ferry to Hovedøya | Vigeland park |\n| 3 | Nordmarka, line 1 | Mathallen |\n\n' +
        'May is mild, between **8 and 16 °C**, and it rains on about ten days. Book the night train early:\n\n```sh\nvy book --from Hamburg --to Oslo --date 2027-05-14\n```',
    ),
  );
  const id = 'three-days-in-oslo';
  const { page } = await stand.open(`?chat=${id}`);
  await say(page, 'We have three days in Oslo in May. What do the notes say, and what would you do?');
  await page.getByRole('button', { name: 'Allow', exact: true }).waitFor();
  await picture(page, 'chat-approval-light');
  await page.getByRole('button', { name: 'Allow', exact: true }).click();
  await page.getByRole('button', { name: 'Train' }).click();
  await settled(page);
  await page.locator('.call').first().click();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of [390, 1440, 2560]) {
      await page.setViewportSize({ width, height: width === 390 ? 844 : width === 1440 ? 900 : 1440 });
      expect({ colorScheme, width, faults: await accessFaults(page) }).toEqual({ colorScheme, width, faults: [] });
      expect({ width, tooWide: await tooWide(page) }).toEqual({ width, tooWide: [] });
      await picture(page, `chat-${colorScheme}-${width}`);
    }
  }
});

pageTest('the first view takes at most 150 KB, and asks nobody but its gateway', async () => {
  const context = (await stand.open()).context;
  await context.clearCookies();
  const fresh = await context.newPage();
  await (await context.newCDPSession(fresh)).send('Network.clearBrowserCache');
  const requests: Request[] = [];
  fresh.on('requestfinished', (request) => requests.push(request));
  await fresh.goto(await stand.link());
  await fresh.getByLabel('First message').waitFor();
  const files = requests.filter((request) => ['document', 'script', 'stylesheet', 'font', 'image'].includes(request.resourceType()));
  const sizes = await Promise.all(files.map(async (request) => (await request.sizes()).responseBodySize));
  const sum = sizes.reduce((a, b) => a + b, 0);
  figure(`the page: ${Math.round(sum / 1024)} KB as it travels for the first view, in ${files.length} files`);
  expect(files.some((request) => request.url().includes('/chat-'))).toBe(true);
  expect(sum).toBeGreaterThan(20 * 1024);
  expect(sum).toBeLessThan(150 * 1024);
  expect(new Set(requests.map((request) => new URL(request.url()).origin))).toEqual(new Set([stand.url]));
});

pageTest('the list of conversations is searched', async () => {
  const { page } = await stand.open();
  await page.getByLabel('Search conversations').fill('fragments of nothing');
  await page.getByText('Nothing fits.').waitFor();
  await page.getByLabel('Search conversations').fill('three-days oslo');
  await waitFor(
    () => page.locator('.side-link').count(),
    (count) => count === 1,
  );
});
