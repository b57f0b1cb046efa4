/**
 * A conversation that the page looks at, without a browser: the page's own requests and its one stream of events, before a gateway of a few
 * lines. What is drawn is read from its signals.
 */
import type { TurnEvent } from '../../src/records/feed-event.js';
import type { Entry, Turn } from '../../web/src/conversation/turns.js';
import { waitFor } from '../support/wait-for.js';

// Signals without their hooks into preact, which only a bundler loads; and an address as the bundler gives it.
jest.mock('@preact/signals', () =>
  jest.requireActual(require.resolve(['@preact', 'signals-core'].join('/'), { paths: [require.resolve('@preact/signals')] })),
);
jest.mock('../../web/src/address', () => ({ home: new URL('http://page.test/') }));

interface Opened {
  readonly state: { readonly value: string };
  readonly turns: { readonly value: readonly Turn[] };
  readonly outbox: { readonly all: { readonly value: readonly object[] }; send(message: object): void };
  close(): void;
}

const { openConversation } = jest.requireActual<{ openConversation(id: string): Opened }>('../../web/src/conversation/open');
const { keepConnected } = jest.requireActual<{ keepConnected(): () => void }>('../../web/src/api/connection');

const ID = 'trip';
const turn = 'turn_0001';
const call = 'turn_0001/m1';

let entries: Entry[];
let phase: string;
/** From where each stream of events was asked for, and the latest that is open. */
let asked: string[];
let stream: ReadableStreamDefaultController<Uint8Array> | undefined;
/** What was sent, and how often the gateway is away before it takes one. */
let sent: { readonly id: string }[];
let away: number;
const ends: (() => void)[] = [];

async function gateway(address: URL, { method = 'GET', body, signal }: RequestInit = {}): Promise<Response> {
  const path = address.pathname.replace(`/v1/conversations/${ID}`, '');
  if (address.pathname === '/v1/events') {
    asked.push(address.searchParams.get('after') ?? '');
    const opened = new ReadableStream<Uint8Array>({ start: (controller) => void (stream = controller) });
    signal?.addEventListener('abort', () => stream?.error(new Error('left')), { once: true });
    return new Response(opened);
  }
  if (method === 'POST') {
    sent.push(JSON.parse(body as string) as { id: string });
    if (away-- > 0) throw new TypeError('fetch failed');
    return Response.json({ acceptedAs: 'queue', position: 0, turn });
  }
  if (path === '/entries') return Response.json({ entries, previous: null, ends: [] });
  if (path === '/branches') return Response.json({ branches: [] });
  if (path === '') return Response.json({ id: ID, status: { phase, turn: 1, turns: 0, pendingApprovals: 0 } });
  return Response.json({ conversations: [], approvals: [], silent: [] });
}

beforeEach(() => {
  [entries, phase, asked, stream, sent, away] = [[entry(1, 'hello')], 'thinking', [], undefined, [], 0];
  const nothing = (): void => undefined;
  const kept = new Map<string, string>();
  Object.assign(globalThis, {
    ...{ fetch: gateway, addEventListener: nothing, removeEventListener: nothing, window: {} },
    document: { hidden: false, addEventListener: nothing, removeEventListener: nothing },
    sessionStorage: { getItem: (key: string) => kept.get(key) ?? null, setItem: kept.set.bind(kept), removeItem: kept.delete.bind(kept) },
  });
});
afterEach(() => {
  for (const end of ends.splice(0).reverse()) end();
});

function entry(slot: number, text: string): Entry {
  const base = { v: 1 as const, slot, session: 1, turn, seq: slot, ts: slot };
  if (slot === 1) return { ...base, messageId: 'm1', message: { role: 'user', text } };
  return { ...base, message: { role: 'assistant', blocks: [{ kind: 'text', text }], model: 'a/b', stop: 'end' } };
}

async function open(): Promise<Opened> {
  ends.push(keepConnected());
  const opened = openConversation(ID);
  ends.push(() => opened.close());
  await waitFor(
    () => stream,
    (there) => there !== undefined,
  );
  return opened;
}

let cursor = 0;
function tell(...events: readonly TurnEvent[]): void {
  for (const event of events) {
    const live = { ...event, conversation: ID, cursor: `c${(cursor += 1)}` };
    stream?.enqueue(new TextEncoder().encode(`event: ${event.kind}\ndata: ${JSON.stringify(live)}\n\n`));
  }
}

const said = (text: string, attempt = '1'): TurnEvent => ({ kind: 'text', turn, call, attempt, text });
const drawn = ({ turns }: Opened): string[] =>
  turns.value.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])));
const draws = (opened: Opened, words: string[]): Promise<unknown> =>
  waitFor(
    () => drawn(opened),
    (now) => JSON.stringify(now) === JSON.stringify(words),
  );

const beginning: TurnEvent = { kind: 'message', turn, messageId: 'm1', preview: 'hello', ts: 1 };
const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 1, costUsd: null };
const ending: TurnEvent = { kind: 'turn-finished', turn, result: { turnId: turn, text: '', stopReason: 'end', usage, toolCalls: 0 } };

test('a turn that runs is followed from its beginning; a failed attempt is taken back, and the end is what is recorded', async () => {
  const opened = await open();
  expect(asked.at(-1)).toBe(turn);
  tell(beginning, said('One '), said('tw'));
  await draws(opened, ['One tw']);
  tell({ kind: 'reset', turn, call, attempt: '1' });
  await draws(opened, []);
  tell(said('One ', '2'), said('two.', '2'));
  await draws(opened, ['One two.']);
  expect(opened.turns.value).toMatchObject([{ isRunning: true, messages: [{ id: 'm1', text: 'hello' }] }]);
  [entries, phase] = [[...entries, entry(2, 'One two, as recorded.')], 'idle'];
  tell(ending);
  await draws(opened, ['One two, as recorded.']);
  expect(opened.turns.value).toMatchObject([{ isRunning: false, result: { stopReason: 'end' } }]);
});

test('after a stream that broke the page goes on behind the last event that it saw', async () => {
  const opened = await open();
  tell(beginning, said('One '));
  await draws(opened, ['One ']);
  const last = `c${cursor}`;
  stream?.close();
  await waitFor(
    () => asked,
    (all) => all.at(-1) === last,
  );
  tell(said('two.'));
  await draws(opened, ['One two.']);
});

test('where events were lost for good the page reads anew what is recorded', async () => {
  phase = 'idle';
  const opened = await open();
  await draws(opened, []);
  entries = [...entries, entry(2, 'Said meanwhile.')];
  tell({ kind: 'resync' });
  await draws(opened, ['Said meanwhile.']);
});

test('a message is sent under one id until the gateway has taken it, and is gone from the outbox when its turn has begun', async () => {
  phase = 'idle';
  const opened = await open();
  away = 1;
  opened.outbox.send({ text: 'more', delivery: 'queue', images: [] });
  await waitFor(
    () => opened.outbox.all.value,
    ([one]) => one !== undefined && 'receipt' in one && one.receipt === 'Queued: it is answered next',
  );
  expect(new Set(sent.map(({ id }) => id)).size).toBe(1);
  expect(sent).toHaveLength(2);
  tell({ kind: 'message', turn: 'turn_0002', messageId: sent[0]!.id, preview: 'mo', ts: 2 });
  await waitFor(
    () => opened.turns.value.at(-1)?.messages.map(({ text }) => text),
    (words) => words?.[0] === 'more',
  );
  expect(opened.outbox.all.value).toEqual([]);
});
