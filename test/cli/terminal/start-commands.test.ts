import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCommands } from '../../../src/cli/services/temporal-connection.js';

test('a clone and an installed package name commands that there are', () => {
  expect(startCommands()).toMatchObject({ isClone: true, chat: 'npm start', up: 'bin/perdura up' });
  const installed = mkdtempSync(join(tmpdir(), 'perdura-installed-'));
  expect(startCommands(installed)).toEqual({
    isClone: false,
    chat: 'npx perdura chat --start-services',
    up: 'npx perdura up',
    worker: 'npx perdura worker',
  });
  rmSync(installed, { recursive: true });
});
