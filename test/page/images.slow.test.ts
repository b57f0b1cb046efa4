/**
 * The pictures of docs/how-to/page.md. `PERDURA_SCREENSHOTS=docs npm run test:all -- test/page/images` takes them anew, from conversations as people have
 * them; otherwise this says whether they are there, and of the size at which the page is shown.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Page } from 'playwright-core';
import { latestResults, saidIn } from '../support/echo-model.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { callTool, callTools, text, type Reply } from '../support/provider-apis/reply.js';
import { waitFor } from '../support/wait-for.js';
import { hasBrowser, startPage, type PageWorld } from './browser.js';

const root = resolve(__dirname, '../..');
const FOLDER = join(root, 'docs', 'images', 'page');
const NAMES = ['chat', 'timeline', 'context', 'memory', 'stepper', 'inbox', 'fleet', 'agents'];
const VIEWPORT = { width: 1280, height: 800 };
const MAX_BYTES = 80 * 1024;
const takesThem = hasBrowser && process.env['PERDURA_SCREENSHOTS'] === 'docs';

test('each view has a picture in docs/how-to/page.md, of its present size, and small', () => {
  const document = readFileSync(join(root, 'docs', 'how-to', 'page.md'), 'utf8');
  expect(readdirSync(FOLDER).sort()).toEqual(NAMES.map((name) => `${name}.png`).sort());
  for (const name of NAMES) {
    const path = join(FOLDER, `${name}.png`);
    expect(document).toContain(`](../images/page/${name}.png)`);
    const header = readFileSync(path).subarray(0, 24);
    expect([name, header.readUInt32BE(16), header.readUInt32BE(20)]).toEqual([name, VIEWPORT.width, VIEWPORT.height]);
    expect([name, statSync(path).size < MAX_BYTES]).toEqual([name, true]);
  }
});

const NOTES = '# Bergen\n\nThree days in June. Anna does not like boats. At most 900 € for both.\n';
const SUMMARY =
  'Anna and Ben want three days in Bergen in June, for at most 900 € together. Anna does not like boats, so no ferry and no fjord cruise. ' +
  'The night train on the 11th is noted, the hotel is still open.';

function answer(request: ApiRequest): Reply {
  if (JSON.stringify(request.system ?? '').includes('You condense a part of a conversation')) {
    const semantic = [
      { fact: 'Anna does not like boats.', tags: ['anna', 'travel'], confidence: 0.95, salience: 0.9 },
      { fact: 'The trip may cost 900 € for both.', tags: ['budget'], confidence: 0.9, salience: 0.7 },
    ];
    return text(JSON.stringify({ episodic: { summary: SUMMARY, tags: ['bergen', 'june'], salience: 0.8 }, semantic }));
  }
  // What was remembered meanwhile comes behind it, in brackets.
  const said = saidIn(request).findLast((words) => !words.startsWith('[What you know')) ?? '';
  const isNew = latestResults(request).length === 0;
  const slowly = (reply: Reply): Reply => ({ ...reply, chunks: { size: 30, delayMs: 60 } });
  if (said.startsWith('What do the notes')) {
    if (isNew) return slowly(callTool('read_file', { path: 'bergen.md' }));
    return slowly(text('Your notes say three days in June, **no boats** for Anna, and at most 900 € for both of you.'));
  }
  if (said.startsWith('Compare') && isNew) {
    return slowly(
      callTools(
        { name: 'delegate', input: { task: 'Find trains to Bergen in June.', title: 'Trains to Bergen' } },
        { name: 'delegate', input: { task: 'Find hotels in Bergen in June.', title: 'Hotels in Bergen' } },
      ),
    );
  }
  if (said.startsWith('Book') && isNew) {
    return slowly(callTool('run_command', { command: 'vy', args: ['book', '--from', 'Oslo', '--to', 'Bergen', '--date', '2027-06-11'] }));
  }
  if (said.startsWith('Write') && isNew) {
    return slowly(callTool('write_file', { path: 'plan.md', content: '# Plan\n\n11 June, night train\n' }));
  }
  if (said.startsWith('Ask me') && isNew) {
    return callTool('ask_user', {
      question: 'The room with a view costs 40 € more. Which one?',
      options: ['With a view', 'The cheaper one'],
    });
  }
  return slowly(
    text(
      'I would keep the mountain for the clearest day:\n\n| Day | Morning | Afternoon |\n| --- | --- | --- |\n| 1 | Bryggen | KODE, the Munch rooms |\n' +
        '| 2 | Fløyen, on foot | Lunch at the fish market |\n| 3 | Troldhaugen | Train home |\n\nNone of it needs a boat.',
    ),
  );
}

if (takesThem) test('the pictures are taken', takeThem);

async function takeThem(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const stand: PageWorld = await startPage(
    {
      answer,
      files: { 'bergen.md': NOTES },
      agent: {
        model: 'anthropic/claude-opus-5',
        maxTokens: 700,
        tools: ['ask_user', 'delegate', 'list_files', 'read_file', 'run_command', 'search_memory', 'write_file'],
        memory: { enabled: false },
        approvals: [{ tool: 'write_file', policy: 'ask' }],
        context: { maxTokens: 6_000, safetyMargin: 500, keepTurns: 2 },
      },
    },
    {
      agents: () => Promise.resolve(['default', 'research']),
      temporalLink: (id, run, event) => `http://localhost:8233/${id}/${run}/${event}`,
      describeAgent: (name) =>
        Promise.resolve({
          name,
          config: { model: 'anthropic/claude-opus-5' },
          system: '# Who you are\n\nYou plan trips.',
          tools: [
            toolOf('ask_user', 'Asks the person a question, with options to choose from.', {
              question: 'What is asked',
              options: 'What can be chosen',
            }),
            toolOf('delegate', 'Gives a task to a sub-agent, whose answer is the result.', {
              task: 'What is to be done',
              title: 'What people read',
            }),
            toolOf('read_file', 'Reads a file of the workspace.', {
              path: 'Of the file, from the workspace',
              offset: 'First line',
              limit: 'How many lines',
            }),
            toolOf('run_command', 'Runs a program in the workspace. A person is asked first.', {
              command: 'The program',
              args: 'Its arguments',
            }),
            toolOf('search_memory', 'Finds what was said, by a question.', { question: 'The whole question' }),
            toolOf('write_file', 'Writes a file of the workspace.', { path: 'Of the file', content: 'All of it' }),
          ],
          servers: [],
        }),
    },
  );
  try {
    const { client } = stand.world;
    const [trip, other] = ['trip-to-bergen', 'release-notes'];
    const send = (id: string, said: string) => client.send(id, said);
    const decide = async (id: string, decision: 'approve' | 'deny'): Promise<void> => {
      const [waiting] = await waitFor(
        () => client.approvals(id),
        (all) => all.length > 0,
      );
      await client.decide(id, { callId: waiting!.callId, decision });
    };
    for (const [id, title] of [
      ['invoice-4711', 'Invoice 4711'],
      ['garden', 'What to plant in March'],
      ['interview', 'Questions for the interview'],
    ] as const) {
      await client.start(id, { title });
      await send(id, 'Begin, please.');
    }
    await client.start(trip, { title: 'Trip to Bergen' });
    await send(trip, 'What do the notes say about Bergen?');
    await send(trip, 'Plan three days, please.');
    const writing = send(trip, 'Write the plan down.');
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await decide(trip, 'approve');
    await writing;
    await send(trip, 'Compare trains and hotels.');
    await client.compact(trip);
    await send(trip, 'And if it rains?');
    await remember(stand, trip);
    await client.start(other, { title: 'Release notes of 2.4' });
    await client.enqueue(other, 'Ask me what I would like.');
    await client.enqueue(trip, 'Book the night train.');
    for (const id of [trip, other]) {
      await waitFor(
        () => client.approvals(id),
        (all) => all.length > 0,
      );
    }
    const taken = async (name: string, address: string, ready: (page: Page) => Promise<unknown>): Promise<void> => {
      const { page, context } = await stand.open(address, { viewport: VIEWPORT, colorScheme: 'light' });
      await ready(page);
      await page.evaluate('document.fonts.ready');
      const path = join(FOLDER, `${name}.png`);
      await page.screenshot({ path, animations: 'disabled', caret: 'hide' });
      // With a palette a picture takes a third. By ImageMagick, where it is.
      spawnSync('convert', [path, '-strip', '+dither', '-colors', '256', '-define', 'png:compression-level=9', `PNG8:${path}`]);
      await context.close();
    };
    await taken('chat', `?chat=${trip}`, (page) => page.locator('.decision').waitFor());
    await taken('timeline', `?timeline=${trip}&turn=turn_0004`, (page) => page.locator('.bar.lane-sub-agent').nth(1).waitFor());
    await taken('context', `?context=${trip}&part=turns&why=turn_0001`, (page) => page.locator('.story .now').waitFor());
    const question = encodeURIComponent('What does Anna think about boats?');
    await taken('memory', `?memory=default&part=search&question=${question}`, (page) => page.locator('.hit mark').first().waitFor());
    await taken('stepper', `?stepper=${trip}&at=60`, (page) => page.locator('.moment .state-facts').waitFor());
    await taken('inbox', '?inbox', (page) => page.locator('.decision').nth(1).waitFor());
    await taken('fleet', '?fleet', (page) => page.locator('.row-link').nth(5).waitFor());
    await taken('agents', '?agents=default&part=tools', async (page) => {
      await page.locator('.tool').nth(2).locator('summary').click();
      await page.mouse.move(0, 0);
    });
  } finally {
    await stand.close();
  }
}

function toolOf(name: string, description: string, fields: Readonly<Record<string, string>>) {
  const properties = Object.fromEntries(Object.entries(fields).map(([field, words]) => [field, { type: 'string', description: words }]));
  return { name, description, from: 'built in', inputSchema: { type: 'object', properties, required: Object.keys(fields).slice(0, 1) } };
}

async function remember(stand: PageWorld, conversation: string): Promise<void> {
  const key = { namespace: 'default', scope: 'default' };
  const { documents } = stand.world.store;
  const lines = ['# People', '- Anna does not like boats.', '- Ben pays the trains.'];
  const { version } = await documents.memory(key);
  const source = { trust: 'user' as const, conversation, turn_ids: ['turn_0001'] };
  await documents.writeMemory(key, {
    id: 'w1',
    ts: Math.floor(Date.now() / 1000),
    cause: 'consolidation',
    from: version,
    text: `${lines.join('\n')}\n`,
    lines: lines.map((line) => ({ line, source })),
  });
}
