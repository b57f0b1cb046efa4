/**
 * Runs commands of the built product in one process, one after the other: what it costs to start Node and to load the product is paid
 * once. Whatever differs between two commands comes with the message: arguments, environment and folder. What they write goes to the
 * process's own stdout and stderr, which are files; stdin is empty.
 */
const { join } = require('node:path');
const { Readable } = require('node:stream');

const { main } = require(join(__dirname, '..', '..', 'dist', 'cli', 'main.js'));

process.on('disconnect', () => process.exit());
process.on('message', async ({ args, env, cwd }) => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  Object.defineProperty(process, 'stdin', { value: Readable.from([]), configurable: true });
  const code = await main(args);
  // Each command listens on its own; of eleven Node would warn.
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error');
  process.send({ code });
});
