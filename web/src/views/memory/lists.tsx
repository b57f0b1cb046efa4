/** Proposals to decide, facts with what replaced them, and HISTORY. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { keep, place } from '../../address.js';
import { request, type Schema } from '../../api/request.js';
import { Link, Problem, Pending } from '../../ui/parts.js';
import { plainLines, plainText, ago, dateTime, describeError, plural } from '../../ui/words.js';
import { useAnswer } from '../../ui/hooks.js';
import { Origin } from './origin.js';

interface ProposalsProps {
  readonly scope: string;
  readonly proposals: readonly Schema<'Proposal'>[];
  readonly onDecided: () => void;
}

export function Proposals({ scope, proposals, onDecided }: ProposalsProps): JSX.Element {
  const failure = useSignal<unknown>(undefined);
  const busy = useSignal('');
  const open = proposals.filter(({ state }) => state === 'open');
  const decided = proposals.filter(({ state }) => state !== 'open').toReversed();
  const decide = async (id: string, decision: 'accept' | 'reject'): Promise<void> => {
    busy.value = id;
    failure.value = undefined;
    try {
      await request('post', '/v1/memory/{scope}/review', { path: { scope }, body: { id, decision } });
      onDecided();
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = '';
    }
  };
  return (
    <>
      <p class="quiet small">
        A line that only a tool’s word stands behind waits here. Accepted, it stands in MEMORY.md, and in every prompt.
      </p>
      {failure.value !== undefined && <p class="note bad">{describeError(failure.value)}</p>}
      {open.length === 0 && <p class="note">Nothing waits for review.</p>}
      <ol class="memory-list">
        {open.map(({ id, line, source, ts }) => (
          <li key={id}>
            <p class="memory-line" dir="auto">
              {plainLines(line)}
            </p>
            <p class="small quiet memory-origin">
              <Origin source={source} /> <span class="faint">{ago(ts * 1000)}</span>
            </p>
            <p class="row">
              <button type="button" class="button tight main" disabled={busy.value === id} onClick={() => void decide(id, 'accept')}>
                Accept
              </button>
              <button type="button" class="button tight" disabled={busy.value === id} onClick={() => void decide(id, 'reject')}>
                Reject
              </button>
            </p>
          </li>
        ))}
      </ol>
      {decided.length > 0 && (
        <details class="text-of-picture">
          <summary>{plural(decided.length, 'decided line')}</summary>
          <ol class="memory-list">
            {decided.map(({ id, line, state }) => (
              <li key={id}>
                <p class="memory-line quiet">
                  <span class={`pill ${state === 'accepted' ? 'busy' : ''}`}>{state}</span> {plainText(line, 400)}
                </p>
              </li>
            ))}
          </ol>
        </details>
      )}
    </>
  );
}

export function Facts({ scope }: { readonly scope: string }): JSX.Element {
  const all = useSignal(true);
  const { value, error, again } = useAnswer(`facts ${scope}`, (signal) =>
    request('get', '/v1/memory/{scope}/facts', { path: { scope }, query: { all: 'true' }, signal }),
  );
  if (value === undefined) return <Pending error={error} again={again} />;
  const { facts } = value;
  const byId = new Map(facts.map((fact) => [fact.id, fact]));
  const shown = all.value ? facts : facts.filter(({ replaced }) => replaced === undefined);
  const gone = facts.filter(({ replaced }) => replaced !== undefined).length;
  return (
    <>
      <div class="row">
        <p class="quiet small grow">
          {plural(facts.length - gone, 'fact')} {facts.length - gone === 1 ? 'counts' : 'count'}
          {gone > 0 && `, ${gone} ${gone === 1 ? 'was' : 'were'} replaced`}
        </p>
        {gone > 0 && (
          <label class="small">
            <input type="checkbox" checked={all.value} onChange={(event) => (all.value = event.currentTarget.checked)} /> Show what was
            replaced
          </label>
        )}
      </div>
      {facts.length === 0 && <p class="note">No facts yet: compactions and consolidations find them.</p>}
      <ol class="memory-list">
        {shown.map((fact) => (
          <li key={fact.id} id={`fact-${fact.id}`}>
            <p class={`memory-line ${fact.replaced === undefined ? '' : 'is-replaced'}`} dir="auto">
              {plainText(fact.fact, 1_000)}
            </p>
            {fact.replaced !== undefined && (
              <p class="small replaced-by">
                {fact.replaced.by === null
                  ? 'It counts no longer'
                  : `Replaced by: ${plainText(byId.get(fact.replaced.by)?.fact ?? fact.replaced.by, 300)}`}
                <span class="faint"> {ago(fact.replaced.ts * 1000)}</span>
              </p>
            )}
            <p class="small quiet memory-origin">
              <span class="mono">{plainText(fact.id, 40)}</span>
              {fact.source !== null && <Origin source={fact.source} />}
              <span class="faint">{ago(fact.ts * 1000)}</span>
              {fact.tags.slice(0, 8).map((tag) => (
                <span key={tag} class="pill">
                  {plainText(tag, 40)}
                </span>
              ))}
            </p>
          </li>
        ))}
      </ol>
    </>
  );
}

export function History({ scope }: { readonly scope: string }): JSX.Element {
  const before = place.value.more['before'];
  const { value, error, again, isAsking } = useAnswer(`history ${scope} ${before ?? ''}`, (signal) =>
    request('get', '/v1/memory/{scope}/history', {
      path: { scope },
      query: { limit: 30, ...(before !== undefined && { before: Number(before) }) },
      signal,
    }),
  );
  const entries = value?.entries ?? [];
  return (
    <>
      {error !== undefined && <Problem error={error} again={again} />}
      {value !== undefined && entries.length === 0 && (
        <p class="note">{before === undefined ? 'HISTORY is empty: consolidations write it.' : 'There is nothing older.'}</p>
      )}
      {entries.length > 0 && (
        <p class="small quiet">
          The latest first.{' '}
          <Link view="memory" of={scope} more={{ part: 'search', kind: 'history' }}>
            Search HISTORY
          </Link>
        </p>
      )}
      <ol class="memory-list" aria-busy={isAsking}>
        {entries.map((entry) => (
          <li key={`${entry.id} ${entry.ts} ${entry.kind}`}>
            <p class="small quiet">
              <time dateTime={new Date(entry.ts * 1000).toISOString()}>{dateTime(entry.ts)}</time>
              {entry.kind === 'raw-fallback' && <span class="pill warn">not summarized</span>}
            </p>
            <p class="memory-text" dir="auto">
              {plainLines(entry.text.slice(0, 20_000))}
            </p>
          </li>
        ))}
      </ol>
      <p class="row">
        {value?.more === true && (
          <button type="button" class="button" onClick={() => keep({ before: String(entries.at(-1)?.ts ?? '') }, { push: true })}>
            Older ones
          </button>
        )}
        {before !== undefined && (
          <button type="button" class="button bare" onClick={() => keep({ before: undefined }, { push: true })}>
            Latest
          </button>
        )}
      </p>
    </>
  );
}
