import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { go, place } from '../../address.js';
import { request } from '../../api/request.js';
import { leaveFirst } from '../../conversation/first-message.js';
import { plainText } from '../../ui/plain-text.js';
import { MessageForm } from './message-form.js';

export function NewConversation(): JSX.Element {
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
