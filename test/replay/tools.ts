/** Tools of every policy, for the recordings. Those that lose their worker leave a mark in the workspace and go on at the second try. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { askUser, waitUntil, delegate } from '../../src/tools/builtin/conversation-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { Tool } from '../../src/tools/tool.js';

const input = z.object({ text: z.string().default('') });

/** The file that says that a tool is running, so that its worker can be killed. */
export const MARK = 'a-tool-runs';

const markAndHang = (workspace: string): Promise<string> => {
  const mark = join(workspace, MARK);
  if (existsSync(mark)) return Promise.resolve('done at the second try');
  writeFileSync(mark, '');
  return new Promise(() => undefined);
};

/** The file that lets the tool `wait` go on. */
export const GO = 'go';

const waitForGo = async (workspace: string, signal: AbortSignal): Promise<string> => {
  writeFileSync(join(workspace, MARK), '');
  while (!existsSync(join(workspace, GO)) && !signal.aborted) await after(20, '');
  return 'waited and went on';
};

const after = (ms: number, text: string): Promise<string> => new Promise((resolve) => setTimeout(() => resolve(text), ms));

export const recordedTools: readonly Tool[] = [
  askUser,
  delegate,
  waitUntil,
  defineTool({
    name: 'note',
    description: 'Quick and harmless: rides on the next model step.',
    input,
    policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
    run: ({ text }) => `noted ${text}`,
  }),
  defineTool({
    name: 'look_up',
    description: 'An ordinary activity that may be repeated.',
    input,
    policy: { repeatable: true, timeoutMs: 30_000 },
    run: ({ text }) => `found ${text.slice(0, 100)}`,
  }),
  defineTool({
    name: 'pay',
    description: 'An ordinary activity that must not be repeated.',
    input,
    run: ({ text }) => `paid ${text}`,
  }),
  defineTool({
    name: 'render',
    description: 'For workers that are not there.',
    input,
    policy: { taskQueue: 'no-worker-here' },
    run: ({ text }) => `rendered ${text}`,
  }),
  defineTool({
    name: 'fail',
    description: 'Always fails.',
    input,
    policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
    run: () => {
      throw new Error('this tool always fails');
    },
  }),
  defineTool({
    name: 'long_text',
    description: 'Says more than goes inline.',
    input,
    policy: { repeatable: true, timeoutMs: 30_000 },
    run: () => 'a long result. '.repeat(500),
  }),
  defineTool({
    name: 'too_slow',
    description: 'Says that it is quick and is not: its own limit ends it while it rides.',
    input,
    policy: { repeatable: true, quick: true, timeoutMs: 400 },
    run: () => after(60_000, 'slow but done'),
  }),
  defineTool({
    name: 'wait',
    description: 'Runs until it is let go.',
    input,
    policy: { repeatable: true, timeoutMs: 60_000 },
    run: (_input, { workspace, signal }) => waitForGo(workspace, signal),
  }),
  defineTool({
    name: 'hang_once',
    description: 'Hangs at the first try, until it is stopped.',
    input,
    policy: { repeatable: true, timeoutMs: 60_000 },
    run: (_input, { workspace }) => markAndHang(workspace),
  }),
  defineTool({
    name: 'dawdle_briefly',
    description: 'Runs into its own timeout.',
    input,
    policy: { repeatable: true, timeoutMs: 300 },
    run: () => new Promise<string>(() => undefined),
  }),
  defineTool({
    name: 'hang_and_pay',
    description: 'Hangs, and must not be repeated.',
    input,
    run: (_input, { workspace }) => markAndHang(workspace),
  }),
  defineTool({
    name: 'hang_riding',
    description: 'Hangs at the first try, while it rides: the limit of its step would end it.',
    input,
    policy: { repeatable: true, quick: true, timeoutMs: 30_000 },
    run: (_input, { workspace }) => markAndHang(workspace),
  }),
  defineTool({
    name: 'wait_riding',
    description: 'Rides until it is let go.',
    input,
    policy: { repeatable: true, quick: true, timeoutMs: 30_000 },
    run: (_input, { workspace, signal }) => waitForGo(workspace, signal),
  }),
  defineTool({
    name: 'bring_much',
    description: 'Rides, and brings more than a small model can take: `text` says how many characters.',
    input,
    policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
    run: ({ text }) => 'page '.repeat(Number(text) / 5),
  }),
];
