/** `perdura list`: conversations, as visibility knows them. */
import { missingAttributes } from '../../client/registered-attributes.js';
import type { CliContext } from '../session/context.js';
import { CliError, EXIT, messageOf } from '../terminal/exit.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { loadMeasure } from '../views/table.js';
import { renderList } from '../views/conversation-list.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';

export type ListStatus = 'running' | 'waiting' | 'failed' | 'ended' | 'canceled' | 'terminated' | 'timed-out';

export interface ListOptions {
  readonly query?: string;
  readonly limit: number;
  readonly status?: ListStatus;
}

export function list(context: CliContext, { query, limit, status }: ListOptions): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const { client, output, globals, temporal, withSlowNotice } = desk;
    const wanted = [
      ...(query === undefined ? [] : [`(${query})`]),
      ...(status === undefined ? [] : [queryOf(status, await withSlowNotice('asking for search attributes', hasAttributes(desk, status)))]),
    ];
    const own = wanted.length === 0 ? undefined : wanted.join(' AND ');
    // One more than is shown, to know whether there are more.
    const found = await withSlowNotice('listing conversations', client.list({ limit: limit + 1, query: own }).catch(explainQuery(query)));
    const shown = found.slice(0, limit);
    switch (globals.output) {
      case 'json':
        output.line(toTerminalJson(shown, 2));
        return EXIT.ok;
      case 'jsonl':
        for (const one of shown) output.line(toTerminalJson(one));
        return EXIT.ok;
      case 'text': {
        const look = { width: output.width(), timeFormat: globals.timeFormat, now: Date.now(), measure: await loadMeasure() };
        if (shown.length > 0) for (const line of renderList(shown, look)) output.draw(line);
        else output.note(own === undefined ? 'there are no conversations yet; `perdura new` starts one' : 'no conversation fits');
        if (found.length > limit) output.note(`the first ${limit} of more; --limit shows more`);
        const asked = [`WorkflowType = 'conversation'`, ...wanted].join(' AND ');
        output.explain(temporalCommand(temporal, ['workflow', 'list', '-q', asked, '--limit', String(limit)]));
        return EXIT.ok;
      }
    }
  });
}

function explainQuery(query: string | undefined): (error: unknown) => never {
  return (error) => {
    if (query === undefined || (error as { kind?: unknown }).kind !== 'invalid') throw error;
    const why = messageOf(error).replace(/^.*INVALID_ARGUMENT: /s, '');
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
