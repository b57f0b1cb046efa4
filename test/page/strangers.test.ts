/** What comes from models, tools and strangers is shown, and does nothing; who may look, and how a very long conversation is read. */
import { randomUUID } from 'node:crypto';
import { cpus, loadavg } from 'node:os';
import type { Page } from 'playwright-core';
import { importedLifeName } from '../../src/memory/imported-life.js';
import { writeLife } from '../../src/memory/past-life.js';
import type { Entry } from '../../src/records/message.js';
import { figure } from '../support/scene.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { waitFor } from '../support/wait-for.js';
import { accessFaults, hasBrowser, pageTest, picture, startPage, tooWide, type PageWorld } from './browser.js';
import { createScript } from './script.js';

jest.setTimeout(90_000);

const script = createScript();
let stand: PageWorld;
beforeAll(async () => {
  if (hasBrowser) stand = await startPage({ answer: script.answer });
});
afterAll(() => stand?.close());
afterEach(() => stand?.closePages());

const HOSTILE = [
  '<script>window.ran = 1</script><img src=x onerror="window.ran = 2"><svg onload="window.ran = 3"><a xlink:href="javascript:ran=4">x</a></svg>',
  '[click](javascript:window.ran=5) [data](data:text/html,<script>ran=6</script>) <a href="vbscript:x">vb</a> [ok](https://example.com/a)',
  '![seen](https://tracker.example/pixel.gif) <iframe src="https://evil.example"></iframe><object data="x"></object><base href="https://evil.example/">',
  '<form action="https://evil.example"><input name="password" autofocus></form><style>body{display:none}</style><div style="position:fixed;inset:0">over</div>',
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=window.ran=7&gt;">',
  'paid to \u202egpj.evil\u202c and \u2066hidden\u2069 \u200bzero\u200b',
  '<a id="page" name="cookie" class="frame">clobber</a>',
  'wide'.repeat(3_000),
].join('\n\n');

pageTest('hostile contents are shown harmlessly: in answers, tools, questions, titles and what was said', async () => {
  const id = stand.world.id();
  script.on(
    HOSTILE,
    callTool('run_command', { command: HOSTILE.slice(0, 600), args: ['\u202eevil'] }),
    callTool('ask_user', { question: HOSTILE.slice(0, 3_000) }),
    text(HOSTILE),
  );
  await stand.world.client.start(id, { title: '<img src=x onerror=ran=8>\u202etitle'.slice(0, 120) });
  const { page } = await stand.open(`?chat=${id}`);
  await page.getByLabel('Message', { exact: true }).fill(HOSTILE);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Refuse' }).click();
  await page.getByRole('button', { name: 'Refuse' }).click();
  await page.getByRole('button', { name: 'Decline' }).click();
  await page.locator('.answer .markdown').waitFor();
  await page.locator('.turn.is-last:not(.is-running)').waitFor();
  expect(await page.evaluate('window.ran')).toBeUndefined();
  const answer = page.locator('.answer .markdown');
  const elements = await answer.locator('*').evaluateAll((all) => all.map((one) => [one.tagName, ...one.getAttributeNames()].join(' ')));
  expect([...new Set(elements)].sort()).toEqual(['A href target rel title', 'P']);
  expect(await answer.innerText()).toMatch(/<script>window\.ran = 1<\/script>[^]*<iframe src="https:\/\/evil/);
  expect(await answer.innerText()).not.toMatch(/[\u200b\u202a-\u202e\u2066-\u2069]/);
  const links = await answer
    .locator('a')
    .evaluateAll((all) => all.map((one) => [one.getAttribute('href'), one.getAttribute('rel'), one.getAttribute('target')]));
  expect(links.map(([href]) => href)).toEqual(['https://example.com/a', 'https://tracker.example/pixel.gif']);
  expect(new Set(links.map(([, rel, target]) => `${rel} ${target}`))).toEqual(new Set(['noopener noreferrer nofollow _blank']));
  expect(await page.locator('.frame').isVisible()).toBe(true);
  expect(await tooWide(page)).toEqual([]);
  expect(await page.title()).toMatch(/^(?:\(\d\) )?<img src=x onerror=ran=8> ?title · Perdura$/);
});

pageTest('a word of a megabyte neither hangs the page nor widens it', async () => {
  const id = stand.world.id();
  script.on('long word', text('w'.repeat(1_000_000)));
  await stand.world.client.send(id, 'long word', { start: {} });
  const { page } = await stand.open(`?chat=${id}`);
  await page.locator('.markdown .plain').waitFor();
  const began = Date.now();
  await page.locator('.virtual').evaluate((list) => list.scrollTo(0, 0));
  expect(await page.evaluate('1 + 1')).toBe(2);
  expect(Date.now() - began).toBeLessThan(5_000);
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

/** In the page's own clock: from a click to the paint that has what was sought, a selector or words. */
function paintAfter(page: Page, click: string, sought: { readonly element: string } | { readonly words: string }): Promise<number> {
  const isThere =
    'words' in sought
      ? `document.body.innerText.includes(${JSON.stringify(sought.words)})`
      : `document.querySelector(${JSON.stringify(sought.element)}) !== null`;
  return page.evaluate<number>(`new Promise((resolve) => {
    const began = performance.now();
    const look = () => requestAnimationFrame(() => (${isThere} ? requestAnimationFrame(() => resolve(performance.now() - began)) : look()));
    document.querySelector(${JSON.stringify(click)}).click();
    look();
  })`);
}

/** Milliseconds of the longest frame while an element is scrolled, by so much a frame. */
function longestFrame(page: Page, element: string, step: number): Promise<number> {
  return page.evaluate<number>(`new Promise((resolve) => {
    const list = document.querySelector(${JSON.stringify(element)});
    let worst = 0, last = performance.now(), left = 120;
    const frame = (now) => {
      worst = Math.max(worst, now - last);
      last = now;
      list.scrollTop += ${step};
      if ((left -= 1) > 0) requestAnimationFrame(frame);
      else resolve(worst);
    };
    requestAnimationFrame(frame);
  })`);
}

pageTest('of 5,000 turns every view has its first paint within a second, and none of them stalls', async () => {
  const id = await beginLongLife();
  const { page } = await stand.open();
  await page.locator('.side-link', { hasText: id }).first().waitFor();
  // The best of three: other tests have the machine at the same time.
  const opened: number[] = [];
  for (let n = 0; n < 3; n += 1) {
    opened.push(await paintAfter(page, `.side-link[href*="${id}"]`, { words: `Answer ${TURNS}.` }));
    if (n < 2) await page.getByRole('button', { name: 'New conversation' }).click();
    if (n < 2) await page.getByLabel('First message').waitFor();
  }
  expect(await page.locator('.virtual-row').count()).toBeLessThan(60);
  const frames: [string, number][] = [['chat', await longestFrame(page, '.virtual', -700)]];
  expect(await page.locator('.virtual-row').count()).toBeLessThan(60);
  await page
    .getByText(/^Question 4[0-9]{3}\?$/)
    .first()
    .waitFor();

  const tab = (view: string): string => `.conversation-head a[href^="?${view}="]`;
  const paints: [string, number][] = [['chat', Math.min(...opened)]];
  for (const [view, click, element, scrolled] of [
    ['timeline', tab('timeline'), '.turn-column[aria-current]', '.pane'],
    ['context', tab('context'), '.chunk', '.pane'],
    ['turns', '[role=tab]:nth-child(2)', '.turn-row', '.pane'],
    ['stepper', tab('stepper'), '.event', '.events'],
  ] as const) {
    const times: number[] = [];
    for (let n = 0; n < 3; n += 1) {
      if (view !== 'turns') await page.evaluate(`document.querySelector('${tab('chat')}').click()`);
      else await page.getByRole('tab', { name: 'In the next call' }).click();
      await page
        .locator(view === 'turns' ? '.chunk' : '.virtual-row')
        .first()
        .waitFor();
      times.push(await paintAfter(page, click, { element }));
    }
    paints.push([view, Math.min(...times)]);
    frames.push([view, await longestFrame(page, scrolled, 60)]);
  }
  await page.evaluate(`document.querySelector('${tab('context')}').click()`);
  await page.getByRole('tab', { name: 'Turn by turn' }).click();
  await page.getByRole('button', { name: 'Earlier turns' }).click();
  await page.locator('.turn-row', { hasText: /^4700\D/ }).click();
  await page.locator('.story blockquote', { hasText: 'Question 4700?' }).waitFor();

  // The first question makes the index; from then on it is there.
  await page.goto(`${stand.url}/?memory=${id}&part=search&question=${encodeURIComponent('What is question 17?')}`);
  await page.locator('.hit mark').first().waitFor({ timeout: 30_000 });
  await page.getByRole('searchbox', { name: 'Question' }).fill('What is answer 4711?');
  paints.push(['search', await paintAfter(page, '.search-form [type=submit]', { words: 'Answer 4711.' })]);
  frames.push(['search', await longestFrame(page, '.view', 60)]);
  const all = (of: readonly (readonly [string, number])[]): string => of.map(([view, ms]) => `${view} ${Math.round(ms)}`).join(', ');
  figure(`5,000 turns, ms to the first paint: ${all(paints)}; longest frame while scrolling: ${all(frames)}`);
  // A second, where the page has a core: on a machine that does much else at the same time its share of one.
  const share = Math.max(1, loadavg()[0]! / cpus().length);
  expect(paints.filter(([, ms]) => ms >= 1_000 * share)).toEqual([]);
  expect(frames.filter(([, ms]) => ms >= 1_000)).toEqual([]);
});

pageTest('a link lets in once; without one the page says how to get in, and signing out ends it', async () => {
  const link = stand.link();
  const { page, context } = await stand.open();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Perdura' }).waitFor();
  expect(await accessFaults(page)).toEqual([]);
  await picture(page, 'sign-in');
  await page.goto(link);
  await page.reload();
  await page.locator('.frame').waitFor();
  expect(page.url()).not.toContain('code');
  await context.clearCookies();
  const other = await context.newPage();
  await other.goto(link);
  await other.getByText('this code opens nothing').waitFor();
});

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
