/** What compactions made of a conversation's older turns, the latest first, and which of them another stands for. */
import type { JSX } from 'preact';
import { keep, place } from '../../address.js';
import { request, type Schema } from '../../api/request.js';
import { conversations, nameConversation, type Listed } from '../../conversations.js';
import { Link, Pending } from '../../ui/parts.js';
import { plainLines, plainText, count, dateTime, plural, turnSpans } from '../../ui/words.js';
import { useAnswer } from '../../ui/hooks.js';

const OFFERED = 200;

export function Episodes({ scope }: { readonly scope: string }): JSX.Element {
  const { all, isKnown } = conversations.value;
  // An agent remembers in the scope of its name, unless a conversation was begun with another.
  const own = all.filter(({ agent }) => agent === scope);
  const offered = (own.length > 0 ? own : all).slice(0, OFFERED);
  const wanted = place.value.more['in'] ?? offered[0]?.id;
  const isOffered = wanted === undefined || offered.some(({ id }) => id === wanted);
  return (
    <>
      <div class="row">
        <label class="small quiet" for="episodes-of">
          Conversation
        </label>
        <select class="field grow" id="episodes-of" value={wanted ?? ''} onChange={(event) => keep({ in: event.currentTarget.value })}>
          {!isOffered && <option value={wanted}>{plainText(wanted, 100)}</option>}
          {offered.map((one) => (
            <option key={one.id} value={one.id}>
              {nameOption(one)}
            </option>
          ))}
        </select>
      </div>
      {wanted === undefined ? isKnown && <p class="note">There is no conversation yet.</p> : <OfConversation key={wanted} id={wanted} />}
    </>
  );
}

function nameOption(one: Listed): string {
  return one.title === null ? plainText(one.id, 60) : `${nameConversation(one.id, one)} · ${plainText(one.id, 40)}`;
}

function OfConversation({ id }: { readonly id: string }): JSX.Element {
  const { value, error, again } = useAnswer(`episodes ${id}`, (signal) =>
    request('get', '/v1/conversations/{id}/memory', { path: { id }, signal }),
  );
  if (value === undefined) return <Pending error={error} again={again} />;
  const { episodes } = value;
  const replacedBy = new Map(episodes.flatMap(({ id: by, supersedes = [] }) => supersedes.map((gone) => [gone, by] as const)));
  return (
    <>
      {episodes.length === 0 && <p class="note">No turn of it has become memory yet: the model has all of them word for word.</p>}
      {value.skipped > 0 && <p class="note warn">{plural(value.skipped, 'record')} cannot be read.</p>}
      <ol class="memory-list">
        {episodes.map((episode) => (
          <One key={episode.id} of={id} episode={episode} by={replacedBy.get(episode.id)} />
        ))}
      </ol>
    </>
  );
}

interface OneProps {
  readonly of: string;
  readonly episode: Schema<'Episode'>;
  readonly by: string | undefined;
}

function One({ of, episode, by }: OneProps): JSX.Element {
  const { id, ts, turn_ids: turns, summary, tags, session, fold, made } = episode;
  return (
    <li>
      <p class={`memory-text ${by === undefined ? '' : 'is-replaced'}`} dir="auto">
        {plainLines(summary.slice(0, 20_000))}
      </p>
      {by !== undefined && (
        <p class="small replaced-by">Replaced by {plainText(by, 40)}: rules had made this one, and a model has read its turns since</p>
      )}
      {fold !== undefined && (
        <details class="small replaced-by">
          <summary>Stands in prompts for all up to {plainText(fold.through, 40)}, as</summary>
          <p class="memory-text">{plainLines(fold.text.slice(0, 20_000))}</p>
        </details>
      )}
      <p class="small quiet memory-origin">
        <span class="mono">{plainText(id, 40)}</span>
        {turns[0] !== undefined && (
          <Link view="context" of={of} more={{ part: 'turns', why: turns[0] }}>
            {turnSpans(turns)}
          </Link>
        )}
        <span class="faint num">
          session {session}, {dateTime(ts)}
        </span>
        {made !== undefined && (
          <span class="faint num">
            {made.method === 'rules' ? 'by rules' : `by ${plainText(made.model, 60)}`}, {count(made.tokensBefore)} →{' '}
            {count(made.tokensAfter)} tokens
          </span>
        )}
        {tags.slice(0, 8).map((tag) => (
          <span key={tag} class="pill">
            {plainText(tag, 40)}
          </span>
        ))}
      </p>
    </li>
  );
}
