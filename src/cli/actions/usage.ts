/** `perdura usage`: what has been spent. */
import { parseMoment } from '../../records/time.js';
import type { SpendingGroup } from '../../records/spending.js';
import type { CliContext } from '../session/context.js';
import { printFound } from '../session/print-found.js';
import { withClient } from '../session/with-client.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { formatQuantity } from '../views/quantities.js';
import { loadMeasure } from '../views/table.js';
import { renderUsage } from '../views/usage.js';

export function usage(
  context: CliContext,
  { by, since, tenant }: { readonly by: SpendingGroup; readonly since?: string; readonly tenant?: string },
): Promise<number> {
  const from = since === undefined ? undefined : momentOf(since);
  return withClient(context, {}, async ({ client, output, globals, withSlowNotice }) => {
    const report = await withSlowNotice(
      'adding up',
      client.usage({ by, ...(from && { since: from }), ...(tenant !== undefined && { tenant }) }),
    );
    const { sums, total } = report;
    await printFound(output, globals.output, {
      whole: report,
      rows: sums,
      draw: async () => {
        if (sums.length === 0) output.note(since === undefined ? 'nothing was spent yet' : `nothing was spent since ${since}`);
        for (const line of renderUsage(report, { width: output.width(), measure: await loadMeasure() })) output.draw(line);
        if (total.unpriced > 0) {
          output.note(
            `the price of ${formatQuantity(total.unpriced, 'call')} is not known (?): \`perdura usage --by model\` shows of which models`,
          );
        }
      },
    });
    return EXIT.ok;
  });
}

function momentOf(text: string): Date {
  const at = parseMoment(text);
  if (at !== undefined) return new Date(at * 1000);
  throw new CliError(
    `${JSON.stringify(text.slice(0, 40))} is no date: write 2026-02-27 or 2026-02-27T14:30, in UTC unless a zone stands behind it`,
    EXIT.usage,
  );
}
