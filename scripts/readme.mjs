/**
 * `node scripts/readme.mjs`: whether the generated tables of README and docs/ are what the source says; `--write` repairs them. A part of
 * `npm run check`. What stands between two marks belongs to this script, the rest of a page is left as it is.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderShort, renderTables } from '../bench/peers/tables.mjs';
import { report, run } from './report.mjs';
import { readRules, ruleFiles } from './rules.mjs';
import { readRows, rowCells } from './security-rows.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const PEERS_RESULT = 'bench/results/peers.json';

const REGIONS = [
  {
    page: 'docs/reference/settings.md',
    ...madeFrom('settings', 'src/config/settings.ts'),
    render() {
      const { SETTINGS, COMMON_SETTINGS } = load('src/config/settings.ts');
      const rows = SETTINGS.map((setting) => ({
        isCommon: COMMON_SETTINGS.includes(setting),
        cells: [code(setting.name), code(setting.default), setting.meaning],
      }));
      return commonFirst(['name', 'default', 'meaning'], rows);
    },
  },
  {
    page: 'docs/reference/commands.md',
    ...madeFrom('commands', 'src/cli/commands'),
    render: () =>
      load('src/cli/main.ts')
        .listCommands()
        .map(
          ({ heading, commands }) =>
            `### ${heading}\n\n${table(
              ['command', 'what it does'],
              commands.map(({ usage, description }) => [code(usage), description]),
            )}`,
        )
        .join('\n\n'),
  },
  {
    page: 'docs/reference/commands.md',
    ...madeFrom('chat commands', 'src/cli/chat/chat-commands.ts'),
    render: () =>
      table(
        ['in the chat', 'what it does'],
        load('src/cli/chat/chat-commands.ts').CHAT_COMMANDS.map(({ name, argument, meaning }) => [
          code([name, argument].filter(Boolean).join(' ')),
          meaning,
        ]),
      ),
  },
  {
    page: 'docs/reference/agent-json.md',
    ...madeFrom('agent.json', 'src/agents/agent-config.ts'),
    render: () => commonFirst(['field', 'type', 'default', 'meaning'], agentFields()),
  },
  {
    page: 'docs/explanation/architecture.md',
    ...madeFrom('rules', 'heads of files'),
    render: () =>
      table(
        ['rule', 'it says', 'file'],
        readRules(ruleFiles()).rules.map(({ name, text, file }) => [name, text, code(file.replace(/^src\//, ''))]),
      ),
  },
  {
    page: 'docs/security.md',
    ...madeFrom('escapes', 'test/tools/builtin/escapes.json'),
    render: () => {
      const escapes = JSON.parse(readFileSync(join(root, 'test', 'tools', 'builtin', 'escapes.json'), 'utf8'));
      return table(
        ['', 'a command tries to', 'result'],
        escapes.map(({ what }, at) => [String(at + 1), what, 'held']),
      );
    },
  },
  ...[
    ['hostile inputs', 'S'],
    ['faults', 'F'],
  ].map(([name, letter]) => ({
    page: 'docs/security.md',
    ...madeFrom(name, 'test/security/rows.json'),
    render: () =>
      table(
        ['', 'what is tried', 'by which test, in `test/`', 'last result'],
        rowCells(readRows().filter(({ id }) => id.startsWith(letter))),
      ),
  })),
  { page: 'README.md', marks: ['<!-- peers -->', '<!-- /peers -->'], render: () => peers({ isShort: true }) },
  {
    page: 'docs/explanation/comparison.md',
    marks: ['<!-- peers -->', '<!-- /peers -->'],
    render: () => peers({ isShort: false }),
  },
];

await run(() => {
  const pages = new Map();
  for (const { page, marks, render } of REGIONS) {
    const text = pages.get(page) ?? readFileSync(join(root, page), 'utf8');
    pages.set(page, withRegion(page, text, marks, render()));
  }
  const stale = [...pages].filter(([page, wanted]) => readFileSync(join(root, page), 'utf8') !== wanted);
  if (stale.length === 0) return report('Tables', 'those of README and docs are as the source says');
  if (!process.argv.includes('--write')) {
    const names = stale.map(([page]) => page).join(', ');
    throw Object.assign(new Error(`Tables of ${names} are not as the source says: run \`node scripts/readme.mjs --write\`.`), {
      exitCode: 1,
    });
  }
  for (const [page, wanted] of stale) writeFileSync(join(root, page), wanted);
  return report('Tables', `written: ${stale.map(([page]) => page).join(', ')}`);
});

function madeFrom(name, source) {
  return { marks: [`<!-- ${name}: from ${source}, by \`node scripts/readme.mjs --write\` -->`, `<!-- end of ${name} -->`] };
}

/** From the source, so that nothing has to be built to be checked. */
function load(source) {
  const require = createRequire(import.meta.url);
  require(join(root, 'test', 'stores', 'register-swc.cjs'));
  return require(join(root, source));
}

function withRegion(page, text, marks, content) {
  const [begin, end] = marks.map((mark) => text.indexOf(mark));
  if (begin === -1 || end < begin) {
    throw Object.assign(new Error(`${page} has no place for a generated table: add ${marks.join(' … ')}`), { exitCode: 1 });
  }
  return `${text.slice(0, begin + marks[0].length)}\n\n${content}\n\n${text.slice(end)}`;
}

/** The figures of `bench/peers`. README has five rows, the page of the comparison has all of it. */
function peers({ isShort }) {
  const file = join(root, PEERS_RESULT);
  if (!existsSync(file)) {
    return `Not measured for this version. \`bench/peers\` says how to run it; \`${PEERS_RESULT}\` is where its result belongs.`;
  }
  const measured = JSON.parse(readFileSync(file, 'utf8'));
  return isShort ? renderShort(measured) : renderTables(measured).trim();
}

/** Two tables: most people need ten rows and no more. */
function commonFirst(heads, rows) {
  const common = rows.filter(({ isCommon }) => isCommon);
  if (common.length !== 10) throw Object.assign(new Error(`${common.length} rows are marked as common, and not ten`), { exitCode: 1 });
  const others = rows.filter(({ isCommon }) => !isCommon);
  const render = (some) =>
    table(
      heads,
      some.map(({ cells }) => cells),
    );
  return `## The ten that most people set\n\n${render(common)}\n\n## All others\n\n${render(others)}`;
}

/** Path, type, default and meaning of every field: the first three from the schema, the meaning from the comment before it. */
function agentFields() {
  const source = 'src/agents/agent-config.ts';
  const { agentConfigSchema } = load(source);
  const { z } = createRequire(import.meta.url)('zod');
  const schema = z.toJSONSchema(agentConfigSchema, { io: 'input', unrepresentable: 'any' });
  const meanings = commentsOf(readFileSync(join(root, source), 'utf8'));
  return fieldsOf(schema, '').map(({ path, field }) => ({
    isCommon: field.common,
    cells: [code(path), typeOf(field), defaultOf(field), meanings.get(path) ?? ''],
  }));
}

function fieldsOf(schema, prefix) {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = `${prefix}${name}`;
    return field.properties === undefined ? [{ path, field }] : fieldsOf(field, `${path}.`);
  });
}

function typeOf({ type, enum: values, const: value, anyOf, items, minimum, maximum, maxLength, maxItems }) {
  if (values) return values.map((one) => code(JSON.stringify(one))).join(', ');
  if (value !== undefined) return code(JSON.stringify(value));
  if (anyOf) return anyOf.map(typeOf).join(' or ');
  if (type === 'array') return `list of ${items?.type ?? 'values'}s${maxItems ? `, at most ${maxItems.toLocaleString('en')}` : ''}`;
  const bounds = [minimum, maximum].map((bound) => (Math.abs(bound) < Number.MAX_SAFE_INTEGER ? bound.toLocaleString('en') : ''));
  const range = bounds[1] !== '' ? `, ${bounds[0]} to ${bounds[1]}` : bounds[0] === '' ? '' : `, ${bounds[0]} or more`;
  return `${type}${range}${maxLength ? `, at most ${maxLength.toLocaleString('en')} characters` : ''}`;
}

function defaultOf({ default: value }) {
  return value === undefined ? '' : code(JSON.stringify(value));
}

/** A field's path → the comment before it. Parts of the schema are constants, `agentLimits` of `limits`; deeper objects are indented more. */
function commentsOf(text) {
  const meanings = new Map();
  for (const [, part, body] of text.matchAll(/const agent(\w+) = z([\s\S]*?)\n(?=const|export|function|\/\*\*)/g)) {
    const top = part === 'ConfigSchema' ? [] : [part.toLowerCase()];
    const open = [];
    for (const [, comment, indent, name] of body.matchAll(/(?:\/\*\*((?:(?!\*\/)[\s\S])*?)\*\/\s*?)?\n( +)(\w+): /g)) {
      while (open.length > 0 && open.at(-1).indent >= indent.length) open.pop();
      open.push({ indent: indent.length, name });
      if (comment) meanings.set([...top, ...open.map((one) => one.name)].join('.'), sentence(comment));
    }
  }
  return meanings;
}

function sentence(comment) {
  return comment
    .replace(/\n\s*\*/g, ' ')
    .replace(/\(?\bseed \d+[^)]*\)/g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ([.;,])/g, '$1')
    .trim();
}

function table(head, rows) {
  return [head, head.map(() => '---'), ...rows]
    .map((row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`.replaceAll('|  |', '| |').replaceAll('|  |', '| |'))
    .join('\n');
}

function code(text = '') {
  return text === '' ? '' : `\`${text}\``;
}
