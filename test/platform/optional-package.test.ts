import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  installCommand,
  isInstalled,
  loadOptional,
  A2A_PACKAGE,
  ACP_PACKAGE,
  MCP_PACKAGE,
  MCP_SERVER_PACKAGE,
  MissingPackage,
  missingPackage,
  OIDC_PACKAGES,
  OTEL_PACKAGE,
  PAGE_PACKAGES,
  S3_PACKAGE,
  TOKENIZER_PACKAGE,
} from '../../src/platform/optional-package.js';
import { PROVIDERS } from '../../src/models/known-models.js';

const failing = (code: string, message: string): Error => Object.assign(new Error(message), { code });

test.each([
  ['ERR_MODULE_NOT_FOUND', "Cannot find package 'openai' imported from /app/client.js", true],
  ['MODULE_NOT_FOUND', "Cannot find module 'openai'\nRequire stack:\n- /app/client.js", true],
  ['MODULE_NOT_FOUND', "Cannot find module 'openai/resources'", true],
  // What it needs itself, another of a like name, and a file of one that is there but broken.
  ['ERR_MODULE_NOT_FOUND', "Cannot find package 'whatwg-fetch' imported from /app/node_modules/openai/index.js", false],
  ['MODULE_NOT_FOUND', "Cannot find module 'openai-edge'", false],
  ['ERR_MODULE_NOT_FOUND', "Cannot find module '/app/node_modules/openai/core.mjs' imported from /app/x.js", false],
  ['ERR_PACKAGE_PATH_NOT_EXPORTED', "Cannot find module 'openai'", false],
])('%s, %s: that package is missing: %s', async (code, message, isMissing) => {
  const error = failing(code, message);
  expect(missingPackage(error, ['openai']) instanceof MissingPackage).toBe(isMissing);
  const thrown = await loadOptional(['openai'], () => Promise.reject(error)).catch((one: unknown) => one);
  expect(thrown instanceof MissingPackage).toBe(isMissing);
  expect(isMissing ? (thrown as Error).cause : thrown).toBe(error);
});

test('it is said with the command that installs it, in the version that goes with this one', () => {
  expect(installCommand(['openai', OTEL_PACKAGE])).toMatch(/^npm install openai@\d+ @opentelemetry\/sdk-node@0\.\d+$/);
  expect(new MissingPackage(['openai']).message).toMatch(
    /^it needs the package openai, which is not installed \(`npm install openai@\d+`\)$/,
  );
  expect(new MissingPackage([...PAGE_PACKAGES]).message).toContain('the packages @mozilla/readability, linkedom, turndown, which are not');
});

/** Versions that are as good, of a package whose newest needs a newer Node than we do. */
const MORE: Readonly<Record<string, string>> = { [OTEL_PACKAGE]: ' || >=0.200.0 <1.0.0' };

test('all that is loaded so is an optional peer, in the version that the tests run with; and nothing else is', () => {
  const own = JSON.parse(readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8')) as Readonly<
    Record<'dependencies' | 'devDependencies' | 'peerDependencies' | 'peerDependenciesMeta', Readonly<Record<string, unknown>>>
  >;
  const loaded = [
    ...new Set([
      ...[...PROVIDERS.values()].flatMap((one) => one.package ?? []),
      ...PAGE_PACKAGES,
      ...OIDC_PACKAGES,
      A2A_PACKAGE,
      ACP_PACKAGE,
      MCP_PACKAGE,
      MCP_SERVER_PACKAGE,
      OTEL_PACKAGE,
      S3_PACKAGE,
      TOKENIZER_PACKAGE,
    ]),
  ].sort();
  expect(Object.keys(own.peerDependencies).sort()).toEqual(loaded);
  for (const name of loaded) {
    expect({ name, range: own.peerDependencies[name], meta: own.peerDependenciesMeta[name], own: own.dependencies[name] }).toEqual({
      name,
      range: `^${String(own.devDependencies[name])}${MORE[name] ?? ''}`,
      meta: { optional: true },
      own: undefined,
    });
  }
  expect([isInstalled('openai'), isInstalled('not-in-this-project')]).toEqual([true, false]);
});
