/**
 * Records the corpus that replay.test.ts replays: `node scripts/record-histories.mjs [name …]`. Every scenario plays on the
 * real stack (server, worker, store, SDK against the scripted API); what it must contain is checked before it is written.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { registerAttributes } from '../../src/client/temporal/connection.js';
import { bundleOptions } from '../../src/extensions/custom-workflows.js';
import { startTemporal } from '../support/temporal-server.js';
import { fetchChain, HISTORIES, withReadablePayloads, writeChain } from './history-file.js';
import { scenarios, type Scenario, type Stage } from './scenarios.js';
import { startStage } from './stage.js';

const MAX_FILE = 100_000;
const SIDE_BY_SIDE = 2;
const TRIES = 3;
const MAX_PLAY_MS = 180_000;

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.filter((name) => !scenarios.some((scenario) => scenario.name === name));
  if (unknown.length > 0)
    throw new Error(`no scenario is named ${unknown.join(', ')}; there are ${scenarios.map(({ name }) => name).join(', ')}`);
  const wanted = scenarios.filter(({ name }) => names.length === 0 || names.includes(name));
  mkdirSync(HISTORIES, { recursive: true });
  const dir = await mkdtemp(join(tmpdir(), 'perdura-record-'));
  const temporal = await startTemporal();
  try {
    const connection = await Connection.connect({ address: temporal.address });
    await registerAttributes(connection, 'default');
    await connection.close();
    const { code } = await bundleWorkflowCode({
      ...bundleOptions(),
      logger: new DefaultLogger('ERROR'),
    });
    const bundlePath = join(dir, 'workflow-bundle.js');
    writeFileSync(bundlePath, code);
    const queue = [...wanted];
    const failed: string[] = [];
    const lane = async (): Promise<void> => {
      for (let scenario = queue.shift(); scenario; scenario = queue.shift()) {
        if (!(await recordPatiently(scenario, { address: temporal.address, bundlePath }))) failed.push(scenario.name);
      }
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, lane));
    say(
      `${wanted.length - failed.length} of ${wanted.length} scenarios recorded${failed.length > 0 ? `; failed: ${failed.join(', ')}` : ''}`,
    );
    return failed.length === 0 ? 0 : 1;
  } finally {
    await temporal.stop();
    await rm(dir, { recursive: true, force: true });
  }
}

/** On a busy machine a moment can be missed; what was recorded is checked, so another try is safe. */
async function recordPatiently(scenario: Scenario, where: { address: string; bundlePath: string }): Promise<boolean> {
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const began = Date.now();
    try {
      const sizes = await record(scenario, where);
      const files = [...sizes].map(([file, size]) => `${file} ${(size / 1000).toFixed(0)} kB`);
      say(`${scenario.name}: ${files.join(', ')}; ${((Date.now() - began) / 1000).toFixed(1)} s`);
      return true;
    } catch (error) {
      say(`${scenario.name}, attempt ${attempt}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    }
  }
  return false;
}

async function record(scenario: Scenario, where: { address: string; bundlePath: string }): Promise<Map<string, number>> {
  const stage: Stage = await startStage(scenario, where);
  try {
    await within(MAX_PLAY_MS, scenario.play(stage));
    await stage.settled();
    const keep = scenario.keep ?? '';
    const all = await fetchChain(stage.world.temporal, scenario.whose?.(stage.id) ?? stage.id);
    const chain = all.filter((run) => JSON.stringify(withReadablePayloads(run)).includes(keep));
    const text = JSON.stringify(withReadablePayloads(chain));
    const missing = scenario.has.filter((part) => !text.includes(part));
    if (missing.length > 0) throw new Error(`the history lacks ${missing.join(', ')}`);
    const unwanted = (scenario.lacks ?? []).filter((part) => text.includes(part));
    if (unwanted.length > 0) throw new Error(`the history has ${unwanted.join(', ')}`);
    if (scenario.runs !== undefined && chain.length < scenario.runs) throw new Error(`${chain.length} runs, not ${scenario.runs}`);
    return writeChain(scenario.name, chain, MAX_FILE);
  } finally {
    await stage.end();
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>(
    (_, reject) => (timer = setTimeout(() => reject(new Error(`not played to its end in ${ms / 1000} s`)), ms)),
  );
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function say(line: string): void {
  process.stderr.write(`  ${line}\n`);
}

void main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    say(String(error instanceof Error ? error.stack : error));
    process.exit(1);
  },
);
