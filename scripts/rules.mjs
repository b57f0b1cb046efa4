/**
 * `node scripts/rules.mjs`: whether every rule has one name, one head of a file and a test, and every reference to a rule has a rule. A part
 * of `npm run check`; readme.mjs makes the table of rules of it.
 *
 * A rule is `@rule folder/claim: sentence (test: path)` in a comment of src or web/src. Code, tests and docs refer to it as its name in
 * parentheses; the claim has two words at least, so that a media type is no reference.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { report, run } from './report.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const FOLDERS = ['src', 'web/src', 'test', 'scripts', 'bench', 'docs'];
const DEFINING = /^(src|web\/src)\//;
const READ = /\.(ts|tsx|mjs|cjs|md)$/;

const NAME = '[a-z][a-z0-9-]*/[a-z0-9]+(?:-[a-z0-9]+)+';
const DEFINITION = new RegExp(String.raw`@rule (\S+?): (.*?) \(test: (\S+)\)`, 'g');
const REFERENCE = new RegExp(String.raw`\((${NAME}(?:, ${NAME})*)\)`, 'g');
const LETTER = /^ \* [A-Z]\d+(?: {2}|\. )/m;

/** Of files as `{ path, text }`: the rules as `{ name, text, test, file }` in their order, and what is wrong, in words. */
export function readRules(files) {
  const rules = [];
  const problems = [];
  for (const { path, text } of files.filter((file) => DEFINING.test(file.path))) {
    const found = [...flat(text).matchAll(DEFINITION)].map(([, name, sentence, test]) => ({ name, text: sentence, test, file: path }));
    const tags = text.match(/@rule\b/g)?.length ?? 0;
    if (tags !== found.length) problems.push(`${path}: write each rule as \`@rule folder/claim: sentence (test: path)\``);
    rules.push(...found);
  }
  const paths = new Set(files.map(({ path }) => path));
  const names = new Map();
  for (const { name, test, file } of rules) {
    if (!new RegExp(`^${NAME}$`).test(name))
      problems.push(`${file}: ${name} is no name of a rule: folder/claim, the claim of two words or more`);
    else if (!file.split('/').includes(name.split('/')[0])) problems.push(`${file}: ${name} has to begin with a folder of this file`);
    if (names.has(name)) problems.push(`${file}: ${name} is defined in ${names.get(name)} too`);
    names.set(name, file);
    if (!test.startsWith('test/') || !paths.has(test)) problems.push(`${file}: the test of ${name}, ${test}, is not there`);
  }
  for (const { path, text } of files) {
    const referred = [...flat(text).matchAll(REFERENCE)].flatMap(([, list]) => list.split(', '));
    for (const name of new Set(referred)) if (!names.has(name)) problems.push(`${path}: there is no rule (${name})`);
    if (LETTER.test(text)) problems.push(`${path}: a rule has a name, not a letter: ${LETTER.exec(text)[0].trim()}`);
  }
  return { rules, problems };
}

/** The files that define rules or refer to them. */
export function ruleFiles() {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .map((path) => join(folder, path).split(sep).join('/'))
      .filter((path) => READ.test(path) && !path.includes('/node_modules/')),
  )
    .concat('CONTRIBUTING.md', 'README.md')
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

/** Comments as one line each, so that a rule may be broken anywhere. */
function flat(text) {
  return text.replace(/\n\s*(?:\*(?!\/)|\/\/)[ \t]*/g, ' ').replace(/ +/g, ' ');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  void run(() => {
    const { rules, problems } = readRules(ruleFiles());
    for (const problem of problems) process.stderr.write(`${problem}\n`);
    if (problems.length > 0) return 1;
    return report('Rules', `${rules.length}, each defined once, with a test`);
  });
}
