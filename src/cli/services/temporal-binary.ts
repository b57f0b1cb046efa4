/** Where the program `temporal` comes from: the first of five ways that works (design section 7), and with which flags it serves. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { loadMachine, type Machine } from '../../config.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findOnPath, isExecutable, runProgram } from './programs.js';
import { timeoutSignal } from '../../platform/promises.js';
import { errorMessage } from '../../platform/errors.js';

export const TEMPORAL_VERSION = 'v1.5.1';

export interface TemporalBinary {
  readonly path: string;
  readonly reason: string;
}

/** How the machine is looked at. Looking answers undefined for "not there"; fetching throws with its reason. */
export interface BinaryProbes {
  onPath(): string | undefined;
  inGoBin(): Promise<string | undefined>;
  cached(): string | undefined;
  download(): Promise<string>;
  hasGo(): boolean;
  goInstall(): Promise<string>;
}

/** The decision alone. `say` gets a line for each thing that takes time, before it begins, and for each that failed. */
export async function chooseTemporalBinary(probes: BinaryProbes, say: (text: string) => void): Promise<TemporalBinary> {
  const installed = await chooseInstalled(probes);
  if (installed !== undefined) return installed;

  say(`downloading the temporal program ${TEMPORAL_VERSION}, since it is neither on PATH nor in the cache …`);
  const failures: string[] = [];
  try {
    return { path: await probes.download(), reason: 'downloaded from temporal.download' };
  } catch (error) {
    failures.push(`The download failed: ${errorMessage(error)}.`);
    say(`the download failed: ${errorMessage(error)}`);
  }
  if (probes.hasGo()) {
    say(`compiling it with \`go install ${GO_PACKAGE}\`, since Go is here: about 3 minutes, once …`);
    try {
      return { path: await probes.goInstall(), reason: `compiled from ${GO_PACKAGE}` };
    } catch (error) {
      failures.push(`go install failed: ${errorMessage(error)}.`);
    }
  } else {
    failures.push('Go, which could compile it, is not on PATH.');
  }
  throw new CliError(`${failures.join('\n')}\n\n${WAYS_TO_GET_TEMPORAL}`, EXIT.unreachable);
}

async function chooseInstalled(probes: Pick<BinaryProbes, 'onPath' | 'inGoBin' | 'cached'>): Promise<TemporalBinary | undefined> {
  const onPath = probes.onPath();
  if (onPath !== undefined) return { path: onPath, reason: 'on PATH' };
  const inGoBin = await probes.inGoBin();
  if (inGoBin !== undefined) return { path: inGoBin, reason: 'installed by Go' };
  const cached = probes.cached();
  return cached === undefined ? undefined : { path: cached, reason: 'fetched earlier' };
}

/** Undefined where the machine does not have it yet: nothing is fetched. */
export function findInstalledTemporal(): Promise<TemporalBinary | undefined> {
  return chooseInstalled(machineProbes(loadMachine(), () => undefined, undefined));
}

const GO_PACKAGE = `github.com/temporalio/cli/cmd/temporal@${TEMPORAL_VERSION}`;

export const WAYS_TO_GET_TEMPORAL = `A Temporal server is needed, and neither one nor the program that starts one could be found. Ways to get one:
  macOS            brew install temporal
  Linux            curl -sSf https://temporal.download/cli.sh | sh, and put ~/.temporalio/bin on PATH
  with Go          go install ${GO_PACKAGE}
  with Docker      docker run --rm -p 7233:7233 -p 8233:8233 temporalio/temporal server start-dev --ip 0.0.0.0
  your own server  export TEMPORAL_ADDRESS=host:7233 (and TEMPORAL_NAMESPACE, TEMPORAL_API_KEY)
then run the command again.`;

export function findTemporalBinary(
  say: (text: string) => void,
  options: { readonly machine?: Machine; readonly signal?: AbortSignal } = {},
): Promise<TemporalBinary> {
  const machine = options.machine ?? loadMachine();
  return chooseTemporalBinary(machineProbes(machine, say, options.signal), say);
}

function machineProbes(machine: Machine, say: (text: string) => void, signal: AbortSignal | undefined): BinaryProbes {
  const bin = join(machine.cacheDir, 'bin');
  const cachedFile = join(bin, 'temporal');
  const go = findOnPath('go', machine.path);
  return {
    onPath: () => findOnPath('temporal', machine.path),
    async inGoBin() {
      const gopath = go === undefined ? undefined : (await runProgram(go, ['env', 'GOPATH'])).output.split(':')[0];
      return [gopath, join(machine.home, 'go')].flatMap((dir) => (dir ? [join(dir, 'bin', 'temporal')] : [])).find(isExecutable);
    },
    cached: () => (isExecutable(cachedFile) ? cachedFile : undefined),
    download: () => intoCache(bin, cachedFile, (folder) => download(machine, folder, signal)),
    hasGo: () => go !== undefined,
    goInstall: () => intoCache(bin, cachedFile, (folder) => goInstall(go ?? 'go', { ...machine.env, GOBIN: folder }, say, signal)),
  };
}

/** Fills a new folder, tries the program, and only then renames it to its place: half a program is never found. */
async function intoCache(bin: string, target: string, fill: (folder: string) => Promise<void>): Promise<string> {
  mkdirSync(bin, { recursive: true });
  const folder = mkdtempSync(join(bin, 'incoming-'));
  try {
    await fill(folder);
    const program = join(folder, 'temporal');
    const { code, output } = await runProgram(program, ['--version']);
    if (code !== 0) throw new Error(`the program that came does not run (${output || `code ${code}`})`);
    renameSync(program, target);
    return target;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function download(machine: Machine, folder: string, signal: AbortSignal | undefined): Promise<void> {
  const arch = { x64: 'amd64', arm64: 'arm64' }[machine.arch];
  if (arch === undefined || !['linux', 'darwin'].includes(machine.platform)) {
    throw new Error(`there is none for ${machine.platform} on ${machine.arch}`);
  }
  const url = `https://temporal.download/cli/archive/${TEMPORAL_VERSION}?platform=${machine.platform}&arch=${arch}`;
  const archive = join(folder, 'temporal.tar.gz');
  await fetchTo(url, archive, signal);
  const { code, output } = await runProgram('tar', ['-xzf', archive, '-C', folder, 'temporal'], { signal });
  if (code !== 0) throw new Error(`the archive could not be unpacked (${output})`);
}

/** Gives up when the answer does not begin within 20 s, or has not ended after 10 minutes. */
async function fetchTo(url: string, file: string, signal: AbortSignal | undefined): Promise<void> {
  const slowStart = new AbortController();
  const timer = setTimeout(() => slowStart.abort(new Error('no answer within 20 s')), 20_000);
  const signals = [slowStart.signal, timeoutSignal(600_000), ...(signal === undefined ? [] : [signal])];
  const any = AbortSignal.any(signals);
  try {
    const response = await fetch(url, { signal: any });
    clearTimeout(timer);
    if (!response.ok || response.body === null) throw new Error(`${new URL(url).host} answered ${response.status}`);
    await pipeline(Readable.fromWeb(response.body as ReadableStream), createWriteStream(file), { signal: any });
  } catch (error) {
    // fetch says only "fetch failed"; its cause says why.
    throw error instanceof TypeError && error.cause instanceof Error ? error.cause : error;
  } finally {
    clearTimeout(timer);
  }
}

async function goInstall(go: string, env: NodeJS.ProcessEnv, say: (text: string) => void, signal: AbortSignal | undefined): Promise<void> {
  const begin = Date.now();
  const timer = setInterval(() => say(`still compiling, ${Math.round((Date.now() - begin) / 1000)} s`), 20_000);
  try {
    const { code, output } = await runProgram(go, ['install', GO_PACKAGE], { env, signal });
    if (code !== 0) throw new Error(output.split('\n').slice(-3).join(' '));
  } finally {
    clearInterval(timer);
  }
}

// What a dev server of this folder is started with, beside its place.

/**
 * Measured: without the first two each queue hop costs 50 ms more, and without the third each retry 1 s. By default a queue is in four parts:
 * a task that came to one of them while no worker was there waits for two seconds (of half the workers that were killed in a tool, measured),
 * though the next worker is there long before. All four are still read: a database of before may have tasks there. By default a workflow task fails once a hundred events have come
 * while it ran, and each new try replays more: a conversation that 400 messages a second are signalled to would take none of them. By
 * default ten updates may wait for their answer, and ten `send` that wait for a conversation in stepping mode would leave no place for the
 * `step` that answers them.
 */
const DYNAMIC_CONFIG = [
  'system.enableActivityEagerExecution=true',
  'history.transferProcessorMaxPollRPS=2000',
  'history.timerProcessorMaxTimeShift="20ms"',
  'matching.numTaskqueueWritePartitions=1',
  'history.maximumBufferedEventsBatch=2000',
  'history.maxInFlightUpdates=100',
];

const SEARCH_ATTRIBUTES = [
  'AgentName=Keyword',
  'AgentStatus=Keyword',
  'AgentModel=Keyword',
  'AgentParent=Keyword',
  'AgentTenant=Keyword',
  'AgentTurns=Int',
  'AgentCostUsd=Double',
];

/** As arguments of `temporal server start-dev`. */
export const SERVER_FLAGS = {
  dynamicConfig: DYNAMIC_CONFIG.flatMap((entry) => ['--dynamic-config-value', entry]),
  searchAttributes: SEARCH_ATTRIBUTES.flatMap((entry) => ['--search-attribute', entry]),
} as const;
