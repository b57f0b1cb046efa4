/** `perdura inspect`: how a conversation stands, with or without a worker. */
import type { Listed, Pending, TurnEnd } from '../../client.js';
import type { QueuedEvent, Status } from '../../conversation/protocol/contract.js';
import type { Entry } from '../../records/message.js';
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import { withTimeoutFallback } from '../session/with-progress.js';
import { findUiPort, uiLink } from '../services/temporal-connection.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { loadMeasure } from '../views/table.js';
import { inspectTurns } from '../../insight/turns.js';
import { renderInspection, type Inspection } from '../views/inspection.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';
import { errorMessage } from '../../platform/errors.js';

const TURNS = 5;
const CHILDREN = 100;

export function inspect(context: CliContext, given: string, { turns }: { readonly turns?: number }): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const { output, globals, temporal, withSlowNotice } = desk;
    const id = await findConversation(desk, given);
    const inspection = await withSlowNotice(`looking at ${id}`, lookAt(desk, id, turns ?? TURNS));
    if (globals.output !== 'text') {
      output.line(toTerminalJson(inspection, globals.output === 'json' ? 2 : undefined));
      return EXIT.ok;
    }
    const look = { width: output.width(), timeFormat: globals.timeFormat, now: Date.now(), measure: await loadMeasure() };
    for (const line of renderInspection(inspection, look)) output.draw(line);
    output.explain(temporalCommand(temporal, ['workflow', 'describe', '-w', id]));
    return EXIT.ok;
  });
}

async function lookAt(desk: CommandSession, id: string, turns: number): Promise<Inspection> {
  const { client, temporal, output } = desk;
  const description = await client.describe(id);
  const [said, queue, approvals, children, [entries, ends], uiPort] = await Promise.all([
    withTimeoutFallback<Status | null>(client.status(id), null),
    withTimeoutFallback<QueuedEvent[]>(client.queue(id), []),
    withTimeoutFallback<Pending[]>(client.approvals(id), []),
    client.list({ query: `WorkflowId STARTS_WITH '${id}:'`, limit: CHILDREN }).catch((): Listed[] => []),
    Promise.all([client.history(id), client.turnEnds(id)]).catch((error: unknown): [Entry[], TurnEnd[]] => {
      output.problem(`what was said cannot be read: ${errorMessage(error)}`);
      return [[], []];
    }),
    findUiPort(temporal),
  ]);
  const link = uiLink(temporal, uiPort, id) ?? null;
  return { description, status: said, queue, approvals, children, turns: inspectTurns(entries, ends, turns), link };
}
