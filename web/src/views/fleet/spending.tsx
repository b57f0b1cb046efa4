/** What was spent: by day as a picture, and by agent, model and kind as lists. */
import type { JSX } from 'preact';
import { keep, place } from '../../address.js';
import { request, type Schema } from '../../api/request.js';
import { plainText, count, dollars, plural } from '../../ui/words.js';
import { Pending } from '../../ui/parts.js';
import { useAnswer, useWidth } from '../../ui/hooks.js';

type Sum = Schema<'SpendingSum'>;

const DAYS = [7, 30, 90] as const;
const DAY_MS = 86_400_000;

export function Spending(): JSX.Element {
  const days = DAYS.find((one) => String(one) === place.value.more['days']) ?? 30;
  const { value, error, again } = useAnswer(`usage ${days}`, async (signal) => {
    const since = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - (days - 1) * DAY_MS).toISOString();
    const by = (name: 'day' | 'agent' | 'model' | 'kind') => request('get', '/v1/usage', { query: { by: name, since }, signal });
    const [day, agent, model, kind] = await Promise.all([by('day'), by('agent'), by('model'), by('kind')]);
    return { day, agent, model, kind };
  });
  if (value === undefined) return <Pending error={error} again={again} />;
  const { total } = value.day;
  return (
    <>
      <header class="row">
        <p class="spent grow">
          <strong class="num">{dollars(total.usage.costUsd)}</strong>{' '}
          <span class="quiet">
            in {plural(total.calls, 'call')}, {count(total.usage.inputTokens + total.usage.outputTokens)} tokens
          </span>
        </p>
        <div class="switch" role="radiogroup" aria-label="How far back">
          {DAYS.map((one) => (
            <button
              key={one}
              type="button"
              role="radio"
              aria-checked={one === days}
              onClick={() => keep({ days: one === 30 ? undefined : String(one) })}
            >
              {one} days
            </button>
          ))}
        </div>
      </header>
      {total.unpriced > 0 && <p class="note">The price of {plural(total.unpriced, 'call')} is not known: the sums leave them out.</p>}
      <ByDay sums={value.day.sums} days={days} />
      <div class="spending-lists">
        <Ranked title="By agent" sums={value.agent.sums} />
        <Ranked title="By model" sums={value.model.sums} />
        <Ranked title="By kind" sums={value.kind.sums} />
      </div>
    </>
  );
}

const HEIGHT = 150;

function ByDay({ sums, days }: { readonly sums: readonly Sum[]; readonly days: number }): JSX.Element {
  const [frame, width] = useWidth<HTMLDivElement>();
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const byDay = new Map(sums.map((sum) => [sum.of, sum]));
  const all = Array.from({ length: days }, (_, at) => new Date(today - (days - 1 - at) * DAY_MS).toISOString().slice(0, 10)).map((of) => ({
    of,
    sum: byDay.get(of),
  }));
  const isPriced = sums.some(({ usage }) => (usage.costUsd ?? 0) > 0);
  const readValue = (sum: Sum | undefined): number =>
    sum === undefined ? 0 : isPriced ? (sum.usage.costUsd ?? 0) : sum.usage.inputTokens + sum.usage.outputTokens;
  const describeValue = (sum: Sum | undefined): string => (isPriced ? dollars(readValue(sum)) : `${count(readValue(sum))} tokens`);
  const most = Math.max(...all.map(({ sum }) => readValue(sum)), 1e-9);
  const step = width / days;
  const every = Math.ceil(56 / Math.max(1, step));
  return (
    <div ref={frame} class="by-day">
      {width > 0 && (
        <svg
          width={width}
          height={HEIGHT + 24}
          role="img"
          aria-label={`Spent by day, at most ${describeValue(all.reduce((a, b) => (readValue(b.sum) > readValue(a.sum) ? b : a)).sum)} on a day`}
        >
          <line x1={0} x2={width} y1={HEIGHT + 0.5} y2={HEIGHT + 0.5} class="grid-line" />
          {all.map(({ of, sum }, at) => {
            const height = readValue(sum) === 0 ? 0 : Math.max(2, (readValue(sum) / most) * (HEIGHT - 18));
            return (
              <g key={of} class="day">
                <title>{`${of}: ${describeValue(sum)}${sum === undefined ? '' : `, ${plural(sum.calls, 'call')}`}`}</title>
                <rect x={at * step} y={0} width={step} height={HEIGHT} class="day-reach" />
                <rect
                  x={at * step + step * 0.15}
                  y={HEIGHT - height}
                  width={Math.max(1, step * 0.7)}
                  height={height}
                  rx={2}
                  class="day-bar"
                />
                {readValue(sum) === most && most > 1e-6 && (
                  <text
                    x={at > days * 0.9 ? (at + 0.85) * step : at < days * 0.1 ? (at + 0.15) * step : (at + 0.5) * step}
                    y={HEIGHT - height - 5}
                    text-anchor={at > days * 0.9 ? 'end' : at < days * 0.1 ? 'start' : 'middle'}
                    class="tick"
                  >
                    {describeValue(sum)}
                  </text>
                )}
                {(days - 1 - at) % every === 0 && (
                  <text
                    x={at === days - 1 ? (at + 0.85) * step : (at + 0.5) * step}
                    y={HEIGHT + 17}
                    text-anchor={at === days - 1 ? 'end' : 'middle'}
                    class="tick"
                  >
                    {new Date(of).toLocaleDateString(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
      )}
      <details class="text-of-picture">
        <summary>The same as a table</summary>
        <table class="sheet">
          <thead>
            <tr>
              <th>Day (UTC)</th>
              <th class="end">Calls</th>
              <th class="end">Tokens</th>
              <th class="end">Cost</th>
            </tr>
          </thead>
          <tbody>
            {sums.toReversed().map(({ of, calls, usage }) => (
              <tr key={of}>
                <td class="num">{of}</td>
                <td class="end num">{count(calls)}</td>
                <td class="end num">{count(usage.inputTokens + usage.outputTokens)}</td>
                <td class="end num">{dollars(usage.costUsd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </div>
  );
}

function Ranked({ title, sums }: { readonly title: string; readonly sums: readonly Sum[] }): JSX.Element {
  const readValue = ({ usage }: Sum): number => usage.costUsd ?? 0;
  const most = Math.max(...sums.map(readValue), 1e-9);
  return (
    <section aria-label={title}>
      <h2 class="minor">{title}</h2>
      {sums.length === 0 && <p class="small faint">Nothing was spent.</p>}
      <ol class="ranked">
        {sums.slice(0, 12).map((sum) => (
          <li key={sum.of}>
            <span class="one-line">{plainText(sum.of, 60)}</span>
            <span class="num">{dollars(sum.usage.costUsd)}</span>
            <span class="ranked-bar" aria-hidden="true">
              <span style={{ width: `${Math.max(1, (readValue(sum) / most) * 100)}%` }} />
            </span>
            <span class="small faint num">
              {plural(sum.calls, 'call')}, {count(sum.usage.inputTokens)} → {count(sum.usage.outputTokens)} tokens
              {sum.failed > 0 && `, ${sum.failed} failed`}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
