/** What `npm publish` would send has every page, picture and folder that its pages lead to. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { isComing, ROOT } from '../readme/commands.js';

const packed = ((): readonly string[] => {
  const args = ['pack', '--dry-run', '--ignore-scripts', '--json'];
  const listing = execFileSync('npm', args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 16 * 1024 * 1024,
  });
  return [...listing.matchAll(/"path":\s*"([^"]+)"/g)].map(([, path = '']) => path);
})();

/** What its links lead to, from the top. */
function placesIn(page: string): string[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => posix.normalize(posix.join(posix.dirname(page), target)));
}

const pages = packed.filter((path) => path.endsWith('.md'));

test('README, the pages of docs/ and of the examples are among them', () => {
  expect(packed).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'docs/how-to/extending.md', 'examples/own-agent/README.md']));
});

test.each(pages)('all that %s leads to is in the tarball', (page) => {
  const missing = placesIn(page).filter(
    (place) => !isComing(place) && !packed.some((path) => path === place || path.startsWith(`${place.replace(/\/$/, '')}/`)),
  );
  expect(missing).toEqual([]);
});

test('nothing of what running a project leaves behind is in it', () => {
  const outside = packed.filter((path) => !path.startsWith('dist/'));
  expect(outside.filter((path) => /(^|\/)(\.perdura|\.env|node_modules|memory)(\/|$)|\.(tgz|jsonl|map)$/.test(path))).toEqual([]);
});

test('package.json says what a registry shows', () => {
  const about = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Readonly<Record<string, unknown>>;
  expect(about).toMatchObject({
    license: 'MIT',
    description: expect.stringMatching(/\w/),
    keywords: expect.arrayContaining(['agents', 'temporal']),
  });
});
