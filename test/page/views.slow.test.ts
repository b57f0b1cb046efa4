/** What happened and why, in a browser: timeline, context, memory, stepper, fleet and agents on conversations that have been through much. */
import type { Page } from 'playwright-core';
import { latestResults, saidIn } from '../support/echo-model.js';
import { callTool, callTools, text, type Reply } from '../support/provider-apis/reply.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { createRandom } from '../support/scene.js';
import { waitFor } from '../support/wait-for.js';
import { accessFaults, hasBrowser, pageTest, picture, startPage, takesPictures, type OpenedPage, type PageWorld } from './browser.js';
import { liveAtRandom } from './random-life.js';

jest.setTimeout(900_000);

const LONG = 'The harbour master keeps the ledger, and every ship that comes is written down in it. '.repeat(14);
const HOSTILE = '<img src=x onerror="document.title=1"> <script>alert(1)</script> \u202Egnihtyreve\u202C [link](javascript:alert(1))';
const SUMMARY = 'They went through the harbour ledger for spring. The password of the day is plum, and the crane is out of order.';

const SIZES = [
  { width: 1440, height: 900, isChecked: true },
  { width: 390, height: 844, isChecked: true },
  { width: 360, height: 740, isChecked: false },
  { width: 820, height: 1180, isChecked: false },
  { width: 2560, height: 1440, isChecked: false },
] as const;

function answer(request: ApiRequest): Reply {
  const system = JSON.stringify(request.system ?? '');
  if (system.includes('You condense a part of a conversation')) {
    return text(
      JSON.stringify({
        episodic: { summary: SUMMARY, tags: ['harbour', 'ledger'], salience: 0.7 },
        semantic: [{ fact: 'The person prefers short answers.', tags: ['preference'], confidence: 0.9, salience: 0.8 }],
      }),
    );
  }
  const said = saidIn(request).at(-1) ?? '';
  const isNew = latestResults(request).length === 0;
  if (isNew && said.includes('write it down')) {
    return { ...callTool('write_file', { path: 'ledger.txt', content: 'Ship 12, spring' }), chunks: { size: 12, delayMs: 30 } };
  }
  if (isNew && said.includes('look around')) {
    return callTools({ name: 'list_files', input: { path: '.' } }, { name: 'read_file', input: { path: 'harbour.txt' } });
  }
  if (isNew && said.includes('ask a slow colleague')) return callTool('delegate', { task: 'Say it slowly.', title: 'Slow' });
  if (isNew && said.includes('ask a colleague')) {
    return callTools(
      { name: 'delegate', input: { task: 'Count the ships.', title: 'Count the ships' } },
      { name: 'delegate', input: { task: 'Look at the crane.', title: 'Look at the crane' } },
    );
  }
  // Never ends: what streams is looked at while it does, however long a machine takes to show it.
  if (said.includes('slowly')) {
    return {
      ...text(LONG),
      // Two hundred at once must leave a slow machine time to show them.
      chunks: { size: 30, delayMs: said.includes('one of many') ? 30_000 : 2_000 },
      holdAfter: { chars: LONG.length - 30, until: new Promise(() => undefined) },
    };
  }
  return { ...text(said.includes('briefly') ? 'It is all in order.' : `Noted. ${LONG}`), chunks: { size: 90, delayMs: 12 } };
}

let stand: PageWorld;
let main: string;
let other: string;

const send = (id: string, said: string) => stand.world.client.send(id, said, { start: { title: 'Harbour ledger, spring' } });

async function allow(id: string, decision: 'approve' | 'deny'): Promise<void> {
  const [waiting] = await waitFor(
    () => stand.world.client.approvals(id),
    (all) => all.length > 0,
  );
  await stand.world.client.decide(id, { callId: waiting!.callId, decision });
}

beforeAll(async () => {
  if (!hasBrowser) return;
  stand = await startPage(
    {
      answer,
      files: { 'harbour.txt': 'Twelve ships.' },
      agent: {
        model: 'anthropic/claude-opus-5',
        maxTokens: 700,
        tools: ['delegate', 'list_files', 'read_file', 'write_file'],
        memory: { enabled: false },
        approvals: [{ tool: 'write_file', policy: 'ask' }],
        context: { maxTokens: 7_500, safetyMargin: 500, keepTurns: 3 },
      },
    },
    {
      findings: () =>
        Promise.resolve([
          { what: 'Store', health: 'ok', found: 'files can be written' },
          { what: 'Disk', health: 'warning', found: '0.8 GiB free', mend: 'free space before it runs out' },
        ]),
      temporalLink: (id, run, event) => `http://temporal.example/${id}/${run}/${event}`,
      describeAgent: (name) =>
        Promise.resolve({
          name,
          config: { model: 'anthropic/claude-opus-5', tools: ['write_file'] },
          system: '# Who you are\n\nYou look after the harbour.',
          tools: [
            {
              name: 'write_file',
              description: `Writes a file. ${HOSTILE}`,
              from: 'built in',
              inputSchema: { type: 'object', properties: { path: { type: 'string', description: 'Where' } }, required: ['path'] },
            },
          ],
          servers: [{ name: 'tides', type: 'http', place: 'https://tides.example/mcp', variables: ['Authorization'], pins: [] }],
        }),
    },
  );
  main = stand.world.id();
  other = stand.world.id();
  for (const [at, said] of ['What is in the ledger?', 'And for spring?', HOSTILE, 'look around', 'Which ships were late?'].entries()) {
    await send(main, `${at + 1}: ${said}`);
  }
  const writing = send(main, 'Please write it down');
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  await allow(main, 'approve');
  await writing;
  const again = send(main, 'And write it down once more');
  await allow(main, 'deny');
  await again;
  await send(main, 'Now ask a colleague, briefly');
  await stand.world.client.compact(main);
  await send(main, 'Is all in order? Say it briefly.');
  await stand.world.client.undoCompaction(main).catch(() => undefined);
  await stand.world.client.compact(main);
  await stand.world.client.fork(main, { at: 'turn_0004', id: other, title: 'Harbour ledger, what if' });
  await send(other, 'And if it rains? Say it briefly.');
  await stand.world.writeAgent('broken', { tools: ['no_such_tool'] });
  await stand.world.client.send(stand.world.id(), 'hello', { start: { agent: 'broken', title: HOSTILE.slice(0, 120) } });
  const key = { namespace: 'default', scope: 'default' };
  const { documents, facts } = stand.world.store;
  const source = { trust: 'user' as const, conversation: main, turn_ids: ['turn_0002'] };
  const lines = [
    '# Harbour',
    '- Ships are written down in the ledger.',
    '- The crane is out of order.',
    `- ${HOSTILE}`,
    '- Short answers are preferred.',
  ];
  let { version } = await documents.memory(key);
  for (const [at, count] of [2, 3, 5].entries()) {
    await documents.writeMemory(key, {
      id: `w${at}`,
      ts: 1_760_000_000 + at * 86_400,
      cause: at === 2 ? 'accepted' : 'consolidation',
      from: version,
      text: `${lines.slice(0, count).join('\n')}\n`,
      lines: lines
        .slice(at === 0 ? 0 : [2, 3, 5][at - 1], count)
        .map((line) => ({ line, source: at === 2 ? { ...source, trust: 'tool:fetch_url' as const } : source })),
    });
    ({ version } = await documents.memory(key));
  }
  await documents.appendHistory(key, {
    id: 'h1',
    kind: 'summary',
    ts: 1_760_000_000,
    text: 'The harbour ledger was gone through for spring.',
  });
  await documents.propose(key, 'p1', [
    { ts: 1_760_000_500, line: '- The harbour closes at noon.', source: { ...source, trust: 'tool:fetch_url' } },
  ]);
  await facts.add(key, 'b1', [{ ts: 1, fact: 'The crane works.', tags: ['crane'], confidence: 1, salience: 1 }], source);
  await facts.add(key, 'b2', [{ ts: 2, fact: 'The crane is out of order.', tags: ['crane'], confidence: 1, salience: 1 }], source, [
    { fact: 'The crane works.', by: 'The crane is out of order.', ts: 2 },
  ]);
});
afterAll(() => stand?.close());

/** At each size and in both themes: nothing hangs out at the side, axe finds nothing serious, and a picture is taken. */
async function looked(name: string, path: string, ready: (page: Page) => Promise<unknown>): Promise<void> {
  const { page, context } = await stand.open(path);
  for (const { isChecked, ...viewport } of SIZES) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['light', 'dark'] as const) {
      // Colours move nothing.
      if (!isChecked && !takesPictures && colorScheme === 'dark') continue;
      await page.emulateMedia({ colorScheme });
      await ready(page);
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
      const size = `${viewport.width}-${colorScheme}`;
      await picture(page, `${name}-${size}`);
      const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
      expect([name, size, wide <= 1 ? 0 : wide]).toEqual([name, size, 0]);
      const faults = isChecked ? await accessFaults(page, colorScheme === 'dark' ? 'color-contrast' : undefined) : [];
      expect([name, size, faults]).toEqual([name, size, []]);
    }
  }
  await context.close();
}

async function opened(path: string): Promise<OpenedPage> {
  return stand.open(path);
}

pageTest('the timeline of a turn that waited for a person: lanes, a bar by keyboard, its Temporal event', async () => {
  const { page } = await opened(`?timeline=${main}&turn=turn_0006`);
  await page.locator('.bar.lane-person').waitFor();
  const bars = await page.locator('.bar').evaluateAll((all) => all.map((bar) => bar.getAttribute('aria-label') ?? ''));
  expect(bars.filter((label) => label.startsWith('Model call'))).toHaveLength(2);
  expect(bars.find((label) => label.startsWith('write_file'))).toMatch(/done/);
  await page.locator('.bar[tabindex="0"]').focus();
  await page.keyboard.press('ArrowRight');
  await page.locator('.bar-detail').waitFor();
  expect(page.url()).toMatch(/[?&]bar=/);
  const link = page.locator('.bar-detail a', { hasText: 'Temporal event' });
  expect(await link.getAttribute('href')).toMatch(new RegExp(`^http://temporal\\.example/${main}/[0-9a-f-]{36}/\\d+$`));
  await page.keyboard.press(']');
  await page.getByText('Turn 7', { exact: true }).waitFor();
  await page.locator('.bar.is-denied').waitFor();
  await looked('timeline', `?timeline=${main}&turn=turn_0006`, (one) => one.locator('.bar.lane-person').first().waitFor());
});

pageTest('a turn with sub-agents has them as bars that lead to their own timelines', async () => {
  const { page } = await opened(`?timeline=${main}&turn=turn_0008`);
  await page.locator('.bar.lane-sub-agent').first().click();
  await page.getByRole('link', { name: /sub-agent’s own timeline/ }).click();
  await page.waitForURL(/timeline=.*turn_0008/);
  await page.locator('.bar.lane-model').first().waitFor();
  await looked('timeline-sub-agents', `?timeline=${main}&turn=turn_0008`, (one) => one.locator('.bar.lane-sub-agent').first().waitFor());
});

pageTest('the context: a bar against its lines, a chunk that is read, and compactions side by side', async () => {
  const { page } = await opened(`?context=${main}`);
  await page.locator('.meter .segment').first().waitFor();
  for (const name of ['soft', 'hard', 'truncation', 'window']) await page.locator('.threshold', { hasText: name }).first().waitFor();
  await page.locator('.chunk.memory').click();
  await page.locator('.chunk-open .code', { hasText: 'The password of the day is plum' }).waitFor();
  await page.getByRole('tab', { name: 'Compactions' }).click();
  await page.locator('.sides .code', { hasText: 'plum' }).first().waitFor();
  expect(await page.locator('.change').count()).toBeGreaterThanOrEqual(1);
  await looked('context', `?context=${main}&chunk=memory`, (one) => one.locator('.chunk-open .code').waitFor());
  await looked('compactions', `?context=${main}&part=changes`, (one) => one.locator('.sides .code').first().waitFor());
});

pageTest('Ctrl+K leads to any view and conversation by a few letters, and a theme stays chosen', async () => {
  const { page, context } = await opened('?fleet');
  await page.keyboard.press('Control+k');
  const field = page.getByRole('combobox', { name: 'Go to a view or a conversation' });
  await field.fill('ledger, what');
  await page.getByRole('option', { name: /Harbour ledger, what if/ }).waitFor();
  expect(await accessFaults(page)).toEqual([]);
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('chat') === other);
  await page.keyboard.press('Control+k');
  await field.fill('context');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('context') === other);
  await page.keyboard.press('Control+k');
  await field.waitFor();
  await page.keyboard.press('Escape');
  await field.waitFor({ state: 'detached' });
  const scheme = (): Promise<string> => page.evaluate('getComputedStyle(document.documentElement).colorScheme');
  await page.locator('.rail-theme').click();
  expect(await scheme()).toBe('light');
  await page.locator('.rail-theme').click();
  await page.reload();
  await page.locator('.frame').waitFor();
  expect(await scheme()).toBe('dark');
  await context.close();
});

pageTest('from a call that delegates one gets to its sub-agent, and from there back', async () => {
  const { page, context } = await opened(`?chat=${main}&turn=turn_0008`);
  await page.locator('details.call', { hasText: 'delegate' }).first().locator('summary').click();
  await page.getByRole('link', { name: 'The sub-agent’s conversation' }).click();
  await page.waitForURL((url) => url.searchParams.get('chat')?.startsWith(`${main}:turn_0008:`) === true);
  await page.locator('.conversation-head a', { hasText: 'Harbour ledger, spring' }).click();
  await page.waitForURL((url) => url.searchParams.get('chat') === main && url.searchParams.get('turn') === 'turn_0008');
  await context.close();
});

pageTest('what a sub-agent says is seen while it says it', async () => {
  const id = stand.world.id();
  await stand.world.client.start(id);
  await stand.world.client.enqueue(id, 'Please ask a slow colleague');
  const { page, context } = await opened(`?chat=${id}`);
  const child = page.getByRole('region', { name: 'What the sub-agent does' });
  await child.getByText('The harbour master keeps the ledger').first().waitFor();
  expect(await accessFaults(page)).toEqual([]);
  await child.getByRole('link', { name: 'Its conversation' }).click();
  await page.waitForURL((url) => url.searchParams.get('chat')?.startsWith(`${id}:turn_0001:`) === true);
  await stand.world.client.terminate(id);
  await context.close();
});

pageTest('a call that waits is shown as a person would write it, with all of its arguments behind it', async () => {
  const { page, context } = await opened('?inbox');
  const id = stand.world.id();
  const sent = send(id, 'Please write it down');
  const card = page.locator('.decision', { hasText: 'write_file' }).first();
  await card.locator('.change .is-added', { hasText: '+ Ship 12, spring' }).waitFor();
  await card.getByText('All arguments').click();
  await card.locator('.code', { hasText: '"content": "Ship 12, spring"' }).waitFor();
  await allow(id, 'deny');
  await sent;
  await context.close();
});

pageTest('why a turn was forgotten is told from the page alone', async () => {
  const { page } = await opened(`?context=${main}&part=turns`);
  await page.locator('.turn-row').first().click();
  await page.getByText('Turn 1 is no longer in the prompt.').waitFor();
  const story = await page.locator('.story').innerText();
  expect(story).toContain('A person asked for it');
  expect(story).toContain('The password of the day is plum');
  expect(story).toMatch(/ep_\d+/);
  await looked('why', `?context=${main}&part=turns&why=turn_0001`, (one) => one.locator('.story-head').waitFor());
});

pageTest('of a conversation that nobody has seen, the page tells of each turn why it is not in the prompt', async () => {
  const random = createRandom();
  const life = await liveAtRandom(stand.world.client, stand.world.id(), random, 10);
  const { page, context } = await opened('?fleet');
  const get = async <T>(path: string): Promise<T> => (await (await context.request.get(`${stand.url}${path}`)).json()) as T;
  const said = { seed: random.seed, done: life.done };
  const gone: [string, string][] = [];
  for (const id of life.ids) {
    const { turns } = await get<{ turns: readonly { turn: string }[] }>(`/v1/conversations/${id}/turns?limit=200`);
    expect({ ...said, turns: turns.length > 0 }).toEqual({ ...said, turns: true });
    for (const { turn } of turns) {
      const why = await get<{ inPrompt: number; entries: number; causes: readonly { kind: string }[] }>(
        `/v1/conversations/${id}/turns/${turn}/why`,
      );
      if (why.inPrompt === why.entries) continue;
      gone.push([id, turn]);
      expect({ ...said, id, turn, kinds: why.causes.map(({ kind }) => kind) }).toEqual({
        ...said,
        ...{ id, turn, kinds: expect.not.arrayContaining(['other']) },
      });
      expect({ ...said, id, turn, isExplained: why.causes.some(({ kind }) => kind !== 'returned') }).toEqual({
        ...said,
        ...{ id, turn, isExplained: true },
      });
    }
  }
  // And of those that were taken back.
  const cut = await get<{ branches: readonly { turns: readonly string[] }[] }>(`/v1/conversations/${life.ids[0]}/branches`);
  for (const { turns } of cut.branches.slice(0, 2)) {
    await page.goto(`${stand.url}/?context=${life.ids[0]}&part=turns`);
    await page
      .locator('.cut-out', { hasText: /taken back/ })
      .first()
      .waitFor();
    await page.goto(`${stand.url}/?context=${life.ids[0]}&part=turns&why=${turns[0]}`);
    await page
      .locator('.story li', { hasText: /Rewind/ })
      .first()
      .waitFor();
  }
  for (const [id, turn] of [gone[0], gone.at(-1)].flatMap((one) => (one === undefined ? [] : [one]))) {
    await page.goto(`${stand.url}/?context=${id}&part=turns&why=${turn}`);
    await page.locator('.story-head', { hasText: /no longer in the prompt|partly in the prompt/ }).waitFor();
    await page.locator('.story li.is-gone strong').first().waitFor();
    await page.locator('.story .now').waitFor();
    if (id.endsWith('fork')) await page.locator('.conversation-head', { hasText: /fork of .* at turn \d+/ }).waitFor();
    await picture(page, `random-${id.endsWith('fork') ? 'fork' : 'main'}`);
  }
});

pageTest(
  'memory: blame in the margin, versions on a slider, facts that were replaced, review and forgetting with its preview',
  async () => {
    const { page } = await opened('?memory=default');
    await page.locator('.blame-group.is-tool').waitFor();
    await page.getByRole('tab', { name: 'Versions' }).click();
    await page.getByText('Version 3 of 3').waitFor();
    await page.getByRole('slider').focus();
    await page.keyboard.press('ArrowLeft');
    await page.getByText('Version 2 of 3').waitFor();
    await page.locator('.diff-line.added').first().waitFor();
    expect(await page.locator('.diff-line.added').allInnerTexts()).toEqual([expect.stringContaining('The crane is out of order.')]);
    await page.getByRole('tab', { name: 'Facts' }).click();
    await page.locator('.is-replaced', { hasText: 'The crane works.' }).waitFor();
    await page.getByText('Replaced by: The crane is out of order.').waitFor();
    await page.getByRole('tab', { name: 'HISTORY' }).click();
    await page.locator('.memory-text', { hasText: 'The harbour ledger was gone through' }).waitFor();
    await page.getByRole('link', { name: 'Search HISTORY' }).click();
    await page.getByRole('searchbox', { name: 'Question' }).fill('Who went through the ledger in spring?');
    await page.keyboard.press('Enter');
    await page.locator('.hit mark', { hasText: 'ledger' }).first().waitFor();
    await page.getByRole('tab', { name: 'Episodes' }).click();
    await page.locator('#episodes-of').selectOption(main);
    await page.locator('.memory-text', { hasText: 'The password of the day is plum' }).first().waitFor();
    await page.getByRole('tab', { name: 'Forget' }).click();
    await page.getByLabel('What is to be forgotten').fill('Short answers are preferred.');
    await page.getByRole('button', { name: 'Show what would go' }).click();
    await page.locator('.forget-preview li', { hasText: 'Short answers are' }).waitFor();
    await page.getByRole('button', { name: 'Forget this for good' }).click();
    await page.getByRole('status').getByText('Forgotten').waitFor();
    expect((await stand.world.client.scope('default').text()).text).not.toContain('Short answers');
    await page.getByRole('tab', { name: /To review/ }).click();
    await page.getByRole('button', { name: 'Accept' }).click();
    await page.getByText('Nothing waits for review.').waitFor();
    expect((await stand.world.client.scope('default').text()).text).toContain('The harbour closes at noon.');
    await looked('memory', '?memory=default', (one) => one.locator('.blame-group').first().waitFor());
    await looked('memory-versions', '?memory=default&part=versions', (one) => one.locator('.diff-line').first().waitFor());
    await looked('memory-facts', '?memory=default&part=facts', (one) => one.locator('.memory-line').first().waitFor());
  },
);

pageTest('all that was said is found by a question from any view, with what stood around it, and nothing of it does anything', async () => {
  const { page } = await opened('?inbox');
  await page.getByRole('heading', { name: 'Inbox' }).waitFor();
  await page.keyboard.press('/');
  await page.getByRole('searchbox', { name: 'Question' }).waitFor();
  await page.locator('[data-search]:focus').waitFor();
  await page.keyboard.type('Tell me of late ships');
  await page.keyboard.press('Enter');
  const hit = page.locator('.hit', { hasText: '5: Which ships were late?' }).first();
  await hit.locator('mark', { hasText: 'ships' }).waitFor();
  expect(await hit.locator('.said-by').innerText()).toMatch(/user[^]*said[^]*20\d\d[^]*Harbour ledger, (spring|what if)[^]*turn 5/);
  await hit.focus();
  await page.keyboard.press('Enter');
  await hit.locator('.around .is-hit').waitFor();
  expect(await hit.locator('.around li').count()).toBeGreaterThan(2);
  expect(page.url()).toMatch(/question=Tell\+me\+of\+late\+ships.*hit=/);
  await page.reload();
  await page.locator('.around .is-hit').waitFor();
  await page.getByLabel('Where').selectOption('assistant');
  await page.locator('.said-by .pill', { hasText: 'answer' }).first().waitFor();
  expect(await page.locator('.hit', { hasText: '5: Which ships' }).count()).toBe(0);
  await page.goBack();
  await page.getByRole('searchbox', { name: 'Question' }).fill('alert script link');
  await page.keyboard.press('Enter');
  const hostile = page.locator('.hit', { hasText: '<script>alert(1)</script>' }).first();
  await hostile.locator('mark').first().waitFor();
  expect(await page.locator('.hits script, .hits img, .hits a[href^="javascript"]').count()).toBe(0);
  expect(await page.locator('.hits').innerText()).not.toMatch(/[\u202a-\u202e]/);
  expect(await page.title()).toMatch(/Memory of default · Perdura$/);
  await page.getByLabel('Where').selectOption('tool');
  await page
    .getByText(/^untrusted: |Nothing is found/)
    .first()
    .waitFor();
  const asked = `?memory=default&part=search&question=${encodeURIComponent('What does the harbour master keep?')}`;
  await looked('memory-search', asked, (one) => one.locator('.hit mark').first().waitFor());
  await looked('memory-episodes', `?memory=default&part=episodes&in=${main}`, (one) => one.locator('.memory-text').first().waitFor());
  const chat = await opened(`?chat=${main}`);
  await chat.page.getByLabel('Search conversations').fill('crane');
  await chat.page.getByRole('link', { name: /Search all that was said/ }).click();
  await chat.page.locator('.hit mark', { hasText: 'crane' }).first().waitFor();
});

pageTest('the stepper goes back and forth, and steps what runs', async () => {
  const id = stand.world.id();
  await stand.world.client.start(id, { mode: 'stepping', title: 'Step by step' });
  for (const said of ['one, briefly', 'two, briefly', 'three, briefly']) await stand.world.client.enqueue(id, said);
  const { page } = await opened(`?stepper=${id}`);
  await page.locator('.queue li').nth(2).waitFor();
  await page.locator('.queue li').nth(2).getByRole('button', { name: /^Drop/ }).click();
  await waitFor(
    () => stand.world.client.queue(id),
    (queue) => queue.length === 2,
  );
  await page.getByRole('button', { name: /^Step/ }).click();
  await page.getByText(/^Did: /).waitFor();
  await page.getByLabel('Before tools').fill('write_file');
  await page.getByRole('button', { name: 'Set' }).click();
  await waitFor(
    () => stand.world.client.control(id),
    ({ breakpoints }) => breakpoints.tools?.[0] === 'write_file',
  );
  await page.locator('.event[aria-current]').waitFor();
  await page.locator('h1').click();
  await page.keyboard.press('Home');
  await page.getByText(/^Event 0 of/).waitFor();
  await page.keyboard.press('ArrowRight');
  await page.getByText(/^Event 1 of/).waitFor();
  await looked('stepper', `?stepper=${id}`, (one) => one.locator('.moment .state-facts').waitFor());
  await looked('stepper-past', `?stepper=${main}&at=40`, (one) => one.locator('.moment .state-facts').waitFor());
  await stand.world.client.terminate(id);
  const ended = await opened(`?stepper=${id}`);
  await ended.page.getByText(/It has ended/).waitFor();
  await ended.page.locator('.moment .state-facts').waitFor();
});

pageTest('the fleet: filters in the address, failures with what to do, workers, spending, sub-agents', async () => {
  const { page } = await opened('?fleet');
  await page.getByRole('link', { name: 'Harbour ledger, spring' }).first().waitFor();
  await page.getByLabel('Agent').selectOption('default');
  await page.getByLabel('Id or title').fill('what if');
  await waitFor(
    () => page.locator('.row-link').allInnerTexts(),
    (all) => all.length === 1,
  );
  expect(page.url()).toContain('text=what+if');
  await page.goBack().catch(() => undefined);
  const [first, second] = [`order-${stand.world.id()}`, `order-${stand.world.id()}`];
  for (const id of [first, second, first]) await send(id, 'Is all in order? Say it briefly.');
  const ordered = await opened('?fleet&text=order-');
  const shown = (): Promise<(string | null)[]> =>
    ordered.page.locator('.row-link').evaluateAll((all) => all.map((one) => new URL(String(one.href)).searchParams.get('chat')));
  await waitFor(shown, (all) => all.join() === [second, first].join());
  await ordered.page.getByLabel('Order').selectOption('Last active');
  await waitFor(shown, (all) => all.join() === [first, second].join());
  const failures = await opened('?fleet&part=failures');
  await failures.page.getByText(/no_such_tool/).waitFor();
  await failures.page.getByText(/free space before it runs out/).waitFor();
  const workers = await opened('?fleet&part=workers');
  await workers.page.getByText(/^\d+@/).waitFor();
  await looked('fleet', '?fleet', (one) => one.locator('.row-link').first().waitFor());
  await looked('fleet-failures', '?fleet&part=failures', (one) => one.locator('.failure-list li').first().waitFor());
  await looked('fleet-workers', '?fleet&part=workers', (one) => one.locator('.sheet').waitFor());
  await looked('fleet-spending', '?fleet&part=spending', (one) => one.locator('.ranked li').first().waitFor());
  await looked('fleet-tree', `?fleet&part=trees&tree=${main}`, (one) => one.locator('.tree a').nth(2).waitFor());
});

pageTest('agents with their tools, and a playground that begins a scratch conversation', async () => {
  const { page } = await opened('?agents=default&part=tools');
  await page.locator('.tool .sheet', { hasText: 'path' }).waitFor();
  await page.getByRole('tab', { name: 'Playground' }).click();
  await page.getByLabel('First message').fill('Hello there, briefly');
  await page.keyboard.press('Enter');
  await page.waitForURL(/chat=scratch-/);
  await page.getByText('It is all in order.').waitFor();
  const id = new URL(page.url()).searchParams.get('chat')!;
  expect(await stand.world.client.describe(id)).toMatchObject({ scope: 'scratch', agent: 'default' });
  await looked('agents', '?agents=default&part=tools', (one) => one.locator('.tool').first().waitFor());
  await looked('agents-playground', '?agents=default', (one) => one.getByLabel('First message').waitFor());
});

pageTest('200 conversations that stream, in the fleet', async () => {
  const many = Array.from({ length: 200 }, (_, at) => `many-${String(at).padStart(3, '0')}`);
  await eachOfFew(many, async (id) => {
    await stand.world.client.start(id, { title: `One of many, ${id.slice(-3)}` });
    await stand.world.client.enqueue(id, 'Say it slowly, as one of many');
  });
  await waitFor(
    () => stand.world.client.list({ limit: 300, idPrefix: 'many-' }),
    (all) => all.length === 200,
  );
  const { page } = await opened('?fleet&text=many-');
  await page.locator('.row-link').nth(99).waitFor();
  await page.locator('.pill.busy', { hasText: 'works' }).first().waitFor();
  // Whoever looks can scroll while the list is refreshed under the hand: a page that stalls for good draws no more frames.
  await page.evaluate(`new Promise((resolve) => {
    const view = document.querySelector('.view');
    let left = 150;
    const frame = () => {
      view.scrollTop = (view.scrollTop + 60) % 3_000;
      if ((left -= 1) > 0) requestAnimationFrame(frame);
      else resolve();
    };
    requestAnimationFrame(frame);
  })`);
  const seen = new Set<string>();
  const shown = (): Promise<string[]> => page.locator('.row-link').allInnerTexts();
  for (let last = ''; ;) {
    const names = await waitFor(shown, (all) => all.length > 0 && all.at(-1) !== last);
    for (const name of names) seen.add(name);
    last = names.at(-1) ?? '';
    const older = page.getByRole('button', { name: 'Older ones' });
    if (!(await older.isVisible())) break;
    await older.click();
  }
  expect(seen.size).toBe(200);
  // They would go on for as long as this file does.
  await eachOfFew(many, (id) => stand.world.client.terminate(id));
});

/** A few at a time: two hundred at once are more than one small server takes on a busy machine. */
async function eachOfFew(ids: readonly string[], act: (id: string) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < ids.length; at += 8) await Promise.all(ids.slice(at, at + 8).map(act));
}
