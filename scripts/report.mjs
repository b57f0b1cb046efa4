/** One line per thing found, fetched or started, with its reason, on stderr: stdout belongs to data. */
export function report(what, text) {
  process.stderr.write(`  ✔ ${what.padEnd(9)}  ${text}\n`);
}

/** A thing that cannot be had. The message says what, why, and how to get it; the process ends with exit code 3. */
export class Missing extends Error {
  exitCode = 3;
}

/** Runs a script's main function; every failure is said in words and becomes the exit code. */
export async function run(main) {
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    process.stderr.write(`\n${error.exitCode === undefined ? (error.stack ?? error) : error.message}\n`);
    process.exitCode = error.exitCode ?? 1;
  }
}

export function seconds(since) {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`;
}
