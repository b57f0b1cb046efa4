/** What waits for a person, oldest first, in all conversations that one may see. J and K move, Enter opens. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { isReachable } from '../../api/request.js';
import { conversations, keepListed, nameConversation } from '../../conversations.js';
import { DecisionCard } from '../../decide/decision-card.js';
import { heading } from '../../shell/title.js';
import { Link, Pending, Problem } from '../../ui/parts.js';
import { plainText, plural } from '../../ui/words.js';
import { mayNotify, refreshWaiting, waiting } from '../../waiting.js';
import '../../ui/parts.css';
import './inbox.css';

export default function Inbox(): JSX.Element {
  const list = useRef<HTMLOListElement>(null);
  const notify = useSignal(mayNotify());
  const { all, error, silent, isKnown } = waiting.value;
  useEffect(() => {
    heading.value = 'Inbox';
    void refreshWaiting();
    return keepListed();
  }, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const step = { j: 1, k: -1 }[event.key];
      const isTyping = event.target instanceof HTMLElement && event.target.matches('input, textarea, select');
      if (step === undefined || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      const items = [...(list.current?.querySelectorAll<HTMLElement>('.inbox-item') ?? [])];
      const at = items.findIndex((item) => item.contains(document.activeElement));
      items[Math.min(items.length - 1, Math.max(0, at + step))]?.focus();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <div class="view-pad inbox">
      <header class="view-head">
        <h1>Inbox</h1>
        {all.length > 1 && (
          <p class="small faint keys">
            <kbd>J</kbd> <kbd>K</kbd> move, <kbd>Tab</kbd> to decide
          </p>
        )}
        {notify.value === 'ask' && (
          <button
            type="button"
            class="button"
            onClick={() => void Notification.requestPermission().then(() => (notify.value = mayNotify()))}
          >
            Notify me
          </button>
        )}
      </header>
      {error !== undefined && isReachable.value && <Problem error={error} again={() => void refreshWaiting()} />}
      {silent.length > 0 && (
        <p class="note warn">
          {plural(silent.length, 'conversation')} did not answer, so what waits there is not shown:{' '}
          {silent
            .slice(0, 5)
            .map((id) => plainText(id, 60))
            .join(', ')}
        </p>
      )}
      {!isKnown && error === undefined && <Pending />}
      {isKnown && all.length === 0 && (
        <div class="empty">
          <h2>Nothing waits for you</h2>
          <p>When an agent asks for approval or has a question, it stands here, and in the title of this tab.</p>
        </div>
      )}
      <ol class="inbox-list" ref={list}>
        {all.map((one) => (
          <li key={`${one.conversation} ${one.callId}`} class="inbox-item" tabIndex={-1}>
            <p class="small">
              <Link view="chat" of={one.via} more={{ turn: one.conversation === one.via ? one.turnId : undefined }}>
                {nameConversation(
                  one.via,
                  conversations.value.all.find(({ id }) => id === one.via),
                )}
              </Link>
            </p>
            <DecisionCard waiting={one} />
          </li>
        ))}
      </ol>
    </div>
  );
}
