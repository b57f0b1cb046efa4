/** Every block of README and docs says what it is, and is run by a test or says why not: what runs them are the slow files of this folder. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { exemptionOf, fencedBlocks, pagesOfDocs, read, ROOT } from './commands.js';

test('each block of README says in which language it is, so that no command is taken for a drawing', () => {
  const languages = fencedBlocks(read('README.md')).map(({ language }) => language);
  expect(languages.filter((language) => !['sh', 'text', 'js', 'json'].includes(language))).toEqual([]);
});

test('each block is run, or says why not; so many are not', () => {
  const exempt = pagesOfDocs().flatMap((page) =>
    fencedBlocks(read(page)).flatMap((block) => {
      const why = exemptionOf(block);
      return why === undefined ? [] : [`${page}: ${why}`];
    }),
  );
  const elsewhere = exempt.flatMap((one) => /: run by (\S+?\.ts)/.exec(one)?.[1] ?? []);
  expect(elsewhere.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  expect(exempt.filter((one) => !/: run by /.test(one))).toEqual([
    'docs/how-to/start.md: not run: needs the npm registry',
    'docs/operations/deploying.md: not run: needs Docker',
    'docs/operations/kubernetes.md: not run: needs a cluster',
    'docs/tutorial.md: not run: needs the npm registry',
  ]);
});

test('no block leaves its language out, so that no command passes for a drawing', () => {
  const LANGUAGES = ['sh', 'text', 'ts', 'js', 'tsx', 'json', 'yaml', 'sql', 'python', 'dotenv', 'conf'];
  const others = pagesOfDocs().flatMap((page) =>
    fencedBlocks(read(page))
      .filter(
        ({ language, text }) => !LANGUAGES.includes(language) || (language === 'text' && /^(\$ |perdura |npm |npx |docker )/m.test(text)),
      )
      .map(({ language, text }) => `${page}: ${language} ${text.slice(0, 40)}`),
  );
  expect(others).toEqual([]);
});
