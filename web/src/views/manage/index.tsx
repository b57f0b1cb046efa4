/** A conversation as a thing of its own: its name, its model, what it may spend, and its end. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { go } from '../../address.js';
import { request, type Schema } from '../../api/request.js';
import { conversations, refreshList } from '../../conversations.js';
import { useAnswer } from '../../ui/hooks.js';
import { Pending, Problem } from '../../ui/parts.js';
import { ago, count, dateTime, dollars, plainText, spent } from '../../ui/words.js';
import type { ViewProps } from '../table.js';
import '../../ui/parts.css';
import './manage.css';

type About = Schema<'Conversation'>;

const EVERY_MS = 3_000;

export default function Manage({ of }: ViewProps): JSX.Element {
  // It ends, is renamed and spends elsewhere too.
  const { value, error, again } = useAnswer(
    `manage ${of}`,
    (signal) => request('get', '/v1/conversations/{id}', { path: { id: of }, signal }),
    EVERY_MS,
  );
  if (of === '') return <div class="empty">Choose a conversation to name it, limit it or end it.</div>;
  const onDone = (): void => {
    again();
    void refreshList();
  };
  return (
    <div class="pane">
      <div class="view-pad manage">
        {(value === undefined || error !== undefined) && <Pending error={error} again={again} />}
        {value !== undefined && (
          <>
            <Facts about={value} />
            <Name about={value} onDone={onDone} />
            {value.status !== null && <Model about={value} status={value.status} onDone={onDone} />}
            {value.status !== null && <Limits about={value} status={value.status} onDone={onDone} />}
            <End about={value} onDone={onDone} />
          </>
        )}
      </div>
    </div>
  );
}

function Facts({ about }: { readonly about: About }): JSX.Element {
  const { agent, scope, startedAt, closedAt, state, status } = about;
  const listed = conversations.value.all.find(({ id }) => id === about.id);
  const facts: readonly (readonly [string, string | null | undefined])[] = [
    ['Id', about.id],
    ['Agent', agent],
    ['Memory', scope],
    ['Began', `${dateTime(Date.parse(startedAt) / 1000)} (${ago(startedAt)})`],
    ['State', closedAt === null ? state : `${state}, ${ago(closedAt)}`],
    ['Turns', status === null ? undefined : count(status.turns)],
    ['Spent', status === null ? listed && spent(listed) : status.usage.costUsd === null ? undefined : dollars(status.usage.costUsd)],
  ];
  return (
    <dl class="facts-list">
      {facts.flatMap(([name, words]) =>
        words === null || words === undefined ? [] : [<dt key={name}>{name}</dt>, <dd key={`${name} is`}>{plainText(words, 200)}</dd>],
      )}
    </dl>
  );
}

interface PartProps {
  readonly about: About;
  readonly onDone: () => void;
}

function Name({ about, onDone }: PartProps): JSX.Element {
  const title = useSignal(about.title ?? '');
  return (
    <Form
      title="Name"
      act="Rename"
      isReady={title.value.trim() !== ''}
      save={() => change(about.id, { title: title.value.trim() })}
      onDone={onDone}
    >
      <input
        class="field"
        aria-label="Name"
        maxLength={200}
        value={title.value}
        onInput={(event) => (title.value = event.currentTarget.value)}
      />
    </Form>
  );
}

interface RunningProps extends PartProps {
  readonly status: NonNullable<About['status']>;
}

function Model({ about, status, onDone }: RunningProps): JSX.Element {
  const model = useSignal(status.chosenModel ?? '');
  const wanted = model.value.trim();
  return (
    <Form title="Model" act="Use it" isReady save={() => change(about.id, { model: wanted === '' ? null : wanted })} onDone={onDone}>
      <input
        class="field"
        aria-label="Model"
        placeholder={status.model ?? 'provider/model'}
        value={model.value}
        onInput={(event) => (model.value = event.currentTarget.value)}
      />
      <p class="hint">
        As <code>provider/model</code>, from the next call on. Empty: that of the agent
        {status.model !== null && (status.chosenModel ?? null) === null && ` (${plainText(status.model, 80)})`}.
      </p>
    </Form>
  );
}

function Limits({ about, status, onDone }: RunningProps): JSX.Element {
  const { maxCostUsd, maxTokens } = status.budget ?? {};
  const cost = useSignal(maxCostUsd === undefined ? '' : String(maxCostUsd));
  const tokens = useSignal(maxTokens === undefined ? '' : String(maxTokens));
  const budget = { ...numbered('maxCostUsd', cost.value), ...numbered('maxTokens', tokens.value) };
  return (
    <Form
      title="Budget"
      act="Set"
      isReady={Object.values(budget).length > 0 && Object.values(budget).every((one) => one > 0)}
      save={() => change(about.id, { budget })}
      onDone={onDone}
    >
      <label class="small">
        US dollars
        <input
          class="field"
          inputMode="decimal"
          value={cost.value}
          placeholder="no limit"
          onInput={(event) => (cost.value = event.currentTarget.value)}
        />
      </label>
      <label class="small">
        Tokens
        <input
          class="field"
          inputMode="numeric"
          value={tokens.value}
          placeholder="no limit"
          onInput={(event) => (tokens.value = event.currentTarget.value)}
        />
      </label>
      <p class="hint">
        In all, with its sub-agents; {count(status.usage.inputTokens + status.usage.outputTokens)} tokens
        {status.usage.costUsd !== null && `, ${dollars(status.usage.costUsd)}`} so far.
      </p>
    </Form>
  );
}

function numbered(name: 'maxCostUsd' | 'maxTokens', text: string): { readonly [of in typeof name]?: number } {
  return text.trim() === '' ? {} : { [name]: Number(text) };
}

function End({ about, onDone }: PartProps): JSX.Element {
  const isSure = useSignal(false);
  const { id, state } = about;
  if (state === 'running') {
    return (
      <Form
        title="End"
        act="Close it"
        isReady
        save={() => request('post', '/v1/conversations/{id}/close', { path: { id }, body: {} })}
        onDone={onDone}
      >
        <p class="hint">What is queued is run out, and what was said is remembered. It can be resumed, and deleted once it has ended.</p>
      </Form>
    );
  }
  return (
    <>
      <Form
        title="Go on"
        act="Resume"
        isReady
        save={async () => {
          await request('post', '/v1/conversations/{id}/resume', { path: { id }, body: {} });
          go('chat', id);
        }}
        onDone={onDone}
      >
        <p class="hint">A new life of it begins, with all its turns and what is left of its budget.</p>
      </Form>
      <Form
        title="Delete"
        act={isSure.value ? 'Delete it for good' : 'Delete …'}
        isBad
        isReady
        save={async () => {
          if (!isSure.value) return void (isSure.value = true);
          await request('delete', '/v1/conversations/{id}', { path: { id } });
          go('chat');
        }}
        onDone={onDone}
      >
        <p class="hint">All that was said in it and in its sub-agents goes, for good. What long-term memory has of it stays.</p>
      </Form>
    </>
  );
}

interface FormProps {
  readonly title: string;
  readonly act: string;
  readonly isReady: boolean;
  readonly isBad?: boolean;
  readonly save: () => Promise<unknown>;
  readonly onDone: () => void;
  readonly children: ComponentChildren;
}

function Form({ title, act, isReady, isBad = false, save, onDone, children }: FormProps): JSX.Element {
  const busy = useSignal(false);
  const failure = useSignal<unknown>(undefined);
  const submit = async (): Promise<void> => {
    busy.value = true;
    failure.value = undefined;
    try {
      await save();
      onDone();
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = false;
    }
  };
  return (
    <form
      class="section"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h2>{title}</h2>
      {children}
      {failure.value !== undefined && <Problem error={failure.value} />}
      <button type="submit" class={`button${isBad ? ' bad' : ''}`} disabled={!isReady || busy.value}>
        {act}
      </button>
    </form>
  );
}

function change(id: string, to: { title?: string; model?: string | null; budget?: Schema<'Budget'> }): Promise<unknown> {
  return request('patch', '/v1/conversations/{id}', { path: { id }, body: to });
}
