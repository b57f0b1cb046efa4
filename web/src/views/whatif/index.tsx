/** A report of `perdura whatif`: a file of the person's machine, opened here and sent nowhere. What differs first, then every conversation. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { STANDING, type Standing } from '../../../../src/whatif/differences.js';
import type { Change, Summary } from '../../../../src/whatif/summary.js';
import { keep, place, show, toHref } from '../../address.js';
import { heading } from '../../shell/title.js';
import { useKeys } from '../../ui/hooks.js';
import { Icon } from '../../ui/icon.js';
import { Link, Problem } from '../../ui/parts.js';
import { plainText, plural } from '../../ui/words.js';
import '../../ui/parts.css';
import { Pair, StandingPill } from './pair.js';
import { openedReport, openReport, type OpenedReport, type Row } from './report-file.js';
import './whatif.css';

export default function WhatIf({ of }: { readonly of: string }): JSX.Element {
  const opened = openedReport.value;
  const at = opened?.rows.findIndex(({ id }) => id === of) ?? -1;
  useEffect(() => {
    heading.value = of === '' ? 'What if' : `What if: ${of}`;
  }, [of]);
  return (
    <div class="view-pad whatif">
      <header class="view-head">
        <h1>What if</h1>
        <Opener isFirst={opened === undefined} />
      </header>
      {opened === undefined ? (
        <div class="empty">
          <p>
            Open the report of a <code>perdura whatif</code>: recorded conversations beside what they became with something changed.
          </p>
          <p class="small faint">It stays in this browser: nothing of it is sent anywhere.</p>
        </div>
      ) : of === '' ? (
        <Overview opened={opened} />
      ) : at === -1 ? (
        <p class="note">
          The report has no conversation {plainText(of, 100)}. <Link view="whatif">All of its conversations</Link>
        </p>
      ) : (
        <Pair key={of} opened={opened} at={at} />
      )}
    </div>
  );
}

function Opener({ isFirst }: { readonly isFirst: boolean }): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  const failure = useSignal<unknown>(undefined);
  const isReading = useSignal(false);
  const open = async (file: File | undefined): Promise<void> => {
    if (file === undefined || isReading.value) return;
    failure.value = undefined;
    isReading.value = true;
    try {
      openedReport.value = await openReport(file);
      show(toHref('whatif'));
    } catch (error) {
      failure.value = error;
    } finally {
      isReading.value = false;
    }
  };
  useEffect(() => {
    // Anywhere in the window: a file that misses would be opened in the page's place.
    const over = (event: DragEvent): void => event.preventDefault();
    const drop = (event: DragEvent): void => {
      event.preventDefault();
      void open(event.dataTransfer?.files[0]);
    };
    addEventListener('dragover', over);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('drop', drop);
    };
  }, []);
  return (
    <>
      <input
        ref={field}
        class="unseen"
        type="file"
        accept=".jsonl,.json,.ndjson,application/jsonl,application/json"
        aria-label="Report file"
        tabIndex={-1}
        onChange={(event) => {
          void open(event.currentTarget.files?.[0]);
          // The same file, made again, can be chosen again.
          event.currentTarget.value = '';
        }}
      />
      <button type="button" class={`button${isFirst ? ' main' : ''}`} disabled={isReading.value} onClick={() => field.current?.click()}>
        {isReading.value ? 'Reading …' : isFirst ? 'Open a report' : 'Open another'}
      </button>
      {failure.value !== undefined && <Problem error={failure.value} />}
    </>
  );
}

function Overview({ opened }: { readonly opened: OpenedReport }): JSX.Element {
  const { summary, problem, file } = opened;
  const [first = 'A report', ...more] = summary.about;
  return (
    <>
      <p class="small faint">{plainText(file.name, 200)}</p>
      <h2 class="whatif-about">{plainText(first, 300)}</h2>
      {more.map((line) => (
        <p key={line} class="small quiet">
          {plainText(line, 500)}
        </p>
      ))}
      {problem !== undefined && <Problem error={problem} />}
      {problem === undefined && !summary.isWhole && (
        <p class="note bad">The report has no totals: what wrote it was stopped before its end, so conversations are missing.</p>
      )}
      <ul class="findings">
        {summary.findings.map(({ weight, text }) => (
          <li key={text} class={`finding is-${weight}`}>
            <Icon name={weight === 'bad' ? 'warn' : weight === 'same' ? 'check' : 'more'} size={16} />
            <span>{plainText(text, 1_000)}</span>
          </li>
        ))}
      </ul>
      <Changes summary={summary} />
      <Conversations rows={opened.rows} />
    </>
  );
}

function Changes({ summary: { changes } }: { readonly summary: Summary }): JSX.Element | null {
  const rows = changes.filter(({ kind }) => kind === 'changed' || kind === 'noise');
  const list = (kind: Change['kind']): string =>
    changes
      .filter((change) => change.kind === kind)
      .map(({ name }) => name)
      .join(', ');
  const [same, unknown] = [list('same'), list('unknown')];
  return (
    <section class="section">
      <h2>A conversation, played less recorded</h2>
      {rows.length > 0 && (
        <div class="scroll wide" role="region" aria-label="Changes of a conversation" tabIndex={0}>
          <table class="sheet num">
            <thead>
              <tr>
                <th>Measure</th>
                <th>Change</th>
                <th>Mean, with 95 % interval</th>
                <th>Against the baseline</th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ name, share, mean, baseline, kind }) => (
                <tr key={name} class={kind === 'noise' ? 'faint' : ''}>
                  <td>{name}</td>
                  <td>{share}</td>
                  <td>{mean}</td>
                  <td>{baseline}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {same !== '' && <p class="small faint">The same: {same}.</p>}
      {unknown !== '' && <p class="small faint">Not known, since fewer than two can be compared: {unknown}.</p>}
    </section>
  );
}

const SHOWN: readonly { readonly name: string; readonly title: string; readonly has: (standing: Standing) => boolean }[] = [
  { name: '', title: 'All', has: () => true },
  { name: 'differ', title: 'That differ', has: (standing) => standing !== 'same' && standing !== 'skipped' },
  { name: 'acts', title: 'That act otherwise', has: (standing) => standing === 'acts' || standing === 'stopped' },
];
const ROWS = 200;

function Conversations({ rows }: { readonly rows: readonly Row[] }): JSX.Element {
  const most = useSignal(ROWS);
  const list = useRef<HTMLUListElement>(null);
  const shown = SHOWN.find(({ name }) => name === (place.value.more['show'] ?? '')) ?? SHOWN[0];
  const fitting = rows.filter(({ standing }) => shown?.has(standing) ?? true);
  const step = (by: number): void => {
    const links = [...(list.current?.querySelectorAll<HTMLElement>('a') ?? [])];
    const at = links.findIndex((link) => link === document.activeElement);
    links[Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
  };
  useKeys({ j: () => step(1), k: () => step(-1) });
  return (
    <section class="section">
      <h2>Conversations</h2>
      <div class="row">
        <div class="switch" role="radiogroup" aria-label="Which are shown">
          {SHOWN.map(({ name, title, has }) => (
            <button key={name} type="button" role="radio" aria-checked={name === shown?.name} onClick={() => keep({ show: name })}>
              {title} <span class="faint num">{rows.filter(({ standing }) => has(standing)).length}</span>
            </button>
          ))}
        </div>
      </div>
      <ul class="whatif-list" ref={list}>
        {fitting.slice(0, most.value).map(({ id, agent, turns, standing, baseline, better }) => (
          <li key={id}>
            <Link view="whatif" of={id} more={{ show: shown?.name }} class="whatif-link">
              <strong class="one-line">{plainText(id, 200)}</strong>
              <span class="small faint">
                {plainText(agent, 80)}, {plural(turns, 'turn')}
                {baseline !== undefined && `; baseline: ${STANDING[baseline]}`}
                {better !== undefined && `; judge: ${JUDGED[better]}`}
              </span>
              <StandingPill standing={standing} />
            </Link>
          </li>
        ))}
      </ul>
      {fitting.length === 0 && <p class="small faint">None.</p>}
      {fitting.length > most.value && (
        <button type="button" class="button" onClick={() => (most.value += ROWS)}>
          More of {plural(fitting.length, 'conversation')}
        </button>
      )}
    </section>
  );
}

const JUDGED = { recorded: 'worse', candidate: 'better', same: 'as good', unreadable: 'unreadable' } as const;
