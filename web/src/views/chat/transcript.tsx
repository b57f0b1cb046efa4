/** Turn after turn, then what was sent and waits for its turn. */
import { useComputed, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { keep, place } from '../../address.js';
import { request } from '../../api/request.js';
import type { Branch, Opened } from '../../conversation/open.js';
import type { Sent } from '../../conversation/outbox.js';
import { toTurns, type Entry, type Turn } from '../../conversation/turns.js';
import { DecisionCard } from '../../decide/decision-card.js';
import { Icon } from '../../ui/icon.js';
import { plainLines, ago, plural } from '../../ui/words.js';
import { Problem } from '../../ui/parts.js';
import { VirtualList } from '../../ui/virtual-list.js';
import { AWAY, Documents, TurnView } from './turn-view.js';

export function Transcript({ opened }: { readonly opened: Opened }): JSX.Element {
  const goTo = useSignal<{ readonly key: string } | undefined>(undefined);
  const { turn: wanted, branch } = place.value.more;
  useEffect(() => {
    if (wanted !== undefined) goTo.value = { key: wanted };
  }, [wanted]);
  const turns = opened.turns.value;
  const ids = useComputed(
    () => new Set(opened.turns.value.flatMap(({ parts }) => parts.map((part) => (part.kind === 'call' ? part.callId : '')))),
  );
  // Sub-agents ask by way of this conversation; their calls are in none of its turns.
  const elsewhere = opened.approvals.value.filter(({ conversation, callId }) => conversation !== opened.id || !ids.value.has(callId));
  const shownBranch = branch === undefined ? undefined : opened.branches.value.find((one) => String(one.branch) === branch);
  if (shownBranch !== undefined) return <BranchTurns opened={opened} branch={shownBranch} />;
  return (
    <VirtualList
      items={turns}
      toKey={(turn) => turn.id}
      label="Conversation"
      onNearTop={() => {
        if (opened.hasEarlier.value) void opened.readEarlier();
      }}
      goTo={goTo.value}
      render={(turn) => (
        <>
          {isNewSession(turns, turn) && <SessionMark />}
          <TurnView key={turn.id} turn={turn} opened={opened} isLast={turn === turns.at(-1)} isSought={turn.id === wanted} />
        </>
      )}
      foot={
        <div class="foot">
          {(opened.about.value?.status?.session ?? 1) > (turns.at(-1)?.session || Infinity) && turns.at(-1)?.isRunning === false && (
            <SessionMark />
          )}
          {elsewhere.map((one) => (
            <DecisionCard key={`${one.conversation} ${one.callId}`} waiting={one} onDecided={() => void opened.refreshApprovals()} />
          ))}
          {opened.outbox.all.value.map((sent) => (
            <SentMessage key={sent.id} sent={sent} opened={opened} />
          ))}
        </div>
      }
    />
  );
}

function isNewSession(turns: readonly Turn[], turn: Turn): boolean {
  const before = turns[turns.indexOf(turn) - 1];
  return before !== undefined && before.session > 0 && turn.session > before.session;
}

function SessionMark(): JSX.Element {
  return <p class="turn session-mark small faint">A new session begins; what was said before is memory</p>;
}

function SentMessage({ sent, opened }: { readonly sent: Sent; readonly opened: Opened }): JSX.Element {
  const takeBack = (): void => {
    const path = { id: opened.id, messageId: sent.id };
    request('delete', '/v1/conversations/{id}/messages/{messageId}', { path }).then(
      () => opened.outbox.remove(sent.id),
      () => void opened.refresh(),
    );
  };
  return (
    <article class="turn sent" aria-label="Sent">
      <div class="said" dir="auto">
        {plainLines(sent.text.slice(0, 20_000))}
        <Documents of={sent.documents ?? []} />
      </div>
      <p class={`receipt small ${sent.state === 'refused' ? 'is-bad' : 'faint'}`} role="status">
        <Icon name={sent.state === 'refused' ? 'warn' : 'wait'} size={14} />
        {sent.receipt ?? (opened.isAway.value ? AWAY : 'Sending …')}
        {sent.state === 'accepted' && (
          <button type="button" class="button bare tight" onClick={takeBack}>
            Take back
          </button>
        )}
        {sent.state === 'refused' && (
          <>
            <button type="button" class="button bare tight" onClick={() => opened.outbox.again(sent.id)}>
              Send again
            </button>
            <button type="button" class="button bare tight" onClick={() => opened.outbox.remove(sent.id)}>
              Discard
            </button>
          </>
        )}
      </p>
    </article>
  );
}

/** What a rewind has cut out: it can be looked at, and another conversation can begin with it. */
function BranchTurns({ opened, branch }: { readonly opened: Opened; readonly branch: Branch }): JSX.Element {
  const entries = useSignal<readonly Entry[] | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  useEffect(() => {
    entries.value = undefined;
    request('get', '/v1/conversations/{id}/entries', { path: { id: opened.id }, query: { branch: branch.branch, limit: 1_000 } }).then(
      (read) => (entries.value = read.entries),
      (problem: unknown) => (error.value = problem),
    );
  }, [branch.branch]);
  const siblings = opened.branches.value.filter(({ after }) => after === branch.after);
  const at = siblings.findIndex((one) => one.branch === branch.branch);
  const to = (index: number): void =>
    keep({ branch: index < siblings.length ? String(siblings[index]?.branch ?? '') : undefined }, { push: true });
  return (
    <div class="virtual" tabIndex={0}>
      <p class="note warn branch-note" role="status">
        <Icon name="branch" size={15} />
        <span class="grow">
          A branch of {plural(branch.turns.length, 'turn')}, cut {ago(branch.at) === 'now' ? 'just now' : `${ago(branch.at)} ago`}. Forking
          goes on with it.
        </span>
        <span class="branch-switch">
          <button
            type="button"
            class="button bare square tight"
            aria-label="The answer before this one"
            disabled={at <= 0}
            onClick={() => to(at - 1)}
          >
            <Icon name="back" size={14} />
          </button>
          <span class="num">
            {at + 1} of {siblings.length + 1}
          </span>
          <button type="button" class="button bare square tight" aria-label="The answer after this one" onClick={() => to(at + 1)}>
            <Icon name="next" size={14} />
          </button>
        </span>
      </p>
      {error.value !== undefined && <Problem error={error.value} />}
      {toTurns(entries.value ?? []).map((turn) => (
        <TurnView key={turn.id} turn={turn} opened={opened} isLast={false} isBranch />
      ))}
    </div>
  );
}
