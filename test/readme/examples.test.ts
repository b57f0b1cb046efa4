/** What README and the pages of docs/ show as settings is taken by what reads them. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { tenantBudgetRules, webhookRules } from '../../src/config/webhooks.js';
import { agentConfigSchema } from '../../src/agents/agent-config.js';
import { parseAuthFile } from '../../src/gateway/access/auth-file.js';
import { mcpConfigSchema } from '../../src/tools/mcp/server-config.js';
import { fencedBlocks, pagesOfDocs, read, ROOT } from './commands.js';

const pages = pagesOfDocs();

const samples = pages.flatMap((page) =>
  fencedBlocks(read(page))
    .filter(({ language, text }) => language === 'json' && !text.includes('"level"'))
    .map(({ text }, at) => [page, at + 1, text] as const),
);

test.each(samples)('%s, sample %i is read as it stands', (page, _at, text) => {
  const sample: unknown = JSON.parse(text);
  if (text.includes('"jwt"')) {
    expect(parseAuthFile(text, page)).toMatchObject(sample as object);
    return;
  }
  const rules = text.includes('"day"') ? tenantBudgetRules : webhookRules;
  const rest = Array.isArray(sample) ? rules : agentConfigSchema;
  const schema = text.includes('"mcpServers"') ? mcpConfigSchema.strict() : rest;
  expect(schema.safeParse(sample).error?.issues ?? []).toEqual([]);
});

test('README and docs/ lead only to pages that are there', () => {
  const missing = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .map((target) => join(page, '..', target))
      .filter((target) => !isThere(target)),
  );
  expect(missing).toEqual([]);
});

function isThere(path: string): boolean {
  try {
    readdirSync(join(ROOT, path));
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOTDIR';
  }
}
