/** Talking with an agent: what was said, what happens, and what to say next. All of it can be done from the keyboard. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import { go, place } from '../../address.js';
import { request } from '../../api/request.js';
import { openConversation, type Opened } from '../../conversation/open.js';
import { leaveFirst } from '../../conversation/outbox.js';
import type { ViewProps } from '../table.js';
import { plainText, describeError } from '../../ui/words.js';
import { Pending, Problem } from '../../ui/parts.js';
import { MessageForm } from './message-form.js';
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
      return <Pending />;
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

function Composer({ opened }: { readonly opened: Opened }): JSX.Element {
  const problem = useSignal('');
  const running = opened.running.value;
  const isBusy = running !== undefined;
  const stop = (): void => {
    request('post', '/v1/conversations/{id}/interrupt', { path: { id: opened.id }, body: {} }).catch((error: unknown) => {
      problem.value = describeError(error);
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

function NewConversation(): JSX.Element {
  const agents = useSignal<readonly string[]>([]);
  const agent = useSignal(place.value.more['agent'] ?? '');
  useEffect(() => {
    request('get', '/v1/agents').then(
      (answer) => (agents.value = answer.agents),
      // Without the list the gateway's own default answers.
      () => undefined,
    );
  }, []);
  return (
    <div class="chat begin">
      <div class="empty">
        <h2>What is to be done?</h2>
        <p>The conversation goes on when this page is closed, and outlives the death of every process.</p>
      </div>
      <MessageForm
        label="First message"
        isBusy={false}
        onSend={({ text, images, documents }) => {
          const id = `conv-${crypto.randomUUID()}`;
          leaveFirst(id, { text, images, documents, delivery: 'queue', start: agent.value === '' ? {} : { agent: agent.value } });
          go('chat', id);
        }}
      >
        {agents.value.length > 1 && (
          <label class="agent-choice small">
            <span class="faint">Agent</span>
            <select
              class="field"
              value={agent.value === '' ? (agents.value.find((name) => name === 'default') ?? agents.value[0]) : agent.value}
              onChange={(event) => (agent.value = event.currentTarget.value)}
            >
              {agents.value.map((name) => (
                <option key={name} value={name}>
                  {plainText(name, 64)}
                </option>
              ))}
            </select>
          </label>
        )}
      </MessageForm>
    </div>
  );
}
