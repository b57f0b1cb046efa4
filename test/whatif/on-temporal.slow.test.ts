/**
 * Conversations that really happened, on Temporal, played again by the command as a person runs it: as a process, since only the built product
 * replays histories with all that a worker has.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createOfflineModel } from '../../src/models/offline.js';
import type { ReportedConversation, ReportLine } from '../../src/whatif/report.js';
import { startPerdura } from '../support/run-perdura.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

jest.setTimeout(5 * 60_000);

let world: World;
beforeAll(async () => {
  world = await startWorld({
    engine: 'temporal',
    model: createOfflineModel({ delayMs: 5 }),
    agent: { model: 'offline/scripted', limits: { handOver: { events: 120 } } },
    files: { 'README.md': 'The harbour opens at nine.' },
  });
});
afterAll(() => world.close());

async function talk(...messages: readonly string[]): Promise<string> {
  const id = world.id();
  for (const message of messages) await world.client.send(id, message, { start: {} });
  return id;
}

const whatif = (args: readonly string[]) => startPerdura(world, ['whatif', ...args]).ended;

async function readReport(file: string): Promise<ReportedConversation[]> {
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  return lines.map((line) => JSON.parse(line) as ReportLine).flatMap((line) => (line.kind === 'conversation' ? [line] : []));
}

test('with nothing changed nothing differs: tools, approvals, steering, interrupts, sub-agents, resets, rewinds, forks, hand-overs', async () => {
  const { client } = world;
  const plain = await talk('hello', 'read README.md', 'what time is it', 'read README.md', 'search for harbour', 'thanks');
  const busy = world.id();
  await client.start(busy, {});
  await client.message(busy, 'ask me something');
  const [question] = await waitFor(
    () => client.approvals(busy).catch(() => []),
    (list) => list.length === 1,
  );
  await client.message(busy, { text: 'and one thing more', delivery: 'steer' });
  await client.decide(busy, { callId: question?.callId ?? '', decision: 'approve', note: 'paper' });
  await client.send(busy, 'delegate read README.md');
  await client.message(busy, 'count to 200');
  await waitFor(
    () => client.status(busy),
    ({ phase }) => phase !== 'idle',
  );
  await client.interrupt(busy, 'enough');
  await client.compact(busy);
  await client.send(busy, 'where were we?');
  await client.rewind(busy, 'turn_0002');
  await client.send(busy, 'again');
  await client.reset(busy);
  await client.send(busy, 'a new day');
  const fork = world.id();
  await client.fork(plain, { at: 'turn_0003', id: fork });
  await client.send(fork, 'what time is it');

  const file = join(world.dir, 'report.jsonl');
  const ran = await whatif([plain, busy, fork, '--baseline', '--report', file]);
  if (ran.code !== 0) throw new Error((await readReport(file)).map(({ skipped = '' }) => skipped).join());
  const lines = await readReport(file);
  for (const { id, lanes, skipped, gaps } of lines) {
    expect(gaps).toEqual([]);
    const of = [plain, busy, fork].indexOf(id);
    expect({ of, skipped, differs: lanes.candidate?.divergence, stopped: lanes.candidate?.stopped }).toEqual({
      of,
      skipped: undefined,
      differs: null,
      stopped: undefined,
    });
    expect({ of, differs: lanes.baseline?.divergence }).toEqual({ of, differs: null });
  }
  expect(lines).toHaveLength(3);
});

test('one changed sentence of the prompt: each conversation says where it differs; a worse model shows what it no longer does', async () => {
  const ids = [await talk('hello', 'read README.md'), await talk('what time is it')];
  await writeFile(join(world.dir, 'SOUL.new.md'), 'You are short.');
  const prompted = await whatif([...ids, '--prompt', 'SOUL.new.md']);
  expect(prompted.code).toBe(0);
  for (const id of ids) expect(prompted.stdout).toContain(`${id}  differs from turn_0001, call 1 (system) on`);
  await writeFile(join(world.dir, 'without-tools.json'), JSON.stringify({ tools: ['get_time'] }));
  const worse = await whatif([ids[0] ?? '', '--settings', 'without-tools.json', '-o', 'json']);
  expect(JSON.parse(worse.stdout)).toMatchObject({
    conversations: [
      {
        lanes: {
          candidate: { divergence: { turn: 'turn_0001', what: 'tools' }, answerDivergence: { turn: 'turn_0002', what: 'tool-calls' } },
        },
      },
    ],
  });
});
