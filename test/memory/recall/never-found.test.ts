import { neverFound } from './never-found.js';

describe('over files, with parts that are sealed early and leave the memory', () =>
  neverFound('file', { sealed: 6, cacheBytes: 2_000 }, 6));
