/**
 * `node main.mjs [--turns 200] [--only perdura,mastra] [--skip-kills] [--json FILE] [--markdown FILE]`: each peer in turn has the same
 * conversation, then dies by SIGKILL at three places of a turn. Progress on stderr; the tables, as Markdown, on stdout.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { describeRun } from './describe-run.mjs';
import { PEERS } from './peers/index.mjs';
import { startPostgres, startTemporal } from './servers.mjs';
import { renderTables } from './tables.mjs';
import { PLACES } from './workload.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
/** The turn that dies: not the first, which is slower and often has a path of its own. */
const KILLED_TURN = 5;
const LONGEST_MS = { measure: 20 * 60_000, die: 90_000, resume: 240_000 };

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '200' },
    only: { type: 'string' },
    'skip-kills': { type: 'boolean', default: false },
    json: { type: 'string' },
    markdown: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});
const turns = Number(values.turns);
const names = values.only?.split(',') ?? Object.keys(PEERS);
const unknown = names.filter((name) => !(name in PEERS));
if (values.help || unknown.length > 0 || !Number.isSafeInteger(turns) || turns < 1 || turns > 2_000) {
  if (unknown.length > 0) process.stderr.write(`no peer is called ${unknown.join(', ')}\n`);
  process.stderr.write(
    `node main.mjs [--turns 1–2000] [--only NAMES] [--skip-kills] [--json FILE] [--markdown FILE]\nNames, separated by commas: ${Object.keys(PEERS).join(', ')}\n`,
  );
  process.exit(values.help ? 0 : 2);
}

const measured = [];
for (const name of names) {
  const row = { name };
  await withServers(name, async (place) => {
    say(`${name}: ${turns} turns`);
    Object.assign(row, await inProcess({ ...place, name, task: 'measure', turns }));
  }).catch((error) => Object.assign(row, { problem: error.message.split('\n')[0].slice(0, 200) }));
  if (!values['skip-kills']) row.kills = await killed(name);
  measured.push(row);
}
const result = { ...(await describeRun(names)), turns, rows: measured };
if (values.json) writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`);
const tables = renderTables(result);
if (values.markdown) writeFileSync(values.markdown, tables);
process.stdout.write(tables);

async function killed(name) {
  const kills = {};
  for (const place of PLACES) {
    say(`${name}: kill -9, ${place}`);
    kills[place] = await withServers(name, async (servers) => {
      await inProcess(
        { ...servers, name, task: 'die', stopAt: { turn: KILLED_TURN, place }, turns: KILLED_TURN },
        { killWhenStopped: true },
      );
      return countEffects(await inProcess({ ...servers, name, task: 'resume', turns: KILLED_TURN }));
    }).catch((error) => ({ problem: error.message.split('\n')[0].slice(0, 200) }));
  }
  return kills;
}

/** A turn costs two calls of the model and one of the tool; `asked` is how often the model of the next turn sees the question. */
function countEffects({ isAnswered, answeredMs, effects }) {
  const inTurn = effects.filter(({ turn }) => turn === KILLED_TURN);
  return {
    isAnswered,
    answeredMs,
    paidTwice: inTurn.filter(({ kind }) => kind === 'model').length - 2,
    doneTwice: inTurn.filter(({ kind }) => kind === 'tool').length - 1,
    asked: effects.find(({ turn, kind }) => turn === KILLED_TURN + 1 && kind === 'model').before,
  };
}

async function withServers(name, work) {
  const folder = mkdtempSync(join(tmpdir(), 'peers-'));
  // Postgres is another user.
  chmodSync(folder, 0o755);
  const started = [];
  try {
    const { needs } = PEERS[name];
    mkdirSync(join(folder, 'data'));
    const place = { folder: join(folder, 'data') };
    if (needs.includes('temporal')) {
      const server = await startTemporal(folder);
      started.push(server);
      Object.assign(place, { address: server.address, database: server.database });
    }
    if (needs.includes('postgres')) {
      const server = await startPostgres(folder);
      started.push(server);
      place.postgres = server.url;
    }
    return await work(place);
  } finally {
    for (const server of started) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The last line that a process of the peer has written; with `killWhenStopped` nothing, once it was killed. */
async function inProcess(asked, { killWhenStopped = false } = {}) {
  const program = PEERS[asked.name].node === 22 ? join(here, 'node_modules', '.bin', 'node') : process.execPath;
  const child = spawn(program, [join(here, 'process.mjs'), JSON.stringify(asked)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, LANGSMITH_TRACING: 'false', LANGCHAIN_TRACING_V2: 'false', MASTRA_TELEMETRY_DISABLED: '1' },
  });
  let [last, complaints, isKilled] = ['', '', false];
  child.stderr.on('data', (data) => (complaints = (complaints + data).slice(-4_000)));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill('SIGKILL');
  }, LONGEST_MS[asked.task]);
  for await (const line of createInterface({ input: child.stdout })) {
    last = line;
    if (line !== 'STOPPED' || !killWhenStopped) continue;
    isKilled = true;
    child.kill('SIGKILL');
  }
  clearTimeout(timer);
  if (isKilled) return undefined;
  if (isLate) throw new Error(`within ${LONGEST_MS[asked.task] / 60_000} minutes`);
  try {
    return JSON.parse(last);
  } catch {
    throw new Error(`${asked.name} did not end ${asked.task}: ${complaints.trim() || last || 'it said nothing'}`);
  }
}

function say(text) {
  process.stderr.write(`  … ${text}\n`);
}
