/** `perdura dispatch`: an event of somebody's own application, for its reducer. */
import { readAppEvent } from '../../conversation/protocol/control-input.js';
import type { JsonValue } from '../../records/message.js';
import type { CliContext } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findRunning } from '../args/find-conversation.js';
import { readStandardInput } from '../terminal/standard-input.js';
import { temporalCommand } from '../session/temporal-command.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { withClient } from '../session/with-client.js';

export interface EventToDispatch {
  readonly type: string;
  /** As written; undefined: none, `-`: on stdin. */
  readonly json: string | undefined;
  readonly eventId: string | undefined;
}

export async function dispatch(context: CliContext, given: string, { type, json, eventId }: EventToDispatch): Promise<number> {
  const payload = await readPayload(json);
  const event = { ...(eventId === undefined ? {} : { id: eventId }), type, ...(payload === undefined ? {} : { payload }) };
  const read = readAppEvent(event);
  if (!read.ok) throw new CliError(`cannot dispatch ${type} to ${given}: ${read.reason}`, EXIT.usage);
  return withClient(context, { needsWorker: true }, async (desk) => {
    const { client, output, globals, temporal, slowly } = desk;
    const id = await findRunning(desk, given);
    const { id: own, position } = await slowly(`handing ${type} to ${id}`, client.dispatch(id, event));
    if (globals.output !== 'text') output.line(toTerminalJson({ conversation: id, id: own, type, position }));
    else {
      output.line(own);
      output.say(
        `${type} waits in the queue of ${id}${position === 0 ? '' : `, behind ${position} others`}; \`perdura inspect ${id}\` tells of one that nobody reduces`,
      );
      const input = JSON.stringify({ ...event, id: own });
      const words = ['workflow', 'update', 'execute', '--name', 'dispatch', '-w', id, '--input', input.length > 200 ? '…' : input];
      output.note(temporalCommand(temporal, words));
    }
    return EXIT.ok;
  });
}

async function readPayload(json: string | undefined): Promise<JsonValue | undefined> {
  if (json === undefined) return undefined;
  const text = json === '-' ? await readStandardInput() : json;
  try {
    return JSON.parse(text) as JsonValue;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`the payload is not JSON: ${reason}. A text stands in quotes of its own: '"like this"'`, EXIT.usage);
  }
}
