/** Notices of the browser: only where a person has allowed them, and only while the page is not seen. */
import { go } from '../address.js';
import type { Waiting } from '../waiting.js';
import { plainText } from './plain-text.js';

export function mayNotify(): 'yes' | 'no' | 'ask' {
  if (!('Notification' in window)) return 'no';
  return { granted: 'yes', denied: 'no', default: 'ask' }[Notification.permission] as 'yes' | 'no' | 'ask';
}

export function announceNew(before: readonly Waiting[], now: readonly Waiting[]): void {
  if (!document.hidden || mayNotify() !== 'yes') return;
  const known = new Set(before.map(keyOf));
  for (const one of now.filter((item) => !known.has(keyOf(item))).slice(0, 3)) {
    const title = one.kind === 'question' ? 'A question waits for you' : `${plainText(one.tool, 40)} waits for your approval`;
    const notice = new Notification(title, { body: plainText(one.target, 120), tag: keyOf(one) });
    notice.onclick = () => {
      window.focus();
      go('chat', one.via);
      notice.close();
    };
  }
}

function keyOf({ conversation, callId, hash }: Pick<Waiting, 'conversation' | 'callId' | 'hash'>): string {
  return `${conversation} ${callId} ${hash}`;
}
