/**
 * One connection for the live events of all conversations that are looked at: a browser has six for a host, and tabs share them.
 *
 * - Each conversation goes on after the last event that the page has, whatever happens to the connection.
 * - A hidden page gives its connection back after a while, and goes on where it was when it is visible again.
 * - Silence is noticed: the gateway sends something every 15 s.
 */
import { signal } from '@preact/signals';
import type { FeedEvent } from '../../../src/records/feed-event.js';
import { readEvents } from '../../../packages/perdura-client/src/server-events.js';
import { toAddress, ask, RequestError } from './request.js';

/** Live events as the gateway sends them: what `/openapi.json` describes as a stream of text. */
export type LiveEvent = FeedEvent & {
  readonly conversation: string;
  /** To go on after it. */
  readonly cursor: string;
};

type Listener = (event: LiveEvent) => void;

interface Followed {
  readonly listeners: Set<Listener>;
  /** Cursor, or the turn from whose beginning on. */
  after: string;
}

const SILENCE_MS = 40_000;
const HIDDEN_MS = 60_000;
const MAX_PAUSE_MS = 15_000;
/** Of one stream. */
const MOST = 50;

/** `lost`: what is shown may be old, and it is tried again. */
export const connection = signal<'idle' | 'opening' | 'open' | 'lost'>('idle');

const followed = new Map<string, Followed>();
let stop = new AbortController();
let wake: () => void = () => undefined;

/** Live events of a conversation, after a cursor or from the beginning of a turn (`turn_0004`); `$`: from now on. */
export function follow(id: string, after: string, listener: Listener): () => void {
  const known = followed.get(id);
  const one: Followed = known ?? { listeners: new Set(), after };
  if (known === undefined) followed.set(id, one);
  one.listeners.add(listener);
  if (known === undefined) restart();
  return () => {
    one.listeners.delete(listener);
    if (one.listeners.size > 0) return;
    followed.delete(id);
    restart();
  };
}

/** Once, by the page. */
export function keepConnected(): () => void {
  const leaving = new AbortController();
  void run(leaving.signal);
  const onVisible = (): void => {
    if (!document.hidden) wake();
  };
  const onOnline = (): void => restart();
  document.addEventListener('visibilitychange', onVisible);
  addEventListener('online', onOnline);
  return () => {
    document.removeEventListener('visibilitychange', onVisible);
    removeEventListener('online', onOnline);
    leaving.abort();
    restart();
  };
}

function restart(): void {
  stop.abort();
  stop = new AbortController();
  wake();
}

async function run(leaving: AbortSignal): Promise<void> {
  let failures = 0;
  while (!leaving.aborted) {
    if (followed.size === 0 || isLongHidden()) {
      connection.value = connection.value === 'lost' ? 'lost' : 'idle';
      await pause(HIDDEN_MS);
      continue;
    }
    const { signal } = stop;
    try {
      await read(signal, () => (failures = 0));
      if (!signal.aborted) failures += 1;
    } catch (error) {
      if (error instanceof RequestError && error.status === 401) return;
      if (!signal.aborted) failures += 1;
    }
    if (failures > 0) {
      if (failures > 1) connection.value = 'lost';
      await pause(Math.min(MAX_PAUSE_MS, 250 * 2 ** failures) * (0.75 + Math.random() / 2));
    }
  }
}

async function read(signal: AbortSignal, onLife: () => void): Promise<void> {
  const all = [...followed].slice(-MOST);
  const silence = new AbortController();
  let timer: number | undefined;
  const alive = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE_MS);
  };
  alive();
  const either = AbortSignal.any([signal, silence.signal]);
  if (connection.value !== 'lost') connection.value = 'opening';
  try {
    const query = { conversation: all.map(([id]) => id), after: all.map(([, { after }]) => after) };
    const response = await ask(toAddress('/v1/events', {}, query), { signal: either, headers: { accept: 'text/event-stream' } });
    connection.value = 'open';
    if (response.body === null) return;
    for await (const { event, data } of readEvents(response.body)) {
      alive();
      onLife();
      if (event === 'ping') {
        if (isLongHidden()) return;
        continue;
      }
      if (event === 'error') throw new Error(data);
      const live = JSON.parse(data) as LiveEvent;
      const one = followed.get(live.conversation);
      if (one === undefined) continue;
      one.after = live.cursor;
      for (const listener of [...one.listeners]) listener(live);
    }
  } finally {
    clearTimeout(timer);
    if (!signal.aborted && connection.value === 'open') connection.value = 'opening';
  }
}

let hiddenSince: number | undefined;

function isLongHidden(): boolean {
  if (!document.hidden) hiddenSince = undefined;
  else hiddenSince ??= Date.now();
  return hiddenSince !== undefined && Date.now() - hiddenSince > HIDDEN_MS;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}
