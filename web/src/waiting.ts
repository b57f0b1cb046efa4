/** What waits for a person, in all conversations that one may see. */
import { signal } from '@preact/signals';
import { request } from './api/request.js';
import type { components } from './api/schema.js';
import { mayAct } from './session.js';
import { announceNew } from './ui/notices.js';
import { whileVisible } from './ui/while-visible.js';

/** The gateway's list, with what it says beyond its schema. */
export type Waiting = components['schemas']['Approval'] & {
  readonly kind: 'approval' | 'question' | 'client-tool';
  readonly turnId: string;
  readonly target: string;
  readonly why?: string;
  readonly mayAlways?: true;
  readonly altered?: true;
  /** Epoch milliseconds. */
  readonly askedAt: number;
  readonly expiresAt: number;
};

export interface AllWaiting {
  /** Oldest first. */
  readonly all: readonly Waiting[];
  readonly isKnown: boolean;
  /** Conversations that did not answer. */
  readonly silent: readonly string[];
  readonly error?: unknown;
}

const REFRESH_MS = 6_000;
const HIDDEN_MS = 20_000;
/** Of those who may not ask for all at once. */
const MOST_ASKED = 20;

export const waiting = signal<AllWaiting>({ all: [], isKnown: false, silent: [] });

let asked = 0;

export async function refreshWaiting(): Promise<void> {
  const turn = (asked += 1);
  try {
    const found = mayAct('operator') ? await askAtOnce() : await askEach();
    if (turn !== asked) return;
    const all = [...found.all].sort((a, b) => a.askedAt - b.askedAt);
    if (waiting.value.isKnown) announceNew(waiting.value.all, all);
    waiting.value = { all, silent: found.silent, isKnown: true };
  } catch (error) {
    if (turn === asked) waiting.value = { ...waiting.value, error };
  }
}

async function askAtOnce(): Promise<Pick<AllWaiting, 'all' | 'silent'>> {
  const { approvals, silent } = await request('get', '/v1/approvals');
  return { all: approvals as Waiting[], silent: silent.map((one) => String((one as { id?: unknown }).id)) };
}

async function askEach(): Promise<Pick<AllWaiting, 'all' | 'silent'>> {
  const { conversations } = await request('get', '/v1/conversations', { query: { limit: 200, running: 'true' } });
  const ids = conversations
    .filter(({ status }) => status === 'waiting')
    .map(({ id }) => id)
    .slice(0, MOST_ASKED);
  const silent: string[] = [];
  const lists = await Promise.all(
    ids.map((id) =>
      request('get', '/v1/conversations/{id}/approvals', { path: { id } }).then(
        ({ approvals }) => approvals as Waiting[],
        () => {
          silent.push(id);
          return [];
        },
      ),
    ),
  );
  return { all: lists.flat(), silent };
}

/** Until the returned function is called; slower while the page is hidden, since people may be notified. */
export function keepWaiting(): () => void {
  return whileVisible(refreshWaiting, REFRESH_MS, { alsoHidden: HIDDEN_MS });
}
