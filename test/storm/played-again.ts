/** What people have lived through in a storm, played again by `perdura whatif` as a person runs it: the same, to the byte, and no tool runs. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReportedConversation, ReportLine } from '../../src/whatif/report.js';
import { startPerdura } from '../support/run-perdura.js';
import type { Scene } from '../support/scene.js';
import type { Violation } from './report.js';

export interface PlayedAgain {
  readonly conversations: number;
  readonly turns: number;
  readonly violations: readonly Violation[];
}

const ROW = 'a conversation plays again as it was';
const MOST = '10000';

export async function playAgain(scene: Scene): Promise<PlayedAgain> {
  const { dir, taskQueue, env } = scene;
  const before = scene.ledger().length;
  const report = join(dir, 'played-again.jsonl');
  const what = ['-q', `TaskQueue = '${taskQueue}'`, '--last', MOST, '--jobs', '8', '--report', report];
  const tools = `--require ${join(__dirname, '..', 'support', 'ledger-tools.cjs')}`;
  const { code, stderr } = await startPerdura(scene, ['whatif', ...what], {
    env: { ...env, PERDURA_TRUST: '1', NODE_OPTIONS: tools, PERDURA_TEST_PRODUCT: join(__dirname, '..', '..') },
  }).ended;
  const lines = (await readFile(report, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
  const played = lines.map((line) => JSON.parse(line) as ReportLine).flatMap((line) => (line.kind === 'conversation' ? [line] : []));
  const ran = scene.ledger().length - before;
  return {
    conversations: played.length,
    turns: played.reduce((sum, { turns }) => sum + turns, 0),
    violations: [
      ...(code === 0 ? [] : [{ row: ROW, what: `whatif ended with ${code}: ${stderr.slice(-1_000)}` }]),
      ...(ran === 0 ? [] : [{ row: ROW, what: `${ran} lines of tools that ran` }]),
      ...played.flatMap((line) => differenceOf(line).map((words) => ({ row: ROW, what: `${line.id}: ${words}`, conversation: line.id }))),
    ],
  };
}

function differenceOf({ skipped, lanes: { candidate } }: ReportedConversation): string[] {
  if (skipped !== undefined || !candidate) return [`it was not played: ${skipped ?? ''}`];
  if (candidate.stopped) return [`it was stopped in ${candidate.stopped.turn}: ${candidate.stopped.why}`];
  if (!candidate.divergence) return [];
  const { turn, call, what, recorded, played } = candidate.divergence;
  return [`it differs from ${turn}, call ${call} on (${what}): ${recorded.slice(0, 800)}\n  and not\n  ${played.slice(0, 800)}`];
}
