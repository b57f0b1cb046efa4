import { rm } from 'node:fs/promises';

export default async function teardown(): Promise<void> {
  await globalThis.perduraTestTemporal?.stop();
  const dir = process.env['PERDURA_TEST_DIR'];
  if (dir !== undefined) await rm(dir, { recursive: true, force: true });
}
