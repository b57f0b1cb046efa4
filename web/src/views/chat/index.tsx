/** Talking with an agent: what was said, what happens, and what to say next. All of it can be done from the keyboard. */
import type { JSX } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { ViewProps } from '../table.js';
import { openConversation, type Opened } from '../../conversation/open.js';
import { Problem } from '../../ui/problem.js';
import { Composer } from './composer.js';
import { NewConversation } from './new-conversation.js';
import { Transcript } from './transcript.js';
import './chat.css';

export default function Chat({ of }: ViewProps): JSX.Element {
  return of === '' ? <NewConversation /> : <One of={of} />;
}

function One({ of }: ViewProps): JSX.Element {
  const opened = useMemo(() => openConversation(of), [of]);
  useEffect(() => () => opened.close(), [opened]);
  return (
    <div class="chat">
      <Shown opened={opened} />
      <Composer opened={opened} />
    </div>
  );
}

function Shown({ opened }: { readonly opened: Opened }): JSX.Element {
  const isSending = opened.outbox.all.value.length > 0;
  switch (opened.state.value) {
    case 'loading':
      return <div class="empty" aria-busy="true" />;
    case 'missing':
      return isSending ? (
        <Transcript opened={opened} />
      ) : (
        <div class="empty">
          <h2>There is no conversation of this name</h2>
          <p>What you say below begins it.</p>
        </div>
      );
    case 'failed':
      return (
        <div class="view-pad">
          <Problem error={opened.error.value} again={() => void opened.refresh()} />
        </div>
      );
    case 'there':
      return <Transcript opened={opened} />;
  }
}
