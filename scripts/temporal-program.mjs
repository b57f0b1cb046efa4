import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { report } from './report.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Where Temporal's server is, for the environment of a program: as `npm test` finds it; without a build the tests' own server looks for one. */
export async function temporalProgram() {
  const finder = join(root, 'dist', 'cli', 'services', 'temporal-binary.js');
  if (!existsSync(finder)) return {};
  const { findTemporalBinary } = createRequire(import.meta.url)(finder);
  const { path } = await findTemporalBinary((text) => report('Temporal', text));
  return { PERDURA_TEST_TEMPORAL: path };
}
