/**
 * The page in a real browser, before a real gateway and a real worker. A file has one world, one gateway and one browser; each test has a
 * context of its own. What a page must never do is watched in all of them: ask another host, log an error, break its own policy.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';
import { createEntrance } from '../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway, type ServeOptions } from '../../src/gateway/index.js';
import type { PerduraClient } from '../../src/client.js';
import { spentInMemory } from '../support/tenants.js';
import { startTemporal } from '../support/temporal-server.js';
import { startWorld, type World, type WorldOptions } from '../support/world.js';

const root = resolve(__dirname, '../..');
const NAMED = process.env['PERDURA_TEST_CHROMIUM'] ?? '/usr/bin/chromium';
const TOKEN = 'a-token-that-only-tests-have';
/** Where screenshots go, if anywhere. */
const PICTURES = process.env['PERDURA_SCREENSHOTS'];
export const takesPictures = PICTURES !== undefined;
export const hasBrowser = existsSync(NAMED);

/** Skipped by its name on a machine without a browser. */
export const pageTest: jest.It = hasBrowser ? test : test.skip;

export interface OpenedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the page logged as errors, and whom it asked beside its gateway. */
  readonly faults: string[];
}

export interface Stand {
  readonly url: string;
  readonly gateway: ServedGateway;
  /** A link that signs in, once. */
  link(path?: string): Promise<string>;
  /** A page that is signed in. `path`: what comes after `/`, such as `?chat=trip`. */
  open(path?: string, options?: BrowserContextOptions): Promise<OpenedPage>;
  /** The gateway goes and comes back at the same address. */
  stopGateway(): Promise<void>;
  startGateway(): Promise<void>;
  /** Those of a test: what stays open goes on asking. */
  closePages(): Promise<void>;
  close(): Promise<void>;
}

export interface PageWorld extends Stand {
  readonly world: World;
}

/** `serving`: what the gateway is given beside its client. */
export async function startPage(options: WorldOptions = {}, serving: Partial<ServeOptions> = {}): Promise<PageWorld> {
  // A page shows the latest of all conversations, so those of other files must not be among them, unless whoever gives an address is sure.
  const temporal = options.address === undefined ? await startTemporal({ impatient: true }) : undefined;
  const world = await startWorld({ address: temporal?.address, ...options });
  const stand = await standBefore(world.client, serving);
  return {
    ...stand,
    world,
    async close() {
      try {
        await stand.close();
      } finally {
        await world.close();
        await temporal?.stop();
      }
    },
  };
}

/** A gateway and a browser before conversations that there are. */
export async function standBefore(client: PerduraClient, options: Partial<ServeOptions> = {}): Promise<Stand> {
  const entrance = createEntrance({ token: TOKEN, secrets: [TOKEN], spent: spentInMemory() });
  const served = (port: number): Promise<ServedGateway> =>
    serveGateway({
      client,
      ...entrance,
      agents: () => Promise.resolve(['default']),
      page: join(root, 'dist', 'web'),
      requestsPerMinute: 100_000,
      port,
      ...options,
    });
  let gateway = await served(0);
  const { url } = gateway;
  const browser: Browser = await chromium.launch({ executablePath: NAMED, chromiumSandbox: process.getuid?.() !== 0 });
  const faults: string[][] = [];
  const link = async (path = ''): Promise<string> => {
    const code = (await entrance.browsers.createCode()) ?? '';
    return `${url}${options.basePath ?? ''}/${path}#code=${code}`;
  };
  return {
    url,
    get gateway() {
      return gateway;
    },
    link,
    async open(path = '', contextOptions = {}) {
      const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1440, height: 900 }, ...contextOptions });
      context.setDefaultTimeout(240_000);
      const page = await context.newPage();
      const seen = watch(page, url);
      faults.push(seen);
      await page.goto(await link(path));
      await page.locator('.frame').waitFor();
      return { page, context, faults: seen };
    },
    stopGateway: () => gateway.close(),
    async startGateway() {
      gateway = await served(Number(new URL(url).port));
    },
    async closePages() {
      await Promise.all(browser.contexts().map((context) => context.close()));
    },
    async close() {
      await Promise.all([browser.close(), gateway.close()]);
      expect(faults.flat()).toEqual([]);
    },
  };
}

/** A gateway that is away, and a request that is refused, are logged by the browser itself. */
const EXPECTED = /Failed to load resource|net::ERR_/;

function watch(page: Page, url: string): string[] {
  const faults: string[] = [];
  const own = new URL(url).origin;
  page.on('console', (message) => {
    if (message.type() === 'error' && !EXPECTED.test(message.text())) faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('dialog', (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== own && protocol !== 'data:' && protocol !== 'blob:') faults.push(`asked ${request.url()}`);
  });
  return faults;
}

/** Into `PERDURA_SCREENSHOTS`, where that names a folder. */
export async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`), animations: 'disabled', caret: 'hide' });
}

/** What reaches beyond the window, but for what scrolls by itself. */
export function tooWide(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll('body *')]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !element.closest('pre, .wide, .tabs, .parts, .unseen, svg'))
    .map((element) => element.className || element.tagName)`);
}

/** Of axe-core: what is wrong, where, of any level. `only`: one of its rules; in another theme nothing else can differ. */
export async function accessFaults(page: Page, only?: 'color-contrast'): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(AXE);
  const options = { resultTypes: ['violations'], ...(only && { runOnly: [only] }) };
  const found = await page.evaluate<{ violations: readonly AxeViolation[] }>(`axe.run(document, ${JSON.stringify(options)})`);
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`),
  );
}

interface AxeViolation {
  readonly id: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
}

const AXE = (require('axe-core') as { readonly source: string }).source;
