/** One conversation of a report: as recorded, and beside it as played. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import {
  actsAlike,
  commonEnds,
  describeVerdict,
  findStanding,
  firstDifferences,
  shortTurn,
  STANDING,
  withVisibleMarks,
  type Standing,
} from '../../../../src/whatif/differences.js';
import type { ComparedTurn, Lane, PlayedLane, ReportedConversation, TurnSide } from '../../../../src/whatif/report.js';
import { LANES } from '../../../../src/whatif/totals.js';
import { go, keep, place } from '../../address.js';
import { useAnswer, useKeys } from '../../ui/hooks.js';
import { Icon } from '../../ui/icon.js';
import { Link, Parts, Pending } from '../../ui/parts.js';
import { plainText, plural } from '../../ui/words.js';
import { readConversation, type OpenedReport } from './report-file.js';

export function Pair({ opened, at }: { readonly opened: OpenedReport; readonly at: number }): JSX.Element {
  const row = opened.rows[at];
  const { show } = place.value.more;
  const { value, error, again } = useAnswer(`whatif ${row?.from ?? ''}`, () =>
    row === undefined ? Promise.reject(new Error('there is no such conversation in the report')) : readConversation(opened, row),
  );
  const [before, after] = [opened.rows[at - 1], opened.rows[at + 1]];
  const leave = (to: typeof row): void => (to === undefined ? undefined : go('whatif', to.id, { show }));
  useKeys({ j: () => leave(after), k: () => leave(before) });
  return (
    <>
      <nav class="row" aria-label="Conversations of the report">
        <Link view="whatif" more={{ show }} class="button tight">
          <Icon name="back" size={14} />
          All
        </Link>
        <button type="button" class="button tight" disabled={before === undefined} aria-keyshortcuts="k" onClick={() => leave(before)}>
          Before
        </button>
        <button type="button" class="button tight" disabled={after === undefined} aria-keyshortcuts="j" onClick={() => leave(after)}>
          Next
        </button>
        <span class="small faint num">
          {at + 1} of {opened.rows.length}
        </span>
      </nav>
      {value === undefined ? <Pending error={error} again={again} /> : <Compared line={value} />}
    </>
  );
}

const PILL: Readonly<Record<Standing, string>> = { acts: 'bad', stopped: 'bad', words: 'warn', same: '', skipped: '' };

export function StandingPill({ standing }: { readonly standing: Standing }): JSX.Element {
  return <span class={`pill ${PILL[standing]}`}>{STANDING[standing]}</span>;
}

function Compared({ line }: { readonly line: ReportedConversation }): JSX.Element {
  const lanes = LANES.filter((lane) => line.lanes[lane] !== undefined);
  const shown = lanes.find((lane) => lane === place.value.more['lane']) ?? lanes[0];
  const lane = shown === undefined ? undefined : line.lanes[shown];
  return (
    <article class="compared">
      <header class="row">
        <h2 class="grow">{plainText(line.id, 200)}</h2>
        <StandingPill standing={findStanding(line, lane)} />
      </header>
      <p class="small faint">
        {plainText(line.agent, 100)}, {plural(line.turns, 'turn')}
      </p>
      {line.skipped !== undefined && <p class="note">{plainText(line.skipped, 1_000)}</p>}
      {line.gaps.slice(0, 20).map((gap, number) => (
        <p key={number} class="note warn">
          Gap: {plainText(gap, 500)}
        </p>
      ))}
      {line.verdict !== undefined && <p class="note">{plainText(describeVerdict(line.verdict), 2_000)}</p>}
      {lanes.length > 1 && shown !== undefined && (
        <Parts
          label="What was played"
          parts={lanes.map((name) => ({ name, title: LANE[name] }))}
          shown={shown}
          onShow={(name) => keep({ lane: name === 'candidate' ? undefined : name })}
        />
      )}
      {lane !== undefined && <Played key={shown} lane={lane} />}
    </article>
  );
}

const LANE: Readonly<Record<Lane, string>> = { candidate: 'Candidate', baseline: 'Baseline: as recorded, played again' };
const TURNS = 50;

function Played({ lane }: { readonly lane: PlayedLane }): JSX.Element {
  const showsAll = useSignal(lane.turns.every(actsAlike));
  const most = useSignal(TURNS);
  const other = lane.turns.filter((turn) => !actsAlike(turn));
  const turns = showsAll.value ? lane.turns : other;
  return (
    <>
      {lane.stopped !== undefined && (
        <p class="note bad">
          Stopped in {shortTurn(plainText(lane.stopped.turn, 60))}: {plainText(lane.stopped.why, 1_000)}
        </p>
      )}
      {firstDifferences(lane).map(({ where, recorded, played }, at) => (
        <section key={where} class="compared-turn">
          <h3>
            {at === 0 ? 'First difference' : 'Then'}: {plainText(where, 200)}
          </h3>
          <Sides recorded={<Words text={recorded} other={played} />} played={<Words text={played} other={recorded} />} />
        </section>
      ))}
      <div class="row section">
        <h3 class="grow">Turns</h3>
        <div class="switch" role="radiogroup" aria-label="Which turns are shown">
          <button type="button" role="radio" aria-checked={!showsAll.value} onClick={() => (showsAll.value = false)}>
            That act otherwise <span class="faint num">{other.length}</span>
          </button>
          <button type="button" role="radio" aria-checked={showsAll.value} onClick={() => (showsAll.value = true)}>
            All <span class="faint num">{lane.turns.length}</span>
          </button>
        </div>
      </div>
      {turns.slice(0, most.value).map((turn, number) => (
        <Turn key={number} turn={turn} />
      ))}
      {turns.length === 0 && <p class="small faint">None.</p>}
      {turns.length > most.value && (
        <button type="button" class="button" onClick={() => (most.value += TURNS)}>
          More of {plural(turns.length, 'turn')}
        </button>
      )}
    </>
  );
}

function Turn({ turn }: { readonly turn: ComparedTurn }): JSX.Element {
  return (
    <section class="compared-turn">
      <h3>
        {shortTurn(plainText(turn.turn, 60))} {!actsAlike(turn) && <span class="pill bad">acts otherwise</span>}
      </h3>
      <p class="compared-message" dir="auto">
        {withVisibleMarks(turn.message)}
      </p>
      <Sides recorded={<Side side={turn.recorded} other={turn.played} />} played={<Side side={turn.played} other={turn.recorded} />} />
    </section>
  );
}

function Sides({ recorded, played }: { readonly recorded: ComponentChildren; readonly played: ComponentChildren }): JSX.Element {
  return (
    <div class="sides">
      <div>
        <h4>Recorded</h4>
        {recorded}
      </div>
      <div>
        <h4>Played</h4>
        {played}
      </div>
    </div>
  );
}

const MAX_CALLS = 100;

function Side({ side, other }: { readonly side: TurnSide | undefined; readonly other: TurnSide | undefined }): JSX.Element {
  if (side === undefined) return <p class="small faint">There is no such turn.</p>;
  return (
    <>
      {side.calls.slice(0, MAX_CALLS).map(({ name, input, result, outcome, source }, at) => {
        const beside = other?.calls[at];
        const isOther = beside?.name !== name || beside.input !== input;
        return (
          <details key={at} class={`compared-call${isOther ? ' is-other' : ''}`}>
            <summary>
              <code class="one-line">
                {plainText(name, 100)} {plainText(input, 300)}
              </code>
            </summary>
            <pre class="code" tabIndex={0} dir="ltr">
              {withVisibleMarks(input)}
            </pre>
            <p class="small faint">
              {outcome ?? 'never ended'}, {SOURCE[source]}
            </p>
            <pre class="code" tabIndex={0} dir="ltr">
              {withVisibleMarks(result)}
            </pre>
          </details>
        );
      })}
      {side.calls.length > MAX_CALLS && <p class="small faint">and {side.calls.length - MAX_CALLS} more calls</p>}
      {side.calls.length === 0 && (other?.calls.length ?? 0) > 0 && <p class="small is-bad">No tool is called.</p>}
      {side.text !== '' && <Words text={side.text} other={other?.text ?? side.text} />}
      {side.stopReason !== 'end' && <p class="small faint">ended: {plainText(side.stopReason, 100)}</p>}
    </>
  );
}

const SOURCE = {
  recording: 'as recorded',
  product: 'answered by Perdura',
  stub: 'answered by a stub',
  live: 'run',
  none: 'not answered',
} as const;

/** What stands between the common beginning and end is marked. */
function Words({ text, other }: { readonly text: string; readonly other: string }): JSX.Element {
  if (text === other) {
    return (
      <p class="compared-words" dir="auto">
        {withVisibleMarks(text)}
      </p>
    );
  }
  const { head, tail } = commonEnds(text, other);
  const middle = text.slice(head, text.length - tail);
  return (
    <p class="compared-words" dir="auto">
      {withVisibleMarks(text.slice(0, head))}
      {middle !== '' && <mark>{withVisibleMarks(middle)}</mark>}
      {withVisibleMarks(text.slice(text.length - tail))}
    </p>
  );
}
