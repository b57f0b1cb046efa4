/** MEMORY.md as it is, and in every version. */
import type { JSX } from 'preact';
import { request, type Schema } from '../../api/request.js';
import { plainLines, ago, dateTime, plural } from '../../ui/words.js';
import { Problem, Pending } from '../../ui/parts.js';
import { useAnswer } from '../../ui/hooks.js';
import { describeCause, isUntrusted, Origin } from './origin.js';
import { keep, place } from '../../address.js';

type BlamedLine = Schema<'BlamedLine'>;

/** With who brought each line in its margin. Lines that came together share one note. */
export function Document({ scope }: { readonly scope: string }): JSX.Element {
  const { value, error, again } = useAnswer(`blame ${scope}`, (signal) =>
    request('get', '/v1/memory/{scope}/blame', { path: { scope }, signal }),
  );
  if (value === undefined) return <Pending error={error} again={again} />;
  const { lines } = value;
  if (lines.length === 0)
    return (
      <div class="empty">
        <h2>Nothing is remembered yet</h2>
        <p>What conversations of this scope leave behind is written here when they are consolidated.</p>
      </div>
    );
  const groups: BlamedLine[][] = [];
  for (const line of lines) {
    const last = groups.at(-1);
    if (last !== undefined && toKey(last[0]!) === toKey(line)) last.push(line);
    else groups.push([line]);
  }
  return (
    <div class="blame" role="list" aria-label="MEMORY.md, with where each line comes from">
      {groups.map((group) => {
        const { source, change, number } = group[0]!;
        return (
          <div key={number} class={`blame-group ${isUntrusted(source) ? 'is-tool' : ''}`} role="listitem">
            <div class="blame-lines">
              {group.map(({ line, number: at }) => (
                <p key={at} class={line.startsWith('#') ? 'blame-title' : ''}>
                  <span class="faint num blame-number">{at}</span>
                  <span class="blame-text" dir="auto">
                    {plainLines(line)}
                  </span>
                </p>
              ))}
            </div>
            <div class="blame-note small">
              <Origin source={source} />
              {change !== undefined && (
                <span class="faint">
                  {describeCause(change.cause)} {ago(change.ts * 1000)}
                </span>
              )}
            </div>
          </div>
        );
      })}
    </div>
  );
}

function toKey({ source, change }: BlamedLine): string {
  return JSON.stringify([source, change?.id]);
}

/** Every version of MEMORY.md on a slider; what each changed, line by line. */
export function Versions({ scope }: { readonly scope: string }): JSX.Element {
  const { value, error, again } = useAnswer(`versions ${scope}`, (signal) =>
    request('get', '/v1/memory/{scope}/changes', { path: { scope }, query: { limit: 500 }, signal }),
  );
  if (value === undefined) return <Pending error={error} again={again} />;
  // Oldest first, as time goes.
  const versions = value.changes.toReversed();
  if (versions.length === 0) return <div class="empty">Nothing was ever written here.</div>;
  const wanted = place.value.more['version'];
  const found = versions.findIndex(({ version }) => version === wanted);
  const at = found === -1 ? versions.length - 1 : found;
  const shown = versions[at]!;
  const most = Math.max(1, ...versions.map(({ added, removed }) => added + removed));
  const words = `Version ${at + 1} of ${versions.length}, ${describeCause(shown.cause)} ${ago(shown.ts * 1000)}: ${shown.added} lines came, ${shown.removed} went`;
  return (
    <>
      <div class="version-slider">
        <div class="version-bars" aria-hidden="true">
          {versions.map(({ version, added, removed }, n) => (
            <span key={`${version} ${n}`} class={n === at ? 'is-shown' : ''}>
              <i class="came" style={{ height: `${(added / most) * 22}px` }} />
              <i class="went" style={{ height: `${(removed / most) * 22}px` }} />
            </span>
          ))}
        </div>
        <input
          type="range"
          min={0}
          max={versions.length - 1}
          value={at}
          aria-label="Version"
          aria-valuetext={words}
          onInput={(event) => keep({ version: versions[Number(event.currentTarget.value)]?.version })}
        />
      </div>
      <p class="version-words">
        <strong class="num">
          Version {at + 1} of {versions.length}
        </strong>{' '}
        <span class="quiet">
          {describeCause(shown.cause)}, <time dateTime={new Date(shown.ts * 1000).toISOString()}>{dateTime(shown.ts)}</time>
        </span>{' '}
        {shown.added > 0 && <span class="came-words num">+{shown.added}</span>}{' '}
        {shown.removed > 0 && <span class="went-words num">−{shown.removed}</span>}
      </p>
      <Diff scope={scope} from={shown.from} to={shown.version} />
    </>
  );
}

function Diff({ scope, from, to }: { readonly scope: string; readonly from: string; readonly to: string }): JSX.Element {
  const { value, error, again } = useAnswer(`diff ${scope} ${from} ${to}`, (signal) =>
    request('get', '/v1/memory/{scope}/diff', { path: { scope }, query: { from, to }, signal }),
  );
  if (value === undefined)
    return error === undefined ? (
      <div class="note" aria-busy="true">
        Reading…
      </div>
    ) : (
      <Problem error={error} again={again} />
    );
  const changed = value.lines.filter(({ kind }) => kind !== 'kept').length;
  return (
    <div class="diff" role="group" aria-label={plural(changed, 'line has', 'lines have')}>
      {value.lines.map(({ kind, line }, at) => (
        <p key={at} class={`diff-line ${kind}`}>
          <span class="diff-mark" aria-hidden="true">
            {{ added: '+', removed: '−', kept: ' ' }[kind]}
          </span>
          {kind !== 'kept' && <span class="unseen">{kind === 'added' ? 'came: ' : 'went: '}</span>}
          <span dir="auto">{plainLines(line) || ' '}</span>
        </p>
      ))}
    </div>
  );
}
