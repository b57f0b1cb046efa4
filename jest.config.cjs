/** Packages that are ESM alone, which jest loads no other way than compiled. */
const ESM_ONLY = [
  '@agentclientprotocol|jose|openid-client|oauth4webapi|oauth2-mock-server|is-plain-obj',
  'string-width|strip-ansi|ansi-regex|get-east-asian-width|@clack|fast-string-width|fast-string-truncated-width|fast-wrap-ansi|sisteransi',
].join('|');

/**
 * Which file runs when: the one place that says so (scripts/test.mjs chooses).
 *
 * first  `npm test`: what a change can break, in minutes. Tests of what a conversation decides (test/workflows) run without Temporal.
 * slow   the rest of `npm run test:all`: random kills, storms, tours of the page, installs, tutorials by the letter, mutants, hostile
 *        sizes. Each of its families has one true case in the first tier. Tests of decisions run again here, on Temporal.
 * any    for files that are named.
 */
const SLOW = '\\.slow\\.test\\.ts$';
const TIERS = {
  first: { testMatch: ['**/*.test.ts'], testPathIgnorePatterns: [SLOW] },
  slow: { testMatch: ['**/*.slow.test.ts', '**/test/workflows/**/*.test.ts'] },
  any: { testMatch: ['**/*.test.ts'] },
};
const tier = process.env.PERDURA_TEST_TIER ?? 'any';
process.env.PERDURA_TEST_ENGINE ??= tier === 'slow' ? 'temporal' : 'memory';

module.exports = {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  ...TIERS[tier],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'commonjs' }, sourceMaps: 'inline' },
    ],
    '/scripts/.+\\.mjs$': ['@swc/jest', { jsc: { target: 'es2022' }, module: { type: 'commonjs' } }],
    [`/node_modules/(${ESM_ONLY})/.+\\.m?js$`]: ['@swc/jest', { jsc: { target: 'es2022' }, module: { type: 'commonjs' } }],
  },
  transformIgnorePatterns: [`/node_modules/(?!(${ESM_ONLY})/)`],
  moduleNameMapper: {
    '^(\\.{1,2}/.*)\\.js$': '$1',
    '^fast-check$': '<rootDir>/test/support/seeded-fast-check.cjs',
    // What recorded evals import.
    '^perdura/evals$': '<rootDir>/src/evals/index.ts',
  },
  runtime: '<rootDir>/test/support/runtime.cjs',
  globalSetup: '<rootDir>/test/support/global-setup.cjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  testTimeout: 600000,
  testSequencer: '<rootDir>/test/support/longest-first.cjs',
  // Half of a test is waiting, for a server or for a dead worker's time-out: four keep two cores busy.
  maxWorkers: 4,
  // Between two files a worker that has grown beyond this begins anew: four of them would take 5 GB at the end.
  workerIdleMemoryLimit: '900MB',
};
