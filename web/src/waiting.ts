/** What waits for a person, in all conversations that one may see. */
import { signal } from '@preact/signals';
import { go } from './address.js';
import { request, type Schema } from './api/request.js';
import { mayAct } from './session.js';
import { plainText } from './ui/words.js';
import { whileVisible } from './ui/while-visible.js';

export type Waiting = Schema<'Approval'>;

interface AllWaiting {
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

let latest = 0;

export async function refreshWaiting(): Promise<void> {
  const turn = (latest += 1);
  try {
    const found = mayAct('operator') ? await askAtOnce() : await askEach();
    if (turn !== latest) return;
    const all = [...found.all].sort((a, b) => a.askedAt - b.askedAt);
    if (waiting.value.isKnown) announceNew(waiting.value.all, all);
    waiting.value = { all, silent: found.silent, isKnown: true };
  } catch (error) {
    if (turn === latest) waiting.value = { ...waiting.value, error };
  }
}

async function askAtOnce(): Promise<Pick<AllWaiting, 'all' | 'silent'>> {
  const { approvals, silent } = await request('get', '/v1/approvals');
  return { all: approvals, silent: silent.map(({ id }) => id) };
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
        ({ approvals }) => approvals,
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

// Notices of the browser: only where a person has allowed them, and only while the page is not seen.

export function mayNotify(): 'yes' | 'no' | 'ask' {
  if (!('Notification' in window)) return 'no';
  return { granted: 'yes', denied: 'no', default: 'ask' }[Notification.permission] as 'yes' | 'no' | 'ask';
}

function announceNew(before: readonly Waiting[], now: readonly Waiting[]): void {
  if (!document.hidden || mayNotify() !== 'yes') return;
  const known = new Set(before.map(toKey));
  for (const one of now.filter((item) => !known.has(toKey(item))).slice(0, 3)) {
    const title = one.kind === 'question' ? 'A question waits for you' : `${plainText(one.tool, 40)} waits for your approval`;
    const notice = new Notification(title, { body: plainText(one.target, 120), tag: toKey(one) });
    notice.onclick = () => {
      window.focus();
      go('chat', one.via);
      notice.close();
    };
  }
}

function toKey({ conversation, callId, hash }: Pick<Waiting, 'conversation' | 'callId' | 'hash'>): string {
  return `${conversation} ${callId} ${hash}`;
}
