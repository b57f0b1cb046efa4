/** Compactions side by side: what stood before the messages, what stands there now, and what left. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { keep, place } from '../../address.js';
import { request } from '../../api/request.js';
import { plainLines, plainText } from '../../ui/plain-text.js';
import { Problem } from '../../ui/problem.js';
import { useAnswer } from '../../ui/use-answer.js';
import { ago, count, messageOf, plural } from '../../ui/words.js';
import { Reader } from './reader.js';
import { spans, type Change } from './shapes.js';

const KINDS: Readonly<Record<Change['kind'], string>> = {
  compacted: 'Compaction',
  cited: 'Long messages shortened',
  truncated: 'Truncation',
  trimmed: 'Trim',
  undone: 'Undo',
};
const CAUSES: Readonly<Record<string, string>> = {
  asked: 'a person asked',
  'context-full': 'the model refused a longer prompt',
  ratio: 'the share for it was passed',
  budget: 'the budget was passed',
  hard: 'the hard line was passed',
};

export interface ChangesProps {
  readonly of: string;
  readonly canUndo: boolean;
  readonly onChanged: () => void;
}

export function Changes({ of, canUndo, onChanged }: ChangesProps): JSX.Element {
  const { value, error, again } = useAnswer(`changes ${of}`, (signal) =>
    request('get', '/v1/conversations/{id}/context/changes', { path: { id: of }, signal }),
  );
  const doing = useSignal('');
  const failure = useSignal<unknown>(undefined);
  const changes = (value?.changes ?? []) as unknown as readonly Change[];
  const shown = changes.find(({ number }) => String(number) === place.value.more['change']) ?? changes.at(-1);
  const act = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    doing.value = name;
    failure.value = undefined;
    try {
      await work();
      again();
      onChanged();
    } catch (problem) {
      failure.value = problem;
    } finally {
      doing.value = '';
    }
  };
  return (
    <>
      <div class="row">
        <p class="quiet grow small">
          {value === undefined ? '' : changes.length === 0 ? 'Nothing has left the prompt yet.' : plural(changes.length, 'change')}
        </p>
        <button
          type="button"
          class="button tight"
          disabled={doing.value !== ''}
          onClick={() => void act('compact', () => request('post', '/v1/conversations/{id}/compact', { path: { id: of }, body: {} }))}
        >
          {doing.value === 'compact' ? 'Compacting…' : 'Compact now'}
        </button>
        {canUndo && (
          <button
            type="button"
            class="button tight"
            disabled={doing.value !== ''}
            onClick={() => void act('undo', () => request('post', '/v1/conversations/{id}/compact/undo', { path: { id: of } }))}
          >
            {doing.value === 'undo' ? 'Taking it back…' : 'Undo the last one'}
          </button>
        )}
      </div>
      {failure.value !== undefined && <p class="note bad">{messageOf(failure.value)}</p>}
      {error !== undefined && value === undefined && <Problem error={error} again={again} />}
      {changes.length > 0 && (
        <ol class="change-list">
          {changes.map((change) => (
            <li key={change.number}>
              <button
                type="button"
                class="change"
                aria-current={change.number === shown?.number ? 'true' : undefined}
                onClick={() => keep({ change: String(change.number) })}
              >
                <span class="change-kind">
                  {KINDS[change.kind]}
                  {change.undoneBy !== null && <span class="pill">taken back</span>}
                </span>
                <span class="change-bars" aria-hidden="true">
                  <span style={{ width: `${share(change.tokens.before, changes)}%` }} />
                  <span style={{ width: `${share(change.tokens.after, changes)}%` }} />
                </span>
                <span class="small quiet num">
                  {count(change.tokens.before)} → {count(change.tokens.after)}
                </span>
                <span class="small faint">{ago(change.at)}</span>
              </button>
            </li>
          ))}
        </ol>
      )}
      {shown !== undefined && <OneChange of={of} change={shown} />}
    </>
  );
}

function share(tokens: number, changes: readonly Change[]): number {
  const most = Math.max(1, ...changes.flatMap((one) => [one.tokens.before, one.tokens.after]));
  return Math.max(2, (tokens / most) * 100);
}

function OneChange({ of, change }: { readonly of: string; readonly change: Change }): JSX.Element {
  const read = useSignal<number | undefined>(undefined);
  const { kind, cause, method, model, episode, turns, slots, messages, undoneBy, beforeText, afterText } = change;
  const by = method === 'rules' ? 'rules, since no model gave a usable summary' : model === null ? method : plainText(model, 100);
  return (
    <section class="one-change" aria-label={`${KINDS[kind]} ${change.number}`}>
      <dl class="facts-list">
        <dt>When</dt>
        <dd>{new Date(change.at).toLocaleString()}</dd>
        {cause !== null && (
          <>
            <dt>Why</dt>
            <dd>{CAUSES[cause] ?? cause}</dd>
          </>
        )}
        {by !== null && (
          <>
            <dt>By</dt>
            <dd>{by}</dd>
          </>
        )}
        {turns.length > 0 && (
          <>
            <dt>Became memory</dt>
            <dd>
              {spans(turns)}
              {episode !== null && `, as ${episode}`}
            </dd>
          </>
        )}
        <dt>Messages</dt>
        <dd class="num">
          {messages.before} → {messages.after}
        </dd>
        {undoneBy !== null && (
          <>
            <dt>Taken back</dt>
            <dd>by change {undoneBy}: the next request was what it would have been</dd>
          </>
        )}
      </dl>
      <div class="sides">
        <Side title="Stood before the messages" text={beforeText} />
        <Side title="Stands there after it" text={afterText} />
      </div>
      {slots.length > 0 && (
        <details class="text-of-picture">
          <summary>
            {plural(slots.length, 'message')} {kind === 'undone' ? 'came back' : 'left the prompt'}
          </summary>
          <p class="slots">
            {slots.slice(0, 400).map((slot) => (
              <button
                key={slot}
                type="button"
                class="button tight bare num"
                aria-pressed={read.value === slot}
                onClick={() => (read.value = slot)}
              >
                {slot}
              </button>
            ))}
          </p>
          {read.value !== undefined && <Reader of={of} chunk={`chunk_${read.value}`} />}
        </details>
      )}
    </section>
  );
}

function Side({ title, text }: { readonly title: string; readonly text: string | null }): JSX.Element {
  return (
    <div>
      <h3>{title}</h3>
      {text === null ? (
        <p class="note">Nothing, or the store no longer has it.</p>
      ) : (
        <pre class="code" tabIndex={0}>
          {plainLines(text)}
        </pre>
      )}
    </div>
  );
}
