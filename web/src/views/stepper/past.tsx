/** Every state that a conversation was in. ← and → go event by event, T and Shift+T turn by turn. */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { keep, place } from '../../address.js';
import { request, type Schema } from '../../api/request.js';
import { plainText, count, dollars, plural } from '../../ui/words.js';
import { Problem } from '../../ui/parts.js';
import { useAnswer, useKeys } from '../../ui/hooks.js';

type Scene = Schema<'Scene'>;
type SceneChunk = Schema<'Chunk'>;

const PAGE = 200;

export function Past({ of, marker }: { readonly of: string; readonly marker: number }): JSX.Element {
  const wanted = Number(place.value.more['at'] ?? NaN);
  // The page of events around the one that is looked at; the latest, where none is named.
  const first = Number.isNaN(wanted) ? undefined : Math.floor(wanted / PAGE) * PAGE;
  const { value, error, again } = useAnswer(`moments ${of} ${first ?? 'latest'}`, async (signal) => {
    const ask = (from: number): Promise<Schema<'Moments'>> =>
      request('get', '/v1/conversations/{id}/moments', { path: { id: of }, query: { from, limit: PAGE }, signal });
    if (first !== undefined) return ask(first);
    const { last } = await request('get', '/v1/conversations/{id}/moments', { path: { id: of }, query: { from: 0, limit: 1 }, signal });
    return ask(Math.floor(last / PAGE) * PAGE);
  });
  // A step adds to what is shown; nothing of it goes away meanwhile.
  useEffect(() => {
    if (marker > 0) again();
  }, [marker]);
  const last = value?.last ?? 0;
  const at = Number.isNaN(wanted) ? last : Math.min(Math.max(0, wanted), last);
  const go = (to: number | undefined): void => {
    if (to !== undefined && value !== undefined) keep({ at: String(Math.min(last, Math.max(0, to))) });
  };
  const turns = value?.turns ?? [];
  useKeys({
    ArrowRight: () => go(at + 1),
    ArrowLeft: () => go(at - 1),
    Home: () => go(0),
    End: () => go(last),
    t: () => go(turns.find(({ position }) => position > at)?.position),
    T: () => go(turns.findLast(({ position }) => position < at)?.position),
  });
  if (value === undefined) {
    return error === undefined ? (
      <p class="note" role="status">
        Replaying what happened…
      </p>
    ) : (
      <Problem error={error} again={again} />
    );
  }
  const turn = turns.findLast(({ position }) => position <= at)?.turn;
  return (
    <section class="past" aria-label="Its past">
      <div class="past-line">
        <div class="past-ticks" aria-hidden="true">
          {turns.slice(0, 400).map(({ turn: name, position }) => (
            <i key={name} style={{ insetInlineStart: `${(position / Math.max(1, last)) * 100}%` }} />
          ))}
        </div>
        <input
          type="range"
          min={0}
          max={last}
          value={at}
          aria-label="Event"
          aria-valuetext={`Event ${at} of ${last}${turn === undefined ? '' : `, turn ${Number(turn.slice(5))}`}`}
          onInput={(event) => go(Number(event.currentTarget.value))}
        />
        <p class="row small quiet num">
          <span class="grow">
            Event {at} of {last}
            {turn !== undefined && ` · turn ${Number(turn.slice(5))}`}
          </span>
          <span class="hint keys">
            <kbd>←</kbd> <kbd>→</kbd> events, <kbd>T</kbd> <kbd>⇧T</kbd> turns
          </span>
        </p>
      </div>
      {!value.complete && <p class="note">Earlier runs have passed their retention: the first event here is not its first.</p>}
      {value.problems.map((problem) => (
        <p key={problem} class="note warn">
          A run cannot be replayed with this version: {plainText(problem, 300)}
        </p>
      ))}
      <div class="past-sides">
        <Events moments={value.moments} at={at} onGo={go} />
        <OneMoment of={of} position={at} />
      </div>
    </section>
  );
}

interface EventsProps {
  readonly moments: readonly Schema<'Moment'>[];
  readonly at: number;
  readonly onGo: (position: number) => void;
}

function Events({ moments, at, onGo }: EventsProps): JSX.Element {
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const shown = list.current?.querySelector<HTMLElement>('[aria-current]');
    if (shown === null || shown === undefined || list.current === null) return;
    // Only the list itself moves, never the page.
    const { offsetTop, offsetHeight } = shown;
    const { scrollTop, clientHeight } = list.current;
    if (offsetTop < scrollTop || offsetTop + offsetHeight > scrollTop + clientHeight) list.current.scrollTop = offsetTop - clientHeight / 2;
  }, [at, moments]);
  return (
    <ol class="events" ref={list} tabIndex={-1}>
      {moments.map(({ position, event, words, run }) => (
        <li key={position}>
          <button type="button" class="event" aria-current={position === at ? 'true' : undefined} onClick={() => onGo(position)}>
            <span class="faint num">{position}</span>
            <span class="event-words">{event === null ? <strong>Run {run} begins</strong> : plainText(shortIds(words), 240)}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}

function OneMoment({ of, position }: { readonly of: string; readonly position: number }): JSX.Element {
  const { value, error, again } = useAnswer(`moment ${of} ${position}`, (signal) =>
    request('get', '/v1/conversations/{id}/moments/{position}', { path: { id: of, position }, signal }),
  );
  if (value === undefined) return error === undefined ? <div class="moment" aria-busy="true" /> : <Problem error={error} again={again} />;
  const { before, after, changes, more, words, event, at } = value;
  const name = event === null ? 'A run begins' : plainText(event.replaceAll('-', ' '), 100);
  const details = plainText(shortIds(words), 400);
  return (
    <div class="moment" aria-live="polite">
      <header>
        <h2>{name}</h2>
        {details !== name && <p class="small quiet">{details}</p>}
        <p class="small faint">
          <time dateTime={new Date(at).toISOString()}>
            {new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })}
          </time>
        </p>
      </header>
      <Facts before={before} after={after} />
      <Flow before={before?.chunks ?? []} after={after.chunks} />
      {changes.length > 0 && (
        <details class="text-of-picture" open={changes.length <= 12}>
          <summary>
            {plural(changes.length, 'field')} of its state changed{more && ', and more'}
          </summary>
          <div class="scroll">
            <table class="sheet changes">
              <thead>
                <tr>
                  <th>Field</th>
                  <th>Before</th>
                  <th>After</th>
                </tr>
              </thead>
              <tbody>
                {changes.map(({ path, before: was, after: is }) => (
                  <tr key={path}>
                    <td class="mono">{plainText(path, 120)}</td>
                    <td class="mono went">{was === null ? <span class="faint">—</span> : plainText(was, 320)}</td>
                    <td class="mono came">{is === null ? <span class="faint">—</span> : plainText(is, 320)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </details>
      )}
      {changes.length === 0 && event !== null && <p class="small faint">It changed nothing.</p>}
    </div>
  );
}

/** The beginning of an id tells as much; the table of fields has all of it. */
function shortIds(words: string): string {
  return words.replace(/\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '$1…');
}

function Facts({ before, after }: { readonly before: Scene | null; readonly after: Scene }): JSX.Element {
  const was = before === null ? undefined : new Map(listFacts(before));
  return (
    <dl class="facts-list state-facts">
      {listFacts(after).map(([name, value]) => {
        const old = was?.get(name);
        const isChanged = old !== undefined && old !== value;
        return (
          <>
            <dt key={`${name} name`}>{name}</dt>
            <dd key={name} class={isChanged ? 'is-changed' : ''}>
              {isChanged && (
                <>
                  <s>{plainText(shortIds(old), 200)}</s> <span aria-hidden="true">→</span>{' '}
                </>
              )}
              {plainText(shortIds(value), 200)}
            </dd>
          </>
        );
      })}
    </dl>
  );
}

/** The context as a strip, with what came and what left. */
function Flow({ before, after }: { readonly before: readonly SceneChunk[]; readonly after: readonly SceneChunk[] }): JSX.Element | null {
  const [had, has] = [new Set(before.map(({ id }) => id)), new Set(after.map(({ id }) => id))];
  const came = after.filter(({ id }) => !had.has(id));
  const went = before.filter(({ id }) => !has.has(id));
  if (came.length === 0 && went.length === 0) return null;
  const row = (chunk: SceneChunk, kind: 'came' | 'went'): JSX.Element => (
    <li key={`${kind} ${chunk.id}`} class={kind}>
      <span class="num" aria-hidden="true">
        {kind === 'came' ? '+' : '−'}
      </span>
      <span class="unseen">{kind === 'came' ? 'came into the context: ' : 'left the context: '}</span>
      <span class="one-line">{plainText(chunk.words, 160)}</span>
      <span class="faint small num">{count(chunk.tokens)}</span>
    </li>
  );
  return (
    <ul class="flow">
      {went.slice(0, 20).map((chunk) => row(chunk, 'went'))}
      {came.slice(0, 20).map((chunk) => row(chunk, 'came'))}
      {came.length + went.length > 40 && <li class="faint">and {came.length + went.length - 40} more</li>}
    </ul>
  );
}

/** Of a state, what a person compares first. */
function listFacts({ status, index, control, queue }: Scene): readonly (readonly [name: string, value: string])[] {
  return [
    ['Phase', status.phase],
    ['Turn', `${status.turn} (${status.turns} ended)`],
    ['Session', String(status.session)],
    ['Epoch', String(status.epoch)],
    ['Mode', status.mode],
    ['Context', `${count(index.total)} tokens`],
    ['Queue', String(queue.length)],
    ['Waits for people', String(status.pendingApprovals)],
    ['Cost', dollars(status.usage.costUsd)],
    ['Next', control?.next ?? '—'],
  ];
}
