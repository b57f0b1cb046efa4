/** What was once too much is refused, and all goes on. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { standInAWorld, troubleAfter, type Attack } from './attack.js';

const CORPUS = join(__dirname, 'corpus');
const corpus = readdirSync(CORPUS)
  .sort()
  .map((file) => JSON.parse(readFileSync(join(CORPUS, file), 'utf8')) as Attack);

standInAWorld();

test(`${corpus.length} attacks that were once too much: all answer, no workflow task fails, every history replays`, async () => {
  expect(corpus.length).toBeGreaterThan(0);
  expect(await troubleAfter(corpus)).toEqual([]);
});
