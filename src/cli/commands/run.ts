/** What runs until it is ended: all that a folder needs with the page, a worker alone, a gateway alone. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { temporalConnection, withTemporalEnv, type Config } from '../../config.js';
import { parseProxy } from '../../gateway/access/proxies.js';
import { errorMessage } from '../../platform/errors.js';
import { addValue, parseCount, parsePort, readAnyPort } from '../args/values.js';
import type { RunningGateway, ServeWanted } from '../gateway/serve.js';
import type { Services } from '../services/services.js';
import type { ServerPlace } from '../services/temporal-server.js';
import type { CommandFrame, CommandRow } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { onInterrupt, onTermination } from '../terminal/input.js';

interface UpOptions {
  /** False: without a worker. */
  readonly worker: boolean;
  /** False: without a gateway. */
  readonly page: boolean;
  readonly port: number;
  readonly temporalPort?: number;
  readonly temporalUiPort?: number;
  readonly dbFilename?: string;
}

/** A file is read whole for a model call. */
const MAX_ATTACHMENT_MIB = 64;

const SERVE_DEFAULTS: Omit<ServeWanted, 'port'> = {
  host: '127.0.0.1',
  allowHost: [],
  allowOrigin: [],
  trustedProxy: [],
  requestsPerMinute: 1_200,
  openPerToken: 2_000,
  maxAttachment: 10,
};
const PORT = 7280;

export const RUN: readonly CommandRow[] = [
  {
    name: 'up',
    description: 'run all that is needed here until Ctrl+C: Temporal, a worker and the page',
    options: [
      ['--no-worker', 'for a project that runs its worker itself (createWorker)'],
      ['--no-page', 'without a gateway'],
      ['--port <port>', 'of the page; 0: any that is free', readAnyPort, PORT],
      ['--temporal-port <port>', 'of the Temporal server (default: 7233)', parsePort],
      ['--temporal-ui-port <port>', "of Temporal's page (default: its port + 1000)", parsePort],
      ['--db-filename <path>', 'its database (default: .perdura/temporal.db)'],
    ],
    run: startAll,
  },
  {
    name: 'worker',
    description: 'take work from the task queue until Ctrl+C',
    options: [
      ['--tools <names...>', 'only calls of these tools, which have a task queue: for a machine with a GPU or a browser'],
      ['--at-once <n>', 'with --tools: how many of them at once', parseCount],
      new Option('--await-begin', 'only once the parent process sends its begin').hideHelp(),
    ],
    help: `A tool that was made with policy.taskQueue runs where a worker of that queue is, and its calls wait for one (docs/reference/tools.md).
Such a worker needs the settings of the others: the same Temporal, store, agents and perdura.config.*.`,
    async run({ config, output }, { tools, atOnce }: { readonly tools?: readonly string[]; readonly atOnce?: number }): Promise<number> {
      if (atOnce !== undefined && tools === undefined)
        throw new CliError('--at-once is for a worker of some tools: add --tools', EXIT.usage);
      const { worker } = await import('../worker.js');
      return worker(config(), output, tools && { tools, ...(atOnce !== undefined && { atOnce }) });
    },
  },
  {
    name: 'serve',
    description: 'serve the page and conversations over HTTP until Ctrl+C; /openapi.json describes them',
    options: [
      ['--host <address>', 'where to listen', String, SERVE_DEFAULTS.host],
      ['--port <port>', 'a port; 0: any that is free', readAnyPort, PORT],
      ['--allow-host <name>', 'a name by which it is reached, beside loopback; more than once', addValue, SERVE_DEFAULTS.allowHost],
      ['--allow-origin <origin>', 'pages of this origin may ask, such as https://app.example; more than once', addValue, []],
      ['--trusted-proxy <range>', 'addresses whose X-Forwarded-* count, such as 10.0.0.0/8; more than once', addProxy, []],
      ['--base-path <path>', 'where it is behind a proxy, such as /perdura'],
      ['--requests-per-minute <n>', 'of one token', parseCount, SERVE_DEFAULTS.requestsPerMinute],
      ['--open-per-token <n>', 'requests and streams of one token at once', parseCount, SERVE_DEFAULTS.openPerToken],
      ['--max-attachment <mib>', 'largest file of POST /v1/attachments, in MiB', parseMebibytes, SERVE_DEFAULTS.maxAttachment],
      ['--join-equal-requests', 'a request with the same body as another of the last ten minutes is that one'],
      ['--access-log', 'a line for each request on stderr'],
    ],
    help: `Examples:
  perdura serve                                           on this machine alone, with a token that it prints
  perdura serve --host 0.0.0.0 --allow-host my.example    for others, behind a proxy that speaks TLS
    --trusted-proxy 10.0.0.0/8                            whose X-Forwarded-For, -Proto and -Host count

Without PERDURA_AUTH one token opens, with all rights. With it (docs/reference/protocols.md) those in its file do, and users of
its identity provider; the one token then opens only where PERDURA_GATEWAY_TOKEN is set.`,
    async run(frame, wanted: ServeWanted): Promise<number> {
      const session = await frame.open({ needsWorker: true, serves: true });
      const { announceGateway, startGateway } = await import('../gateway/serve.js');
      const gateway = await startGateway(session, wanted);
      let stopListening = (): void => undefined;
      try {
        await announceGateway(session, gateway, session.config);
        if (!isLoopback(wanted.host)) {
          session.output.problem(
            `${wanted.host} is reached from other machines, in the clear: put a proxy that speaks TLS before it (docs/operations/deploying.md)`,
          );
        }
        await new Promise<void>((done) => {
          stopListening = onTermination(session.surroundings.signals, () => done());
          session.signal.addEventListener('abort', () => done(), { once: true });
        });
        return EXIT.ok;
      } finally {
        stopListening();
        await gateway.close();
      }
    },
  },
];

/** Found or started in order, and ended in the reverse order. */
async function startAll({ surroundings, output, closed, globals, config: load }: CommandFrame, options: UpOptions): Promise<number> {
  const config = load();
  const { signals } = surroundings;
  const { named, connectionOptions } = await temporalConnection(config);
  const { temporalPort, temporalUiPort, dbFilename } = options;
  if (named && [temporalPort, temporalUiPort, dbFilename].some((value) => value !== undefined)) {
    throw new CliError(
      `--temporal-port, --temporal-ui-port and --db-filename are for a server that is started here, and TEMPORAL_* or its profile names ${connectionOptions.address}: unset them`,
      EXIT.usage,
    );
  }
  const [{ startServices }, { usualPlace }] = await Promise.all([
    import('../services/services.js'),
    import('../services/temporal-server.js'),
  ]);
  const place = choosePlace(config, options, usualPlace(config));
  const leave = new AbortController();
  const end = (exitCode: number) => leave.abort(new CliError('ended', exitCode));
  const stopListening = [onTermination(signals, end), onInterrupt(signals, () => end(EXIT.ok))];
  closed.addEventListener('abort', () => end(EXIT.ok), { once: true });
  try {
    const started = { place, hasWorker: options.worker };
    const services = await startServices(config, { output, person: surroundings }, leave.signal, started);
    const there = named ? config : withTemporalEnv(config, { TEMPORAL_ADDRESS: services.address });
    const page = options.page
      ? await openPage({ surroundings, output, globals: globals() }, { ...there, taskQueue: services.taskQueue }, options.port)
      : undefined;
    for (const line of listAddresses(services)) output.line(line);
    output.note('to talk: perdura chat, in this folder and another terminal; Ctrl+C ends what was started here');
    await untilAborted(leave.signal);
    output.note('ending what was started …');
    const hurry = new AbortController();
    const stopHurrying = onInterrupt(signals, () => hurry.abort());
    await page?.close();
    await services.stop(hurry.signal);
    stopHurrying();
  } catch (error) {
    if (!leave.signal.aborted) throw error;
  } finally {
    for (const stop of stopListening) stop();
  }
  return leave.signal.reason instanceof CliError ? leave.signal.reason.exitCode : EXIT.ok;
}

/** A page that cannot be served is reported, and the rest runs without it: another folder may have its port. */
async function openPage(
  frame: Pick<CommandFrame, 'surroundings' | 'output'> & { readonly globals: ReturnType<CommandFrame['globals']> },
  config: Config,
  port: number,
): Promise<Pick<RunningGateway, 'close'> | undefined> {
  try {
    const gateway = await servePage(frame, config, port);
    const { announceGateway } = await import('../gateway/serve.js');
    await announceGateway(frame, gateway, config);
    return gateway;
  } catch (error) {
    frame.output.problem(`no page: ${errorMessage(error)}`);
    return undefined;
  }
}

async function servePage(
  { surroundings, output }: Pick<CommandFrame, 'surroundings' | 'output'>,
  config: Config,
  port: number,
): Promise<RunningGateway> {
  const [{ openClient }, { startGateway }] = await Promise.all([import('../session/connect.js'), import('../gateway/serve.js')]);
  const client = await openClient(surroundings, config, output, { needsWorker: false, serves: true });
  try {
    const temporal = await temporalConnection(config);
    const gateway = await startGateway({ client, config, temporal, output }, { ...SERVE_DEFAULTS, port, writesDatasets: true });
    return {
      ...gateway,
      async close() {
        await gateway.close();
        await client.close();
      },
    };
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** For a chat that starts its services: in one line, at any port where another folder has the usual one. */
export async function openPageOfChat(
  frame: Pick<CommandFrame, 'surroundings' | 'output'>,
  config: Config,
): Promise<Pick<RunningGateway, 'close'> | undefined> {
  try {
    const gateway = await servePage(frame, config, PORT).catch((error: unknown) => {
      if (error instanceof CliError && error.exitCode === EXIT.usage) return servePage(frame, config, 0);
      throw error;
    });
    const { createLink } = await import('../gateway/serve.js');
    const link = gateway.entrance.token && (await createLink(gateway.url, gateway.entrance.browsers).catch(() => undefined));
    frame.output.report('Browser', link === undefined ? `${gateway.url} is the page` : `${link} is the page; opens once, within a minute`);
    return gateway;
  } catch (error) {
    frame.output.problem(`no page: ${errorMessage(error)}`);
    return undefined;
  }
}

function choosePlace(config: Config, { temporalPort, temporalUiPort, dbFilename }: UpOptions, usual: ServerPlace): ServerPlace {
  const port = temporalPort ?? usual.port;
  // Two servers cannot share a database.
  const database = port === usual.port ? usual.database : join(config.cwd, '.perdura', `temporal-${port}.db`);
  return {
    port,
    uiPort: temporalUiPort ?? port + 1000,
    database: dbFilename === undefined ? database : resolve(config.cwd, dbFilename),
  };
}

/** The three lines that `temporal server start-dev` prints; those that are known. */
function listAddresses({ address, uiPort, serverLog }: Pick<Services, 'address' | 'uiPort' | 'serverLog'>): string[] {
  const metrics = serverLog === undefined ? undefined : /Metrics:\s+(\S+)/.exec(readLog(serverLog))?.[1];
  return [
    `Server:   ${address}`,
    ...(uiPort === undefined ? [] : [`UI:       http://127.0.0.1:${uiPort}`]),
    ...(metrics === undefined ? [] : [`Metrics:  ${metrics}`]),
  ];
}

function readLog(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    else signal.addEventListener('abort', () => done(), { once: true });
  });
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}

function addProxy(value: string, before: readonly string[]): readonly string[] {
  try {
    parseProxy(value);
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`);
  }
  return addValue(value, before);
}

function parseMebibytes(text: string): number {
  const mebibytes = parseCount(text);
  if (mebibytes <= MAX_ATTACHMENT_MIB) return mebibytes;
  throw new InvalidArgumentError(`A file may have ${MAX_ATTACHMENT_MIB} MiB.`);
}
