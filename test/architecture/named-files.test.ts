/** A file that a comment or a page for developers names is there: a name that leads nowhere costs a reader more than none. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';

const root = resolve(__dirname, '../..');
const files = ['src', 'web/src', 'test', 'scripts', 'bench', 'examples'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => `/${folder}/${path.split(sep).join('/')}`),
);
const PAGES = ['docs/explanation/architecture.md', 'CONTRIBUTING.md'];
/** Made up as an example, or a file of a user's own project. */
const OTHERS = /^(x\.ts|src\/tools\/builtin\/NAME\.ts|[\w-]+\.(config|workspace)\.(ts|mjs))$/;

test('every file that is named in a comment or a page for developers is there', () => {
  const sources = files.filter((path) => path.startsWith('/src/') && path.endsWith('.ts'));
  const missing = [...sources.map((path) => [path, comments(read(path))] as const), ...PAGES.map((path) => [path, read(path)] as const)]
    .flatMap(([path, text]) => namesIn(text).map((name) => ({ path, name })))
    .filter(({ name }) => !OTHERS.test(name) && !files.some((file) => file.endsWith(`/${name}`)));
  expect(missing).toEqual([]);
});

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

function comments(source: string): string {
  return (source.match(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm) ?? []).join('\n');
}

function namesIn(text: string): string[] {
  return [...text.matchAll(/(?<![\w<*/.-])[\w-]+(?:[/.][\w-]+)*\.(?:ts|mjs)\b/g)].map(([name]) => name);
}
