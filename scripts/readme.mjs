/**
 * `node scripts/readme.mjs`: whether README's tables are what the source says; `--write` mends it. A part of `npm run check`.
 * What stands between two marks is ours, the rest of README is left as it is.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { report, run } from './report.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const readme = join(root, 'README.md');

const TABLES = [
  {
    name: 'settings',
    source: 'src/config/settings.ts',
    head: ['name', 'default', 'meaning'],
    rows: ({ SETTINGS }) => SETTINGS.map(({ name, default: fallback, meaning }) => [code(name), code(fallback), meaning]),
  },
  {
    name: 'chat commands',
    source: 'src/cli/chat/chat-commands.ts',
    head: ['in the chat', 'what it does'],
    rows: ({ CHAT_COMMANDS }) =>
      CHAT_COMMANDS.map(({ name, argument, meaning }) => [code([name, argument].filter(Boolean).join(' ')), meaning]),
  },
];

await run(() => {
  const text = readFileSync(readme, 'utf8');
  const wanted = TABLES.reduce(withTable, text);
  if (text === wanted) return report('README', 'its tables are those of the source');
  if (!process.argv.includes('--write')) {
    throw Object.assign(new Error("README's tables are not those of the source: `node scripts/readme.mjs --write` mends it."), {
      exitCode: 1,
    });
  }
  writeFileSync(readme, wanted);
  return report('README', 'its tables are now those of the source');
});

/** From the source, so that nothing has to be built to be checked. */
function load(source) {
  const require = createRequire(import.meta.url);
  require(join(root, 'test', 'stores', 'register-swc.cjs'));
  return require(join(root, source));
}

function withTable(text, { name, source, head, rows }) {
  const marks = [`<!-- ${name}: from ${source}, by \`node scripts/readme.mjs --write\` -->`, `<!-- end of ${name} -->`];
  const [begin, end] = marks.map((mark) => text.indexOf(mark));
  if (begin === -1 || end < begin) {
    throw Object.assign(new Error(`README has no place for the ${name}: ${marks.join(' … ')}`), { exitCode: 1 });
  }
  const table = [head, head.map(() => '---'), ...rows(load(source))]
    .map((row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`.replace('|  |', '| |'))
    .join('\n');
  return `${text.slice(0, begin + marks[0].length)}\n\n${table}\n\n${text.slice(end)}`;
}

function code(text = '') {
  return text === '' ? '' : `\`${text}\``;
}
