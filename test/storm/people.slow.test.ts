/**
 * The people of a storm, in memory, where nothing dies: whatever they do at any moment, each message is answered once and in order, and the
 * store has it once. The seed stands in what fails.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { startWorld, type World } from '../support/world.js';
import { createJournal } from './journal.js';
import { createStormModel } from './model.js';
import { talk, type Talk } from './person.js';
import { chanceOf, pick, seed } from './random.js';

const AT_ONCE = 3;
const CONVERSATIONS = 15;

const input = z.object({ item: z.string(), ms: z.int().min(0).default(0) });
const work = (name: string, repeatable: boolean) =>
  defineTool({ name, description: 'Works.', input, policy: { repeatable }, run: ({ item, ms }) => sleep(ms).then(() => `done: ${item}`) });

let world: World | undefined;
afterAll(() => world?.close());

test(`people who talk at any moment are answered in order (seed ${seed})`, async () => {
  const journal = createJournal();
  const model = createStormModel(journal, chanceOf(-2));
  model.clearUp();
  const agent = { approvals: [{ tool: 'pay', policy: 'ask' }], delegation: { agents: ['default', 'brief', 'small'] } };
  const tools = [...builtinTools, work('note', true), work('pay', false)];
  world = await startWorld({ engine: 'memory', answer: model.answer, tools, agent });
  await world.writeAgent('brief', { ...agent, limits: { handOver: { events: 32 } } });
  await world.writeAgent('small', { ...agent, tools: ['get_time', 'note', 'pay', 'delegate'], limits: { handOver: { events: 40 } } });
  const { temporal, client, taskQueue } = world;
  const oneTalk = (n: number): Promise<Talk> => {
    const random = chanceOf(n);
    return talk({
      ...{ temporal, client, taskQueue, journal, random, isOver: () => false, onStanding: () => undefined },
      ...{ id: `c-${n}`, scope: `s-${pick(random, [1, 2])}`, kind: random() < 0.2 ? 'customer' : 'tester' },
      ...{ deeds: pick(random, [10, 20, 30]), restMs: 60_000 },
    });
  };
  const wrong: unknown[] = [];
  const numbers = Array.from({ length: CONVERSATIONS }, (_, n) => n).values();
  const talkInTurn = async (): Promise<void> => {
    for (const n of numbers) {
      const { id, forks, trouble, audited, log } = await oneTalk(n);
      const orders = [id, ...forks].flatMap((one) => journal.check(one));
      const found = [...(trouble === undefined ? [] : [trouble]), ...(audited?.lost ?? []), ...(audited?.doubled ?? []), ...orders];
      if (found.length > 0) wrong.push({ found, log, said: journal.log(id) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, talkInTurn));
  expect([wrong, model.doubled, world.api.problems]).toEqual([[], [], []]);
  expect(journal.counts.checked).toBeGreaterThanOrEqual(CONVERSATIONS);
}, 600_000);
