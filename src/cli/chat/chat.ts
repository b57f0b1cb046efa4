/** `perdura chat`: finds or starts what is needed, opens the conversation, and hands over to a terminal, a pipe or one answer. */
import type { ReadStream, WriteStream } from 'node:tty';
import type { PerduraClient } from '../../client.js';
import type { Config } from '../../config.js';
import { namedByTenant } from '../args/find-conversation.js';
import { CONVERSATION_PATTERN } from '../../conversation/protocol/contract.js';
import { readLastConversation, type ChatSession } from './chat-session.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { canAsk, onInterrupt, onTermination } from '../terminal/input.js';
import { startCommands } from '../services/temporal-connection.js';
import type { CliContext, Input, Surroundings } from '../session/context.js';
import type { Services } from '../services/services.js';
import type { ControlMode } from '../../conversation/protocol/stepping.js';

export interface ChatOptions {
  readonly continue?: boolean;
  /** True: ask which. */
  readonly resume?: string | true;
  readonly agent?: string;
  readonly model?: string;
  readonly mode?: ControlMode;
  /** US dollars. */
  readonly budget?: number;
  /** A message, or true when it comes from stdin. */
  readonly print?: string | true;
  /** Of -p: the conversation stays open. */
  readonly keep?: boolean;
  readonly outputFormat: 'text' | 'json' | 'stream-json';
  readonly startServices?: boolean;
}

export async function chat(
  words: readonly string[],
  options: ChatOptions,
  { surroundings, config: load, output, closed }: CliContext,
  openPage: (config: Config) => Promise<{ close(): Promise<void> } | undefined>,
): Promise<number> {
  const config = load();
  const { input, signals } = surroundings;
  const isTerminal = canAsk(surroundings) && options.print === undefined;
  let resume = options.continue === true ? readLastConversation(config.cwd) : options.resume;
  if (resume === true && !isTerminal) {
    throw new CliError('-r needs the id of a conversation where nobody can be asked: -r ID; `perdura list` lists them', EXIT.usage);
  }
  if (typeof resume === 'string') resume = (await namedByTenant(config, resume)) ?? resume;
  if (typeof resume === 'string' && !CONVERSATION_PATTERN.test(resume)) {
    throw new CliError(`${JSON.stringify(resume)} is not an id of a conversation: up to 64 letters, digits, - and _`, EXIT.usage);
  }

  const leave = new AbortController();
  const stopListening = onTermination(signals, (exitCode) => leave.abort(new CliError('ended from outside', exitCode)));
  closed.addEventListener('abort', () => leave.abort(new CliError('the reader is gone', EXIT.ok)), { once: true });
  // Until the chat itself answers to Ctrl+C, it means: give up.
  const stopGivingUp = onInterrupt(signals, () =>
    leave.abort(new CliError('interrupted while starting; nothing is left running', EXIT.interrupted)),
  );

  let services: Services | undefined;
  let page: Awaited<ReturnType<typeof openPage>>;
  let client: PerduraClient | undefined;
  try {
    const text = options.print === undefined ? undefined : await oneMessage(input, options.print, words);
    if (input.isTTY !== true && text === undefined && words.length === 0) await refuseSilence(input);
    if (options.startServices === true) {
      const { startServices } = await import('../services/services.js');
      loadAhead(isTerminal);
      services = await startServices(config, { output, person: surroundings }, leave.signal);
    }
    const { openClient } = await import('../session/connect.js');
    const place = services === undefined ? config : { ...config, taskQueue: services.taskQueue };
    if (services !== undefined && isTerminal) page = await openPage(place);
    client = await openClient(surroundings, place, output, { needsWorker: services === undefined });
    leave.signal.throwIfAborted();

    if (resume === true) {
      const { pickConversation } = await import('./chat-session.js');
      resume = await pickConversation(client, surroundings);
    }
    const findLink = await linkTo(config, services);
    const { openSession } = await import('./chat-session.js');
    const ownModel = services === undefined ? undefined : await modelHere(config, options.agent);
    const { agent, mode, budget } = options;
    const wanted = { ownModel, isOneShot: text !== undefined, agent, mode, budget, findLink, watchWorker: services?.watchWorker };
    const session = await openSession(client, config, output, { ...wanted, resume, model: options.model });
    introduce(session);
    stopGivingUp();
    const exitCode = await talk(session, { words, text, options, leave, surroundings }).finally(() => tidyUp(session));
    if (leave.signal.aborted) return exitCodeOfLeaving(leave.signal) ?? exitCode;
    return exitCode;
  } finally {
    stopGivingUp();
    const hurry = new AbortController();
    const stopHurrying = onInterrupt(signals, () => hurry.abort());
    await page?.close();
    await client?.close();
    if (services !== undefined && !leave.signal.aborted) output.note('ending what was started …');
    await services?.stop(hurry.signal);
    stopHurrying();
    stopListening();
  }
}

/** Loads modules for later while the services start; a module that cannot be loaded is reported when it is needed. */
function loadAhead(isTerminal: boolean): void {
  const needed = [import('../session/connect.js'), import('../../client.js'), ...(isTerminal ? [import('./chat-terminal.js')] : [])];
  Promise.all(needed).catch(() => undefined);
}

function introduce({ output, id, link, model }: ChatSession): void {
  const parts = [`conversation ${id}`, ...(model === undefined ? [] : [model]), ...(link === undefined ? [] : [link])];
  output.say(`\n  ${parts.join('  ·  ')}`);
}

/** As the worker that was started from this folder reads it; undefined where it would say itself that the agent cannot be used. */
async function modelHere(config: Config, agent = 'default'): Promise<string | undefined> {
  const { agentsFolder, loadAgent } = await import('../../agents/load-agent.js');
  const { findUserConfig, needsStandIn } = await import('../../config.js');
  // It may name another folder of agents, and other providers.
  if (findUserConfig(config.cwd) !== undefined) return undefined;
  const model = await loadAgent(agentsFolder(config), agent).then(
    (loaded) => loaded.config.model ?? null,
    () => undefined,
  );
  if (model !== null) return model;
  return needsStandIn(config) ? undefined : config.model;
}

async function linkTo(config: Config, services: Services | undefined): Promise<(id: string) => string | undefined> {
  if (services !== undefined) return services.uiLink;
  const { temporalConnection } = await import('../../config.js');
  const { findUiLink } = await import('../services/temporal-connection.js');
  return findUiLink(await temporalConnection(config));
}

async function oneMessage(input: Input, print: string | true, words: readonly string[]): Promise<string> {
  const { readOneMessage } = await import('./chat-lines.js');
  return readOneMessage(input, print === true ? joined(words) : [print, ...words].join(' '));
}

/** Nothing is started for a pipe in which nothing is. */
async function refuseSilence(input: Input): Promise<void> {
  const { endsEmpty } = await import('../terminal/input.js');
  if (!(await endsEmpty(input))) return;
  throw new CliError('nothing to say: stdin is empty. Pipe lines in, give a message as an argument, or run it in a terminal', EXIT.usage);
}

function joined(words: readonly string[]): string | undefined {
  return words.length > 0 ? words.join(' ') : undefined;
}

/** `text`: the one message of `-p`. */
async function talk(
  session: ChatSession,
  {
    words,
    text,
    options,
    leave,
    surroundings,
  }: { words: readonly string[]; text: string | undefined; options: ChatOptions; leave: AbortController; surroundings: Surroundings },
): Promise<number> {
  const firstMessage = joined(words);
  const { input, stderr, signals } = surroundings;
  if (text !== undefined) {
    const { printOneAnswer } = await import('./chat-lines.js');
    // A conversation that was open before stays open: others may use it.
    const keep = options.keep === true || session.wasOpen;
    return printOneAnswer(session, { text, format: options.outputFormat, leave, keep, signals });
  }
  if (canAsk(surroundings)) {
    const { chatInTerminal } = await import('./chat-terminal.js');
    await chatInTerminal(session, { input: input as ReadStream, screen: stderr as WriteStream, firstMessage, leave: leave.signal });
    if (session.wasSpoken() || !session.isNew) session.output.say(`go on with this conversation: ${comeBack(options)}`);
    return EXIT.ok;
  }
  const { chatInLines } = await import('./chat-lines.js');
  return chatInLines(session, { input, firstMessage, leave, signals });
}

/** A conversation without a message leaves no trace. */
async function tidyUp(session: ChatSession): Promise<void> {
  const { client, id } = session;
  if (!session.isNew) return;
  // What was refused was not sent.
  const isEmpty =
    !session.wasSpoken() ||
    (await client.status(id).then(
      ({ turn, queued }) => turn === 0 && queued === 0,
      () => false,
    ));
  if (isEmpty) await client.closeConversation(id, { memory: false }).catch(() => undefined);
}

function comeBack(options: ChatOptions): string {
  return options.startServices === true ? `${startCommands().chat}${startCommands().isClone ? ' --' : ''} -c` : 'perdura chat -c';
}

function exitCodeOfLeaving(signal: AbortSignal): number | undefined {
  return signal.reason instanceof CliError ? signal.reason.exitCode : undefined;
}
