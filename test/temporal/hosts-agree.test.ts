/** One script of a client's calls, on Temporal and in memory: what happens to the conversations is the same, event by event. */
import { z } from 'zod';
import type { ConversationEvent } from '../../src/conversation/event.js';
import { delegate } from '../../src/tools/builtin/conversation-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import type { EngineName } from '../support/engine.js';
import { startWorld } from '../support/world.js';

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ cents: z.int() }),
  policy: { approval: 'ask' },
  run: ({ cents }) => `paid ${cents}`,
});

/** Of what one host may do while the other does something else: not in their order. */
const BESIDE = new Set([
  'time-passed',
  'attributes-upserted',
  'title-upserted',
  'hand-over-due',
  'parent-notified',
  'child-asks',
  'consolidation-ended',
]);
const BESIDE_EFFECTS = new Set(['store-step', 'ask-memory', 'title', 'deliver', 'look-after']);

function wordsOf(event: ConversationEvent): string[] {
  if (BESIDE.has(event.kind)) return [];
  if (!('effect' in event)) return [event.kind];
  return BESIDE_EFFECTS.has(event.effect) ? [] : [`${event.kind} ${event.effect}`];
}

async function play(engine: EngineName) {
  const stage = createStage({ by: 'last' });
  const happened = new Map<string, string[]>();
  const world = await startWorld({
    engine,
    answer: stage.answer,
    tools: [pay, delegate],
    agent: { limits: { handOver: { updates: 4 } } },
    observe: (id, event) => happened.set(id, [...(happened.get(id) ?? []), ...wordsOf(event)]),
  });
  try {
    const { client } = world;
    const [id, helper] = [world.id(), world.id()];
    const child = `${id}:turn_0004:1`;
    const outcomes: unknown[] = [];
    const decided = async (conversation: string): Promise<void> => {
      const [asked] = await waitFor(
        () => client.approvals(id).catch(() => []),
        (list) => list.length === 1,
      );
      await client.decide(id, { callId: asked?.callId ?? '', decision: 'approve', hash: asked?.hash, conversation });
    };

    stage.play(id, text('Hello.'), callTool('pay', { cents: 5 }), text('Paid.'));
    outcomes.push(await client.send(id, say(id, 'hi'), { start: {} }));
    const paying = client.send(id, say(id, 'pay'));
    await decided(id);
    outcomes.push(await paying);

    let release!: () => void;
    stage.play(id, { ...text('Never heard.'), hold: new Promise<void>((go) => (release = go)) });
    const stopped = client.send(id, say(id, 'think'));
    await stage.waitForRequest(id, 4);
    await client.interrupt(id, 'enough');
    outcomes.push((await stopped).stopReason);
    release();

    stage.play(id, callTool('delegate', { task: say(helper, 'pay too'), title: 'pay too' }), text('They paid.'));
    stage.play(helper, callTool('pay', { cents: 7 }), text('Done.'));
    const delegated = client.send(id, say(id, 'have it paid'));
    await decided(child);
    outcomes.push(await delegated);

    await client.rewind(id, 'turn_0002');
    const fork = await client.fork(id, { at: 'turn_0001', id: world.id() });
    stage.play(fork.id, text('Here too.'));
    outcomes.push((await client.send(fork.id, say(fork.id, 'and you?'))).text);
    stage.play(id, text('After all.'), text('And on.'));
    outcomes.push(await client.send(id, say(id, 'and now?')));
    outcomes.push((await client.reset(id)).session);
    outcomes.push(await client.send(id, say(id, 'still there?')));
    const { runId, life } = await client.describe(id);
    outcomes.push({ hasHandedOver: runId !== life });
    await client.closeConversation(id, { memory: false });
    outcomes.push(await client.outcome(id));

    const named = (words: string): string => words.replaceAll(id, 'ID').replaceAll(helper, 'HELPER').replaceAll(fork.id, 'FORK');
    return {
      outcomes: JSON.parse(named(JSON.stringify(outcomes))) as unknown,
      asked: [id, helper, fork.id].map((one) => stage.requests(one).length),
      events: [...happened].map(([who, words]) => [named(who), words] as const),
    };
  } finally {
    await world.close();
  }
}

test('what happens on Temporal happens in memory', async () => {
  const inMemory = await play('memory');
  expect(inMemory.outcomes).toContainEqual({ hasHandedOver: true });
  expect(await play('temporal')).toEqual(inMemory);
});
