/** A tool's call: closed it is one line, open it has all that is known. One that waits for a person is open, with what can be decided. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { request } from '../../api/request.js';
import type { Opened } from '../../conversation/open.js';
import type { CallPart } from '../../../../src/records/turn-view.js';
import type { Turn } from '../../conversation/turns.js';
import { DecisionCard } from '../../decide/decision-card.js';
import { Icon, type IconName } from '../../ui/icon.js';
import { Code, gatherWords, parsedJson, prettyJson } from '../../ui/code.js';
import { Link } from '../../ui/parts.js';
import { plainText, dollars, duration } from '../../ui/words.js';
import { useAnswer } from '../../ui/hooks.js';

const STATES: Readonly<Record<CallPart['state'], readonly [IconName, string]>> = {
  waiting: ['wait', 'waits for a person'],
  running: ['busy', 'runs'],
  ok: ['check', 'done'],
  error: ['warn', 'failed'],
  rejected: ['close', 'never ran'],
  cancelled: ['stop', 'stopped before it began'],
  unknown: ['ask', 'interrupted, perhaps with effect'],
};

interface CallCardProps {
  readonly call: CallPart;
  readonly turn: Turn;
  readonly opened: Opened;
  /** Of a branch only what was said is kept. */
  readonly isBranch?: boolean;
}

export function CallCard({ call, turn, opened, isBranch = false }: CallCardProps): JSX.Element {
  const isOpen = useSignal(false);
  const waiting = opened.approvals.value.find(({ conversation, callId }) => conversation === opened.id && callId === call.callId);
  const state = call.state === 'running' && !turn.isRunning && call.output === undefined ? 'unknown' : call.state;
  const [icon, words] = STATES[state];
  if (waiting !== undefined && (state === 'waiting' || state === 'running')) {
    return <DecisionCard waiting={waiting} onDecided={() => void opened.refreshApprovals()} />;
  }
  const input = parsedJson(call.input);
  const facts = [
    state === 'ok' || state === 'running' ? undefined : words,
    call.decision !== undefined ? DECISIONS[call.decision] : undefined,
    call.attempts > 1 ? `${call.attempts} attempts` : undefined,
    call.ms === undefined ? undefined : duration(call.ms),
  ];
  return (
    <details class={`call is-${state}`} open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        <Icon name={icon} size={15} class={state === 'running' ? 'spin' : ''} />
        <span class="name mono">{plainText(call.name, 80)}</span>
        <span class="one-line faint small gist">{plainText(input === undefined ? call.input : gatherWords(input.value), 160)}</span>
        <span class="small faint num">{facts.filter((fact) => fact !== undefined).join(' · ')}</span>
        {(state === 'ok' || state === 'running') && <span class="unseen">{words}</span>}
      </summary>
      {isOpen.value && (
        <div class="call-body">
          {!isBranch && call.callId !== '' && (
            <Circumstances of={opened.id} turn={turn.id} call={call} isOver={call.output !== undefined} />
          )}
          <h3>Input</h3>
          <Code text={input === undefined ? call.input : prettyJson(input.value)} />
          <h3>Output</h3>
          {call.output === undefined ? <p class="small faint">Nothing yet.</p> : <Code text={call.output} />}
        </div>
      )}
    </details>
  );
}

interface CircumstancesProps {
  readonly of: string;
  readonly turn: string;
  readonly call: CallPart;
  readonly isOver: boolean;
}

/** How long it took, how often it was tried, what it cost: as its turn's timeline has it, also after a reload. */
function Circumstances({ of, turn, call, isOver }: CircumstancesProps): JSX.Element | null {
  const { value } = useAnswer(`timeline ${of} ${turn} ${String(isOver)}`, (signal) =>
    request('get', '/v1/conversations/{id}/turns/{turn}/timeline', { path: { id: of, turn }, signal }),
  );
  // A sub-agent's id ends with its turn and the number of its call.
  const child = `:${turn}:${call.callId.replace(/^.*\/c/, '')}`;
  const bars = value?.bars.filter(({ callId, conversation }) => callId === call.callId || conversation?.endsWith(child) === true) ?? [];
  const ran = bars.findLast(({ lane }) => lane === 'tool' || lane === 'sub-agent');
  const wait = bars.find(({ lane }) => lane === 'person');
  const waited = wait !== undefined && wait.to !== null ? duration(wait.to - wait.from) : undefined;
  if (ran === undefined && waited === undefined) return null;
  return (
    <div class="call-facts small num">
      <dl class="call-facts">
        {ran !== undefined && ran.to !== null && <Fact name="Took">{duration(ran.to - (ran.started ?? ran.from))}</Fact>}
        {waited !== undefined && <Fact name="Waited for a person">{waited}</Fact>}
        {ran !== undefined && <Fact name="Attempts">{ran.attempt}</Fact>}
        {ran !== undefined && ran.usage !== null && <Fact name="Cost">{dollars(ran.usage.costUsd)}</Fact>}
      </dl>
      <Link view="timeline" of={of} more={{ turn, bar: (ran ?? wait)?.id }}>
        Timeline
      </Link>
      {ran !== undefined && ran.conversation !== null && (
        <Link view="chat" of={ran.conversation}>
          The sub-agent’s conversation
        </Link>
      )}
    </div>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: string | number }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt> <dd>{children}</dd>
    </div>
  );
}

const DECISIONS: Readonly<Record<string, string>> = { approve: 'allowed', deny: 'refused', answer: 'answered', expired: 'expired' };
