/** Workflows changed on purpose in ways that a running conversation must not see: what the replay test has to catch. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundle } from '@temporalio/worker';
import { bundleOptions } from '../../src/extensions/custom-workflows.js';

const root = resolve(__dirname, '../..');

export interface Mutant {
  readonly name: string;
  readonly file: string;
  /** Must be there exactly once, so that a change of the source does not quietly turn a mutant into the original. */
  readonly from: string | RegExp;
  readonly to: string;
  /** Beginnings of names: of each at least one history must not replay with it. */
  readonly caughtBy: readonly string[];
}

export const mutants: readonly Mutant[] = [
  {
    name: 'never makes memory of older turns',
    file: 'conversation/context/compaction.ts',
    from: 'if (!settings || isChangingContext(state)) return undefined;',
    to: 'if (!settings || isChangingContext(state) || state.now > 0) return undefined;',
    caughtBy: [
      'compaction-by-pressure',
      'compaction-asked-and-undone',
      'compaction-inside-a-turn',
      'ride-that-needs-a-compaction',
      'smaller-context-between-turns',
    ],
  },
  {
    name: 'does not take in what was recalled',
    file: 'conversation/turn/model-step.ts',
    from: 'const told = recalled === undefined ? state :',
    to: 'const told = recalled === undefined || state.now > 0 ? state :',
    caughtBy: ['recalled-for-a-turn'],
  },
  {
    name: 'does not count what vectors cost',
    file: 'conversation/turn/model-step.ts',
    from: '[citationsUsage(output.citations), output.embedded]',
    to: '[citationsUsage(output.citations), state.now > 0 ? undefined : output.embedded]',
    caughtBy: ['vectors-that-cost'],
  },
  {
    name: 'does not wait for a worker of a tool',
    file: 'conversation/turn/tool-round.ts',
    from: "failure.type === 'timeout' && failure.unbegun && !state.turn.stopping",
    to: "failure.type === 'timeout' && failure.unbegun && state.now < 0",
    caughtBy: ['interrupt-while-a-tool-waits-for-its-worker'],
  },
  {
    name: 'never has a model make a title',
    file: 'conversation/turn/title.ts',
    from: 'if (!betterTitle || betterTitle.isAsked ||',
    to: 'if (state.now > 0 || !betterTitle || betterTitle.isAsked ||',
    caughtBy: ['title-by-a-model'],
  },
  {
    name: 'has sub-agents go on by themselves',
    file: 'conversation/next-step.ts',
    from: "if (orders.length > 0) return { kind: 'order-children', orders };",
    to: '',
    caughtBy: ['sub-agent-stepped'],
  },
  {
    name: 'does not do what a program has chosen',
    file: 'conversation/context/chosen-chunks.ts',
    from: 'return first?.kind === what ? first : undefined;',
    to: 'return first?.kind === what ? undefined : undefined;',
    caughtBy: ['chosen-chunks'],
  },
  {
    name: 'never writes what is pending',
    file: 'conversation/next-step.ts',
    from: "if (isResting(state, 'store') || isRunning(state, 'model-step') ||",
    to: "if (state.now > 0 || isResting(state, 'store') || isRunning(state, 'model-step') ||",
    caughtBy: ['store-lost-an-answer', 'interrupt-while-streaming', 'unusable-agent', 'message-in-parts', 'fence-too-late'],
  },
  {
    name: 'rewinds before the store has what was decided',
    file: 'conversation/next-step.ts',
    from: 'const isReady = isStoreUpToDate(state) && state.heal === null;',
    to: 'const isReady = state.heal === null;',
    caughtBy: ['rewound-in-a-turn'],
  },
  {
    name: 'takes a breath before every turn',
    file: 'workflows/conversation.ts',
    from: 'for (;;) {',
    to: "for (;;) {\n    if (state.queue.length > 0) await host.condition(() => false, 1, { summary: 'a breath' });",
    caughtBy: ['text-turns', 'tool-', 'crash-', 'interrupt-', 'reset-', 'hand-over-', 'close', 'store-', 'ride-'],
  },
  {
    name: 'never lets tools ride',
    file: 'conversation/turn/tool-round.ts',
    from: 'return ridesWhole(admitted) ? ride(admitted) : endRoundIfDone(admitted);',
    to: 'return endRoundIfDone(admitted);',
    caughtBy: [
      'tool-riding',
      'tool-limit',
      'riding-tool-too-slow',
      'ride-of-several',
      'crash-while-a-tool-rides',
      'interrupt-while-a-tool-rides',
    ],
  },
  {
    name: 'lets every round ride',
    file: 'conversation/turn/tool-round.ts',
    from: "if (!calls.every(({ plan, status }) => status === 'waiting' && plan.rides &&",
    to: "if (!calls.every(({ plan, status }) => status === 'waiting' &&",
    caughtBy: ['tool-ordinary', 'mixed-round', 'tools-parallel'],
  },
  {
    name: 'lets tools ride past a breakpoint',
    file: 'conversation/turn/tool-round.ts',
    from: 'if (calls.some(({ name }) => control?.breakpoints.tools?.includes(name))) return false;',
    to: '',
    caughtBy: ['ride-held-by-a-breakpoint'],
  },
  {
    name: 'calls again whatever a step was deferred for',
    file: 'conversation/turn/model-step.ts',
    from: "if (configured?.kind === 'unusable') return endUnusable(state, configured);",
    to: '',
    caughtBy: ['unusable-agent', 'agent-broken-between-turns'],
  },
  {
    name: 'forgets the events of an approval',
    file: 'conversation/turn/approvals.ts',
    from: 'announce(noteWait(asking, call, wait),',
    to: 'announce(asking,',
    caughtBy: ['events-for-webhooks'],
  },
  {
    name: 'forgets the tools that rode',
    file: 'conversation/turn/model-step.ts',
    from: 'output.tools.reduce(acceptToolResult, found)',
    to: 'found',
    caughtBy: ['ride-that-needs-a-compaction', 'ride-that-needs-a-truncation'],
  },
  {
    name: 'stops nothing that runs',
    file: 'workflows/perform.ts',
    from: 'scope.cancel();',
    to: '',
    caughtBy: ['interrupt-while-streaming', 'interrupt-while-a-tool-', 'interrupt-delivery', 'reset-during-a-turn'],
  },
  {
    name: 'forgets to wait for what changes the context',
    file: 'conversation/effect-table.ts',
    from: /lane: 'call',\s*waitsFor: EVERYTHING,/,
    to: "lane: 'call',\n    waitsFor: ['call'],",
    caughtBy: ['compaction-by-pressure', 'truncated'],
  },
  {
    name: 'never hands over',
    file: 'conversation/opening.ts',
    from: 'if (state.handOver !== null) return undefined;',
    to: 'if (state.handOver !== null || state.now > 0) return undefined;',
    caughtBy: ['hand-over-between-turns.1', 'hand-over-inside-a-turn.1', 'hand-over-after-updates.1'],
  },
  {
    name: 'hands over between turns only',
    file: 'conversation/next-step.ts',
    from: 'if (state.handOver === null) return undefined;',
    to: 'if (state.handOver === null || state.turn) return undefined;',
    caughtBy: ['hand-over-inside-a-turn.1'],
  },
  {
    name: 'carries any amount of text through a hand-over',
    file: 'conversation/next-step.ts',
    from: 'const CARRIED_TEXT_BYTES = 128 * 1024;',
    to: 'const CARRIED_TEXT_BYTES = 128 * 1024 * 1024;',
    caughtBy: ['weighed-hand-over'],
  },
  {
    name: 'stores a long message in one piece',
    file: 'conversation/outbox/pending-writes.ts',
    from: 'weightOf(item) > STEP_BYTES',
    to: 'weightOf(item) > 100 * STEP_BYTES',
    caughtBy: ['message-in-parts'],
  },
  {
    name: 'keeps a long queue to itself',
    file: 'conversation/next-step.ts',
    from: 'const input = queueStepInput(state);',
    to: 'const input = state.now > 0 ? undefined : queueStepInput(state);',
    caughtBy: ['long-texts-in-the-queue', 'long-queue-that-the-store-lost'],
  },
  {
    name: 'waits for a provider without a timer',
    file: 'conversation/next-step.ts',
    from: 'Object.entries(state.retries).map(',
    to: 'Object.entries<(typeof state.retries)[string]>({}).map(',
    caughtBy: ['model-retries', 'interrupt-during-a-wait', 'store-away'],
  },
  {
    name: 'reads an old answer from the store though it has it',
    file: 'workflows/handlers.ts',
    from: 'if (known) return resultOf',
    to: 'if (known && updates < 0) return resultOf',
    caughtBy: ['text-turns'],
  },
];

/** Code of the workflows with one mutant's change, or with none. */
export type MutatedCode = (mutant?: Mutant) => WorkflowBundle;

/**
 * One bundle with all mutants in it, since bundling is what costs: in a copy of the sources, a module that mutants change gives way to one
 * that takes the original or a mutant's, by a number at the head of the code.
 */
export async function bundleMutants(): Promise<MutatedCode> {
  const dir = mkdtempSync(join(tmpdir(), 'perdura-mutants-'));
  try {
    for (const folder of ['platform', 'records', 'conversation', 'workflows'])
      cpSync(join(root, 'src', folder), join(dir, folder), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
    for (const file of new Set(mutants.map((mutant) => mutant.file))) writeSwitch(join(dir, file), file);
    const code = await bundle(dir);
    return (mutant) => ({ code: `globalThis.${CHOICE} = ${mutant ? mutants.indexOf(mutant) : -1};\n${code}` });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const CHOICE = '__perduraMutant';

function writeSwitch(path: string, file: string): void {
  const source = readFileSync(path, 'utf8');
  const beside = (variant: string): string => `${path.slice(0, -'.ts'.length)}.${variant}.ts`;
  const load = (variant: string): string => `() => require('./${basename(beside(variant))}')`;
  const choices = mutants.flatMap((mutant, i) => {
    if (mutant.file !== file) return [];
    writeFileSync(beside(`mutant-${i}`), changed(source, mutant));
    return [`[${i}]: ${load(`mutant-${i}`)},`];
  });
  writeFileSync(beside('original'), source);
  writeFileSync(path, `module.exports = ({ ${choices.join(' ')} }[globalThis.${CHOICE}] ?? (${load('original')}))();\n`);
}

function changed(source: string, { name, file, from, to }: Mutant): string {
  const places = source.split(typeof from === 'string' ? from : new RegExp(from.source.replace(/(?<!\\)\((?!\?)/g, '(?:'))).length - 1;
  if (places !== 1) throw new Error(`the mutant that ${name} finds its place in ${file} ${places} times, not once: adapt it`);
  return source.replace(from, to);
}

async function bundle(dir: string): Promise<string> {
  const { code } = await bundleWorkflowCode({
    ...bundleOptions(dir),
    logger: new DefaultLogger('ERROR'),
  });
  return code;
}
