/** MEMORY.md with who brought each line in its margin. Lines that came together share one note. */
import type { JSX } from 'preact';
import { request, type Schema } from '../../api/request.js';
import { plainLines } from '../../ui/plain-text.js';
import { Problem } from '../../ui/problem.js';
import { useAnswer } from '../../ui/use-answer.js';
import { ago } from '../../ui/words.js';
import { describeCause, Origin } from './origin.js';

type BlamedLine = Schema<'BlamedLine'>;

export function Document({ scope }: { readonly scope: string }): JSX.Element {
  const { value, error, again } = useAnswer(`blame ${scope}`, (signal) =>
    request('get', '/v1/memory/{scope}/blame', { path: { scope }, signal }),
  );
  if (value === undefined) return error === undefined ? <div class="empty" aria-busy="true" /> : <Problem error={error} again={again} />;
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
          <div key={number} class={`blame-group ${source.trust.startsWith('tool:') ? 'is-tool' : ''}`} role="listitem">
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
