/** One turn over time. ← and → move between bars, [ and ] between turns. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { turnNumber } from '../../../../src/records/identity.js';
import { keep, place } from '../../address.js';
import { request, type Schema } from '../../api/request.js';
import { readFork } from '../../conversations.js';
import { Icon } from '../../ui/icon.js';
import { Link, Pending } from '../../ui/parts.js';
import { plainText, ago, duration } from '../../ui/words.js';
import { useAnswer, useKeys } from '../../ui/hooks.js';
import { Picture } from './picture.js';
import { describeCost, labelBar, LANES, MARKS, describeOutcome, describeTokens, type Bar, type Timeline } from './words.js';
import '../../ui/parts.css';
import './timeline.css';

type Turn = Schema<'Turn'>;

const REFRESH_MS = 2_500;

export default function TimelineView({ of }: { readonly of: string }): JSX.Element {
  const { more } = place.value;
  const list = useAnswer(`turns ${of} ${more['before'] ?? ''}`, (signal) =>
    request('get', '/v1/conversations/{id}/turns', {
      path: { id: of },
      query: { limit: 60, ...(more['before'] && { before: more['before'] }) },
      signal,
    }),
  );
  const turns = list.value?.turns ?? [];
  const wanted = more['turn'] ?? turns.at(-1)?.turn;
  const at = turns.findIndex(({ turn }) => turn === wanted);
  const show = (turn: string | undefined): void => {
    if (turn !== undefined) keep({ turn, bar: undefined }, { push: true });
  };
  useKeys({ '[': () => show(turns[at - 1]?.turn), ']': () => show(turns[at + 1]?.turn) });
  if (of === '') return <div class="empty">Choose a conversation to see what its turns did.</div>;
  return (
    <div class="pane">
      <div class="view-pad timeline">
        {(list.error !== undefined || (list.value === undefined && wanted === undefined)) && (
          <Pending error={list.error} again={list.again} />
        )}
        {list.value !== undefined && turns.length === 0 && (
          <div class="empty">
            <h2>No turn yet</h2>
            <p>Send a message in Chat; what it sets off stands here.</p>
          </div>
        )}
        {turns.length > 0 && <TurnStrip turns={turns} shown={wanted} onShow={show} hasEarlier={list.value?.more === true} />}
        {wanted !== undefined && <OneTurn key={`${of} ${wanted}`} of={of} turn={wanted} />}
      </div>
    </div>
  );
}

interface TurnStripProps {
  readonly turns: readonly Turn[];
  readonly shown: string | undefined;
  readonly hasEarlier: boolean;
  readonly onShow: (turn: string) => void;
}

/** Each turn as a column as high as it was long. */
function TurnStrip({ turns, shown, hasEarlier, onShow }: TurnStripProps): JSX.Element {
  const longest = Math.max(1, ...turns.map(({ durationMs }) => durationMs));
  const one = turns.find(({ turn }) => turn === shown);
  useEffect(() => document.querySelector('.turn-column[aria-current]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' }), [shown]);
  return (
    <section class="turn-strip" aria-label="Turns">
      <div class="turn-columns">
        {hasEarlier && (
          <button type="button" class="button bare tight" onClick={() => keep({ before: turns[0]?.turn, turn: undefined }, { push: true })}>
            Earlier
          </button>
        )}
        {turns.map(({ turn, durationMs, question, problem }) => (
          <button
            key={turn}
            type="button"
            class={`turn-column${problem === undefined ? '' : ' is-bad'}`}
            aria-current={turn === shown ? 'true' : undefined}
            aria-label={`Turn ${turnNumber(turn)}, ${duration(durationMs)}: ${plainText(question, 80)}`}
            title={plainText(question, 120)}
            onClick={() => onShow(turn)}
          >
            <span class="turn-height" style={{ height: `${Math.max(6, Math.round(30 * Math.sqrt(durationMs / longest)))}px` }} />
            <span class="num">{turnNumber(turn)}</span>
          </button>
        ))}
        {place.value.more['before'] !== undefined && (
          <button type="button" class="button bare tight" onClick={() => keep({ before: undefined, turn: undefined }, { push: true })}>
            Latest
          </button>
        )}
      </div>
      {one !== undefined && (
        <p class="turn-asked">
          <strong class="num">Turn {turnNumber(one.turn)}</strong> <span class="quiet">{plainText(one.question, 200)}</span>
          <span class="faint small"> · {ago(one.startedAt)}</span>
        </p>
      )}
      {one?.problem !== undefined && <p class="note bad">{plainText(one.problem, 600)}</p>}
    </section>
  );
}

function OneTurn({ of, turn }: { readonly of: string; readonly turn: string }): JSX.Element {
  const open = useAnswer(`timeline ${of} ${turn}`, (signal) =>
    request('get', '/v1/conversations/{id}/turns/{turn}/timeline', { path: { id: of, turn }, signal }),
  );
  const { value, error, again } = open;
  const isLive = value !== undefined && value.to === null;
  useEffect(() => {
    if (!isLive) return;
    const timer = setTimeout(again, REFRESH_MS);
    return () => clearTimeout(timer);
  }, [value, isLive]);
  const { value: about } = useAnswer(`about ${of}`, (signal) => request('get', '/v1/conversations/{id}', { path: { id: of }, signal }));
  const origin = readFork(about);
  if (origin?.turn !== undefined && turnNumber(turn) <= turnNumber(origin.turn)) {
    return (
      <p class="note">
        <span>
          It happened before the fork:{' '}
          <Link view="timeline" of={origin.conversation} more={{ turn }}>
            its timeline
          </Link>{' '}
          is in the conversation that this one was forked from.
        </span>
      </p>
    );
  }
  if (value === undefined) return <Pending error={error} again={again} />;
  if (value.from === null) {
    return (
      <p class="note">
        {value.complete
          ? 'Nothing was called in this turn: it ended before its first model call.'
          : 'What happened in this turn has passed its retention in Temporal: the store has what was said.'}
      </p>
    );
  }
  return <Drawn of={of} timeline={value} begin={value.from} now={Date.now()} />;
}

interface DrawnProps {
  readonly of: string;
  readonly timeline: Timeline;
  readonly begin: number;
  readonly now: number;
}

function Drawn({ of, timeline, begin, now }: DrawnProps): JSX.Element {
  const { bars, marks, usage, workers, complete } = timeline;
  const selected = place.value.more['bar'];
  const bar = bars.find(({ id }) => id === selected);
  const tools = bars.filter(({ lane }) => lane === 'tool').length;
  const deaths = marks.filter(({ kind }) => kind === 'worker-died');
  const lanes = new Set(bars.map(({ lane }) => lane));
  return (
    <>
      <dl class="sums">
        <Sum name="Took">{timeline.to === null ? `${duration(now - begin)}, goes on` : duration(timeline.to - begin)}</Sum>
        <Sum name="Model calls">{bars.filter(({ lane }) => lane === 'model').length}</Sum>
        <Sum name="Tools">{tools}</Sum>
        {usage !== null && <Sum name="Tokens">{describeTokens({ usage })}</Sum>}
        {usage !== null && <Sum name="Cost">{describeCost({ usage })}</Sum>}
        {workers.length > 1 && <Sum name="Workers">{workers.length}</Sum>}
      </dl>
      {deaths.map((mark) => (
        <p key={`${mark.run}/${mark.event}`} class="note warn death">
          <Icon name="warn" size={15} />
          <span>
            <strong>A worker died</strong> after {duration(mark.at - begin)}. {plainText(mark.words, 300)}. The turn went on without losing
            what was done.
          </span>
          <TemporalLink link={mark.link} event={mark.event} />
        </p>
      ))}
      {!complete && <p class="note">A part of this turn has passed its retention, and is not in the picture.</p>}
      <Picture timeline={timeline} now={now} selected={selected} onSelect={(id) => keep({ bar: id === selected ? undefined : id })} />
      <p class="legend">
        {LANES.filter(([lane]) => lanes.has(lane)).map(([lane, title]) => (
          <span key={lane}>
            <i class={`key lane-key-${lane}`} />
            {title}
          </span>
        ))}
        {bars.some(({ attempt }) => attempt > 1) && (
          <span>
            <i class="key lane-key-lost" />
            Lost attempt
          </span>
        )}
        <span class="faint keys">
          <kbd>←</kbd> <kbd>→</kbd> bars, <kbd>[</kbd> <kbd>]</kbd> turns
        </span>
      </p>
      {bar !== undefined && <Detail of={of} bar={bar} begin={begin} now={now} />}
      <details class="text-of-picture" open={bars.length <= 30}>
        <summary>The same as a table</summary>
        <div class="scroll">
          <Table timeline={timeline} begin={begin} now={now} />
        </div>
      </details>
    </>
  );
}

function Sum({ name, children }: { readonly name: string; readonly children: JSX.Element | string | number }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="num">{children}</dd>
    </div>
  );
}

function Detail({
  of,
  bar,
  begin,
  now,
}: {
  readonly of: string;
  readonly bar: Bar;
  readonly begin: number;
  readonly now: number;
}): JSX.Element {
  const waited = bar.started === null ? undefined : bar.started - bar.from;
  const fact = (name: string, value: string | undefined): JSX.Element | false =>
    value !== undefined &&
    value !== '' && (
      <>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </>
    );
  return (
    <section class="bar-detail" aria-label={labelBar(bar)} aria-live="polite">
      <header class="row">
        <h2 class="grow">{labelBar(bar)}</h2>
        <span class={`pill ${bar.outcome === 'ok' ? '' : bar.outcome === 'running' ? 'busy' : 'bad'}`}>{describeOutcome(bar)}</span>
        <TemporalLink link={bar.link} event={bar.event} />
        <button type="button" class="button bare square tight" aria-label="Close" onClick={() => keep({ bar: undefined })}>
          <Icon name="close" size={15} />
        </button>
      </header>
      {bar.detail !== '' && <p class="quiet">{plainText(bar.detail, 300)}</p>}
      {bar.failure !== null && (
        <p class={`note ${bar.outcome === 'ok' ? 'warn' : 'bad'}`}>
          {bar.outcome === 'ok' ? 'The attempt before it: ' : ''}
          {plainText(bar.failure, 600)}
        </p>
      )}
      <dl class="facts-list">
        {fact('Began', `${new Date(bar.from).toLocaleTimeString()} · ${duration(bar.from - begin)} into the turn`)}
        {fact('Took', duration((bar.to ?? now) - bar.from))}
        {bar.attempt > 1
          ? fact('Attempt', `${bar.attempt}; ${duration(waited ?? 0)} were lost before it`)
          : waited !== undefined && waited > 20 && bar.lane !== 'person' && fact('Waited for a worker', duration(waited))}
        {fact('Model', bar.model === null ? '' : plainText(bar.model, 120))}
        {fact('Tokens', describeTokens(bar))}
        {fact('Cost', describeCost(bar))}
        {fact('Worker', bar.worker === null ? '' : plainText(bar.worker, 160))}
        {fact('Call', bar.callId === null ? '' : plainText(bar.callId, 64))}
        {fact('Temporal', `event ${bar.event}${bar.endEvent === null ? '' : ` to ${bar.endEvent}`} of run ${bar.run}`)}
      </dl>
      {bar.conversation !== null && (
        <p>
          <Link view="timeline" of={bar.conversation}>
            Open the sub-agent’s own timeline
          </Link>
        </p>
      )}
      {bar.lane === 'person' && bar.to === null && (
        <p>
          <Link view="chat" of={of}>
            Decide in Chat
          </Link>
        </p>
      )}
    </section>
  );
}

interface TemporalLinkProps {
  readonly link: string | null;
  readonly event: number;
  /** What it leads to is said above it. */
  readonly isShort?: boolean;
}

function TemporalLink({ link, event, isShort = false }: TemporalLinkProps): JSX.Element {
  if (link === null || !/^https?:\/\//.test(link)) return <span class="faint small num">event {event}</span>;
  return (
    <a class="small num" href={link} target="_blank" rel="noopener noreferrer">
      {isShort ? 'event' : 'Temporal event'} {event}
    </a>
  );
}

function Table({ timeline, begin, now }: { readonly timeline: Timeline; readonly begin: number; readonly now: number }): JSX.Element {
  const rows = [
    ...timeline.bars.map((bar) => ({ at: bar.from, bar, mark: undefined })),
    ...timeline.marks.map((mark) => ({ at: mark.at, bar: undefined, mark })),
  ].sort((a, b) => a.at - b.at);
  return (
    <table class="sheet">
      <thead>
        <tr>
          <th class="end">After</th>
          <th>Lane</th>
          <th>What</th>
          <th class="end">Took</th>
          <th>Outcome</th>
          <th class="end less">Attempt</th>
          <th class="end less">Tokens</th>
          <th class="end less">Cost</th>
          <th class="less">Temporal</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ bar, mark }) =>
          bar !== undefined ? (
            <tr key={bar.id}>
              <td class="end num">{duration(bar.from - begin)}</td>
              <td class="lane">{LANES.find(([lane]) => lane === bar.lane)?.[1]}</td>
              <td>
                {labelBar(bar)} <span class="faint">{plainText(bar.detail, 120)}</span>
              </td>
              <td class="end num">{duration((bar.to ?? now) - bar.from)}</td>
              <td>{describeOutcome(bar)}</td>
              <td class="end num less">{bar.attempt}</td>
              <td class="end num less">{describeTokens(bar)}</td>
              <td class="end num less">{describeCost(bar)}</td>
              <td class="less">
                <TemporalLink link={bar.link} event={bar.event} isShort />
              </td>
            </tr>
          ) : mark !== undefined ? (
            <tr key={`${mark.run}/${mark.event}/${mark.kind}`} class="mark-row">
              <td class="end num">{duration(Math.max(0, mark.at - begin))}</td>
              <td />
              <td>
                {MARKS[mark.kind]} <span class="faint">{plainText(mark.words, 120)}</span>
              </td>
              <td class="end" colSpan={2} />
              <td class="less" colSpan={3} />
              <td class="less">
                <TemporalLink link={mark.link} event={mark.event} isShort />
              </td>
            </tr>
          ) : null,
        )}
      </tbody>
    </table>
  );
}
