/** `perdura send`: a message to a conversation that runs, from a script or another terminal. */
import { randomUUID } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { MAX_ATTACHMENT_BYTES } from '../../client/attach.js';
import type { Delivery, Enqueued, Message } from '../../conversation/protocol/contract.js';
import type { CliContext } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { readJson, readJsonObject, readText, type Sources } from '../args/values.js';
import { withProgress } from '../session/with-progress.js';
import { toTerminalJson, toTerminalLine } from '../terminal/terminal-text.js';
import type { AppEventOutcome } from '../../conversation/protocol/stepping.js';
import { answerExitCode, explainEnd } from '../session/turn-end.js';
import { wholeAnswer } from '../../client/whole-answer.js';
import { formatDuration } from '../views/quantities.js';
import { withClient, temporalCommand } from '../session/with-client.js';
import { readAppEvent } from '../../conversation/protocol/control-input.js';
import { pickMedia, type JsonValue, type Media, type MediaSource } from '../../records/message.js';
import { detectFileType, TAKEN_FILES, TEXT_TYPE, withTextFile } from '../../records/file-type.js';
import { findRunning } from '../args/find-conversation.js';
import { namedByTenant } from '../gateway/tenant-names.js';
import { timeoutSignal } from '../../platform/promises.js';
import { errorMessage } from '../../platform/errors.js';

export interface SendOptions {
  readonly signal?: boolean;
  readonly id?: string;
  readonly wait: boolean;
  readonly enqueue?: boolean;
  readonly delivery?: Delivery;
  /** JSON, or where it is. */
  readonly payload?: string;
  readonly outputSchema?: string;
  readonly context?: string;
  /** Pictures, PDF, texts. */
  readonly attach?: readonly string[];
  /** Milliseconds. */
  readonly timeout?: number;
}

export async function send(context: CliContext, given: string, message: string, options: SendOptions): Promise<number> {
  const { surroundings } = context;
  const text = await readText(surroundings, message);
  if (text.trim() === '' && options.payload === undefined && options.attach === undefined)
    throw new CliError(`cannot send to ${given}: the message is empty`, EXIT.usage);
  if (options.enqueue === true && options.signal === true) {
    throw new CliError('--enqueue is an update with a receipt, --signal one without: choose one', EXIT.usage);
  }
  const isAwaited = options.wait && options.signal !== true && options.enqueue !== true;
  const files = await readFiles(surroundings.cwd, options.attach ?? []);
  const whole = files.filter(({ type }) => type === TEXT_TYPE).reduce(withTextFile, text);
  const said: Message & { readonly id: string } = { id: options.id ?? randomUUID(), text: whole, ...(await beside(surroundings, options)) };
  const whenInterrupted = 'stopped waiting; the conversation goes on';
  return withClient(
    context,
    { needsWorker: isAwaited, whenInterrupted },
    async ({ client, config, output, globals, temporal, signal, withSlowNotice }) => {
      const id = (await namedByTenant(config, given)) ?? given;
      const kept = files.filter(({ type }) => type !== TEXT_TYPE).map(({ bytes }) => client.attach(id, bytes));
      const own = { ...said, ...mediaIn(await withSlowNotice(`attaching to ${id}`, Promise.all(kept))) };
      if (options.enqueue === true) {
        const receipt = await withSlowNotice(`sending to ${id}`, client.enqueue(id, own));
        if (globals.output !== 'text') output.line(toTerminalJson({ conversation: id, ...receipt }));
        else {
          output.line(receipt.messageId);
          output.note(receiptInWords(receipt));
        }
        return EXIT.ok;
      }
      if (!isAwaited) {
        const { messageId } = await withSlowNotice(`sending to ${id}`, client.message(id, own));
        output.line(globals.output === 'text' ? messageId : toTerminalJson({ conversation: id, messageId }));
        if (globals.output === 'text') {
          const input = text.length > 200 ? '…' : JSON.stringify(own);
          output.explain(temporalCommand(temporal, ['workflow', 'signal', '--name', 'message', '-w', id, '--input', input]));
        }
        return EXIT.ok;
      }
      const limit = options.timeout === undefined ? undefined : timeoutSignal(options.timeout);
      const patience = limit === undefined ? signal : AbortSignal.any([signal, limit]);
      const asked = { client, output, id };
      const ask = async (): Promise<number> => {
        const result = await withProgress(asked, client.send(id, own, { signal: patience }));
        const answer = await wholeAnswer(client, id, result);
        if (globals.output !== 'text') output.line(toTerminalJson({ conversation: id, messageId: own.id, ...result, text: answer }));
        else if (answer !== '') output.line(answer);
        explainEnd(result, output);
        if (globals.output === 'text') output.explain(temporalCommand(temporal, ['workflow', 'show', '-w', id]));
        return answerExitCode(result);
      };
      return withSlowNotice(`waiting for the answer of ${id}`, ask()).catch((error: unknown) => {
        if (limit?.aborted !== true || signal.aborted) throw error;
        const again = `perdura send ${id} … --id ${own.id}`;
        throw new CliError(
          `no answer from ${id} within ${formatDuration(options.timeout ?? 0)}; the message stays sent, and \`${again}\` waits again`,
          EXIT.timedOut,
        );
      });
    },
  );
}

interface AttachedFile {
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

/** Before anything is asked of a server: a file that is not there is said at once. */
async function readFiles(cwd: string, files: readonly string[]): Promise<readonly AttachedFile[]> {
  return Promise.all(
    files.map(async (file) => {
      const path = resolve(cwd, file);
      try {
        if ((await stat(path)).size > MAX_ATTACHMENT_BYTES) throw new Error(`it has more than ${MAX_ATTACHMENT_BYTES} bytes`);
        const bytes = await readFile(path);
        const type = detectFileType(bytes);
        if (type === undefined) throw new Error(bytes.length === 0 ? 'it is empty' : `by its content it is no ${TAKEN_FILES}`);
        return { name: basename(file), type, bytes };
      } catch (error) {
        throw new CliError(`cannot attach ${file}: ${errorMessage(error)}`, EXIT.usage);
      }
    }),
  );
}

function mediaIn(sources: readonly MediaSource[]): Media {
  const isPicture = ({ mediaType }: MediaSource): boolean => mediaType.startsWith('image/');
  return pickMedia({ images: sources.filter(isPicture), documents: sources.filter((one) => !isPicture(one)) });
}

/** What goes with the text. */
async function beside(sources: Sources, { delivery, payload, outputSchema, context }: SendOptions): Promise<Omit<Message, 'text'>> {
  return {
    ...(delivery === undefined ? {} : { delivery }),
    ...(payload === undefined ? {} : { payload: await readJson(sources, '--payload', payload) }),
    ...(outputSchema === undefined ? {} : { output: await readJsonObject(sources, '--output-schema', outputSchema) }),
    ...(context === undefined ? {} : { context: await readJsonObject(sources, '--context', context) }),
  };
}

function receiptInWords({ turnId, acceptedAs, position }: Enqueued): string {
  if (acceptedAs === 'duplicate') return `known already${turnId === null ? '' : `, as ${turnId}`}`;
  const before = position === 0 ? 'nothing is before it' : `${position} before it`;
  return turnId === null ? 'it joins the running turn between its next tool calls' : `it becomes ${turnId}; ${before}`;
}

function reducedInWords(type: string, result: AppEventOutcome): string {
  switch (result.kind) {
    case 'reduced': {
      const { addedChunks, removedChunkIds, contextTokens } = result;
      return `reduced: ${addedChunks.length} chunks added, ${removedChunkIds.length} removed, ${contextTokens.after} tokens`;
    }
    case 'unreduced':
      return `nothing reduces ${type} here: the worker's own workflows have no reducer of that type`;
    case 'parked':
      return `parked: ${result.error}`;
    case 'not-known':
      return 'what became of it is not known any more: it was taken out of the queue, or reduced long ago';
  }
}

/** `perdura dispatch`: an event of somebody's own application, for its reducer. */
interface EventToDispatch {
  readonly type: string;
  /** As written; undefined: none, `-`: on stdin. */
  readonly json: string | undefined;
  readonly eventId: string | undefined;
  /** For what its reducer makes of it. */
  readonly wait: boolean;
}

export async function dispatch(context: CliContext, given: string, { type, json, eventId, wait }: EventToDispatch): Promise<number> {
  const payload = await readPayload(context.surroundings, json);
  const event = { ...(eventId === undefined ? {} : { id: eventId }), type, ...(payload === undefined ? {} : { payload }) };
  const read = readAppEvent(event);
  if (!read.ok) throw new CliError(`cannot dispatch ${type} to ${given}: ${read.reason}`, EXIT.usage);
  const whenInterrupted = 'stopped waiting; the event is reduced all the same';
  return withClient(context, { needsWorker: true, whenInterrupted }, async (desk) => {
    const { client, output, globals, temporal, signal, withSlowNotice } = desk;
    const id = await findRunning(desk, given);
    const handing = client.dispatch(id, event, { wait, signal });
    const { id: own, position, result } = await withSlowNotice(`handing ${type} to ${id}`, handing);
    if (globals.output !== 'text') output.line(toTerminalJson({ conversation: id, id: own, type, position, ...(result && { result }) }));
    else if (result) {
      output.line(own);
      output.say(toTerminalLine(reducedInWords(type, result), 600));
    } else {
      output.line(own);
      output.say(
        `${type} waits in the queue of ${id}${position === 0 ? '' : `, behind ${position} others`}; \`perdura inspect ${id}\` shows one that no reducer takes`,
      );
      const input = JSON.stringify({ ...event, id: own });
      const words = ['workflow', 'update', 'execute', '--name', 'dispatch', '-w', id, '--input', input.length > 200 ? '…' : input];
      output.explain(temporalCommand(temporal, words));
    }
    return EXIT.ok;
  });
}

async function readPayload(sources: Sources, json: string | undefined): Promise<JsonValue | undefined> {
  if (json === undefined) return undefined;
  const text = await readText(sources, json);
  try {
    return JSON.parse(text) as JsonValue;
  } catch (cause) {
    const reason = errorMessage(cause);
    throw new CliError(`the payload is not JSON: ${reason}. A text stands in quotes of its own: '"like this"'`, EXIT.usage);
  }
}

/** `perdura withdraw`: takes a message back that no turn has taken. */
export function withdraw(context: CliContext, given: string, messageId: string): Promise<number> {
  return withClient(context, { needsWorker: true }, async ({ client, config, output, globals, temporal, withSlowNotice }) => {
    const id = await findRunning({ client, config, output, withSlowNotice }, given);
    const outcome = await withSlowNotice(`asking ${id}`, client.withdraw(id, messageId));
    if (globals.output !== 'text') output.line(toTerminalJson({ id, ...outcome }));
    if (!outcome.withdrawn) throw new CliError(`not withdrawn: ${outcome.reason ?? 'no reason was given'}`, EXIT.failed);
    if (globals.output === 'text') {
      output.say(`message ${messageId} is taken back: no turn has seen it, and none will`);
      const input = JSON.stringify({ messageId });
      output.explain(temporalCommand(temporal, ['workflow', 'update', 'execute', '--name', 'withdraw', '-w', id, '--input', input]));
    }
    return EXIT.ok;
  });
}
