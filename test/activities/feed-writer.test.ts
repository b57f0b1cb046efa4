import { createFeedWriter } from '../../src/activities/feed-writer.js';
import type { FeedEvent } from '../../src/conversation/protocol/contract.js';
import type { ConversationKey, LiveEvent, Store } from '../../src/stores/store.js';

const KEY: ConversationKey = { namespace: 'default', scope: 'default', conversation: 'c', life: 'l' };
const text = (said: string): FeedEvent => ({ kind: 'text', turn: 'turn_0001', call: 'turn_0001/m1', attempt: 'a', text: said });
const started: FeedEvent = { kind: 'tool-started', turn: 'turn_0001', callId: 'c1', name: 'look', input: '{}' };
const soon = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

function openFeed(write: () => Promise<void> = () => Promise.resolve()) {
  const batches: (readonly LiveEvent[])[] = [];
  const publish = (_: ConversationKey, events: readonly LiveEvent[]): Promise<void> => (batches.push(events), write());
  return { traces: { store: { feed: { publish } } as unknown as Store, key: KEY }, batches };
}

test('what comes together is one write, neighbouring texts one event', async () => {
  const { traces, batches } = openFeed();
  const writer = createFeedWriter(traces);
  writer.publish(text('a'));
  writer.publish(text('b'));
  writer.publish(started, 'c1/start');
  await soon();
  expect(batches).toEqual([[{ event: text('ab') }, { id: 'c1/start', event: started }]]);
});

test('what no write has taken goes with the commit, each with an id, in order', async () => {
  const { traces, batches } = openFeed();
  const writer = createFeedWriter(traces);
  writer.publish(started, 'c1/start');
  writer.publish(text('a'));
  expect(await writer.rest('call')).toEqual([
    { id: 'c1/start', event: started },
    { id: 'call/1', event: text('a') },
  ]);
  writer.publish(text('late'));
  await soon();
  expect(batches).toEqual([]);
});

test('the write under way ends first, and takes nothing more', async () => {
  let end = (): void => undefined;
  const { traces, batches } = openFeed(() => new Promise((resolve) => (end = resolve)));
  const writer = createFeedWriter(traces);
  writer.publish(text('a'));
  await soon();
  writer.publish(text('b'));
  const rest = writer.rest('call');
  end();
  expect(await rest).toEqual([{ id: 'call/0', event: text('b') }]);
  expect(batches).toEqual([[{ event: text('a') }]]);
});

test('a store that does not answer is waited for no longer than the limit', async () => {
  const { traces } = openFeed(() => new Promise(() => undefined));
  const writer = createFeedWriter(traces);
  writer.publish(text('a'));
  await soon();
  expect(await writer.rest('call', 10)).toEqual([]);
});

test('a short tool lingers: its start goes with its end', async () => {
  const { traces, batches } = openFeed();
  const writer = createFeedWriter(traces, 1_000);
  writer.publish(started, 'c1/start');
  await soon();
  expect(batches).toEqual([]);
  expect(await writer.rest('c1')).toHaveLength(1);
});
