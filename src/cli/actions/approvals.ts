/** `perdura approvals`: what waits for a person, in one conversation or in all. */
import type { AllPending } from '../../client.js';
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';
import { findRunning } from '../args/find-conversation.js';
import { temporalCommand } from '../session/temporal-command.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { renderApproval, renderApprovals } from '../views/approvals.js';
import { loadMeasure } from '../views/cells.js';
import { withClient, type Desk } from '../session/with-client.js';

export interface ApprovalsOptions {
  readonly full?: boolean;
}

export function approvals(context: CliContext, given: string | undefined, { full }: ApprovalsOptions): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const { output, globals, temporal } = desk;
    const id = given === undefined ? undefined : await findRunning(desk, given);
    const found = await desk.slowly('asking what waits', lookFor(desk, id));
    for (const { id: silent, reason } of found.silent) output.problem(`${silent} does not answer: ${reason}`);
    if (found.more) output.problem('more conversations run than were asked; name one to look there');
    switch (globals.output) {
      case 'json':
        output.line(toTerminalJson(found.approvals, 2));
        return EXIT.ok;
      case 'jsonl':
        for (const one of found.approvals) output.line(toTerminalJson(one));
        return EXIT.ok;
      case 'text': {
        const look = { width: output.width(), timeFormat: globals.timeFormat, now: Date.now(), measure: await loadMeasure() };
        if (found.approvals.length === 0) output.note(`nothing waits for a person${id === undefined ? '' : ` in ${id}`}`);
        else if (full === true || id !== undefined) {
          for (const one of found.approvals) for (const line of renderApproval(one, look)) output.draw(line);
        } else {
          for (const line of renderApprovals(found.approvals, look)) output.draw(line);
          output.note('`perdura approvals --full` shows all of their arguments, `perdura approve ID` decides');
        }
        output.note(
          id === undefined
            ? temporalCommand(temporal, ['workflow', 'list', '-q', `AgentStatus = 'waiting'`])
            : temporalCommand(temporal, ['workflow', 'query', '--name', 'approvals', '-w', id]),
        );
        return EXIT.ok;
      }
    }
  });
}

async function lookFor({ client }: Desk, id: string | undefined): Promise<AllPending> {
  return id === undefined ? client.allApprovals() : { approvals: await client.approvals(id), silent: [], more: false };
}
