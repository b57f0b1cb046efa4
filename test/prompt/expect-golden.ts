import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The prompt is that of golden/NAME.txt. `PERDURA_GOLDEN=write` writes it anew. */
export function expectGolden(name: string, prompt: string): void {
  const file = join(__dirname, 'golden', `${name}.txt`);
  if (process.env['PERDURA_GOLDEN'] === 'write') writeFileSync(file, prompt);
  expect(prompt).toBe(readFileSync(file, 'utf8'));
}
