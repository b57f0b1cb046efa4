/** What comes from models, tools and strangers is shown, and does nothing; and who may look. */
import { callTool, text } from '../support/provider-apis/reply.js';
import { accessFaults, hasBrowser, pageTest, picture, startPage, tooWide, type PageWorld } from './browser.js';
import { createScript } from './script.js';

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

pageTest('a link lets in once; without one the page says how to get in, and signing out ends it', async () => {
  const link = await stand.link();
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
