/** Conversations in each phase, held there until they are let go. The words of a message say what the model does with it. */
import { z } from 'zod';
import { delegate } from '../../src/tools/builtin/conversation-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { Tool } from '../../src/tools/tool.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { consolidationReply } from '../support/provider-apis/consolidation-reply.js';
import { callTool, text, type Reply } from '../support/provider-apis/reply.js';
import type { Store } from '../../src/stores/store.js';
import { roundsSoFar, saidIn } from '../support/echo-model.js';
import type { Outside } from '../support/outside.js';
import { waitFor } from '../support/wait-for.js';

const MAX_HELD_MS = 60_000;
const SUMMARY = JSON.stringify({ episodic: { summary: 'Said little.', tags: ['fuzz'], salience: 0.5 }, semantic: [] });

/** What holds models and tools until the attack is over. */
export interface Holding {
  readonly answer: (request: ApiRequest) => Reply;
  readonly tools: readonly Tool[];
  /** From now on a rewind of a conversation in this store waits, too. */
  holdRewinds(store: Pick<Store, 'entries'>): void;
  hold(): void;
  letGo(): void;
}

export function createHolding(): Holding {
  let release = (): void => undefined;
  let released: Promise<void> = Promise.resolve();
  const sign = defineTool({
    name: 'sign',
    description: 'Signs.',
    input: z.object({}),
    policy: { approval: 'ask' },
    run: () => 'signed',
  });
  const dig = defineTool({
    name: 'dig',
    description: 'Digs until it is let go.',
    input: z.object({}),
    policy: { timeoutMs: MAX_HELD_MS, repeatable: true },
    run: (_, { signal }) =>
      Promise.race([released, new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))]).then(() => 'dug'),
  });
  return {
    tools: [sign, dig, delegate],
    holdRewinds({ entries }) {
      const restore = entries.restore.bind(entries);
      Object.assign(entries, { restore: (...given: Parameters<typeof restore>) => released.then(() => restore(...given)) });
    },
    hold: () => void (released = new Promise((resolve) => (release = resolve))),
    letGo: () => release(),
    answer(request) {
      const said = saidIn(request);
      const slow = said.some((words) => words.includes('slow-memory'));
      if ((request.tools ?? []).length === 0) {
        return { ...(consolidationReply(request) ?? text(SUMMARY)), ...(slow && { hold: released }) };
      }
      const what = /do:(\w+)/.exec(said.at(-1) ?? '')?.[1];
      if (what === 'think') return { ...text('Thought about it.'), hold: released };
      if (what === undefined || roundsSoFar(request) > 0) return text('Done.');
      return callTool(what, what === 'delegate' ? { task: 'do:sign', title: 'sign' } : {});
    },
  };
}

export const PHASES: Readonly<Record<string, (program: Outside, id: string, scope: string) => Promise<void>>> = {
  idle: (program, id, scope) => started(program, id, { scope }),
  thinking: (program, id, scope) => doing(program, id, { scope }, 'do:think', 'thinking'),
  'running-tools': (program, id, scope) => doing(program, id, { scope }, 'do:dig', 'running-tools'),
  'waiting-for-person': (program, id, scope) => doing(program, id, { scope }, 'do:sign', 'waiting-for-person'),
  'sub-agent': (program, id, scope) => doing(program, id, { scope }, 'do:delegate', 'waiting-for-person'),
  async compacting(program, id, scope) {
    await started(program, id, { scope });
    for (const words of ['slow-memory', 'two', 'three', 'four']) await program.update(id, 'send', words);
    void program.update(id, 'compact', {}).catch(() => undefined);
    await isIn(program, id, 'compacting');
  },
  async resetting(program, id, scope) {
    await started(program, id, { scope });
    await program.update(id, 'send', 'slow-memory');
    await program.signal(id, 'new', {});
    await isIn(program, id, 'resetting');
  },
  async rewinding(program, id, scope) {
    await started(program, id, { scope });
    for (const words of ['one', 'two', 'three']) await program.update(id, 'send', words);
    void program.update(id, 'rewind', { to: 'turn_0001' }).catch(() => undefined);
    await isIn(program, id, 'resetting');
  },
  'handing-over': (program, id, scope) => doing(program, id, { scope, agent: 'brief' }, 'do:sign', 'waiting-for-person'),
  async closing(program, id, scope) {
    await doing(program, id, { scope }, 'do:dig', 'running-tools');
    await program.signal(id, 'close');
  },
  stepping: (program, id, scope) => doing(program, id, { scope, mode: 'stepping' }, 'do:sign', 'stepping'),
};

async function started(program: Outside, id: string, options: object): Promise<void> {
  await program.start(id, { agent: 'default', ...options });
}

async function doing(program: Outside, id: string, options: object, words: string, phase: string): Promise<void> {
  await started(program, id, options);
  await program.signal(id, 'message', { id: 'm1', text: words });
  await isIn(program, id, phase);
}

async function isIn(program: Outside, id: string, wanted: string): Promise<void> {
  await waitFor(
    async () => ((await program.query(id, 'status')) as { phase: string }).phase,
    (phase) => phase === wanted,
  );
}
