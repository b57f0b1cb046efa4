/**
 * A conversation that nobody has seen: talked to, asked for permission, compacted, compacted back, rewound, cleared and forked, at random.
 * The model's side is `answer` of the world that it lives in: it writes a file where a message says so, and else says something long.
 */
import type { PerduraClient } from '../../src/client.js';
import type { createRandom } from '../support/scene.js';
import { waitFor } from '../support/wait-for.js';

type Random = ReturnType<typeof createRandom>;

export interface RandomLife {
  /** The conversation, and the fork of it that went on. */
  readonly ids: readonly string[];
  /** What was done, for a failure's message. */
  readonly done: readonly string[];
}

const SUBJECTS = ['the crane', 'the ledger', 'the ships', 'the weather', 'the harbour master', 'the tides', 'the rope store', 'the lamps'];

export async function liveAtRandom(client: PerduraClient, id: string, { next }: Random, steps: number): Promise<RandomLife> {
  const done: string[] = [];
  const pick = <T>(all: readonly T[]): T => all[Math.floor(next() * all.length)]!;
  const note = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    // A life may ask for what cannot be done just then: there is nothing to compact, nothing to undo.
    const outcome = await act().then(
      () => 'done',
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    done.push(`${what}: ${outcome}`);
  };
  const say = (of: string): Promise<void> => note('say', () => client.send(of, `${done.length}: what of ${pick(SUBJECTS)}?`));
  const write = (of: string): Promise<void> =>
    note('write', async () => {
      const answered = client.send(of, `${done.length}: write it down, ${pick(SUBJECTS)}`);
      const [waiting] = await waitFor(
        () => client.approvals(of),
        (all) => all.length > 0,
      );
      await client.decide(of, { callId: waiting!.callId, decision: pick(['approve', 'deny']) });
      await answered;
    });
  const rewind = (of: string): Promise<void> =>
    note('edit', async () => {
      const { turn } = await client.status(of);
      const back = Math.max(1, turn - Math.floor(next() * 3));
      await client.edit(of, `${done.length}: rather ${pick(SUBJECTS)}`, { turn: `turn_${String(back).padStart(4, '0')}` });
    });
  const live = async (of: string, many: number): Promise<void> => {
    for (let n = 0; n < many; n += 1) {
      const dice = next();
      if (dice < 0.4) await say(of);
      else if (dice < 0.55) await write(of);
      else if (dice < 0.75) await note('compact', () => client.compact(of));
      else if (dice < 0.83) await note('undo', () => client.undoCompaction(of));
      else if (dice < 0.93) await rewind(of);
      else await note('clear', () => client.reset(of));
    }
  };
  await client.start(id, { title: `Harbour, ${pick(SUBJECTS)}` });
  for (let n = 0; n < 5; n += 1) await say(id);
  await live(id, steps);
  const fork = `${id}-fork`;
  const { turn } = await client.status(id);
  const at = `turn_${String(Math.max(1, turn - Math.floor(next() * 2))).padStart(4, '0')}`;
  await note(`fork at ${at}`, () => client.fork(id, { at, id: fork, title: 'The other way' }));
  await say(fork);
  await live(fork, Math.floor(steps / 2));
  return { ids: [id, fork], done };
}
