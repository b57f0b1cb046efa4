/**
 * `node scripts/readme.mjs`: whether README's table of settings is what src/config.ts says; `--write` mends it. A part of
 * `npm run check`. What stands between the two marks is ours, the rest of README is left as it is.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { report, run } from './report.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const readme = join(root, 'README.md');

const MARKS = ['<!-- settings: from src/config.ts, by `node scripts/readme.mjs --write` -->', '<!-- end of settings -->'];

await run(() => {
  const text = readFileSync(readme, 'utf8');
  const wanted = withTable(text, settingsTable(readSettings()));
  if (text === wanted) return report('README', 'its settings are those of src/config.ts');
  if (!process.argv.includes('--write')) {
    throw Object.assign(new Error("README's settings are not those of src/config.ts: `node scripts/readme.mjs --write` mends it."), {
      exitCode: 1,
    });
  }
  writeFileSync(readme, wanted);
  return report('README', 'its settings are now those of src/config.ts');
});

/** From the source, so that nothing has to be built to be checked. */
function readSettings() {
  const require = createRequire(import.meta.url);
  require(join(root, 'test', 'stores', 'register-swc.cjs'));
  return require(join(root, 'src', 'config.ts')).SETTINGS;
}

function settingsTable(settings) {
  const cells = settings.map(({ name, default: fallback, meaning }) => [
    `\`${name}\``,
    fallback === undefined ? '' : `\`${fallback}\``,
    meaning.replaceAll('|', '\\|'),
  ]);
  return [['name', 'default', 'meaning'], ['---', '---', '---'], ...cells]
    .map((row) => `| ${row.join(' | ')} |`.replace('|  |', '| |'))
    .join('\n');
}

function withTable(text, table) {
  const [begin, end] = MARKS.map((mark) => text.indexOf(mark));
  if (begin === -1 || end < begin) {
    throw Object.assign(new Error(`README has no place for the settings: ${MARKS.join(' … ')}`), { exitCode: 1 });
  }
  return `${text.slice(0, begin + MARKS[0].length)}\n\n${table}\n\n${text.slice(end)}`;
}
