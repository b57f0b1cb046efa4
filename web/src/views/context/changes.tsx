/** Compactions side by side: what stood before the messages, what stands there now, and what left. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { turnNumber } from '../../../../src/records/identity.js';
import { keep, place } from '../../address.js';
import { request, type Schema } from '../../api/request.js';
import { shownText } from '../../conversation/turns.js';
import { plainLines, plainText, ago, count, dateTime, describeError, plural, turnSpans } from '../../ui/words.js';
import { Pending, Problem } from '../../ui/parts.js';
import { useAnswer } from '../../ui/hooks.js';
import { Reader } from './reader.js';

type Change = Schema<'ContextChange'>;

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

interface ChangesProps {
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
  const changes = value?.changes ?? [];
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
      {failure.value !== undefined && <p class="note bad">{describeError(failure.value)}</p>}
      {value === undefined && <Pending error={error} again={again} />}
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
  const { kind, cause, method, model, episode, turns, slots, messages, undoneBy, beforeText, afterText } = change;
  const by = method === 'rules' ? 'rules, since no model gave a usable summary' : model === null ? method : plainText(model, 100);
  return (
    <section class="one-change" aria-label={`${KINDS[kind]} ${change.number}`}>
      <dl class="facts-list">
        <dt>When</dt>
        <dd>{dateTime(change.at / 1000)}</dd>
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
              {turnSpans(turns)}
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
        <Side title="Before" text={beforeText}>
          {kind !== 'undone' && <Messages of={of} slots={slots} />}
          <Kept count={messages.before - (kind === 'undone' ? 0 : slots.length)} />
        </Side>
        <Side title="After" text={afterText}>
          {kind === 'undone' && <Messages of={of} slots={slots} />}
          <Kept count={messages.after - (kind === 'undone' ? slots.length : 0)} />
        </Side>
      </div>
    </section>
  );
}

interface SideProps {
  readonly title: string;
  /** What stands before the messages. */
  readonly text: string | null;
  readonly children: ComponentChildren;
}

function Side({ title, text, children }: SideProps): JSX.Element {
  return (
    <section aria-label={title}>
      <h2 class="minor">{title}</h2>
      {text === null ? (
        <p class="small faint">No summary stood before the messages.</p>
      ) : (
        <pre class="code" tabIndex={0}>
          {plainLines(text)}
        </pre>
      )}
      {children}
    </section>
  );
}

function Kept({ count: many }: { readonly count: number }): JSX.Element {
  return <p class="small quiet">{many > 0 ? `then ${plural(many, 'message')} that stayed, word for word` : 'and no message beside it'}</p>;
}

/** Those that left the prompt, or came back: each can be read as it stood there. */
function Messages({ of, slots }: { readonly of: string; readonly slots: readonly number[] }): JSX.Element | null {
  const [first, last] = [slots[0] ?? 0, slots.at(-1) ?? 0];
  const { value, error, again } = useAnswer(`entries ${of} ${first} ${last}`, (signal) =>
    slots.length === 0
      ? Promise.resolve(undefined)
      : request('get', '/v1/conversations/{id}/entries', { path: { id: of }, query: { after: first - 1, limit: SHOWN }, signal }),
  );
  if (slots.length === 0) return null;
  if (error !== undefined) return <Problem error={error} again={again} />;
  const known = new Map((value?.entries ?? []).map((entry) => [entry.slot, entry]));
  return (
    <ol class="left-messages small" aria-label={plural(slots.length, 'message')} aria-busy={value === undefined}>
      {slots.slice(0, SHOWN).map((slot) => (
        <Message key={slot} of={of} slot={slot} entry={known.get(slot)} />
      ))}
      {slots.length > SHOWN && <li class="faint">and {count(slots.length - SHOWN)} more</li>}
    </ol>
  );
}

const SHOWN = 200;
const ROLES = { user: 'person', assistant: 'model', tool: 'tool' } as const;

function Message({
  of,
  slot,
  entry,
}: {
  readonly of: string;
  readonly slot: number;
  readonly entry: Schema<'Entry'> | undefined;
}): JSX.Element {
  const isOpen = useSignal(false);
  const words = entry === undefined ? `message ${slot}` : describeMessage(entry);
  return (
    <li>
      <details onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
        <summary>
          <i class={`key ${entry?.message.role ?? ''}`} />
          <span class="faint">{entry === undefined ? '' : `${turnNumber(entry.turn)} ${ROLES[entry.message.role]}`}</span>
          <span class="one-line">{plainText(words, 160)}</span>
        </summary>
        {isOpen.value && <Reader of={of} chunk={`chunk_${slot}`} />}
      </details>
    </li>
  );
}

function describeMessage({ message }: Schema<'Entry'>): string {
  if (message.role !== 'assistant') return shownText(message.text);
  return message.blocks
    .map((block) => (block.kind === 'text' ? shownText(block.text) : block.kind === 'tool-call' ? `calls ${block.name}` : ''))
    .filter((words) => words !== '')
    .join(' · ');
}
