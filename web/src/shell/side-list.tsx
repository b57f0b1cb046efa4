import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { go, NEW } from '../address.js';
import { isReachable } from '../api/request.js';
import { conversations, hasMore, listMore, nameConversation, refreshList, type Listed } from '../conversations.js';
import { mayAct } from '../session.js';
import { Icon } from '../ui/icon.js';
import { Link, Problem } from '../ui/parts.js';
import { plainText, ago, spent } from '../ui/words.js';

export function SideList({ view, of }: { readonly view: string; readonly of: string }): JSX.Element {
  const wanted = useSignal('');
  const list = useRef<HTMLUListElement>(null);
  const words = wanted.value
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const { all, error, isKnown } = conversations.value;
  const isNarrowed = useSignal(false);
  const waitingOnes = all.filter(({ status }) => status === 'waiting');
  const shown = (isNarrowed.value ? waitingOnes : all).filter((one) =>
    words.every((word) => `${one.title ?? ''} ${one.id} ${one.agent ?? ''}`.toLowerCase().includes(word)),
  );
  const move = (event: KeyboardEvent, from: number): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    list.current?.querySelectorAll<HTMLElement>('.side-link')[Math.max(0, from + step)]?.focus();
  };
  return (
    <section class="side" aria-label="Conversations">
      <div class="side-top">
        <input
          class="field"
          type="search"
          placeholder="Search"
          aria-label="Search conversations"
          aria-keyshortcuts="/"
          data-search
          value={wanted.value}
          onInput={(event) => {
            wanted.value = event.currentTarget.value;
            // What is searched is what there is, not what happened to be on the first page.
            if (wanted.value !== '' && hasMore()) listMore(500);
          }}
          onKeyDown={(event) => move(event, -1)}
        />
        <button
          type="button"
          class="button square"
          aria-label="New conversation"
          title="New conversation"
          onClick={() => go('chat', '', NEW)}
        >
          <Icon name="plus" />
        </button>
      </div>
      {(waitingOnes.length > 0 || isNarrowed.value) && (
        <button
          type="button"
          class="button tight side-waiting"
          aria-pressed={isNarrowed.value}
          onClick={() => {
            isNarrowed.value = !isNarrowed.value;
            if (isNarrowed.value && hasMore()) listMore(500);
          }}
        >
          <span class="dot waiting" aria-hidden="true" />
          {isNarrowed.value ? 'Show all' : `${waitingOnes.length} waiting`}
        </button>
      )}
      <ul class="side-list" ref={list}>
        {error !== undefined && isReachable.value && (
          <li>
            <Problem error={error} again={() => void refreshList()} />
          </li>
        )}
        {shown.map((one, at) => (
          <li key={one.id} onKeyDown={(event) => move(event, at)}>
            <Row one={one} view={view} current={one.id === of} />
          </li>
        ))}
        {isKnown && shown.length === 0 && <li class="more faint small">{all.length === 0 ? 'None yet.' : 'Nothing fits.'}</li>}
        {words.length > 0 && mayAct('operator') && (
          <li class="more small">
            <Link view="memory" more={{ part: 'search', question: wanted.value.trim().slice(0, 500) }}>
              Search all that was said for “{plainText(wanted.value, 40)}”
            </Link>
          </li>
        )}
        {hasMore() && (
          <li class="more">
            <button type="button" class="button bare tight" onClick={() => listMore()}>
              Show older ones
            </button>
          </li>
        )}
      </ul>
    </section>
  );
}

function Row({ one, view, current }: { readonly one: Listed; readonly view: string; readonly current: boolean }): JSX.Element {
  const [kind, words] = describeState(one);
  const facts = [one.agent === null ? '' : plainText(one.agent, 40), ago(one.startedAt), spent(one)];
  return (
    <Link view={view} of={one.id} class="side-link" current={current}>
      <span class="one-line">{nameConversation(one.id, one)}</span>
      {kind !== '' && <span class={`dot ${kind}`} title={words} role="img" aria-label={words} />}
      <span class="facts one-line num">{facts.filter((fact) => fact !== '').join(' · ')}</span>
    </Link>
  );
}

function describeState({ running, status }: Listed): readonly [kind: string, words: string] {
  if (status === 'waiting') return ['waiting', 'waits for a person'];
  if (status === 'failed') return ['failed', 'failed'];
  return ['', running ? 'idle' : 'ended'];
}
