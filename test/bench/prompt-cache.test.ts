/** The simulator of a prompt cache, and what our requests cost with it. */
import { createPromptCache } from '../../bench/memory/prompt-cache.js';
import { renderRequest } from '../../src/models/anthropic/render.js';
import type { ConversationMessage } from '../../src/records/message.js';
import { call, request, result, says, user } from '../models/builders.js';

const LONG = 'word '.repeat(2_000);
const MINUTE = 60_000;
const marked = (text: string) => ({ type: 'text' as const, text, cache_control: { type: 'ephemeral' as const } });
const plain = (text: string) => ({ type: 'text' as const, text });

test('a prefix is written once, read for five minutes from its last use, and then written again', () => {
  const bill = createPromptCache();
  const ask = (at: number) => bill({ system: [marked(LONG)], messages: [{ role: 'user', content: [plain('hello')] }] }, at);
  const first = ask(0);
  expect([first.read, first.written > 2_500, first.cost > first.written]).toEqual([0, true, true]);
  expect(ask(4 * MINUTE)).toMatchObject({ read: first.written, written: 0 });
  expect(ask(8 * MINUTE)).toMatchObject({ read: first.written, written: 0 });
  expect(ask(14 * MINUTE)).toMatchObject({ read: 0, written: first.written });
});

test('a short prefix is not kept, one that changed is not found, and none is looked for beyond twenty blocks', () => {
  const bill = createPromptCache();
  expect(bill({ system: [marked('short')], messages: [] }, 0)).toMatchObject({ read: 0, written: 0 });
  const blocks = (count: number) => Array.from({ length: count }, (_, n) => plain(`${n}`));
  const ask = (system: string, count: number) =>
    bill({ system: [marked(system)], messages: [{ role: 'user', content: [...blocks(count), marked('end')] }] }, 0);
  expect(ask(LONG, 1).read).toBe(0);
  expect(ask(`${LONG}!`, 1).read).toBe(0);
  const messages = (count: number) => bill({ messages: [{ role: 'user', content: [marked(LONG), ...blocks(count), marked('end')] }] }, 0);
  expect(messages(1).read).toBe(0);
  const far = createPromptCache();
  const only = (count: number, first: boolean) =>
    far(
      { messages: [{ role: 'user', content: [first ? marked(LONG) : plain(LONG), ...blocks(count), ...(first ? [] : [marked('end')])] }] },
      0,
    );
  only(0, true);
  expect(only(18, false).read).toBeGreaterThan(0);
  expect(only(40, false).read).toBe(0);
});

/** Cost of a conversation's requests, as a share of what they would cost without a cache. */
function share(turns: number, memory: (turn: number) => string, hour?: true, gap = MINUTE / 2): number {
  const bill = createPromptCache();
  const messages: ConversationMessage[] = [];
  let [cost, uncached, at] = [0, 0, 0];
  const ask = (turn: number): void => {
    const system = `${LONG}\n\n# Memory\n\n${memory(turn)}`;
    const body = renderRequest(request({ system, sharedSystem: LONG.length, messages, ...(hour && { cachesForHour: hour }) }));
    const { read, written, plain: rest, cost: billed } = bill(body, at);
    cost += billed;
    uncached += read + written + rest;
  };
  for (let turn = 0; turn < turns; turn++) {
    at += gap;
    messages.push(user(`question ${turn} ${'word '.repeat(30)}`));
    ask(turn);
    messages.push(says(call(`t${turn}/c`)), result(`t${turn}/c`, 'found '.repeat(60)));
    ask(turn);
    messages.push(says(`answer ${turn} ${'word '.repeat(30)}`));
  }
  return cost / uncached;
}

test('our marks make sixty working turns cost less than 0.18 of it, but a memory that changed each time would cost more', () => {
  expect(share(60, () => '> Likes tea.')).toBeLessThanOrEqual(0.18);
  expect(share(20, (turn) => `> Likes ${turn} teas.`)).toBeGreaterThan(0.3);
});

test('of a slow conversation, marks that last an hour save most of it', () => {
  expect(share(20, () => '> Likes tea.', undefined, 10 * MINUTE)).toBeGreaterThan(0.6);
  expect(share(20, () => '> Likes tea.', true, 10 * MINUTE)).toBeLessThan(0.35);
});
