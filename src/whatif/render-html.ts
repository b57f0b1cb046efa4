/**
 * A report as one HTML page. It has no script and asks for nothing: its policy allows its one style, by hash, and nothing else. Whatever is put
 * into it is escaped by the one function that makes markup (`fill`).
 *
 * It is written while the report is read, a conversation at a time. What stands first is known last: a template with slots puts the summary, which
 * is written at the end, before the conversations, for eyes, keyboards and screen readers alike.
 */
import { createHash } from 'node:crypto';
import {
  actsAlike,
  chooseTurns,
  commonEnds,
  describeVerdict,
  findStanding,
  firstDifferences,
  mainLane,
  shortTurn,
  STANDING,
  withVisibleMarks,
  type Standing,
} from './differences.js';
import type { ComparedTurn, PlayedLane, ReportedConversation, ReportLine, TurnSide } from './report.js';
import { createSummary, plural, type Change, type Summary } from './summary.js';

export interface HtmlOptions {
  /** Turns of one conversation that are shown, those that act otherwise first. */
  readonly turns?: number;
  /** Characters of the page, after which conversations come without their turns. */
  readonly characters?: number;
}

const MAX_TURNS = 60;
const MAX_PAGE = 24 * 1024 * 1024;
/** Conversations that are open when the page is. */
const OPENED = 3;
const MAX_TEXT = 4_200;
const MAX_CALLS = 40;

export async function* renderHtml(
  lines: AsyncIterable<ReportLine>,
  { turns = MAX_TURNS, characters = MAX_PAGE }: HtmlOptions = {},
): AsyncGenerator<string, void> {
  const summary = createSummary();
  yield HEAD;
  let written = HEAD.length;
  let opened = 0;
  for await (const line of lines) {
    summary.add(line);
    if (line.kind !== 'conversation') continue;
    const standing = findStanding(line);
    const isOpen = (standing === 'acts' || standing === 'stopped') && opened < OPENED;
    if (isOpen) opened += 1;
    const { markup } = drawConversation(line, standing, isOpen, written < characters ? turns : 0);
    written += markup.length;
    yield markup;
  }
  yield drawSummary(summary.end()).markup;
  yield '</main>\n</body>\n</html>\n';
}

/** The colours and sizes of Perdura's page (web/src/styles/tokens.css), in a file that stands alone. */
const STYLE = `
:root{color-scheme:light dark;--paper:light-dark(#fafaf8,#131413);--panel:light-dark(#fff,#1a1c1a);--sunk:light-dark(#f3f3f0,#0e0f0e);
--line:light-dark(#e2e2dd,#2d302c);--line-strong:light-dark(#b9bab3,#565a53);--ink:light-dark(#1a1c19,#ecedea);--ink-2:light-dark(#52564f,#b4b8b0);
--ink-3:light-dark(#666a62,#989d94);--accent:light-dark(#0b6b62,#5cc8b8);--bad:light-dark(#ab2318,#ff9d92);--bad-soft:light-dark(#faeae8,#371c19);
--warn:light-dark(#7d5200,#e9bd66);--warn-soft:light-dark(#faf0da,#30260e);--mono:ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace}
*{box-sizing:border-box}
html{background:var(--paper);color:var(--ink);font:15px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','Liberation Sans',sans-serif;
accent-color:var(--accent);-webkit-text-size-adjust:100%}
body{margin:0}
.report{display:block;max-width:84rem;margin-inline:auto;padding:1.5rem clamp(.75rem,3vw,2rem) 4rem}
h1{font-size:1.375rem;line-height:1.3;margin:.125rem 0 .5rem;overflow-wrap:anywhere}
h2{font-size:1rem;margin:1.75rem 0 .5rem}
h3{font-size:.875rem;margin:0 0 .375rem;overflow-wrap:anywhere}
h4{font-size:.75rem;font-weight:500;margin:0 0 .25rem;color:var(--ink-3)}
p{margin:0 0 .25rem;overflow-wrap:anywhere}
.faint{color:var(--ink-3);font-size:.8125rem}
.quiet{color:var(--ink-2)}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.findings{list-style:none;margin:1rem 0 0;padding:0;display:grid;gap:.375rem}
.finding{display:flex;gap:.625rem;padding:.5rem .75rem;border-radius:5px;background:var(--sunk);color:var(--ink-2);overflow-wrap:anywhere;min-width:0}
.finding>span:last-child{min-width:0}
.finding.bad{background:var(--bad-soft);color:var(--bad);font-weight:500}
.finding.noise{color:var(--ink-3)}
.finding .mark{flex:none;width:1ch;text-align:center}
.changes{overflow-x:auto}
table{border-collapse:collapse;font-size:.8125rem;font-variant-numeric:tabular-nums}
th,td{text-align:start;padding:.375rem 1.25rem .375rem 0;border-bottom:1px solid var(--line);white-space:nowrap;font-weight:400}
thead th{color:var(--ink-3)}
tbody th{font-weight:500}
.filter{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;border:0;margin:0 0 .75rem;padding:0;font-size:.875rem}
.filter label{display:inline-flex;gap:.375rem;align-items:center;min-height:1.75rem;cursor:pointer}
.report:has(#only-differ:checked)>.is-same{display:none}
.report:has(#only-acts:checked)>.conversation:not(.is-acts,.is-stopped){display:none}
.conversation{border:1px solid var(--line);border-radius:8px;background:var(--panel);margin-bottom:.5rem}
.conversation>summary{display:flex;flex-wrap:wrap;gap:.125rem .875rem;align-items:baseline;padding:.625rem .875rem;cursor:pointer;list-style-position:inside}
.conversation>summary::before{content:'▸';color:var(--ink-3);flex:none}
.conversation[open]>summary::before{content:'▾'}
summary::-webkit-details-marker{display:none}
.conversation>summary .name{font-weight:600;overflow-wrap:anywhere;min-width:0}
.conversation>summary .pill{margin-inline-start:auto}
.pill{padding:0 .5rem;border-radius:1rem;background:var(--sunk);color:var(--ink-2);font-size:.75rem;font-weight:500;line-height:1.5rem;white-space:nowrap}
.pill.acts,.pill.stopped{background:var(--bad-soft);color:var(--bad)}
.pill.words{background:var(--warn-soft);color:var(--warn)}
.inside{padding:.375rem .875rem .875rem;border-top:1px solid var(--line);content-visibility:auto;contain-intrinsic-size:auto 40rem}
.note{padding:.375rem .625rem;border-radius:5px;background:var(--sunk);color:var(--ink-2);font-size:.8125rem}
.note.bad{background:var(--bad-soft);color:var(--bad)}
.first,.turn{padding-block:.75rem}
.turn{border-top:1px solid var(--line)}
.message{padding:.375rem .75rem;margin-bottom:.5rem;border-inline-start:3px solid var(--line-strong);color:var(--ink-2);white-space:pre-wrap}
.pair{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:.75rem}
.side{min-width:0;padding:.5rem .75rem;border-radius:5px;background:var(--sunk)}
.text{white-space:pre-wrap;unicode-bidi:isolate}
mark{background:var(--warn-soft);color:inherit;border-radius:2px;box-shadow:0 0 0 1px var(--warn-soft);text-decoration:underline;
text-decoration-color:var(--warn);text-underline-offset:.2em}
.call{margin-bottom:.25rem}
.call>summary{display:flex;gap:.5rem;cursor:pointer;list-style:none;border-radius:3px}
.call>summary>code{min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.call>summary::before{content:'→';color:var(--ink-3)}
.call.is-other>summary{color:var(--bad)}
.call[open]>summary>code{white-space:normal;overflow-wrap:anywhere}
.none{color:var(--bad)}
code,pre{font-family:var(--mono);font-size:.8125rem}
pre{margin:0 0 .25rem;max-height:18rem;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;padding:.375rem .5rem;border:1px solid var(--line);border-radius:5px}
@media (max-width:700px){.pair{grid-template-columns:minmax(0,1fr);gap:.375rem}.report{padding-top:1rem}.conversation>summary .pill{margin-inline-start:0}}
@media print{.report{max-width:none;padding:0}.conversation{break-inside:avoid-page}}
`;

const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'`;

const HEAD = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>What if · Perdura</title>
<style>${STYLE}</style>
</head>
<body>
<main class="report">
<template shadowrootmode="open"><slot name="summary"></slot><slot></slot></template>
`;

interface Markup {
  readonly markup: string;
}

type Shown = string | number | Markup | readonly Markup[] | undefined;

/** The one way into the page: what is not markup of this function is text. */
function fill(parts: TemplateStringsArray, ...values: readonly Shown[]): Markup {
  const filled = values.map((value, at) => toMarkup(value) + (parts[at + 1] ?? ''));
  return { markup: (parts[0] ?? '') + filled.join('') };
}

function toMarkup(value: Shown): string {
  if (value === undefined) return '';
  if (typeof value === 'string' || typeof value === 'number') return escapeHtml(String(value));
  return 'markup' in value ? value.markup : value.map(({ markup }) => markup).join('');
}

export function escapeHtml(text: string): string {
  return withVisibleMarks(text).replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

const MARKS = { bad: '✗', other: '·', noise: '~', same: '✓' } as const;
const WEIGHTS = { bad: 'Warning: ', other: 'Differs: ', noise: 'May be noise: ', same: '' } as const;

function drawSummary({ header, about, findings, changes, isWhole, totals }: Summary): Markup {
  const [first = 'A report', ...more] = about;
  return fill`<header slot="summary" class="summary">
    <p class="faint">What if · ${header?.madeAt.slice(0, 16).replace('T', ' ')}</p>
    <h1>${cut(first, 300)}</h1>
    ${more.map((line) => fill`<p class="quiet">${cut(line, 500)}</p>`)}
    ${isWhole ? undefined : fill`<p class="finding bad">The report has no totals: what wrote it was stopped before its end, so conversations are missing.</p>`}
    <ul class="findings">
      ${findings.map(
        ({ weight, text }) =>
          fill`<li class="finding ${weight}">
            <span class="mark" aria-hidden="true">${MARKS[weight]}</span><span><span class="unseen">${WEIGHTS[weight]}</span>${text}</span>
          </li> `,
      )}
    </ul>
    ${drawChanges(changes, (totals.lanes.candidate ?? totals.lanes.baseline)?.stopped ?? 0)}
    <h2>Conversations</h2>
    <fieldset class="filter">
      <legend class="unseen">Which conversations are shown</legend>
      <label><input type="radio" name="shown" value="all" checked /> All ${totals.conversations}</label>
      <label><input type="radio" name="shown" value="differ" id="only-differ" /> That differ</label>
      <label><input type="radio" name="shown" value="acts" id="only-acts" /> That act otherwise</label>
    </fieldset>
  </header> `;
}

function drawChanges(changes: readonly Change[], stopped: number): Markup | undefined {
  const list = (kind: Change['kind']): string =>
    changes
      .filter((change) => change.kind === kind)
      .map(({ name }) => name)
      .join(', ');
  const rows = changes.filter(({ kind }) => kind === 'changed' || kind === 'noise');
  const [same, unknown] = [list('same'), list('unknown')];
  return fill`<h2>A conversation, played less recorded</h2>
    ${
      rows.length === 0
        ? undefined
        : fill`<div class="changes wide" role="region" aria-label="Changes of a conversation" tabindex="0">
            <table>
              <thead>
                <tr>
                  <th scope="col">Measure</th>
                  <th scope="col">Change</th>
                  <th scope="col">Mean, with 95 % interval</th>
                  <th scope="col">Against the baseline</th>
                </tr>
              </thead>
              <tbody>
                ${rows.map(({ name, share, mean, baseline, kind }) => fill`<tr${kind === 'noise' ? fill` class="faint"` : undefined}><th scope="row">${name}</th><td>${share}</td><td>${mean}</td><td>${baseline}</td></tr>\n`)}
              </tbody>
            </table>
          </div> `
    }${same === '' ? undefined : fill`<p class="faint">The same: ${same}.</p> `}${
      unknown === '' ? undefined : fill`<p class="faint">Not known, since fewer than two can be compared: ${unknown}.</p> `
    }${stopped === 0 ? undefined : fill`<p class="faint">Without ${plural(stopped, 'conversation')} that stopped: what is shorter costs less.</p> `}`;
}

function drawConversation(line: ReportedConversation, standing: Standing, isOpen: boolean, turns: number): Markup {
  const lane = mainLane(line.lanes);
  const baseline = lane === line.lanes.baseline ? undefined : line.lanes.baseline;
  const { verdict } = line;
  return fill`<details class="conversation is-${standing}" ${isOpen ? fill` open` : undefined}>
    <summary>
      <span class="name">${cut(line.id, 200)}</span><span class="faint">${cut(line.agent, 100)}, ${plural(line.turns, 'turn')}</span>${
        baseline === undefined ? undefined : fill`<span class="faint">baseline: ${STANDING[findStanding(line, baseline)]}</span>`
      }${
        verdict === undefined
          ? undefined
          : fill`<span class="faint"
              >judge: ${{ recorded: 'worse', candidate: 'better', same: 'the same', unreadable: 'unreadable' }[verdict.better]}</span
            >`
      }<span class="pill ${standing}">${STANDING[standing]}</span>
    </summary>
    <div class="inside">
      ${line.skipped === undefined ? undefined : fill`<p class="note">${cut(line.skipped)}</p> `}${line.gaps.slice(0, 20).map((gap) => fill`<p class="note">Gap: ${cut(gap)}</p> `)}${
        lane?.stopped === undefined
          ? undefined
          : fill`<p class="note bad">Stopped in ${shortTurn(cut(lane.stopped.turn, 60))}: ${cut(lane.stopped.why)}</p> `
      }${verdict === undefined ? undefined : fill`<p class="note">${describeVerdict({ ...verdict, why: cut(verdict.why, 1_000) })}</p> `}${
        lane === undefined ? undefined : drawLane(lane, turns)
      }${
        baseline === undefined || baseline.divergence === null
          ? undefined
          : fill`<h3>Baseline: the recorded configuration, played again</h3>
              ${drawDifferences(baseline)}`
      }
    </div>
  </details> `;
}

function drawDifferences(lane: PlayedLane): Markup[] {
  return firstDifferences(lane).map(
    ({ where, recorded, played }, at) =>
      fill`<section class="first">
        <h3>${at === 0 ? 'First difference' : 'Then'}: ${where}</h3>
        ${drawPair(drawText(recorded, played), drawText(played, recorded))}
      </section> `,
  );
}

function drawLane(lane: PlayedLane, most: number): Markup {
  const chosen = chooseTurns(lane.turns, most);
  const left = lane.turns.filter((turn) => !chosen.has(turn));
  const leftActing = left.filter((turn) => !actsAlike(turn)).length;
  return fill`${drawDifferences(lane)}${lane.turns.filter((turn) => chosen.has(turn)).map(drawTurn)}${
    left.length === 0
      ? undefined
      : fill`<p class="faint">
          ${plural(left.length, 'turn')} not shown here, of which ${leftActing} act otherwise: the report’s file has all, and Perdura’s page
          opens it.
        </p> `
  }`;
}

function drawTurn(turn: ComparedTurn): Markup {
  const { recorded, played } = turn;
  const isAlike = actsAlike(turn);
  return fill`<section class="turn${isAlike ? undefined : fill` is-other`}">
    <h3>${shortTurn(cut(turn.turn, 60))}${isAlike ? undefined : fill` <span class="pill acts">acts otherwise</span>`}</h3>
    <p class="message" dir="auto">${cut(turn.message)}</p>
    ${drawPair(drawSide(recorded, played), drawSide(played, recorded))}
  </section> `;
}

function drawPair(recorded: Markup, played: Markup): Markup {
  return fill`<div class="pair">
    <div class="side">
      <h4>Recorded</h4>
      ${recorded}
    </div>
    <div class="side">
      <h4>Played</h4>
      ${played}
    </div>
  </div> `;
}

function drawSide(side: TurnSide | undefined, other: TurnSide | undefined): Markup {
  if (side === undefined) return fill`<p class="faint">There is no such turn.</p>`;
  const { calls, text, stopReason } = side;
  return fill`${calls.slice(0, MAX_CALLS).map(
    ({ name, input, result, outcome, source }, at) =>
      fill`<details class="call${other?.calls[at]?.name === name && other.calls[at]?.input === input ? undefined : fill` is-other`}">
        <summary><code>${cut(name, 100)} ${cut(input, 300)}</code></summary>
        <pre tabindex="0">${cut(input)}</pre>
        <p class="faint">${outcome ?? 'never ended'}, ${SOURCES[source]}</p>
        <pre tabindex="0">${cut(result)}</pre>
      </details> `,
  )}${calls.length > MAX_CALLS ? fill`<p class="faint">and ${calls.length - MAX_CALLS} more calls</p>` : undefined}${
    calls.length === 0 && (other?.calls.length ?? 0) > 0 ? fill`<p class="none">No tool is called.</p>` : undefined
  }${text === '' ? undefined : drawText(text, other?.text ?? text)}${
    stopReason === 'end' ? undefined : fill`<p class="faint">ended: ${cut(stopReason, 100)}</p>`
  }`;
}

const SOURCES = {
  recording: 'as recorded',
  product: 'answered by Perdura',
  stub: 'answered by a stub',
  live: 'run',
  none: 'not answered',
} as const;

/** What stands between the common beginning and end is marked. */
function drawText(text: string, other: string): Markup {
  const [shown, beside] = [cut(text), cut(other)];
  if (shown === beside) return fill`<p class="text" dir="auto">${shown}</p>`;
  const { head, tail } = commonEnds(shown, beside);
  const middle = shown.slice(head, shown.length - tail);
  // Its blanks are shown: nothing stands between its parts.
  return fill`<p class="text" dir="auto">${shown.slice(0, head)}${middle === '' ? undefined : fill`<mark>${middle}</mark>`}${shown.slice(shown.length - tail)}</p>`;
}

/** Who wrote the report has shortened its texts; who has not is shortened here. */
function cut(text: string, most = MAX_TEXT): string {
  return text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`;
}
