/**
 * Messages and `/new` at random moments, by signal: each message is answered once, in the session that its place says, and each session
 * that ended is in HISTORY once. 60 resets; with PERDURA_LONG=1 500. PERDURA_SEED repeats a run.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { textOf as wordsIn, type ApiRequest } from '../support/provider-apis/api-request.js';
import { text } from '../support/provider-apis/reply.js';
import { createRandom, figure, LONG, seconds } from '../support/scene.js';
import { waitFor } from '../support/wait-for.js';
import { replayProblems } from '../support/replays.js';
import { startWorld, type World } from '../support/world.js';

const RESETS = LONG ? 500 : 60;
const CONVERSATIONS = 5;
const { seed, next: random } = createRandom();

let world: World;
/** Of each prompt, which messages were in it. */
const seen: string[][] = [];

beforeAll(async () => {
  world = await startWorld({
    answer: (request: ApiRequest) => {
      const words = request.messages.map(({ content }) => wordsIn(content)).join('\n');
      seen.push(words.match(/m\d+-\d+-s\d+/g) ?? []);
      return text('Understood.');
    },
  });
});
afterAll(() => world.close());

interface Talk {
  readonly id: string;
  readonly scope: string;
  readonly sessionOf: Map<string, number>;
  /** Sessions that something was said in and that were ended. */
  ended: number;
}

/** What was sent in this order stands in this order: from it follows which session each message belongs to. */
async function talk(n: number): Promise<Talk> {
  const id = world.id();
  const scope = `resets-${process.pid}-${n}`;
  await world.client.start(id, { scope });
  const handle = world.temporal.workflow.getHandle(id);
  const sessionOf = new Map<string, number>();
  let session = 1;
  let isEmpty = true;
  let ended = 0;
  for (let resets = 0, message = 0; resets < RESETS / CONVERSATIONS;) {
    if (random() < 0.4) {
      resets += 1;
      await handle.signal('new', {});
      if (!isEmpty) {
        session += 1;
        ended += 1;
      }
      isEmpty = true;
    } else {
      const messageId = `m${n}-${++message}-s${session}`;
      sessionOf.set(messageId, session);
      await world.client.message(id, { id: messageId, text: messageId });
      isEmpty = false;
    }
    if (random() < 0.5) await sleep(random() * 120);
  }
  await waitFor(
    () => world.client.status(id),
    ({ phase, queued }) => phase === 'idle' && queued === 0,
  );
  return { id, scope, sessionOf, ended };
}

test(
  `${RESETS} resets among messages`,
  async () => {
    const began = Date.now();
    const talks = await Promise.all(Array.from({ length: CONVERSATIONS }, (_, n) => talk(n)));
    for (const { id, scope, sessionOf, ended } of talks) {
      const history = await world.client.history(id);
      const asked = history.filter(({ messageId }) => messageId !== undefined);
      expect(asked.map(({ messageId, session }) => [messageId, session])).toEqual([...sessionOf]);
      // Its answer is in the session too, unless a reset stopped it.
      for (const { turn, session } of asked) {
        expect(new Set(history.filter((entry) => entry.turn === turn).map((entry) => entry.session))).toEqual(new Set([session]));
      }
      const entries: string[] = [];
      for await (const entry of await world.client.scope(scope).history()) entries.push(entry.id);
      expect(new Set(entries).size).toBe(entries.length);
      expect(entries).toHaveLength(ended);
    }
    // No prompt mixes sessions.
    for (const messages of seen) expect(new Set(messages.map((one) => one.split('-s')[1])).size).toBeLessThanOrEqual(1);
    expect(world.api.problems).toEqual([]);
    const said = talks.reduce((sum, { sessionOf }) => sum + sessionOf.size, 0);
    figure(
      `resets (seed ${seed}): ${said} messages around ${RESETS} resets, 0 lost, 0 in the wrong session, in ${seconds(Date.now() - began)}`,
    );
  },
  LONG ? 1_200_000 : 400_000,
);

test('every history that was made here replays', async () => {
  expect(await replayProblems(world)).toEqual([]);
});
