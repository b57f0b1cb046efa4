/** `perdura report`: a file that a what-if has written, for people, browsers and build servers. No server, and nothing of a folder is needed. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runPerdura, type Ran } from '../support/run-perdura.js';
import { sampleFile, type SampleOptions } from '../whatif/sample-report.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'perdura-report-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const report = (...args: readonly string[]): Promise<Ran> => runPerdura({ dir, taskQueue: 'none' }, ['report', ...args]);

async function written(options: SampleOptions = { candidate: 'worse', judge: 'anthropic/claude-opus-5' }): Promise<string> {
  writeFileSync(join(dir, 'report.jsonl'), await sampleFile(options));
  return 'report.jsonl';
}

test('people read what differs, and the command ends well unless something is to fail it', async () => {
  const { code, stdout, stderr } = await report(await written());
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('✗ book_expense was called 0 times instead of 60 (baseline: 60)');
  expect(stdout).toMatch(/recorded +│ played/);
});

test('programs get the same as data', async () => {
  const { code, stdout } = await report(await written(), '-o', 'json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    isWhole: true,
    failed: 0,
    written: [],
    findings: expect.arrayContaining([{ weight: 'bad', text: 'book_expense was called 0 times instead of 60 (baseline: 60)' }]) as unknown,
    changes: expect.arrayContaining([expect.objectContaining({ name: 'cost', kind: 'changed' })]) as unknown,
    totals: { kind: 'totals', conversations: 20, lanes: { candidate: { tools: { book_expense: [60, 0] } } } },
  });
});

test.each<[SampleOptions, string, number]>([
  [{ candidate: 'worse' }, 'acts', 1],
  [{ candidate: 'worse' }, 'stopped', 0],
  [{ candidate: 'stopped' }, 'acts, stopped', 1],
  [{ candidate: 'words' }, 'acts,stopped', 0],
  [{ candidate: 'words' }, 'differs', 1],
  [{ candidate: 'worse', judge: 'a/b' }, 'worse', 1],
  [{ candidate: 'same' }, 'acts,differs,stopped,worse', 0],
  [{ skippedEach: 1 }, 'acts', 1],
])('of %j with --fail-on %s the exit code is %i', async (options, failOn, exitCode) => {
  const { code, stderr } = await report(await written(options), '--fail-on', failOn);
  expect(code).toBe(exitCode);
  expect(stderr).toMatch(exitCode === 0 ? /^$/ : /conversations fail \(--fail-on|No conversation was played/);
});

test('HTML and JUnit are written, and JUnit fails what --fail-on names', async () => {
  const { code, stderr } = await report(await written(), '--html', 'report.html', '--junit', 'report.xml', '--fail-on', 'worse');
  expect(code).toBe(1);
  expect(stderr).toContain(`written: ${join(dir, 'report.html')}`);
  expect(readFileSync(join(dir, 'report.html'), 'utf8')).toMatch(/^<!doctype html>[^]*<\/html>\n$/);
  expect(readFileSync(join(dir, 'report.xml'), 'utf8')).toMatch(/tests="20" failures="16"[^]*<\/testsuites>\n$/);
});

test('what cannot be read or written is said in one sentence, with the file', async () => {
  const file = await written();
  const text = readFileSync(join(dir, file), 'utf8');
  writeFileSync(join(dir, 'cut.jsonl'), text.slice(0, text.length / 2));
  writeFileSync(join(dir, 'notes.md'), '# Notes\n');
  const cases: readonly [readonly string[], RegExp][] = [
    [['missing.jsonl'], /^cannot read .*missing\.jsonl: ENOENT/],
    [['.'], /^cannot read .*: EISDIR/],
    [['notes.md'], /^cannot read line 1 of ".*notes\.md": it is no JSON\. Open a file that a what-if has written\.\n$/],
    [['cut.jsonl'], /^cannot read line \d+ of ".*cut\.jsonl": the file ends in its middle/],
    [
      [file, '--html', 'no/such/folder.html'],
      /^cannot write the HTML page to .*folder\.html: ENOENT.*Name a file in a folder that is there\.\n$/,
    ],
    [[file, '--fail-on', 'acts,all'], /"all" is none of acts, differs, stopped, worse/],
  ];
  for (const [args, problem] of cases) {
    const { code, stdout, stderr } = await report(...args);
    expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
    expect(stderr).toMatch(problem);
  }
});

test('a report without its totals says so, and does not pass', async () => {
  const text = await sampleFile({});
  writeFileSync(join(dir, 'killed.jsonl'), text.slice(0, text.trimEnd().lastIndexOf('\n') + 1));
  const shown = await report('killed.jsonl');
  expect(shown.code).toBe(0);
  expect(shown.stdout).toContain('The report has no totals');
  expect(await report('killed.jsonl', '--fail-on', 'acts')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('it was not written to its end') as unknown,
  });
});
