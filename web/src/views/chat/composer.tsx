import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { request } from '../../api/request.js';
import type { Opened } from '../../conversation/open.js';
import { messageOf } from '../../ui/words.js';
import { MessageForm } from './message-form.js';

export function Composer({ opened }: { readonly opened: Opened }): JSX.Element {
  const problem = useSignal('');
  const running = opened.running.value;
  const isBusy = running !== undefined;
  const stop = (): void => {
    request('post', '/v1/conversations/{id}/interrupt', { path: { id: opened.id }, body: {} }).catch((error: unknown) => {
      problem.value = messageOf(error);
    });
  };
  const hasEnded = opened.about.value !== undefined && opened.about.value.state !== 'running';
  return (
    <div class="composer-place">
      {problem.value !== '' && <p class="note bad">{problem.value}</p>}
      {hasEnded && <p class="note">This conversation has ended. What you say begins a new life of it, with all its turns.</p>}
      <MessageForm
        label="Message"
        isBusy={isBusy}
        onStop={stop}
        onSend={(message) => {
          problem.value = '';
          // Whether there is one, or one that has ended, may not be known yet: it is begun where it must be.
          opened.outbox.send({ ...message, start: {} });
        }}
      />
    </div>
  );
}
