/** Twelve lives of conversations: what long-term memory has of the turns in their past, and how often. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PerduraClient } from '../../src/client.js';
import type { Model } from '../../src/models/model.js';
import { withOwnWorker } from '../own-worker.js';
import type { Row } from '../row.js';

/** Numbers are turns of the life, as they were said; a fork says something of its own. */
type Step = 'retry' | 'edit' | 'compact' | 'reset' | 'close' | 'terminate' | 'resume' | readonly ['say' | 'rewind' | 'fork', number];

interface Life {
  readonly name: string;
  readonly steps: readonly Step[];
  /** Its window is so small that consolidations come between the turns. */
  readonly hasSmallWindow?: true;
}

const LIVES: readonly Life[] = [
  { name: 'retried after a compaction', steps: [['say', 7], 'compact', ['say', 1], 'retry'] },
  { name: 'edited after a compaction', steps: [['say', 7], 'compact', ['say', 2], 'edit'] },
  { name: 'rewound past a compaction', steps: [['say', 7], 'compact', ['say', 2], ['rewind', 3], ['say', 1]] },
  {
    name: 'back, and forward into what was cut',
    steps: [
      ['say', 4],
      ['rewind', 1],
      ['say', 1],
      ['rewind', 4],
      ['say', 1],
    ],
  },
  { name: 'back past a reset', steps: [['say', 2], 'reset', ['say', 1], ['rewind', 2], ['say', 1]] },
  { name: 'terminated and resumed after a compaction', steps: [['say', 7], 'compact', 'terminate', 'resume', ['say', 1]] },
  { name: 'closed and resumed', steps: [['say', 4], 'close', 'resume', ['say', 1]] },
  {
    name: 'forked in its middle',
    steps: [
      ['say', 4],
      ['fork', 2],
      ['say', 2],
    ],
  },
  { name: 'forked and terminated', steps: [['say', 3], ['fork', 2], 'terminate'] },
  { name: 'forked after a reset', steps: [['say', 3], 'reset', ['say', 2], ['fork', 5], 'reset', ['say', 1]] },
  {
    name: 'rewound past what a full window had taken',
    steps: [
      ['say', 9],
      ['rewind', 3],
      ['say', 3],
      ['rewind', 9],
      ['say', 1],
    ],
    hasSmallWindow: true,
  },
  {
    name: 'all of it',
    steps: [['say', 7], 'compact', 'edit', 'terminate', 'resume', ['rewind', 2], ['say', 3], 'retry', ['fork', 3], 'reset', ['say', 1]],
    hasSmallWindow: true,
  },
];
const AGENTS = {
  default: { memory: { memoryWindow: 1_000 } },
  small: { memory: { memoryWindow: 10, keepCount: 4, trim: 'at-window' } },
};
/** For what goes on by itself. */
const MAX_WAIT_MS = 60_000;

export const lives: Row = {
  name: 'lives',
  async measure({ temporal, product: productOf }) {
    const { options } = await productOf('file');
    const consolidated: string[] = [];
    const needs = { temporal, options, taskQueue: 'lives', agents: AGENTS, tools: [], model: listener(consolidated) };
    return withOwnWorker(needs, async (client) => {
      const [missed, twice]: [string[], string[]] = [[], []];
      let turns = 0;
      for (const [n, life] of LIVES.entries()) {
        consolidated.splice(0);
        const expected = await live(client, `lives-${n}`, life);
        turns += expected.length;
        missed.push(...expected.filter((mark) => !consolidated.includes(mark)).map((mark) => `${life.name}: ${mark}`));
        twice.push(...consolidated.filter((mark, i) => consolidated.indexOf(mark) !== i).map((mark) => `${life.name}: ${mark}`));
      }
      const row = (what: string, found: readonly string[]) => ({
        row: `${LIVES.length} lives: turns of their past that long-term memory ${what}`,
        ...{ product: found.length, unit: '', toHold: '0', holds: found.length === 0 },
        notes: [`${turns} turns`, ...found.slice(0, 8)],
      });
      return [row('has never got', missed), row('has got twice', twice)];
    });
  },
};

/** What is in the past of the conversations that run at the end; each of them is reset then. */
async function live(client: PerduraClient, scope: string, { steps, hasSmallWindow }: Life): Promise<string[]> {
  const { id } = await client.start(undefined, { scope, agent: hasSmallWindow ? 'small' : 'default' });
  let marks = 0;
  let line: readonly string[] = [];
  let isRunning = true;
  /** Of each turn: its id, and what was said up to it. */
  const turns: { readonly id: string; readonly line: readonly string[] }[] = [];
  const forks: { readonly id: string; readonly line: readonly string[] }[] = [];
  const mark = (): string => `mark-${(marks += 1)}.`;
  const ended = (turn: string | null, until: readonly string[]): void => {
    line = until;
    turns.push({ id: turn ?? '', line });
  };
  const turnAt = (number: number) => {
    const turn = turns[number - 1];
    if (!turn) throw new Error(`${scope} has no turn ${number}`);
    return turn;
  };
  for (const step of steps) {
    if (step === 'retry') ended((await client.retry(id)).turnId, line);
    else if (step === 'edit') {
      const said = mark();
      ended((await client.edit(id, said)).turnId, [...line.slice(0, -1), said]);
    } else if (step === 'compact') await client.compact(id);
    else if (step === 'reset') await client.reset(id);
    else if (step === 'close' || step === 'terminate') {
      isRunning = false;
      await (step === 'close' ? client.closeConversation(id) : client.terminate(id));
    } else if (step === 'resume') {
      isRunning = true;
      await eventually(() => client.resume(id));
    } else if (step[0] === 'rewind') {
      const turn = turnAt(step[1]);
      await client.rewind(id, turn.id);
      line = turn.line;
    } else if (step[0] === 'fork') {
      const turn = turnAt(step[1]);
      const fork = await client.fork(id, { at: turn.id });
      const said = mark();
      await client.send(fork.id, said);
      forks.push({ id: fork.id, line: [...turn.line, said] });
    } else {
      for (let n = 0; n < step[1]; n++) {
        const said = mark();
        ended((await client.send(id, said)).turnId, [...line, said]);
      }
    }
  }
  const running = [...(isRunning ? [{ id, line }] : []), ...forks];
  for (const one of running) await client.reset(one.id);
  await untilQuiet(client, scope);
  return [...new Set(running.flatMap((one) => one.line))];
}

async function untilQuiet(client: PerduraClient, scope: string): Promise<void> {
  await eventually(async () => {
    const status = await client.scope(scope).status();
    if (status && (status.queued.length > 0 || status.phase !== 'idle')) throw new Error(`the memory of ${scope} is busy`);
  });
}

/** What is closed ends a little later, and so does what is consolidated. */
async function eventually<T>(work: () => Promise<T>): Promise<T> {
  const until = performance.now() + MAX_WAIT_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() > until) throw error;
      await sleep(50);
    }
  }
}

/** Writes down what it is given to remember. */
function listener(consolidated: string[]): Model {
  return {
    provider: 'anthropic',
    stream({ answerSchema, messages }) {
      const text = messages.map((message) => (message.role === 'user' && typeof message.text === 'string' ? message.text : '')).join('\n');
      if (answerSchema?.name === 'memory') consolidated.push(...(text.match(/mark-\d+\./g) ?? []));
      const usage = { inputTokens: 1_000, cachedTokens: 0, outputTokens: 50 };
      return Promise.resolve({ blocks: [{ kind: 'text', text: answerTo(answerSchema?.name) }], stop: 'end', usage });
    },
  };
}

function answerTo(question: string | undefined): string {
  if (question === 'memory') return JSON.stringify({ history_entry: '[2026-11-27 10:00] They talked.', memory_update: '' });
  if (question !== 'summary') return 'I see.';
  return JSON.stringify({ episodic: { summary: 'They talked.', tags: [], salience: 0.5 }, semantic: [], retired: [], fold: '' });
}
