/** The present of a conversation that runs: its mode, one step, breakpoints, and the queue by hand. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { request, type Schema } from '../../api/request.js';
import { Icon } from '../../ui/icon.js';
import { Link, Problem } from '../../ui/parts.js';
import { plainText, ago, bytes, describeError } from '../../ui/words.js';
import { useAnswer } from '../../ui/hooks.js';

const REFRESH_MS = 3_000;

export function Live({ of, onStepped }: { readonly of: string; readonly onStepped: () => void }): JSX.Element {
  const live = useAnswer(
    `live ${of}`,
    async (signal) => {
      const [control, { queue }] = await Promise.all([
        request('get', '/v1/conversations/{id}/control', { path: { id: of }, signal }),
        request('get', '/v1/conversations/{id}/queue', { path: { id: of }, signal }),
      ]);
      return { control, queue };
    },
    REFRESH_MS,
  );
  const busy = useSignal('');
  const failure = useSignal<unknown>(undefined);
  const did = useSignal('');
  const act = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    busy.value = name;
    failure.value = undefined;
    try {
      const result = (await work()) as { words?: unknown } | undefined;
      did.value = typeof result?.words === 'string' ? plainText(result.words, 200) : '';
      live.again();
      onStepped();
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = '';
    }
  };
  if (live.value === undefined) {
    return live.error === undefined ? (
      <div class="note" aria-busy="true">
        Asking how it stands…
      </div>
    ) : (
      <Problem error={live.error} again={live.again} />
    );
  }
  const { control, queue } = live.value;
  const isStepping = control.mode === 'stepping';
  const setMode = (mode: 'auto' | 'stepping'): Promise<void> =>
    act(mode, () => request('patch', '/v1/conversations/{id}', { path: { id: of }, body: { mode } }));
  const step = (scope?: 'into' | 'over'): Promise<void> =>
    act('step', () => request('post', '/v1/conversations/{id}/step', { path: { id: of }, body: scope === undefined ? {} : { scope } }));
  const hasSubAgents = (control.subAgents ?? []).length > 0;
  return (
    <section class="live" aria-label="Now">
      <div class="row">
        <div class="switch" role="radiogroup" aria-label="Mode">
          {(['auto', 'stepping'] as const).map((mode) => (
            <button
              key={mode}
              type="button"
              role="radio"
              aria-checked={control.mode === mode}
              disabled={busy.value !== ''}
              onClick={() => void setMode(mode)}
            >
              {mode === 'auto' ? 'Runs by itself' : 'Step by step'}
            </button>
          ))}
        </div>
        <button
          type="button"
          class="button main"
          disabled={!isStepping || busy.value !== '' || control.stepLock !== null}
          onClick={() => void step()}
          data-step
        >
          {busy.value === 'step' ? 'Stepping…' : 'Step'} <kbd>S</kbd>
        </button>
        {hasSubAgents && (
          <>
            <button type="button" class="button" disabled={!isStepping || busy.value !== ''} onClick={() => void step('into')}>
              Into
            </button>
            <button type="button" class="button" disabled={!isStepping || busy.value !== ''} onClick={() => void step('over')}>
              Over
            </button>
          </>
        )}
      </div>
      <p class="next" aria-live="polite">
        {control.stepLock !== null ? (
          <>
            <strong>Steps now:</strong> {plainText(control.running ?? control.stepLock, 300)}
          </>
        ) : isStepping ? (
          <>
            <strong>Next:</strong>{' '}
            {control.next === null
              ? 'nothing; it waits for what is under way, for a person or for a message'
              : plainText(control.next, 300)}
          </>
        ) : (
          <span class="quiet">It goes on by itself. Step by step, each thing waits for you.</span>
        )}
        {control.pausedBy !== null && <span class="pill warn">stopped by {plainText(control.pausedBy, 100)}</span>}
      </p>
      {did.value !== '' && <p class="small quiet">Did: {did.value}</p>}
      {failure.value !== undefined && <p class="note bad">{describeError(failure.value)}</p>}
      <div class="live-sides">
        <Queue of={of} queue={queue} act={act} isBusy={busy.value !== ''} />
        <BreakpointsForm
          key={JSON.stringify(control.breakpoints)}
          of={of}
          breakpoints={control.breakpoints}
          act={act}
          isBusy={busy.value !== ''}
        />
      </div>
      {hasSubAgents && (
        <ul class="sub-agents small">
          {control.subAgents?.map(({ conversation, mode, next }) => (
            <li key={conversation}>
              <Link view="stepper" of={conversation}>
                {plainText(conversation, 80)}
              </Link>{' '}
              <span class="quiet">
                {next === null ? (mode === 'auto' ? 'goes on by itself' : 'waits') : `holds: ${plainText(next, 120)}`}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

interface PartProps {
  readonly of: string;
  readonly act: (name: string, work: () => Promise<unknown>) => Promise<void>;
  readonly isBusy: boolean;
}

type Edit = { op: 'drop'; id: string } | { op: 'move'; id: string; before: string | null } | { op: 'clear' };

function Queue({ of, queue, act, isBusy }: PartProps & { readonly queue: readonly Schema<'QueuedEvent'>[] }): JSX.Element {
  const edit = (body: Edit): void => void act('queue', () => request('post', '/v1/conversations/{id}/queue', { path: { id: of }, body }));
  return (
    <div>
      <header class="row">
        <h2 class="minor grow">Queue</h2>
        {queue.length > 0 && (
          <button type="button" class="button bare tight" disabled={isBusy} onClick={() => edit({ op: 'clear' })}>
            Clear
          </button>
        )}
      </header>
      {queue.length === 0 && <p class="small faint">Empty.</p>}
      <ol class="queue">
        {queue.map((item, at) => {
          const before = queue[at - 1];
          return (
            <li key={item.id}>
              <span class="one-line">
                {describeQueued(item)} <span class="faint small">{ago(item.queuedAt)}</span>
              </span>
              <button
                type="button"
                class="button bare square tight"
                aria-label={`Move ${describeQueued(item)} up`}
                disabled={isBusy || before === undefined || item.event.kind === 'more'}
                onClick={() => before !== undefined && edit({ op: 'move', id: item.id, before: before.id })}
              >
                ↑
              </button>
              <button
                type="button"
                class="button bare square tight"
                aria-label={`Drop ${describeQueued(item)}`}
                disabled={isBusy || item.event.kind === 'more'}
                onClick={() => edit({ op: 'drop', id: item.id })}
              >
                <Icon name="close" size={14} />
              </button>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

export function describeQueued({ event }: Schema<'QueuedEvent'>): string {
  switch (event.kind) {
    case 'message':
      return `${event.preview ? `“${plainText(event.preview, 100)}”` : `message of ${bytes(event.bytes)}`}${event.delivery === 'queue' ? '' : `, ${event.delivery}`}`;
    case 'reset':
      return '/new';
    case 'app':
      return `event ${plainText(event.type, 64)}`;
    case 'more':
      return `${event.count} more, in the store`;
  }
}

function BreakpointsForm({ of, breakpoints, act, isBusy }: PartProps & { readonly breakpoints: Schema<'Breakpoints'> }): JSX.Element {
  const onSubmit = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    const names = (field: string): string[] =>
      (given.get(field)?.toString() ?? '')
        .split(/[\s,]+/)
        .filter((name) => name !== '')
        .slice(0, 100);
    const [tools, events, cost] = [names('tools'), names('events'), given.get('cost')?.toString() ?? ''];
    const body = {
      ...(tools.length > 0 && { tools }),
      ...(events.length > 0 && { events }),
      ...(given.get('error') !== null && { onError: true }),
      ...(cost !== '' && { costUsd: Number(cost) }),
    };
    void act('breakpoints', () => request('put', '/v1/conversations/{id}/breakpoints', { path: { id: of }, body }));
  };
  return (
    <form class="breakpoints" onSubmit={onSubmit}>
      <h2 class="minor">Breakpoints</h2>
      <label>
        <span>Before tools</span>
        <input
          class="field"
          name="tools"
          defaultValue={breakpoints.tools?.join(', ')}
          placeholder="write_file, run_command"
          spellcheck={false}
        />
      </label>
      <label>
        <span>Before events</span>
        <input class="field" name="events" defaultValue={breakpoints.events?.join(', ')} placeholder="message, reset" spellcheck={false} />
      </label>
      <label>
        <span>At a cost of $</span>
        <input
          class="field"
          name="cost"
          type="number"
          min="0"
          step="any"
          defaultValue={breakpoints.costUsd === undefined ? '' : String(breakpoints.costUsd)}
        />
      </label>
      <label class="check">
        <input type="checkbox" name="error" defaultChecked={breakpoints.onError === true} /> On an error
      </label>
      <button type="submit" class="button tight" disabled={isBusy}>
        Set
      </button>
    </form>
  );
}
