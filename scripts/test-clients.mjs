/**
 * `npm run test:clients`: clients of other people's that are no packages of ours (PyPI, suites that need a newer Node) against a real
 * gateway. Arguments after `--`: words of names of suites; `--a2a-tck DIR`, a checkout of A2A's TCK (branch 1.0-dev), which is tried then too;
 * `--write` puts what came of it into docs/reference/protocols.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { prepare, root } from './prepare.mjs';
import { findRedisServer } from './redis-server.mjs';
import { report, run } from './report.mjs';

const PAGE = join(root, 'docs', 'reference', 'protocols.md');
const MARKS = ['<!-- tried with: by `npm run test:clients -- --write` -->', '<!-- end of tried with -->'];

await run(async () => {
  const { values, positionals: wanted } = parseArgs({
    options: { write: { type: 'boolean' }, 'a2a-tck': { type: 'string' } },
    allowPositionals: true,
  });
  const mayWrite = values.write === true;
  const a2aTck = values['a2a-tck'] === undefined ? undefined : resolve(values['a2a-tck']);
  if (a2aTck === undefined) report('A2A TCK', 'not tried without --a2a-tck DIR');
  await prepare({ types: false });
  const require = createRequire(import.meta.url);
  const { findTemporalBinary } = require(join(root, 'dist', 'cli', 'services', 'temporal-binary.js'));
  const temporal = await findTemporalBinary((text) => report('Temporal', text));
  report('Temporal', `${temporal.path} (${temporal.reason})`);
  process.env.PERDURA_TEST_TEMPORAL = temporal.path;
  const redis = await findRedisServer();
  report('Redis', `${redis.path} (${redis.reason})`);

  require(join(root, 'test', 'stores', 'register-swc.cjs'));
  const { tryClients } = require(join(root, 'test', 'clients', 'main.ts'));
  const all = await tryClients(join(root, '.perdura', 'clients'), { names: wanted, a2aTck }, print);
  const failed = all.flatMap(({ outcomes }) => outcomes.filter(({ result }) => result === 'failed'));
  const missing = all.filter((tried) => tried.missing !== undefined);
  const passed = all.flatMap(({ outcomes }) => outcomes.filter(({ result }) => result === 'passed'));
  process.stdout.write(
    `\n${passed.length} passed, ${failed.length} failed${missing.length > 0 ? `, ${missing.length} suites not tried` : ''}\n`,
  );
  if (mayWrite && failed.length + missing.length === 0 && wanted.length === 0) {
    writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8'), all));
    report('Page', 'docs/reference/protocols.md has what came of it');
  } else if (mayWrite) {
    report('Page', 'docs/reference/protocols.md is left as it is: only a whole run without failures is written');
  }
  return failed.length > 0 ? 1 : missing.length > 0 ? 3 : 0;
});

function print({ name, client, outcomes, missing }) {
  process.stdout.write(`\n${name}: ${client}\n`);
  if (missing !== undefined) process.stdout.write(`  not tried  ${missing}\n`);
  for (const { check, result, why } of outcomes)
    process.stdout.write(`  ${result.padEnd(9)}  ${check}${why === undefined ? '' : `: ${why}`}\n`);
}

function withTable(text, all) {
  const [begin, end] = MARKS.map((mark) => text.indexOf(mark));
  if (begin === -1 || end < begin)
    throw Object.assign(new Error(`docs/reference/protocols.md has no place for it: ${MARKS.join(' … ')}`), { exitCode: 1 });
  const rows = all.map(({ name, client, outcomes }) => {
    const passed = outcomes.filter(({ result }) => result === 'passed').map(({ check }) => check);
    const apart = outcomes.filter(({ result }) => result === 'apart').length;
    const rest = apart === 0 ? '' : `; ${apart} do not apply, see below`;
    return `| ${name} | ${client} | ${passed.length}: ${passed.join('; ')}${rest} |`;
  });
  const apart = all.flatMap(({ outcomes }) => outcomes.filter(({ result }) => result === 'apart'));
  const reasons = [...new Set(apart.map(({ why }) => why))].map((why) => {
    const names = new Set(apart.filter((one) => one.why === why).map(({ check }) => check));
    return `- ${why}: ${[...names].map((name) => `\`${name}\``).join(', ')}`;
  });
  const lines = [
    `On ${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}:`,
    '',
    '| tried | with | passed |',
    '| --- | --- | --- |',
    ...rows,
    ...(reasons.length > 0 ? ['', 'What does not apply, or cannot be:', '', ...reasons] : []),
  ];
  return `${text.slice(0, begin + MARKS[0].length)}\n\n${lines.join('\n')}\n\n${text.slice(end)}`;
}
