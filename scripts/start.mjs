/** `npm start`: from a fresh clone to a chat. Arguments after `--` go to the chat. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { run } from './report.mjs';

await run(async () => {
  await prepare({ tests: false, types: false });
  const { main, endProcessWith } = createRequire(import.meta.url)(join(root, 'dist', 'cli', 'main.js'));
  const exitCode = await main(['chat', '--start-services', ...process.argv.slice(2)]);
  endProcessWith(exitCode);
  return exitCode;
});
