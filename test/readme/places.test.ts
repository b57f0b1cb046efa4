import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(__dirname, '..', '..');

/** Files and folders that are named by their place, from the top or from `src/`. */
function placesIn(document: string): string[] {
  const text = readFileSync(join(root, document), 'utf8');
  const named = [...text.matchAll(/`((?:[\w.-]+\/)+[\w.-]*)`|\]\(([^)#]+)\)/g)].map(
    ([, place, link]) => place ?? join(document, '..', link ?? ''),
  );
  return [...new Set(named)].filter((place) => !/^https?:|NAME|VERSION/.test(place));
}

test.each(['CONTRIBUTING.md', 'docs/explanation/architecture.md'])('every place that %s names is there', (document) => {
  const places = placesIn(document);
  expect(places.length).toBeGreaterThan(10);
  expect(places.filter((place) => !existsSync(join(root, place)) && !existsSync(join(root, 'src', place)))).toEqual([]);
});
