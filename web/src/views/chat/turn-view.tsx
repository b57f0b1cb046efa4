import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { go, keep } from '../../address.js';
import { toAddress, request } from '../../api/request.js';
import type { Media, NamedMedia, Turn, Words } from '../../conversation/turns.js';
import type { Opened } from '../../conversation/open.js';
import type { TurnResult } from '../../../../src/records/feed-event.js';
import type { TurnPart } from '../../../../src/records/turn-view.js';
import { Icon } from '../../ui/icon.js';
import { Markdown } from '../../ui/markdown.js';
import { Link } from '../../ui/parts.js';
import { plainLines, plainText, count, dollars, describeError, untilThen } from '../../ui/words.js';
import { mayAct } from '../../session.js';
import { AddToDataset } from './add-to-dataset.js';
import { CallCard } from './call-card.js';
import { SubAgents } from './sub-agent.js';

interface TurnViewProps {
  readonly turn: Turn;
  readonly opened: Opened;
  readonly isLast: boolean;
  /** The address names it. */
  readonly isSought?: boolean;
  /** A branch is looked at, not changed. */
  readonly isBranch?: boolean;
}

export function TurnView({ turn, opened, isLast, isSought = false, isBranch = false }: TurnViewProps): JSX.Element {
  const isEditing = useSignal(false);
  const problem = useSignal('');
  const busy = useSignal(false);
  const act = (what: () => Promise<unknown>): void => {
    problem.value = '';
    busy.value = true;
    what()
      .catch((error: unknown) => (problem.value = describeError(error)))
      .finally(() => (busy.value = false));
  };
  const path = { id: opened.id };
  // The answer comes by the live events: who waits for the whole of it keeps a connection for as long.
  const retry = (): void => act(() => opened.again(() => request('post', '/v1/conversations/{id}/retry', { path, body: {} })));
  const edit = (text: string): void => {
    isEditing.value = false;
    act(() => opened.again(() => request('post', '/v1/conversations/{id}/edit', { path, body: { text, turn: turn.id } })));
  };
  const fork = (): void =>
    act(async () => {
      const { id } = await request('post', '/v1/conversations/{id}/fork', { path, body: { at: turn.id } });
      go('chat', id);
    });
  const text = turn.messages.map((words) => words.text).join('\n\n');
  return (
    <article
      class={`turn${isLast ? ' is-last' : ''}${isSought ? ' is-sought' : ''}${turn.isRunning ? ' is-running' : ''}`}
      aria-busy={turn.isRunning}
    >
      <h2 class="unseen">{turn.id.replace('turn_', 'Turn ')}</h2>
      {isEditing.value ? (
        <EditWords text={text} onSave={edit} onLeave={() => (isEditing.value = false)} />
      ) : (
        turn.messages.map((words, at) => <SaidWords key={words.id ?? at} words={words} />)
      )}
      <div class="answer">
        {turn.parts.map((part) => (
          <PartView key={part.kind === 'call' ? part.callId : part.id} part={part} turn={turn} opened={opened} isBranch={isBranch} />
        ))}
        {turn.isRunning && <SubAgents opened={opened} />}
        <State turn={turn} opened={opened} />
        {problem.value !== '' && (
          <p class="note bad" role="alert">
            {problem.value}
          </p>
        )}
        {!turn.isRunning && (
          <footer class="turn-foot">
            {!isBranch && <BranchSwitch turn={turn} opened={opened} />}
            {!isBranch && isLast && (
              <button
                type="button"
                class="button bare tight"
                disabled={busy.value}
                onClick={retry}
                title="Answer anew; this answer becomes a branch"
              >
                <Icon name="retry" size={15} />
                Retry
              </button>
            )}
            {!isBranch && text !== '' && (
              <button
                type="button"
                class="button bare tight"
                disabled={busy.value}
                onClick={() => (isEditing.value = true)}
                title="Say something else in place of this turn and all after it"
              >
                <Icon name="edit" size={15} />
                Edit
              </button>
            )}
            <button
              type="button"
              class="button bare tight"
              disabled={busy.value}
              onClick={fork}
              title="Begin another conversation with the turns up to here"
            >
              <Icon name="fork" size={15} />
              Fork
            </button>
            <Copy turn={turn} />
            {!isBranch && mayAct('operator') && <AddToDataset id={opened.id} turn={turn.id} />}
            <span class="facts faint small num">{listFacts(turn)}</span>
          </footer>
        )}
      </div>
    </article>
  );
}

function SaidWords({ words }: { readonly words: Words }): JSX.Element {
  return (
    <div class="said" dir="auto">
      {words.images.length > 0 && (
        <div class="said-pictures">
          {words.images.map((image, at) => (
            <Shown key={at} image={image} />
          ))}
        </div>
      )}
      {plainLines(words.text.length > 100_000 ? `${words.text.slice(0, 100_000)}…` : words.text)}
      <Documents of={words.documents} />
      {words.others > 0 && <p class="small faint">and {words.others} of sound or video</p>}
    </div>
  );
}

/** What is recorded has no name any more. */
function nameDocument({ name, mediaType }: NamedMedia): string {
  return plainText(name ?? (mediaType === 'application/pdf' ? 'PDF' : mediaType), 80);
}

/** By their names; those that were sent once can be opened. */
export function Documents({ of }: { readonly of: readonly NamedMedia[] }): JSX.Element | null {
  if (of.length === 0) return null;
  return (
    <ul class="documents small">
      {of.map((document, at) => (
        <li key={at}>
          <Icon name="attach" size={14} />
          {'ref' in document && document.ref.startsWith('att_') ? (
            <a
              href={toAddress('/v1/attachments/{ref}/content', { ref: document.ref }).href}
              download={plainText(document.name ?? 'file', 80)}
            >
              {nameDocument(document)}
            </a>
          ) : (
            nameDocument(document)
          )}
        </li>
      ))}
    </ul>
  );
}

/** What lies elsewhere is not loaded: its owner would see who looks. */
function Shown({ image }: { readonly image: Media }): JSX.Element {
  if ('base64' in image && /^image\/(png|jpeg|gif|webp)$/.test(image.mediaType)) {
    return <img src={`data:${image.mediaType};base64,${image.base64}`} alt="attached picture" />;
  }
  if ('ref' in image && image.ref.startsWith('att_')) {
    return <img src={toAddress('/v1/attachments/{ref}/content', { ref: image.ref }).href} alt="attached picture" />;
  }
  return (
    <span class="note">
      {'url' in image ? `picture at ${plainText(image.url, 120)}` : `${plainText(image.mediaType, 40)}, kept with the conversation`}
    </span>
  );
}

interface PartViewProps {
  readonly part: TurnPart;
  readonly turn: Turn;
  readonly opened: Opened;
  readonly isBranch: boolean;
}

function PartView({ part, turn, opened, isBranch }: PartViewProps): JSX.Element {
  switch (part.kind) {
    case 'text':
      return <Markdown text={part.text} />;
    case 'thinking':
      return (
        // While it comes it can be read; then the answer follows it.
        <details class="thinking" open={turn.isRunning && part === turn.parts.at(-1)}>
          <summary>Thinking</summary>
          <p dir="auto">{plainLines(part.text)}</p>
        </details>
      );
    case 'notice':
      return <p class="notice small faint">{plainLines(part.text)}</p>;
    case 'call':
      return <CallCard call={part} turn={turn} opened={opened} isBranch={isBranch} />;
  }
}

/** What it does now, or how it ended where that is no whole answer. */
function State({ turn, opened }: { readonly turn: Turn; readonly opened: Opened }): JSX.Element | null {
  const result = useSignal<Pick<TurnResult, 'stopReason' | 'error'> | undefined>(turn.result);
  const hasAnswer = turn.parts.at(-1)?.kind === 'text';
  useEffect(() => {
    if (turn.isRunning || hasAnswer || turn.result !== undefined || turn.end !== undefined) return;
    // One that was cleared or taken back has no record of its end.
    request('get', '/v1/conversations/{id}/turns/{turn}', { path: { id: opened.id, turn: turn.id }, query: { wait: 0 } }).then(
      (answer) => {
        if ('stopReason' in answer) result.value = answer;
      },
      () => undefined,
    );
  }, [turn.isRunning, hasAnswer]);
  if (turn.isRunning) {
    const waits = turn.parts.some((part) => part.kind === 'call' && part.state === 'waiting');
    const words =
      turn.waits !== undefined
        ? `${plainText(turn.waits.for, 300)}${turn.waits.until > 0 ? `; again ${untilThen(turn.waits.until)}` : ''}`
        : opened.isAway.value
          ? AWAY
          : 'Working';
    if (waits) return null;
    const isBusy = turn.waits === undefined && !opened.isAway.value;
    return (
      <p class="doing small" role="status">
        <Icon name={isBusy ? 'busy' : 'wait'} size={15} class={isBusy ? 'spin' : ''} />
        {words}
      </p>
    );
  }
  const end = turn.result ?? turn.end ?? result.value;
  if (end === undefined || (end.stopReason === 'end' && end.error === undefined)) return null;
  return (
    <p class={`note ${end.error !== undefined ? 'bad' : ''}`}>
      <Icon name={end.error !== undefined ? 'warn' : 'stop'} size={15} />
      <span>
        {describeEnd(end)}
        {end.stopReason === 'budget' && (
          <>
            {' '}
            <Link view="manage" of={opened.id}>
              Raise it here
            </Link>
          </>
        )}
      </span>
    </p>
  );
}

/** What to do where nothing happens, since no worker runs. */
export const AWAY = 'No worker answers. It goes on as soon as one runs: `perdura worker` starts one';

/** With its reason where there is one, which says by itself that a budget is used up, or that the model would not. */
function describeEnd({ stopReason, error }: Pick<TurnResult, 'stopReason' | 'error'>): string {
  const words = END_WORDS[stopReason] ?? plainText(stopReason, 40);
  if (error === undefined) return words;
  return `${BEFORE_REASON[stopReason] ?? words}: ${plainText(error.message, 1_000)}`;
}

const BEFORE_REASON: Readonly<Record<string, string>> = { budget: 'Stopped', refused: 'Refused' };

const END_WORDS: Readonly<Record<string, string>> = {
  end: 'The answer was cut',
  interrupted: 'Stopped by a person',
  'tool-limit': 'Stopped: it called as many tools as a turn may',
  budget: 'Stopped: the budget of this conversation is used up',
  refused: 'The model refused to answer',
  failed: 'Failed',
  withdrawn: 'Taken back',
  reset: 'The session was cleared',
};

/** Answers that were given in its place before. */
function BranchSwitch({ turn, opened }: { readonly turn: Turn; readonly opened: Opened }): JSX.Element | null {
  const before = opened.turns.value[opened.turns.value.indexOf(turn) - 1];
  const others = opened.branches.value.filter(({ after }) => after === (before?.id ?? 'turn_0000'));
  if (others.length === 0) return null;
  return (
    <span class="branch-switch small">
      <button
        type="button"
        class="button bare square tight"
        aria-label="The answer before this one"
        onClick={() => keep({ branch: String(others.at(-1)?.branch ?? '') }, { push: true })}
      >
        <Icon name="back" size={14} />
      </button>
      <span class="num">
        {others.length + 1} of {others.length + 1}
      </span>
    </span>
  );
}

function Copy({ turn }: { readonly turn: Turn }): JSX.Element | null {
  const isCopied = useSignal(false);
  const text = turn.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n\n');
  if (text === '') return null;
  return (
    <button
      type="button"
      class="button bare tight"
      onClick={() => {
        void navigator.clipboard?.writeText(text).then(() => {
          isCopied.value = true;
          setTimeout(() => (isCopied.value = false), 1_500);
        });
      }}
    >
      <Icon name={isCopied.value ? 'check' : 'copy'} size={15} />
      {isCopied.value ? 'Copied' : 'Copy'}
    </button>
  );
}

function listFacts({ at, model, result }: Turn): string {
  const usage = result?.usage;
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  const time = date.toLocaleString(undefined, { ...(!isToday && { dateStyle: 'medium' }), timeStyle: 'short' });
  const used =
    usage === undefined
      ? []
      : [`${count(usage.inputTokens + usage.outputTokens)} tokens`, ...(usage.costUsd === null ? [] : [dollars(usage.costUsd)])];
  return [time, ...(model === undefined ? [] : [plainText(model, 60)]), ...used].join(' · ');
}

interface EditWordsProps {
  readonly text: string;
  readonly onSave: (text: string) => void;
  readonly onLeave: () => void;
}

function EditWords({ text, onSave, onLeave }: EditWordsProps): JSX.Element {
  const words = useSignal(text);
  return (
    <form
      class="edit-words"
      onSubmit={(event) => {
        event.preventDefault();
        if (words.value.trim() !== '') onSave(words.value);
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onLeave();
      }}
    >
      <textarea
        class="field"
        aria-label="Say this instead"
        rows={Math.min(12, words.value.split('\n').length + 1)}
        value={words.value}
        dir="auto"
        ref={(element) => element?.focus()}
        onInput={(event) => (words.value = event.currentTarget.value)}
      />
      <p class="small faint">This turn and all after it become a branch, which can be looked at and forked.</p>
      <div class="row">
        <button type="submit" class="button main">
          Say this instead
        </button>
        <button type="button" class="button" onClick={onLeave}>
          Leave it
        </button>
      </div>
    </form>
  );
}
