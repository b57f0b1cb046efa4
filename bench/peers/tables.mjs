import { PEERS } from './peers/index.mjs';
import { PLACES } from './workload.mjs';

const AT = [10, 50, 200];

/** Two tables in Markdown: speed and size, and what a death costs. */
export function renderTables({ date, cores, load, node, turns, versions, rows }) {
  const at = AT.filter((turn) => turn <= turns);
  const lines = [
    `${turns} turns, ${date}, ${cores} cores, load ${load.join(' / ')}, Node ${node.slice(1)} (22 where a peer asks for it).`,
    '',
    table(
      ['', ...at.map((turn) => `ms at turn ${turn}`), 'stored', 'prompts in all', 'last prompt'],
      rows.map((row) => [PEERS[row.name].title, ...(row.problem ? [`did not end: ${row.problem}`] : figuresOf(row, at))]),
    ),
  ];
  if (rows.some(({ kills }) => kills)) {
    lines.push(
      '',
      '`kill -9` in the fifth turn:',
      '',
      table(
        ['', ...PLACES.map((place) => `in the ${place}`), 'what its program does then'],
        rows.map(({ name, kills }) => [PEERS[name].title, ...PLACES.map((place) => outcome(kills[place])), PEERS[name].after]),
      ),
    );
  }
  const names = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  lines.push(
    '',
    `Versions: ${names.join(', ')}.`,
    '',
    table(
      ['', 'as its documentation recommends'],
      rows.map(({ name }) => [PEERS[name].title, PEERS[name].durable]),
    ),
  );
  return `${lines.join('\n')}\n`;
}

const SHORT = ['perdura', 'temporal', 'temporal-openai-agents', 'langgraph-postgres', 'mastra'];

/** Five rows for who reads one page. */
export function renderShort({ date, cores, turns, rows }) {
  const shown = SHORT.flatMap((name) => rows.find((row) => row.name === name && !row.problem && row.kills) ?? []);
  return [
    `${turns} turns, ${date}, ${cores} cores; the worker is killed in the fifth turn:`,
    '',
    table(
      ['', `ms at turn ${turns}`, 'stored', 'killed in the model call', 'killed in the tool'],
      shown.map((row) => {
        const [time, stored] = figuresOf(row, [turns]);
        return [PEERS[row.name].title, time, stored, outcome(row.kills[PLACES[0]]), outcome(row.kills[PLACES[1]])];
      }),
    ),
  ].join('\n');
}

function figuresOf({ ms, storedBytes, promptBytes, lastPromptBytes }, at) {
  const times = at.map((turn) => median(ms.slice(Math.max(0, turn - 10), turn)).toFixed(0));
  return [...times, ...[storedBytes, promptBytes, lastPromptBytes].map(bytes)];
}

function outcome({ problem, isAnswered, answeredMs, paidTwice, doneTwice, asked }) {
  if (problem) return `no answer ${problem}`;
  const parts = [`${isAnswered ? 'answered' : 'another answer'} after ${(answeredMs / 1_000).toFixed(1)} s`];
  if (paidTwice > 0) parts.push(`${paidTwice} model call${paidTwice > 1 ? 's' : ''} paid again`);
  if (doneTwice > 0) parts.push(`the tool ran ${doneTwice + 1} times`);
  if (asked !== 1) parts.push(asked === 0 ? 'the question is lost' : `the question stands ${asked} times`);
  return parts.join('; ');
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function bytes(count) {
  return count < 1_000_000 ? `${(count / 1_000).toFixed(0)} KB` : `${(count / 1_000_000).toFixed(1)} MB`;
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}
