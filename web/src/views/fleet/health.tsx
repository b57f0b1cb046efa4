/** What fails, and what mends it: failures of conversations by kind, findings of the doctor, and the workers. */
import type { JSX } from 'preact';
import { request } from '../../api/request.js';
import { session } from '../../session.js';
import { Link, Problem, Pending } from '../../ui/parts.js';
import { plainText, ago, count, plural } from '../../ui/words.js';
import { useAnswer } from '../../ui/hooks.js';

export function Failures(): JSX.Element {
  const failures = useAnswer('failures', (signal) => request('get', '/v1/failures', { signal }), 15_000);
  const isOfAll = session.value.is === 'in' && session.value.me.tenant === undefined;
  return (
    <>
      {failures.error !== undefined && <Problem error={failures.error} again={failures.again} />}
      {failures.value !== undefined && (
        <section class="section" aria-label="Failures">
          <h2>Conversations that failed</h2>
          <p class="small faint">
            Of the latest {failures.value.looked}
            {failures.value.silent > 0 && `; ${failures.value.silent} did not answer in time`}
          </p>
          {failures.value.failures.length === 0 && <p class="note">None has failed, and none waits to try again.</p>}
          <ol class="failure-list">
            {failures.value.failures.map(({ kind, count: many, message, isRetried, conversations }) => (
              <li key={kind}>
                <header class="row">
                  <h3 class="mono">{plainText(kind, 80)}</h3>
                  <span class={`pill ${isRetried ? 'warn' : 'bad'}`}>
                    {many}
                    {isRetried ? ' try again by themselves' : ''}
                  </span>
                </header>
                <p class="failure-message">{plainText(message, 1_000)}</p>
                <p class="small failure-of">
                  {conversations.slice(0, 8).map((id) => (
                    <Link key={id} view="timeline" of={id}>
                      {plainText(id, 40)}
                    </Link>
                  ))}
                  {many > 8 && <span class="faint">and {many - 8} more</span>}
                </p>
              </li>
            ))}
          </ol>
        </section>
      )}
      {isOfAll && <Findings />}
    </>
  );
}

const MARKS = { ok: '✓', warning: '!', broken: '✕', skipped: '–' } as const;

function Findings(): JSX.Element {
  const { value, error, again } = useAnswer('findings', (signal) => request('get', '/v1/findings', { signal }));
  if (value === undefined)
    return error === undefined ? (
      <p class="note" role="status">
        The doctor looks around…
      </p>
    ) : (
      <Problem error={error} again={again} />
    );
  const order = ['broken', 'warning', 'ok', 'skipped'];
  const sorted = [...value.findings].sort((a, b) => order.indexOf(a.health) - order.indexOf(b.health));
  if (sorted.length === 0) return <></>;
  return (
    <section class="section" aria-label="Findings">
      <h2>What the doctor finds</h2>
      <ul class="finding-list">
        {sorted.map(({ what, health, found, mend }) => (
          <li key={`${what} ${found}`} class={health}>
            <span class="finding-mark" aria-label={health} role="img">
              {MARKS[health]}
            </span>
            <strong>{plainText(what, 60)}</strong>
            <span class="finding-words">
              {plainText(found, 500)}
              {mend !== undefined && <span class="mend">→ {plainText(mend, 400)}</span>}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function WorkerList(): JSX.Element {
  const { value, error, again } = useAnswer('workers', (signal) => request('get', '/v1/workers', { signal }), 10_000);
  if (value === undefined) return <Pending error={error} again={again} />;
  const versions = new Set(value.workers.flatMap(({ version }) => version ?? []));
  return (
    <>
      <p class="quiet small">
        Task queue <span class="mono">{plainText(value.taskQueue, 80)}</span>
        {value.queues.map(({ of, backlog, oldestS }) => (
          <span key={of}>
            {' '}
            · {of}: {backlog === 0 ? 'none waits' : `${count(backlog)} wait, the oldest ${oldestS} s`}
          </span>
        ))}
      </p>
      {value.workers.length === 0 && <p class="note bad">No worker takes work: messages wait until `perdura worker` runs.</p>}
      {versions.size > 1 && <p class="note warn">Workers of {versions.size} versions share this queue.</p>}
      {value.workers.length > 0 && (
        <div class="scroll">
          <table class="sheet">
            <thead>
              <tr>
                <th>Worker</th>
                <th>Version</th>
                <th>Load</th>
                <th class="end less">Done</th>
                <th class="end less">In memory</th>
                <th class="end">Last seen</th>
              </tr>
            </thead>
            <tbody>
              {value.workers.map(({ identity, version, lastSeen, load }) => (
                <tr key={identity}>
                  <td class="mono">{plainText(identity.replace(/#.*$/, ''), 80)}</td>
                  <td class="mono">{version === null ? '' : plainText(version.replace(/^perdura@/, ''), 30)}</td>
                  <td>
                    {load === null ? (
                      <span class="faint">not reported</span>
                    ) : (
                      <Load used={load.activities.used} free={load.activities.free} />
                    )}
                  </td>
                  <td class="end num less">{load === null ? '' : count(load.activities.done)}</td>
                  <td class="end num less">{load === null ? '' : plural(load.cached, 'conversation')}</td>
                  <td class="end">{ago(lastSeen)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Load({ used, free }: { readonly used: number; readonly free: number }): JSX.Element {
  const share = used / Math.max(1, used + free);
  return (
    <span class="load">
      <span class="ranked-bar" aria-hidden="true">
        <span style={{ width: `${Math.max(used > 0 ? 3 : 0, share * 100)}%` }} />
      </span>
      <span class="num">
        {used} of {used + free}
      </span>
    </span>
  );
}
