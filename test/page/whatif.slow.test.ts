/**
 * A report in a real browser: as the one HTML page that is written, opened from a disk, and in the view that opens a report's file. Neither sends
 * anything anywhere, and what strangers wrote does nothing.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { renderHtml } from '../../src/whatif/render-html.js';
import { fakeInstallation } from '../support/fake-client.js';
import { HOSTILE, sampleFile, sampleReport, type SampleOptions } from '../whatif/sample-report.js';
import { accessFaults, hasBrowser, pageTest, picture, standBefore, tooWide, type Stand } from './browser.js';

const WIDTHS = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
] as const;
const WORSE: SampleOptions = { candidate: 'worse', baseline: 'noisy', judge: 'anthropic/claude-opus-5', skippedEach: 7, gapsEach: 5 };
const ATTACKED: SampleOptions = { candidate: 'worse', text: HOSTILE, changes: [HOSTILE], judge: 'a/b', conversations: 4, gapsEach: 2 };

let stand: Stand;
let dir: string;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'perdura-report-'));
  if (hasBrowser) stand = await standBefore(fakeInstallation().client);
});
afterAll(async () => {
  await stand?.close();
  rmSync(dir, { recursive: true, force: true });
});
afterEach(() => stand?.closePages());

/** At both widths and in both themes: nothing hangs out, axe finds nothing, and a picture is taken. */
async function looked(page: Page, name: string): Promise<void> {
  for (const viewport of WIDTHS) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const at = `${name}-${viewport.width}-${colorScheme}`;
      await picture(page, at);
      expect([at, await tooWide(page)]).toEqual([at, []]);
      expect([at, await page.evaluate('document.documentElement.scrollWidth <= innerWidth')]).toEqual([at, true]);
      expect([at, await accessFaults(page)]).toEqual([at, []]);
    }
  }
}

/** The HTML page of a report, and whom it asked beside its file. */
async function openHtml(options: SampleOptions): Promise<{ readonly page: Page; readonly asked: string[] }> {
  const path = join(dir, 'report.html');
  let text = '';
  for await (const part of renderHtml(sampleReport(options))) text += part;
  writeFileSync(path, text);
  const { context } = await stand.open();
  const page = await context.newPage();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  page.on('console', (message) => asked.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => asked.push(String(error)));
  page.on('dialog', (dialog) => {
    asked.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(pathToFileURL(path).href);
  return { page, asked };
}

pageTest(
  'the HTML page: what differs stands first, for eyes and for the keyboard, and pairs stand side by side or below each other',
  async () => {
    const { page, asked } = await openHtml(WORSE);
    expect(asked).toEqual([pathToFileURL(join(dir, 'report.html')).href]);
    const finding = page.getByText('book_expense was called 0 times instead of 54');
    const boxes = await Promise.all([finding, page.locator('.conversation').first()].map((one) => one.boundingBox()));
    expect(boxes[0]!.y).toBeLessThan(500);
    expect(boxes[0]!.y).toBeLessThan(boxes[1]!.y);
    await looked(page, 'report');

    // By keyboard alone: the measures, which ones are shown, and a conversation.
    await page.setViewportSize(WIDTHS[0]);
    const focused = (): Promise<string> =>
      page.evaluate('document.activeElement.className || document.activeElement.value || document.activeElement.tagName');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('changes wide');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('all');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('SUMMARY');
    expect(await page.locator('.conversation[open]').count()).toBe(3);
    await page.keyboard.press('Enter');
    expect(await page.locator('.conversation[open]').count()).toBe(2);
    await page.keyboard.press('Enter');
    await page.getByRole('radio', { name: 'That act otherwise' }).check();
    expect(await page.locator('.conversation:visible').count()).toBe(18);

    const sides = async (): Promise<readonly number[]> => {
      const found = await Promise.all([0, 1].map((at) => page.locator('.conversation[open] .turn .side').nth(at).boundingBox()));
      return [found[1]!.x - found[0]!.x, found[1]!.y - found[0]!.y];
    };
    expect((await sides())[1]).toBe(0);
    await page.setViewportSize(WIDTHS[1]);
    expect((await sides())[0]).toBe(0);
    const call = page.locator('.conversation[open] .call').first();
    await call.locator('summary').click();
    await call.getByText('The total is').waitFor();
  },
);

pageTest('the HTML page of hostile texts: they are shown, nothing runs, nothing is asked for, and the page keeps its form', async () => {
  const { page, asked } = await openHtml(ATTACKED);
  await page.locator('.conversation').last().waitFor();
  expect(await page.evaluate('window.ran')).toBeUndefined();
  expect(asked).toEqual([pathToFileURL(join(dir, 'report.html')).href]);
  expect(await page.locator('.report > .conversation').count()).toBe(4);
  expect(await page.locator('script, img, base, iframe, svg, a, style ~ style').count()).toBe(0);
  const text = await page.locator('.conversation .turn .text').first().innerText();
  expect(text).toContain('<script>window.ran = 1</script>');
  expect(text).toContain('\\u{202e}gpj.evil');
  await looked(page, 'report-hostile');
});

async function openReport(page: Page, options: SampleOptions | string, name = 'report.jsonl'): Promise<void> {
  const text = typeof options === 'string' ? options : await sampleFile(options);
  await page.getByLabel('Report file').setInputFiles({ name, mimeType: 'application/jsonl', buffer: Buffer.from(text) });
}

pageTest('the view: a report is opened, nothing of it is sent, and any pair is looked at side by side', async () => {
  const { page } = await stand.open('?whatif');
  await page.getByRole('button', { name: 'Open a report' }).waitFor();
  await looked(page, 'whatif-empty');
  const sent: string[] = [];
  page.on('request', (request) => request.method() !== 'GET' && sent.push(`${request.method()} ${request.url()}`));
  await openReport(page, WORSE);
  await page.getByText('book_expense was called 0 times instead of 54').waitFor();
  await looked(page, 'whatif');
  await page.setViewportSize(WIDTHS[0]);

  expect(await page.locator('.whatif-list li').count()).toBe(20);
  await page.getByRole('radio', { name: /That act otherwise/ }).click();
  expect(await page.locator('.whatif-list li').count()).toBe(18);
  await page.locator('h1').click();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'expenses-002' }).waitFor();
  expect(new URL(page.url()).search).toBe('?whatif=expenses-002&show=acts');
  await page.getByText('No tool is called.').first().waitFor();
  await page.locator('mark', { hasText: 'Sure! I will remember' }).first().waitFor();
  await looked(page, 'whatif-pair');
  await page.getByRole('tab', { name: /Baseline/ }).click();
  await page.getByRole('radio', { name: /^All/ }).click();
  expect(await page.locator('.compared-turn').count()).toBeGreaterThanOrEqual(3);
  await page.keyboard.press('j');
  await page.getByRole('heading', { name: 'expenses-003' }).waitFor();
  await page.goBack();
  await page.getByRole('heading', { name: 'expenses-002' }).waitFor();

  // Another view, and back: it is open still.
  await page.getByRole('link', { name: 'Inbox' }).click();
  await page.getByRole('heading', { name: 'Inbox' }).waitFor();
  await page.getByRole('link', { name: 'What if' }).click();
  await page.locator('.whatif-list').waitFor();
  expect(sent).toEqual([]);
});

pageTest('the view of hostile texts, of a report that was cut, of other files, and of 5,000 turns', async () => {
  const { page } = await stand.open('?whatif');
  await openReport(page, ATTACKED);
  await page.locator('.whatif-link').first().click();
  await page.getByText('<script>window.ran = 1</script>').first().waitFor();
  expect(await page.evaluate('window.ran')).toBeUndefined();
  expect(await page.locator('.whatif :is(script, img, base, iframe)').count()).toBe(0);
  await looked(page, 'whatif-hostile');
  await page.setViewportSize(WIDTHS[0]);

  const file = await sampleFile({ conversations: 3 });
  await openReport(page, file.slice(0, file.indexOf('expenses-003') + 40), 'cut.jsonl');
  await page.getByRole('alert').getByText('cannot read line 4 of "cut.jsonl": the file ends in its middle').waitFor();
  expect(await page.locator('.whatif-list li').count()).toBe(2);

  await openReport(page, '# Notes\n', 'notes.md');
  await page.getByRole('alert').getByText('cannot read line 1 of "notes.md": it is no JSON').waitFor();

  await openReport(page, { conversations: 1, turns: 5_000, candidate: 'worse' }, 'long.jsonl');
  await page.getByText('long.jsonl').waitFor();
  await page.locator('.whatif-link').click();
  await page.getByText('More of 5,000 turns').waitFor();
  expect(await page.locator('.compared-turn').count()).toBeLessThan(60);
  await page.getByRole('button', { name: 'More of 5,000 turns' }).click();
  expect(await page.locator('.compared-turn').count()).toBeGreaterThan(100);
});
