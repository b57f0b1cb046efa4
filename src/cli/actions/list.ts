/** `perdura list`: conversations that visibility knows, as they stand now. */
import { missingAttributes } from '../../client/temporal/registered-attributes.js';
import type { CliContext } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { loadMeasure } from '../views/table.js';
import { renderList, renderProblems } from '../views/conversation-list.js';
import { hasWorker } from '../services/temporal-connection.js';
import type { Listed } from '../../client.js';
import { withCurrentStatus, type Standing } from '../../client/current-status.js';
import { printFound } from '../session/print-found.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';
import { errorMessage } from '../../platform/errors.js';

export type ListStatus = 'running' | 'waiting' | 'failed' | 'ended' | 'canceled' | 'terminated' | 'timed-out';

export interface ListOptions {
  readonly query?: string;
  readonly limit: number;
  readonly status?: ListStatus;
  readonly tenant?: string;
}

export function list(context: CliContext, { query, limit, status, tenant }: ListOptions): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const { client, output, globals, temporal, withSlowNotice } = desk;
    const wanted = [
      ...(query === undefined ? [] : [`(${query})`]),
      ...(status === undefined ? [] : [queryOf(status, await withSlowNotice('asking for search attributes', hasAttributes(desk, status)))]),
    ];
    const own = wanted.length === 0 ? undefined : wanted.join(' AND ');
    // One more than is shown, to know whether there are more.
    const found = await withSlowNotice(
      'listing conversations',
      client.list({ limit: limit + 1, query: own, ...(tenant !== undefined && { tenant }) }).catch(explainQuery(query)),
    );
    const shown = await withSlowNotice('asking how they stand', asTheyStand(desk, found.slice(0, limit)));
    await printFound(output, globals.output, {
      whole: shown,
      rows: shown,
      draw: async () => {
        const look = { width: output.width(), timeFormat: globals.timeFormat, now: Date.now(), measure: await loadMeasure() };
        if (shown.length > 0) for (const line of renderList(shown, look)) output.draw(line);
        else
          output.note(
            own === undefined && tenant === undefined ? 'there are no conversations yet; `perdura new` starts one' : 'no conversation fits',
          );
        for (const line of renderProblems(shown, look)) output.draw(line);
        if (shown.some(({ isCurrent, turns }) => !isCurrent && turns !== null))
          output.note('+: as of the last tenth turn, since no worker answered in time');
        if (found.length > limit) output.note(`the first ${limit} of more; --limit shows more`);
        const asked = [`WorkflowType = 'conversation'`, ...wanted].join(' AND ');
        output.explain(temporalCommand(temporal, ['workflow', 'list', '-q', asked, '--limit', String(limit)]));
      },
    });
    return EXIT.ok;
  });
}

async function asTheyStand({ config, client }: CommandSession, listed: readonly Listed[]): Promise<Standing[]> {
  if (listed.length === 0) return [];
  const { connectTemporal } = await import('../../client.js');
  const { connection } = await connectTemporal(config);
  try {
    return await withCurrentStatus(listed, {
      statusOf: client.status,
      hasWorker: (taskQueue) => hasWorker(connection, client.namespace, taskQueue),
    });
  } finally {
    await connection.close();
  }
}

function explainQuery(query: string | undefined): (error: unknown) => never {
  return (error) => {
    if (query === undefined || (error as { kind?: unknown }).kind !== 'invalid') throw error;
    const why = errorMessage(error).replace(/^.*INVALID_ARGUMENT: /s, '');
    throw new CliError(`cannot list by ${query}: ${why}; \`perdura list --help\` has an example`, EXIT.usage, { cause: error });
  };
}

/** Only where the answer matters: `running` and the rest are Temporal's own. */
async function hasAttributes({ config, client }: CommandSession, status: ListStatus): Promise<boolean> {
  if (status !== 'waiting' && status !== 'failed') return false;
  const { connectTemporal } = await import('../../client.js');
  const { connection } = await connectTemporal(config);
  try {
    return (await missingAttributes(connection, client.namespace)).length === 0;
  } finally {
    await connection.close();
  }
}

const EXECUTION: Readonly<Record<Exclude<ListStatus, 'waiting'>, string>> = {
  running: 'Running',
  failed: 'Failed',
  ended: 'Completed',
  canceled: 'Canceled',
  terminated: 'Terminated',
  'timed-out': 'TimedOut',
};

function queryOf(status: ListStatus, attributes: boolean): string {
  if (status === 'waiting') {
    if (attributes) return `(ExecutionStatus = 'Running' AND AgentStatus = 'waiting')`;
    throw new CliError(
      'cannot list what waits: the search attribute AgentStatus is not registered; `perdura setup` does that',
      EXIT.failed,
    );
  }
  const own = `ExecutionStatus = '${EXECUTION[status]}'`;
  return status === 'failed' && attributes ? `(${own} OR (ExecutionStatus = 'Running' AND AgentStatus = 'failed'))` : own;
}
