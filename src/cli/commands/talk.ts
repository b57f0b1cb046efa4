/** Conversations begin and are spoken to: at a terminal, from a script, or from another terminal. */
import { randomUUID } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { Option, type Command } from 'commander';
import type { Delivery, Enqueued, Message, StartOptions } from '../../conversation/protocol/contract.js';
import { errorMessage } from '../../platform/errors.js';
import { detectFileType, TAKEN_FILES, TEXT_TYPE, withTextFile } from '../../records/file-type.js';
import { pickMedia, type Media, type MediaSource } from '../../records/message.js';
import {
  parseAmount,
  parseModelName,
  parseDuration,
  parseTokens,
  findFile,
  readJson,
  readJsonObject,
  readText,
  refuseStrayWords,
  type Sources,
} from '../args/values.js';
import type { ChatOptions } from '../chat/chat.js';
import { namedByTenant, newName } from '../args/find-conversation.js';
import { refuseUnusableAgent } from '../services/before-start.js';
import { awaitAnswer, type Answer, type CommandRow } from '../session/command.js';
import { signalWords } from '../session/connect.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { startBudget, type BudgetWanted } from './lineage.js';

interface NewOptions extends Pick<StartOptions, 'agent' | 'title' | 'model' | 'scope' | 'tenant' | 'mode'>, BudgetWanted {
  readonly id?: string;
  readonly context?: string;
}

interface SendOptions {
  readonly signal?: boolean;
  readonly id?: string;
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

export const TALK: readonly CommandRow[] = [
  {
    name: 'chat',
    description: 'chat with an agent; -p prints one answer; lines can also be piped in',
    isDefault: true,
    args: [['[words...]', 'the first message']],
    options: [
      ['-c, --continue', 'go on with the last conversation of this folder'],
      new Option('-r, --resume [id]', 'go on with this conversation, or choose one').conflicts('continue'),
      ['--agent <name>', 'agent of a new conversation'],
      ['--model <provider/name>', 'model of a new conversation', parseModelName],
      new Option('--mode <mode>', 'of a new conversation; stepping: it waits for each /step').choices(['auto', 'stepping']),
      ['--budget <usd>', 'what a new conversation may cost in all, in US dollars', parseAmount],
      ['-p, --print [message]', 'print one answer and end; stdin is taken too'],
      ['--keep', 'of -p: the conversation stays open; else it closes, and -c resumes it'],
      new Option('--output-format <format>', 'of -p').choices(['text', 'json', 'stream-json']).default('text'),
      ['--start-services', 'find or start Temporal and a worker first, as npm start does'],
    ],
    async run(frame, words: string[], options: ChatOptions, command: Command): Promise<number> {
      if (command.parent !== null) refuseStrayWords(words, options.print !== undefined, command.parent, command);
      const { chat } = await import('../chat/chat.js');
      const { openPageOfChat } = await import('./run.js');
      return chat(words, options, frame, (config) => openPageOfChat(frame, config));
    },
  },
  {
    name: 'send',
    description: 'send a message to a running conversation and print its answer',
    args: [
      ['<id>', 'the conversation'],
      ['<message>', 'the message, or - for stdin'],
    ],
    options: [
      ['--signal', 'by signal: do not wait, print the id of the message'],
      ['--id <key>', 'id of the message: the same id twice is one message'],
      ['--enqueue', 'do not wait: print a receipt, with the turn that the message becomes'],
      new Option(
        '--delivery <how>',
        'queue: after the running turn; steer: into it, between its next tool calls; interrupt: in its place',
      ).choices(['queue', 'steer', 'interrupt']),
      ['--attach <file...>', 'files for the model: pictures (PNG, JPEG, GIF, WebP), PDF, texts'],
      ['--payload <json>', 'data for the model, shown after the text: JSON, @FILE or - for stdin'],
      ['--output-schema <json>', 'JSON Schema of the object that the answer must be: JSON or @FILE'],
      ['--context <json>', 'values that tools see and the model never does, from this turn on: JSON or @FILE'],
      ['--timeout <duration>', 'wait no longer than 30s, 5m, …; then exit code 124, and the message stays sent', parseDuration],
    ],
    async run(frame, given: string, message: string, options: SendOptions): Promise<Answer> {
      const text = await readText(frame.surroundings, message);
      if (text.trim() === '' && options.payload === undefined && options.attach === undefined)
        throw new CliError(`cannot send to ${given}: the message is empty`, EXIT.usage);
      if (options.enqueue === true && options.signal === true)
        throw new CliError('--enqueue is an update with a receipt, --signal one without: choose one', EXIT.usage);
      const isAwaited = options.signal !== true && options.enqueue !== true;
      const files = await readFiles(frame.surroundings.cwd, options.attach ?? []);
      const whole = files.filter(({ type }) => type === TEXT_TYPE).reduce(withTextFile, text);
      const first = { id: options.id ?? randomUUID(), text: whole, ...(await readParts(frame.surroundings, options)) };
      const session = await frame.open({ needsWorker: isAwaited, whenInterrupted: 'stopped waiting; the conversation goes on' });
      const { client, config, withSlowNotice } = session;
      const id = (await namedByTenant(config, given)) ?? given;
      const attached = files.filter(({ type }) => type !== TEXT_TYPE).map(({ bytes }) => client.attach(id, bytes));
      const sent = { ...first, ...toMedia(await withSlowNotice(`attaching to ${id}`, Promise.all(attached))) };
      if (options.enqueue === true) {
        const receipt = await withSlowNotice(`sending to ${id}`, client.enqueue(id, sent));
        return { data: { conversation: id, ...receipt }, text: receipt.messageId, notes: [describeReceipt(receipt)] };
      }
      if (isAwaited) {
        const late = `the message stays sent, and \`perdura send ${id} … --id ${sent.id}\` waits again`;
        const answered = await awaitAnswer(session, id, (signal) => client.send(id, sent, { signal }), { timeout: options.timeout, late });
        return { ...answered, data: { messageId: sent.id, ...answered.data } };
      }
      const { messageId } = await withSlowNotice(`sending to ${id}`, client.message(id, sent));
      return { data: { conversation: id, messageId }, text: messageId, temporal: signalWords('message', id, sent) };
    },
  },
  {
    name: 'new',
    description: 'start a conversation and print its id',
    options: [
      ['--agent <name>', 'its agent'],
      ['--title <text>', 'what lists call it'],
      ['--model <provider/name>', "a model other than the agent's", parseModelName],
      ['--scope <name>', 'whose long-term memory it uses'],
      ['--tenant <name>', 'whose it is, where several share the installation; other commands take it as NAME/ID'],
      new Option('--mode <mode>', 'stepping: it waits for each `perdura debug step`').choices(['auto', 'stepping']),
      ['--budget <usd>', 'what it may cost in all, in US dollars', parseAmount],
      ['--budget-tokens <count>', 'how many tokens it may use in all', parseTokens],
      ['--context <json>', 'values that tools see and the model never does: JSON, @FILE or - for stdin'],
      ['--id <id>', 'its id; one that runs already is left as it is'],
    ],
    async run(frame, given: NewOptions): Promise<Answer> {
      const { id: wanted, agent, title, model, scope, tenant, mode } = given;
      const shared = given.context === undefined ? {} : { context: await readJsonObject(frame.surroundings, '--context', given.context) };
      const { client, config, withSlowNotice } = await frame.open({ needsWorker: true });
      await refuseUnusableAgent(config, agent, tenant);
      const { id, publicId, name } = await newName(config, tenant, wanted);
      const options: StartOptions = { agent, title, model, scope, tenant, publicId, mode, ...startBudget(given), ...shared };
      const { attached } = await withSlowNotice('starting a conversation', client.start(id, options));
      const { namespace, taskQueue } = client;
      return {
        data: { id, ...(publicId !== undefined && { tenant, publicId }), attached, namespace, taskQueue },
        text: name,
        notes: attached ? [`conversation ${name} was running already: nothing was started, and options were not used`] : [],
        temporal: ['workflow', 'describe', '-w', id],
      };
    },
  },
];

interface AttachedFile {
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

/** Before a server is reached: a file that is not there is reported at once. */
export async function readFiles(cwd: string, files: readonly string[]): Promise<readonly AttachedFile[]> {
  if (files.length === 0) return [];
  const { MAX_ATTACHMENT_BYTES } = await import('../../client/uploads.js');
  return Promise.all(
    files.map(async (file) => {
      try {
        const path = await findFile(cwd, file);
        if ((await stat(path)).size > MAX_ATTACHMENT_BYTES) throw new Error(`it has more than ${MAX_ATTACHMENT_BYTES} bytes`);
        const bytes = await readFile(path);
        const type = detectFileType(bytes);
        if (type === undefined) throw new Error(bytes.length === 0 ? 'it is empty' : `by its content it is no ${TAKEN_FILES}`);
        return { name: basename(path), type, bytes };
      } catch (error) {
        throw new CliError(`cannot attach ${file}: ${errorMessage(error)}`, EXIT.usage);
      }
    }),
  );
}

function toMedia(sources: readonly MediaSource[]): Media {
  const isPicture = ({ mediaType }: MediaSource): boolean => mediaType.startsWith('image/');
  return pickMedia({ images: sources.filter(isPicture), documents: sources.filter((one) => !isPicture(one)) });
}

/** What goes with the text. */
async function readParts(sources: Sources, { delivery, payload, outputSchema, context }: SendOptions): Promise<Omit<Message, 'text'>> {
  return {
    ...(delivery === undefined ? {} : { delivery }),
    ...(payload === undefined ? {} : { payload: await readJson(sources, '--payload', payload) }),
    ...(outputSchema === undefined ? {} : { output: await readJsonObject(sources, '--output-schema', outputSchema) }),
    ...(context === undefined ? {} : { context: await readJsonObject(sources, '--context', context) }),
  };
}

function describeReceipt({ turnId, acceptedAs, position }: Enqueued): string {
  if (acceptedAs === 'duplicate') return `known already${turnId === null ? '' : `, as ${turnId}`}`;
  const before = position === 0 ? 'nothing is before it' : `${position} before it`;
  return turnId === null ? 'it joins the running turn between its next tool calls' : `it becomes ${turnId}; ${before}`;
}
