/**
 * One peer in a process of its own: `process.mjs '{ name, task, folder, … }'`. It writes one line of JSON last.
 * `measure`: that many turns of one conversation. `die`: some turns, then one that stops at a place. `resume`: what its program does then.
 */
import { existsSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { PEERS } from './peers/index.mjs';
import { ANSWER, createWorkload, userText } from './workload.mjs';

const WARM_UP = 10;
const CONVERSATION = 'conversation-1';
const asked = JSON.parse(process.argv[2]);
const { name, task, folder, turns, stopAt } = asked;
const workload = createWorkload(folder, stopAt);
const { open } = await import(`./peers/${PEERS[name].module}.mjs`);
const peer = await open({ ...asked, workload });

const TASKS = {
  async measure() {
    for (let turn = 1; turn <= WARM_UP; turn += 1) await take('warm-up', turn);
    const stored = await storedBytes();
    Object.assign(workload.seen, { calls: 0, promptBytes: 0, lastPromptBytes: 0 });
    const cpu = process.cpuUsage();
    const ms = [];
    const started = performance.now();
    for (let turn = 1; turn <= turns; turn += 1) {
      const before = performance.now();
      await take(CONVERSATION, turn);
      ms.push(performance.now() - before);
    }
    const wholeMs = performance.now() - started;
    const { user, system } = process.cpuUsage(cpu);
    await sleep(500);
    return {
      ms: ms.map((one) => Number(one.toFixed(2))),
      wholeMs,
      cpuMs: (user + system) / 1_000,
      rssBytes: process.memoryUsage().rss,
      ...workload.seen,
      storedBytes: (await storedBytes()) - stored,
    };
  },
  async die() {
    for (let turn = 1; turn < stopAt.turn; turn += 1) await take(CONVERSATION, turn);
    await peer.turn(CONVERSATION, userText(stopAt.turn));
    throw new Error('it did not stop');
  },
  async resume() {
    const started = performance.now();
    const text = await peer.resume(CONVERSATION, userText(turns));
    const answeredMs = performance.now() - started;
    // What the next turn's model sees of this one.
    await take(CONVERSATION, turns + 1);
    return { isAnswered: text === ANSWER, answeredMs, effects: workload.effects() };
  },
};

process.stdout.write(`${JSON.stringify(await TASKS[task]())}\n`);
await Promise.race([peer.close(), sleep(5_000)]);
process.exit(0);

async function take(conversation, turn) {
  const text = await peer.turn(conversation, userText(turn));
  if (text !== ANSWER) throw new Error(`turn ${turn} was answered by ${JSON.stringify(text)}`);
}

/** Temporal's own part is a file of the server, which the server's process writes. */
async function storedBytes() {
  const server = asked.database ? ['', '-wal'].map((end) => asked.database + end).filter((file) => existsSync(file)) : [];
  return server.reduce((sum, file) => sum + statSync(file).size, await peer.storedBytes());
}
