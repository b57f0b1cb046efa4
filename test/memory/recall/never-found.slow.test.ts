import { neverFound } from './never-found.js';

describe.each([
  ['file', {}],
  ['redis', {}],
  ['file', { sealed: 6, cacheBytes: 1_000_000 }],
  ['redis', { sealed: 6, cacheBytes: 1_000_000 }],
  ['file', { sealed: 6, cacheBytes: 2_000 }],
  ['redis', { sealed: 6, cacheBytes: 2_000 }],
] as const)('over %s, %p', (kind, options) => neverFound(kind, options, 60));
