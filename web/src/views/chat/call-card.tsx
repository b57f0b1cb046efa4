/** A tool's call: closed it is one line, open it has all that is known. One that waits for a person is open, with what can be decided. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Opened } from '../../conversation/open.js';
import type { Call, Turn } from '../../conversation/turns.js';
import { DecisionCard } from '../../decide/decision-card.js';
import { Icon, type IconName } from '../../ui/icon.js';
import { Code } from '../../ui/code.js';
import { plainText } from '../../ui/plain-text.js';
import { duration } from '../../ui/words.js';

const STATES: Readonly<Record<Call['state'], readonly [IconName, string]>> = {
  waiting: ['wait', 'waits for a person'],
  running: ['busy', 'runs'],
  ok: ['check', 'done'],
  error: ['warn', 'failed'],
  rejected: ['close', 'never ran'],
  cancelled: ['stop', 'stopped before it began'],
  unknown: ['ask', 'interrupted: it may or may not have had its effect'],
};

export function CallCard({ call, turn, opened }: { readonly call: Call; readonly turn: Turn; readonly opened: Opened }): JSX.Element {
  const isOpen = useSignal(false);
  const waiting = opened.approvals.value.find(({ conversation, callId }) => conversation === opened.id && callId === call.callId);
  const state = call.state === 'running' && !turn.isRunning && call.output === undefined ? 'unknown' : call.state;
  const [icon, words] = STATES[state];
  if (waiting !== undefined && (state === 'waiting' || state === 'running')) {
    return <DecisionCard waiting={waiting} onDecided={() => void opened.refreshApprovals()} />;
  }
  const facts = [
    call.decision !== undefined ? DECISIONS[call.decision] : undefined,
    call.attempts > 1 ? `${call.attempts} attempts` : undefined,
    call.ms === undefined ? undefined : duration(call.ms),
  ];
  return (
    <details class={`call is-${state}`} open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        <Icon name={icon} size={15} class={state === 'running' ? 'spin' : ''} />
        <span class="name mono">{plainText(call.name, 80)}</span>
        <span class="one-line faint small gist">{plainText(gistOf(call.input), 160)}</span>
        <span class="small faint num">{facts.filter((fact) => fact !== undefined).join(' · ')}</span>
        <span class="unseen">{words}</span>
      </summary>
      {isOpen.value && (
        <div class="call-body">
          <h3>Input</h3>
          <Code text={pretty(call.input)} />
          <h3>Output {state !== 'ok' && <span class="faint">({words})</span>}</h3>
          {call.output === undefined ? <p class="small faint">Nothing yet.</p> : <Code text={call.output} />}
        </div>
      )}
    </details>
  );
}

const DECISIONS: Readonly<Record<string, string>> = { approve: 'allowed', deny: 'refused', answer: 'answered', expired: 'expired' };

/** The first words that its input has: a command, a path, a question. */
function gistOf(input: string): string {
  try {
    const found = JSON.parse(input) as unknown;
    if (typeof found !== 'object' || found === null) return input;
    return Object.values(found)
      .filter((value) => typeof value === 'string' || typeof value === 'number')
      .join('  ');
  } catch {
    return input;
  }
}

function pretty(input: string): string {
  try {
    return JSON.stringify(JSON.parse(input), null, 2);
  } catch {
    return input;
  }
}
