/**
 * Whole prompts at moments where a context changes, as golden/NAME.txt has them: whoever changes what a model reads sees it here first.
 * `PERDURA_GOLDEN=write` writes them anew, and the difference is to be read as the model would.
 */
import { z } from 'zod';
import type { Model, ModelRequest, ModelResponse } from '../../src/models/model.js';
import type { ConversationMessage } from '../../src/records/message.js';
import { callTool, createScriptedModel, startInMemory, type InMemory, type ScriptedLine } from '../../src/testing/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { expectGolden } from './expect-golden.js';

const BEGAN = new Date('2026-11-20T09:00:00Z');
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

let opened: InMemory[] = [];
afterEach(async () => {
  for (const one of opened) await one.close();
  opened = [];
});

/** Called by `hang`. */
let hasBegun = (): void => undefined;

const tools = [
  defineTool({
    name: 'check',
    description: 'Checks a file.',
    input: z.object({ path: z.string() }),
    run: ({ path }) => {
      if (path.endsWith('9.ts')) throw new Error(`${path}: expected ";" in line 9`);
      return `${path} has no fault. ${'All of it was looked at. '.repeat(12)}`;
    },
  }),
  defineTool({
    name: 'hang',
    description: 'Ends when it is stopped.',
    input: z.object({}),
    run: (_, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve('stopped'), { once: true });
        hasBegun();
      }),
  }),
];

/** Says what the person wants called, and `OK` otherwise: `check src/3.ts`. Summaries name what they are about. */
function answered({ answerSchema, messages }: ModelRequest): ScriptedLine {
  const last = messages.at(-1);
  if (answerSchema) return summary();
  const [, tool, path] = /^(check|read_file|hang)(?: (\S+))?/.exec(last?.role === 'user' ? textIn(last).trimStart() : '') ?? [];
  if (tool !== undefined) return callTool(tool, path === undefined ? {} : { path });
  const [, rounds = '0'] = /^survey (\d+)/.exec(textIn(messages.findLast(isWords))) ?? [];
  const done = messages.filter(({ role }) => role === 'tool').length;
  if (Number(rounds) > 0) {
    const next = nextRound(messages);
    if (next <= Number(rounds)) return callTool('check', { path: `src/round-${next}.ts` });
  }
  return done > 0 ? 'It is done.' : 'OK.';
}

function nextRound(messages: readonly ConversationMessage[]): number {
  const rounds = messages.flatMap((message) => [...textIn(message).matchAll(/src\/round-(\d+)\.ts/g)].map(([, round]) => Number(round)));
  return Math.max(0, ...rounds) + 1;
}

function isWords(message: ConversationMessage): boolean {
  return message.role === 'user' && message.from === undefined && !textIn(message).startsWith('[');
}

function summary(): string {
  return JSON.stringify({
    episodic: { summary: 'The files were checked one after the other. Decided: tabs stay.', tags: ['check'], salience: 0.6 },
    semantic: [{ fact: 'The project is in TypeScript.', tags: [], confidence: 0.9, salience: 0.7, supersedes: [] }],
    retired: [],
    fold: '',
    goal: 'Have all files checked.',
    openTasks: ['mend what has a fault'],
  });
}

/** A handover where it is asked for. */
async function consolidated({ messages }: ModelRequest): Promise<ModelResponse> {
  const question = textIn(messages.at(-1));
  const paths = [...new Set([...question.matchAll(/src\/\d+\.ts/g)].map(([path]) => path))];
  const answer = {
    history_entry: `[2026-11-20 09:30] Checked ${paths.join(', ')}.`,
    memory_update: '- The project is in TypeScript.',
    ...(question.includes('"handover"') && {
      handover: {
        goal: 'Have all files checked.',
        summary: `Checked: ${paths.join(', ')}. Tabs stay, as notes.txt has it.`,
        open_tasks: ['mend what has a fault'],
      },
    }),
  };
  const usage = { inputTokens: 100, cachedTokens: 0, outputTokens: 50 };
  return Promise.resolve({ blocks: [{ kind: 'text', text: JSON.stringify(answer) }], stop: 'end', usage });
}

function textIn(message: ConversationMessage | undefined): string {
  if (!message) return '';
  if (message.role !== 'assistant') return typeof message.text === 'string' ? message.text : message.text.preview;
  return message.blocks
    .flatMap((block) => (block.kind === 'text' ? [String(block.text)] : block.kind === 'tool-call' ? [JSON.stringify(block.input)] : []))
    .join('\n');
}

async function open(agent: object = {}, files: Record<string, string> = {}) {
  const model = createScriptedModel(answered);
  const { stream } = model;
  const answering: Model = {
    ...model,
    stream: (request, options) => (request.answerSchema?.name === 'memory' ? consolidated(request) : stream(request, options)),
  };
  const perdura = await startInMemory({
    model: answering,
    extensions: { tools },
    files,
    agents: {
      default: {
        'agent.json': {
          tools: ['read_file', 'check', 'hang', 'set_task', 'read_episode', 'retrieve_from_memory', 'compact_context'],
          ...agent,
        },
        'SOUL.md': 'You check files.',
      },
    },
    now: BEGAN,
  });
  opened.push(perdura);
  const chat = perdura.start({}, 'c-1');
  return { perdura, model, chat, last: () => shown(model.requests.findLast(({ answerSchema }) => answerSchema === undefined)) };
}

/** As a model reads it; of a text that repeats itself only its ends. */
function shown(request: ModelRequest | undefined): string {
  if (!request) return '(none)';
  const { system, tools: offered, messages } = request;
  return [
    `== system\n${system}`,
    `== tools\n${offered.map(({ name }) => name).join(', ')}`,
    ...messages.map((message) => `== ${message.role}\n${bodyOf(message)}`),
    '',
  ].join('\n');
}

function bodyOf(message: ConversationMessage): string {
  if (message.role === 'assistant') {
    return message.blocks
      .map((block) =>
        block.kind === 'text'
          ? String(block.text)
          : block.kind === 'tool-call'
            ? `(${block.name} ${JSON.stringify(block.input)})`
            : `(${block.kind})`,
      )
      .join('\n');
  }
  const text = textIn(message);
  const cut = text.length > 6_000 ? `${text.slice(0, 3_000)}\n(…)\n${text.slice(-3_000)}` : text;
  return `${message.role === 'tool' ? `${message.name} (${message.outcome}): ` : ''}${cut}`;
}

test('turn 2', async () => {
  const { chat, perdura, last } = await open();
  await chat.send('Hi there!');
  await perdura.advance(MINUTE);
  await chat.send('Which files are there?');
  expectGolden('turn-2', last());
});

test('turn 30 of small talk, on the next day', async () => {
  const { chat, perdura, last } = await open();
  for (let n = 1; n <= 30; n++) {
    if (n === 16) await perdura.advance(DAY);
    await chat.send(`Remark ${n} about the harbour.`);
  }
  expectGolden('small-talk-30', last());
});

const WORKING = {
  memory: { memoryWindow: 12, keepCount: 4 },
  context: { advanced: { softThreshold: 3_000, hardThreshold: 30_000, truncationThreshold: 40_000 } },
};

test('after trims', async () => {
  const { chat, perdura, last } = await open(WORKING, { 'notes.txt': 'tabs stay' });
  await chat.send('Hi there!');
  await chat.send('read_file notes.txt');
  for (let n = 3; n <= 24; n++) {
    if (n === 14) await perdura.advance(DAY);
    await chat.send(`check src/${n}.ts`);
  }
  expectGolden('after-trims', last());
});

test('after compactions in mid-turn', async () => {
  const { chat, last } = await open({
    context: { advanced: { softThreshold: 2_000, hardThreshold: 3_000, truncationThreshold: 20_000 } },
    limits: { maxToolRounds: 200 },
  });
  await chat.send('Hi there!');
  await chat.send('check src/19.ts');
  await chat.send('survey 60 files of mine, please.');
  expectGolden('compacted-in-mid-turn', last());
});

test('after /new', async () => {
  const { chat, last, perdura } = await open();
  await chat.send('We use TypeScript here.');
  await chat.send('check src/19.ts');
  await chat.reset();
  await perdura.advance(DAY);
  await chat.send('Where were we?');
  expectGolden('after-new', last());
});

test('with a long paste that a compaction has cited', async () => {
  const { chat, last } = await open({
    context: { advanced: { softThreshold: 10_000, hardThreshold: 20_000, truncationThreshold: 30_000 } },
  });
  await chat.send('Hi there!');
  await chat.send(`Here is the log:\n${'a line of the log\n'.repeat(4_000)}That was it.`);
  for (let n = 1; n <= 6; n++) await chat.send(`What does line ${n} say?`);
  expectGolden('long-paste', last());
});

test('after an interrupt', async () => {
  const { chat, last } = await open();
  const begun = new Promise<void>((resolve) => (hasBegun = resolve));
  void chat.enqueue('hang');
  await begun;
  await chat.interrupt('enough');
  await chat.send('What happened?');
  expectGolden('after-interrupt', last());
});
