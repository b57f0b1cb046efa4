/** 200 conversations of 10 turns, played again with nothing changed: none differs, no tool runs, and a turn costs milliseconds. */
import { whatIf } from '../../src/whatif/whatif.js';
import { startRecorder } from './recorder.js';
import { createModel, createTools, type Counts } from './scripted.js';

jest.setTimeout(10 * 60_000);

const CONVERSATIONS = 200;
const SAID = ['hello', '#book tea', 'and now?', '#both', '#change', 'what else?', '#book a boat', '#keep the key', '#breaks', 'good bye'];

test('200 conversations of 10 turns', async () => {
  const counts: Counts = { ran: 0, held: 0 };
  const recorder = await startRecorder(createModel(counts), { tools: createTools(counts) });
  try {
    const { world, project, recordings } = recorder;
    const ids = Array.from({ length: CONVERSATIONS }, () => world.id());
    const talk = async (id: string): Promise<void> => {
      for (const [at, message] of SAID.entries()) await world.client.send(id, `${message} (${at})`, { start: {} });
    };
    for (let from = 0; from < ids.length; from += 20) await Promise.all(ids.slice(from, from + 20).map(talk));
    const ran = counts.ran;
    const differing: unknown[] = [];
    let turns = 0;
    const began = performance.now();
    for await (const line of whatIf(ids, {
      ...{
        recordings,
        project,
        candidate: project,
        changes: [],
        hasBaseline: false,
        policy: 'stop',
        memory: 'recorded',
        gaps: 'play',
        atOnce: 8,
      },
      signal: new AbortController().signal,
    })) {
      if (line.kind !== 'conversation') continue;
      turns += line.turns;
      const { candidate } = line.lanes;
      if (!candidate || candidate.divergence || candidate.stopped)
        differing.push(line.skipped ?? candidate?.divergence ?? candidate?.stopped);
    }
    process.stdout.write(`${turns} turns played in ${((performance.now() - began) / 1000).toFixed(1)} s\n`);
    expect(differing).toEqual([]);
    expect(turns).toBe(CONVERSATIONS * SAID.length);
    expect(counts.ran).toBe(ran);
  } finally {
    await recorder.close();
  }
});
