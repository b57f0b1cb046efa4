/**
 * What hostile inputs and faults are tried, by which tests, and how these ended last: the tables of docs/security.md, made by readme.mjs.
 *
 * - test/security/rows.json names for each row a file and a part of a test's whole title. A row whose test is gone is refused, so that no
 *   row says what no test does.
 * - test/security/results.json has how each ended. `node scripts/security-rows.mjs FILE...` writes it, from what jest has written with
 *   `--json --outputFile`, or from the text of a whole run, in which a file that passed counts for its tests. Nobody else writes it.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { report, run } from './report.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const RESULTS = join(root, 'test', 'security', 'results.json');
const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'));

export function readRows() {
  return readJson(join(root, 'test', 'security', 'rows.json'));
}

/** What is wrong with the rows, in words. `textOf` answers undefined for a file that is not there. */
export function rowProblems(rows, textOf = (file) => (existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8') : undefined)) {
  const ids = rows.map(({ id }) => id);
  return [
    ...ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => `${id} is there twice`),
    ...rows.flatMap(({ id, tests }) =>
      tests.flatMap(({ file, title }) => {
        const text = textOf(file);
        if (text === undefined) return [`${id}: ${file} is not there`];
        return title !== '' && text.includes(title) ? [] : [`${id}: ${file} has no test "${title}"`];
      }),
    ),
  ];
}

/** As cells of a table: id, what is tried, by which tests, how they ended. */
export function rowCells(rows, results = readJson(RESULTS)) {
  const problems = rowProblems(rows);
  if (problems.length > 0) throw Object.assign(new Error(`test/security/rows.json:\n${problems.join('\n')}`), { exitCode: 1 });
  return rows.map(({ id, tried, tests, untested }) => [
    id,
    tried,
    tests.length === 0
      ? `no test${untested === undefined ? '' : `: ${untested}`}`
      : tests.map(({ file, title }) => `${file.replace(/^test\//, '')}: ${title}`).join('<br>'),
    tests.length === 0 ? '' : resultOf(tests.map(({ file, title }) => results[keyOf(file, title)])),
  ]);
}

function keyOf(file, title) {
  return `${file}: ${title}`;
}

/** The worst, and the oldest date. */
function resultOf(ended) {
  const known = ended.filter(Boolean);
  if (known.length < ended.length) return known.some(({ result }) => result === 'failed') ? 'failed' : 'not recorded';
  const worst = ['failed', 'skipped', 'passed'].find((word) => known.some(({ result }) => result === word));
  return `${worst}, ${known.map(({ on }) => on).sort()[0]}`;
}

/** Results by file and title, from jest's JSON or from the text of a run. */
export function resultsFrom(rows, text, on, base = root) {
  const wanted = rows.flatMap(({ tests }) => tests);
  const found = {};
  if (!text.startsWith('{')) {
    const files = new Map(
      [...text.matchAll(/^(PASS|FAIL) (\S+)/gm)].map(([, word, file]) => [file, word === 'PASS' ? 'passed' : 'failed']),
    );
    for (const { file, title } of wanted) if (files.has(file)) found[keyOf(file, title)] = { result: files.get(file), on };
    return found;
  }
  const { testResults } = JSON.parse(text);
  for (const { name, assertionResults } of testResults) {
    for (const { file, title } of wanted.filter((one) => one.file === relative(base, name))) {
      const own = assertionResults.filter(({ fullName }) => matches(fullName, title)).map(({ status }) => status);
      const result = own.includes('failed') ? 'failed' : own.includes('passed') ? 'passed' : own.length > 0 ? 'skipped' : undefined;
      if (result !== undefined) found[keyOf(file, title)] = { result, on };
    }
  }
  return found;
}

/** In the source a title may stand with places for values. */
function matches(fullName, title) {
  const parts = title.split(/%[a-z]|\$\w+/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(parts.join('[^]*')).test(fullName);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await run(() => {
    const rows = readRows();
    const problems = rowProblems(rows);
    if (problems.length > 0) throw Object.assign(new Error(problems.join('\n')), { exitCode: 1 });
    let results = existsSync(RESULTS) ? readJson(RESULTS) : {};
    for (const file of process.argv.slice(2).map((one) => resolve(one))) {
      results = { ...results, ...resultsFrom(rows, readFileSync(file, 'utf8'), statSync(file).mtime.toISOString().slice(0, 10)) };
    }
    const keys = new Set(rows.flatMap(({ tests }) => tests.map(({ file, title }) => keyOf(file, title))));
    const kept = Object.fromEntries(
      Object.entries(results)
        .filter(([key]) => keys.has(key))
        .sort(),
    );
    writeFileSync(RESULTS, `${JSON.stringify(kept, null, 2)}\n`);
    report('Results', `${Object.keys(kept).length} of ${keys.size} tests have one`);
  });
}
