/** Workflows changed on purpose in ways that a running conversation must not see: what the replay test has to catch. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundle } from '@temporalio/worker';

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
    file: 'conversation/compaction.ts',
    from: 'if (!settings || memory.doing) return undefined;',
    to: 'if (!settings || memory.doing || state.v === 1) return undefined;',
    caughtBy: ['compaction-by-pressure', 'compaction-asked-and-undone'],
  },
  {
    name: 'never stores what it owes',
    file: 'conversation/next-step.ts',
    from: "return state.unpersisted.length > 0 ? { kind: 'persist'",
    to: "return state.unpersisted.length > 1e9 ? { kind: 'persist'",
    caughtBy: ['store-lost-an-answer'],
  },
  {
    name: 'takes a breath before every turn',
    file: 'workflows/conversation.ts',
    from: 'for (;;) {',
    to: 'for (;;) {\n    if (state.queue.length > 0) await condition(() => false, 1);',
    caughtBy: ['text-turns', 'tool-', 'crash-', 'interrupt-', 'reset-', 'hand-over-', 'close', 'store-'],
  },
  {
    name: 'runs quick tools the ordinary way',
    file: 'workflows/perform.ts',
    from: 'step.local ? runLocallyFirst(run, local) : runTool(run)',
    to: 'runTool(run)',
    caughtBy: ['tool-local', 'tool-limit', 'local-tool-too-slow', 'crash-during-a-workflow-task'],
  },
  {
    name: 'tells nobody to stop',
    file: 'workflows/perform.ts',
    from: 'scope.cancel();',
    to: '',
    caughtBy: ['interrupt-while-streaming', 'interrupt-while-a-tool-runs', 'interrupt-delivery', 'reset-during-a-turn'],
  },
  {
    name: 'never hands over',
    file: 'workflows/conversation.ts',
    from: 'if (state.handOver !== null) return undefined;',
    to: 'if (state.handOver !== null || state.v === 1) return undefined;',
    caughtBy: ['hand-over-between-turns.1', 'hand-over-inside-a-turn.1', 'hand-over-after-updates.1'],
  },
  {
    name: 'hands over between turns only',
    file: 'conversation/next-step.ts',
    from: 'if (state.handOver !== null) return',
    to: 'if (state.handOver !== null && !state.turn) return',
    caughtBy: ['hand-over-inside-a-turn.1'],
  },
  {
    name: 'waits for a provider without a timer',
    file: 'conversation/next-step.ts',
    from: /if \(call\?\.retry && state\.now < call\.retry\.until\) times\.push/,
    to: 'if (call?.retry && state.now < 0) times.push',
    caughtBy: ['model-retries', 'interrupt-during-a-wait'],
  },
  {
    name: 'reads an old answer from the store though it has it',
    file: 'workflows/handlers.ts',
    from: 'if (known) return',
    to: 'if (known && updates < 0) return',
    caughtBy: ['text-turns'],
  },
  {
    name: 'tells of every local step at once',
    file: 'workflows/perform.ts',
    from: 'rules < TOLD_LAST_RULES ?',
    to: 'rules < 1e9 ?',
    caughtBy: ['asked-while-recording'],
  },
];

/** Bundles the workflows as they are, or a copy of them with the mutant's change. */
export async function bundleWorkflows(mutant?: Mutant): Promise<WorkflowBundle> {
  if (!mutant) return bundle(join(root, 'src'));
  const dir = mkdtempSync(join(tmpdir(), 'perdura-mutant-'));
  try {
    for (const folder of ['conversation', 'workflows']) cpSync(join(root, 'src', folder), join(dir, folder), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
    const path = join(dir, mutant.file);
    writeFileSync(path, changed(readFileSync(path, 'utf8'), mutant));
    return await bundle(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function changed(source: string, { name, file, from, to }: Mutant): string {
  const places = source.split(typeof from === 'string' ? from : new RegExp(from.source.replace(/(?<!\\)\((?!\?)/g, '(?:'))).length - 1;
  if (places !== 1) throw new Error(`the mutant that ${name} finds its place in ${file} ${places} times, not once: adapt it`);
  return source.replace(from, to);
}

function bundle(dir: string): Promise<WorkflowBundle> {
  return bundleWorkflowCode({
    workflowsPath: join(dir, 'workflows', 'index.ts'),
    payloadConverterPath: join(dir, 'workflows', 'payload-converter.ts'),
    workflowInterceptorModules: [join(dir, 'workflows', 'early-questions.ts')],
    logger: new DefaultLogger('ERROR'),
  });
}
