/** Packages that are ESM alone, which jest loads no other way than compiled. */
const ESM_ONLY = [
  '@agentclientprotocol|jose|openid-client|oauth4webapi|oauth2-mock-server|is-plain-obj',
  'string-width|strip-ansi|ansi-regex|get-east-asian-width|@clack|fast-string-width|fast-string-truncated-width|fast-wrap-ansi|sisteransi',
].join('|');

module.exports = {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'commonjs' }, sourceMaps: 'inline' },
    ],
    [`/node_modules/(${ESM_ONLY})/.+\\.m?js$`]: ['@swc/jest', { jsc: { target: 'es2022' }, module: { type: 'commonjs' } }],
  },
  transformIgnorePatterns: [`/node_modules/(?!(${ESM_ONLY})/)`],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1', '^fast-check$': '<rootDir>/test/support/seeded-fast-check.cjs' },
  runtime: '<rootDir>/test/support/runtime.cjs',
  globalSetup: '<rootDir>/test/support/global-setup.cjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  testTimeout: 60000,
  testSequencer: '<rootDir>/test/support/longest-first.cjs',
  // Half of a test is waiting, for a server or for a dead worker's time-out: four keep two cores busy.
  maxWorkers: 4,
  // Between two files a worker that has grown beyond this begins anew: four of them would take 5 GB at the end.
  workerIdleMemoryLimit: '900MB',
};
