/** All conversations, narrowed by the address: agent, status, cost, age, words, and in its order. J and K move, Enter opens. */
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { keep, place } from '../../address.js';
import { nameConversation, type Listed } from '../../conversations.js';
import { request } from '../../api/request.js';
import { session } from '../../session.js';
import { Link, Pending } from '../../ui/parts.js';
import { plainText, ago, count, plural, spent } from '../../ui/words.js';
import { useAnswer, useKeys } from '../../ui/hooks.js';

const PAGE = 100;
const REFRESH_MS = 5_000;
const STATUSES = ['running', 'waiting', 'failed', 'ended', 'canceled', 'terminated', 'timed-out'] as const;
const AGES: readonly (readonly [value: string, title: string, ms: number])[] = [
  ['1h', 'last hour', 3_600_000],
  ['24h', 'last day', 86_400_000],
  ['7d', 'last week', 7 * 86_400_000],
  ['30d', 'last 30 days', 30 * 86_400_000],
];

export function Conversations({ agents }: { readonly agents: readonly string[] }): JSX.Element {
  const { more } = place.value;
  const list = useRef<HTMLTableSectionElement>(null);
  const status = STATUSES.find((one) => one === more['status']);
  const age = AGES.find(([value]) => value === more['age']);
  const key = ['agent', 'tenant', 'status', 'cost', 'age', 'text', 'before'].map((name) => more[name] ?? '').join(' ');
  const { value, error, again } = useAnswer(
    `fleet ${key}`,
    (signal) =>
      request('get', '/v1/conversations', {
        query: {
          limit: PAGE,
          current: 'true',
          ...(more['agent'] && { agent: more['agent'] }),
          ...(more['tenant'] && { ofTenant: more['tenant'] }),
          ...(status && { status }),
          ...(more['cost'] && { costUsd: Number(more['cost']) || 0 }),
          ...(more['text'] && { text: more['text'].slice(0, 200) }),
          ...(more['before'] && { before: more['before'] }),
          ...(age && { since: new Date(Date.now() - age[2]).toISOString() }),
        },
        signal,
      }),
    REFRESH_MS,
  );
  const isByActivity = more['by'] === 'activity';
  const rows = isByActivity ? [...(value?.conversations ?? [])].sort((a, b) => activeAt(b) - activeAt(a)) : (value?.conversations ?? []);
  const move = (step: number): void => {
    const links = [...(list.current?.querySelectorAll<HTMLElement>('a.row-link') ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    links[Math.min(links.length - 1, Math.max(0, at + step))]?.focus();
  };
  useKeys({ j: () => move(1), k: () => move(-1) });
  const narrow = (name: string, wanted: string): void => keep({ [name]: wanted === '' ? undefined : wanted, before: undefined });
  const hasBuilds = rows.some(({ build }) => build !== undefined);
  const hasTenant = session.value.is === 'in' && session.value.me.tenant === undefined;
  return (
    <>
      <div class="filters" role="search">
        <input
          class="field"
          type="search"
          placeholder="Id or title"
          aria-label="Id or title"
          aria-keyshortcuts="/"
          data-search
          value={more['text'] ?? ''}
          onInput={(event) => narrow('text', event.currentTarget.value)}
        />
        <select
          class="field"
          aria-label="Agent"
          value={more['agent'] ?? ''}
          onChange={(event) => narrow('agent', event.currentTarget.value)}
        >
          <option value="">Any agent</option>
          {agents.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <select class="field" aria-label="Status" value={status ?? ''} onChange={(event) => narrow('status', event.currentTarget.value)}>
          <option value="">Any status</option>
          {STATUSES.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <select class="field" aria-label="Age" value={age?.[0] ?? ''} onChange={(event) => narrow('age', event.currentTarget.value)}>
          <option value="">Any age</option>
          {AGES.map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
        <select class="field" aria-label="Cost" value={more['cost'] ?? ''} onChange={(event) => narrow('cost', event.currentTarget.value)}>
          <option value="">Any cost</option>
          {['0.01', '0.1', '1', '10'].map((usd) => (
            <option key={usd} value={usd}>
              from ${usd}
            </option>
          ))}
        </select>
        <select
          class="field"
          aria-label="Order"
          value={isByActivity ? 'activity' : ''}
          onChange={(event) => keep({ by: event.currentTarget.value || undefined })}
        >
          <option value="">Newest</option>
          <option value="activity">Last active</option>
        </select>
        {hasTenant && (
          <input
            class="field"
            placeholder="Tenant"
            aria-label="Tenant"
            value={more['tenant'] ?? ''}
            onChange={(event) => narrow('tenant', event.currentTarget.value)}
          />
        )}
      </div>
      {(value === undefined || error !== undefined) && <Pending error={error} again={again} />}
      {value !== undefined && (
        <p class="small faint row">
          <span class="grow" role="status">
            {rows.length === 0
              ? key.trim() === ''
                ? 'No conversation yet. The chat begins one.'
                : 'No conversation fits.'
              : rows.length === PAGE
                ? `The latest ${PAGE}`
                : plural(rows.length, 'conversation')}
          </span>
          {rows.length > 1 && (
            <span class="keys">
              <kbd>J</kbd> <kbd>K</kbd> move
            </span>
          )}
        </p>
      )}
      {rows.length > 0 && (
        <table class="sheet fleet-table">
          <thead>
            <tr>
              <th>Conversation</th>
              <th>Status</th>
              <th class="less">Agent</th>
              <th class="less">Model</th>
              {hasBuilds && <th class="less">Build</th>}
              <th class="end less">Turns</th>
              <th class="end">Cost</th>
              <th class="end">{isByActivity ? 'Active' : 'Begun'}</th>
            </tr>
          </thead>
          <tbody ref={list}>
            {rows.map((one) => (
              <tr key={one.id}>
                <td>
                  <div class="fleet-name">
                    <Link view="chat" of={one.id} class="row-link one-line">
                      {nameConversation(one.id, one)}
                    </Link>
                    {one.title !== null && <span class="faint mono one-line">{plainText(one.publicId ?? one.id, 60)}</span>}
                  </div>
                </td>
                <td>
                  <Status one={one} />
                </td>
                <td class="less">{one.agent === null ? '' : plainText(one.agent, 40)}</td>
                <td class="less one-line">{one.model === null ? '' : plainText(one.model, 40)}</td>
                {hasBuilds && <td class="less mono one-line">{plainText(one.build ?? '', 40)}</td>}
                <td class="end num less">{one.turns === null ? '' : count(one.turns)}</td>
                <td class="end num">{spent(one)}</td>
                <td class="end">{ago(isByActivity ? activeAt(one) : one.startedAt)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p class="row">
        {rows.length === PAGE && (
          <button type="button" class="button" onClick={() => keep({ before: value?.conversations.at(-1)?.startedAt }, { push: true })}>
            Older ones
          </button>
        )}
        {more['before'] !== undefined && (
          <button type="button" class="button bare" onClick={() => keep({ before: undefined }, { push: true })}>
            Latest
          </button>
        )}
      </p>
    </>
  );
}

/** Epoch milliseconds of the last that is known of it. */
function activeAt({ startedAt, closedAt, answeredAt }: Listed): number {
  return Math.max(...[startedAt, closedAt, answeredAt].map((time) => (time ? Date.parse(time) : 0)));
}

/** A conversation that is open is idle as a rule: only one in a turn works. */
function Status({ one: { running, state, status, phase } }: { readonly one: Listed }): JSX.Element {
  const words =
    running && status === 'running' && phase !== undefined ? (phase === 'idle' ? 'idle' : 'works') : running ? (status ?? 'open') : state;
  const kind =
    words === 'failed' || words === 'timed-out' || words === 'terminated'
      ? 'bad'
      : words === 'waiting'
        ? 'warn'
        : words === 'works' || words === 'running'
          ? 'busy'
          : '';
  return <span class={`pill ${kind}`}>{plainText(words, 20)}</span>;
}
