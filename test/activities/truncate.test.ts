/** What the step leaves out of the prompt: on the file store, with no model. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { truncate } from '../../src/activities/context/context.js';
import type { ConversationDependencies } from '../../src/activities/dependencies.js';
import { agentConfigSchema } from '../../src/agents/agent-config.js';
import type { TruncateInput } from '../../src/conversation/context/compaction-effects.js';
import type { ConversationKey } from '../../src/stores/store.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { createToolRegistry } from '../../src/tools/tool.js';
import { answer, conversation, user } from '../memory/builders.js';

const KEY: ConversationKey = { namespace: 'default', scope: 's', conversation: 'c1', life: 'l1' };

test.each([
  ['the oldest leave where they cover a part of it', 100, [[1, 2]]],
  ['nothing leaves where that is less than a tenth of it', 20_000, []],
])('of what is too much, %s', async (_, excess, dropped) => {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-truncate-'));
  const store = createFileStore({ dir });
  try {
    await store.entries.append(
      KEY,
      conversation([1, user('short '.repeat(40)), answer('yes '.repeat(40))], [2, user('long '.repeat(20_000))]),
    );
    const agents = () => Promise.resolve({ config: agentConfigSchema.parse({}) });
    const identity = { life: KEY.life, agent: 'default', scope: KEY.scope };
    const given = { store, agents, tools: createToolRegistry([]), key: KEY, identity };
    const dependencies = given as unknown as ConversationDependencies;
    const notice = { slot: 4, turn: 'turn_0002', seq: 2, session: 1 };
    const input: TruncateInput = {
      identity,
      ...{ agentHash: '', epoch: 1, number: 1, context: [[1, 3]], cited: [], excess, currentTurn: 'turn_0002', notice },
    };
    const truncated = await truncate(dependencies, input);
    expect(truncated).toMatchObject({ dropped, entries: dropped.length * 2 });
    expect(truncated.notice === undefined).toBe(dropped.length === 0);
    if (!truncated.notice) return;
    const { text } = truncated.notice.message as { readonly text: string };
    expect(text).toMatch(/become part of the next summary\.\]\n\n\[TASK\]\nThe session began with: short short [^]*$/);
    // A base that names the goal stays where it is.
    const { ref } = await store.bodies.put(KEY, '[TASK]\nGoal: mend the boat');
    expect((await truncate(dependencies, { ...input, base: ref, notice: { ...notice, slot: 5 } })).notice?.message).not.toMatchObject({
      text: expect.stringContaining('[TASK]'),
    });
  } finally {
    await store.close();
    await rm(dir, { recursive: true, force: true });
  }
});
