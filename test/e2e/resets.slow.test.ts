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
import { runsOf } from '../support/run-chain.js';
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
  /** As they were sent. */
  readonly sent: readonly string[];
}

/** Sends messages and resets, each once the server has taken what was before it. */
async function talk(n: number): Promise<Talk> {
  const id = world.id();
  const scope = `resets-${process.pid}-${n}`;
  await world.client.start(id, { scope });
  const handle = world.temporal.workflow.getHandle(id);
  const sent: string[] = [];
  let session = 1;
  let isEmpty = true;
  for (let resets = 0, message = 0; resets < RESETS / CONVERSATIONS;) {
    if (random() < 0.4) {
      resets += 1;
      await handle.signal('new', {});
      sent.push('new');
      if (!isEmpty) session += 1;
      isEmpty = true;
    } else {
      const messageId = `m${n}-${++message}-s${session}`;
      sent.push(messageId);
      await world.client.message(id, { id: messageId, text: messageId });
      isEmpty = false;
    }
    if (random() < 0.5) await sleep(random() * 120);
  }
  await waitFor(
    () => world.client.status(id),
    ({ phase, queued }) => phase === 'idle' && queued === 0,
  );
  return { id, scope, sent };
}

/** In the order of Temporal's history, by which the conversation goes: `new`, or the id of a message. */
async function takenSignals(id: string): Promise<string[]> {
  const events = (await runsOf(world, id)).flat();
  return events.flatMap(({ workflowExecutionSignaledEventAttributes: signal }) => {
    if (signal?.signalName === 'new') return ['new'];
    if (signal?.signalName !== 'message') return [];
    return [(JSON.parse(Buffer.from(signal.input?.payloads?.[0]?.data ?? []).toString()) as { readonly id: string }).id];
  });
}

/** From the order follows which session each message belongs to, and how many sessions that something was said in were ended. */
function sessionsOf(signals: readonly string[]): { readonly sessionOf: ReadonlyMap<string, number>; readonly ended: number } {
  const sessionOf = new Map<string, number>();
  let ended = 0;
  let isEmpty = true;
  for (const signal of signals) {
    if (signal !== 'new') sessionOf.set(signal, ended + 1);
    else if (!isEmpty) ended += 1;
    isEmpty = signal === 'new';
  }
  return { sessionOf, ended };
}

test(
  `${RESETS} resets among messages`,
  async () => {
    const began = Date.now();
    const talks = await Promise.all(Array.from({ length: CONVERSATIONS }, (_, n) => talk(n)));
    const sessions = new Map<string, number>();
    for (const { id, scope, sent } of talks) {
      const taken = await takenSignals(id);
      const { sessionOf, ended } = sessionsOf(taken);
      for (const [message, session] of sessionOf) sessions.set(message, session);
      // The conversation answers for the order of its history, the server for that it is the order of what it has acknowledged.
      const moved = taken.filter((signal, at) => signal !== sent[at]).length;
      if (moved > 0) figure(`resets (seed ${seed}): ${moved} of ${sent.length} signals stand in another place than they were sent in`);
      expect(taken.toSorted()).toEqual(sent.toSorted());
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
    for (const messages of seen) expect(new Set(messages.map((one) => sessions.get(one))).size).toBeLessThanOrEqual(1);
    expect(world.api.problems).toEqual([]);
    const said = talks.reduce((sum, { sent }) => sum + sent.filter((one) => one !== 'new').length, 0);
    figure(
      `resets (seed ${seed}): ${said} messages around ${RESETS} resets, 0 lost, 0 in the wrong session, in ${seconds(Date.now() - began)}`,
    );
  },
  LONG ? 1_200_000 : 400_000,
);

test('every history that was made here replays', async () => {
  expect(await replayProblems(world)).toEqual([]);
});
